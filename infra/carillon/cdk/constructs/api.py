"""The HTTP API with its authorizer: a Cognito user pool, or any OIDC issuer."""

import json
from collections.abc import Mapping

import jsii
from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_apigateway as rest
from aws_cdk import aws_apigatewayv2 as gateway
from aws_cdk import aws_apigatewayv2_authorizers as authorizers
from aws_cdk import aws_apigatewayv2_integrations as integrations
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from carillon.cdk.console import Console
from carillon.cdk.constructs.helpers import acknowledge
from carillon.cdk.emulation import Emulation
from carillon.cdk.options import Options
from carillon.cdk.users import Users
from carillon.errors import ConfigurationError

STAGE_SHARES = 10
"""The stage lets through what this many owners may send at their limits; more share it."""
_METHOD = gateway.HttpMethod
OPEN_ROUTES = {
    "/openapi.json": (
        _METHOD.GET,
        "it holds nothing of any owner; tools fetch it before they have a token",
    ),
    "/.well-known/carillon": (
        _METHOD.GET,
        "it holds nothing of any owner; clients fetch it to learn where they sign in",
    ),
    "/completions/{run_id}/{action}": (
        _METHOD.POST,
        "reports carry the secret of their attempt, which the function checks against its row",
    ),
}
"""The routes without a token of the identity provider, and why it is not asked."""

ROOTS_OF_TEAMS = ("aws", "aws-admin")
"""The paths `/aws/{team}` are for roles of IAM, which have no token: their policies name path, team
and methods. Who may use the second is an admin of the team."""
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
_GRANTS = {
    "viewer": (("aws", "GET"),),
    "editor": tuple(("aws", method) for method in _METHODS),
    "admin": tuple((root, method) for root in ROOTS_OF_TEAMS for method in _METHODS),
}

REQUEST_HEADERS = ("content-type", "if-match", "if-none-match", "idempotency-key", "carillon-team")
ANSWER_HEADERS = ("etag", "location", "retry-after")

ACCESS_LOG_FIELDS = {
    "request_id": "$context.requestId",
    "requested_at": "$context.requestTime",
    "source_ip": "$context.identity.sourceIp",
    "method": "$context.httpMethod",
    "path": "$context.path",
    "status": "$context.status",
    "response_bytes": "$context.responseLength",
    "latency_ms": "$context.responseLatency",
    "owner": "$context.authorizer.claims.sub",
    "authorizer_error": "$context.authorizer.error",
}


@jsii.implements(gateway.IAccessLogSettings)
class _AccessLog:
    """One JSON object a line, into `log_group`."""

    def __init__(self, log_group: logs.ILogGroup) -> None:
        self._destination = gateway.LogGroupLogDestination(log_group)

    @property
    def destination(self) -> gateway.IAccessLogDestination:
        return self._destination

    @property
    def format(self) -> rest.AccessLogFormat | None:
        return rest.AccessLogFormat.custom(json.dumps(ACCESS_LOG_FIELDS))


def _methods(options: Options) -> list[gateway.HttpMethod]:
    """All; but a route for ANY would ask preflight requests, which bear no token, for one."""
    if not options.cors_origins:
        return [gateway.HttpMethod.ANY]
    method = gateway.HttpMethod
    return [method.GET, method.HEAD, method.POST, method.PUT, method.PATCH, method.DELETE]


def _cors(options: Options) -> gateway.CorsPreflightOptions | None:
    """The rules for pages of other sites; the gateway answers their preflight requests without a
    token."""
    if not options.cors_origins:
        return None
    return gateway.CorsPreflightOptions(
        allow_origins=list(options.cors_origins),
        allow_methods=[gateway.CorsHttpMethod.ANY],
        allow_headers=["authorization", *REQUEST_HEADERS],
        expose_headers=list(ANSWER_HEADERS),
        max_age=Duration.hours(1),
    )


def throttle(options: Options) -> gateway.ThrottleSettings | None:
    """The requests that the stage lets through, for all owners."""
    if not options.owner_requests_per_second:
        return None
    return gateway.ThrottleSettings(
        rate_limit=STAGE_SHARES * options.owner_requests_per_second,
        burst_limit=STAGE_SHARES * options.owner_requests_burst,
    )


class Api(Construct):
    """Every route needs a token but the API's own description."""

    def __init__(
        self, scope: Construct, construct_id: str, options: Options, function: lambda_.IFunction
    ) -> None:
        super().__init__(scope, construct_id)
        self.users: Users | None = None if options.issuer else Users(self, "Users", options)
        self.http_api = gateway.HttpApi(
            self,
            "Http",
            api_name=options.name,
            description="Carillon",
            create_default_stage=False,
            cors_preflight=_cors(options),
        )
        self.stage = self._stage(options)
        self._integration = integration = integrations.HttpLambdaIntegration("Function", function)
        self._roots: set[str] = set()
        self.issuer, self.audience = options.issuer, options.audience
        self.machines: Mapping[str, str] = {}
        if self.users is not None:
            self.issuer, self.audience = self.users.issuer, self.users.client.user_pool_client_id
            self.machines = self.users.machines
        self.console = (
            Console(self, "Console", options, self.users, self.http_api)
            if options.console
            else None
        )
        audiences = [
            self.audience,
            *([self.console.client_id] if self.console else []),
            *self.machines.values(),
        ]
        authorizer = authorizers.HttpJwtAuthorizer("Jwt", self.issuer, jwt_audience=audiences)
        for path in ("/", "/{proxy+}"):
            self.http_api.add_routes(
                path=path,
                methods=_methods(options),
                integration=integration,
                authorizer=authorizer,
            )
        for path, (method, reason) in OPEN_ROUTES.items():
            self._open_route(path, method, reason, integration)

    def url(self, emulation: Emulation) -> str:
        """The API's address without a slash at its end; of an emulator's API only the path."""
        if emulation.is_on:
            return f"/_aws/execute-api/{self.http_api.api_id}/$default"
        return self.http_api.api_endpoint

    def token_url(self, emulation: Emulation) -> str:
        """The address at which machines get their tokens; of an emulator only the path. Empty
        without machines."""
        if self.users is None or not self.machines:
            return ""
        return "/oauth2/token" if emulation.is_on else f"{self.users.sign_in_url}/oauth2/token"

    def allow_team(self, grantee: iam.IGrantable, team: str, role: str) -> None:
        """Let a role of IAM act for a team, as `role` says; raises ConfigurationError."""
        if role not in _GRANTS:
            message = f"{role!r} is none: expected {' or '.join(_GRANTS)}"
            raise ConfigurationError("role", message)
        for root in dict.fromkeys(root for root, _ in _GRANTS[role]):
            self._open_to_teams(root)
        resources = [
            self.http_api.arn_for_execute_api(method, f"/{root}/{team}/*", self.stage.stage_name)
            for root, method in _GRANTS[role]
        ]
        iam.Grant.add_to_principal(
            grantee=grantee, actions=["execute-api:Invoke"], resource_arns=resources
        )

    def _open_to_teams(self, root: str) -> None:
        if root in self._roots:
            return
        self._roots.add(root)
        self.http_api.add_routes(
            path=f"/{root}/{{team}}/{{proxy+}}",
            methods=[gateway.HttpMethod.ANY],
            integration=self._integration,
            authorizer=authorizers.HttpIamAuthorizer(),
        )

    def _open_route(
        self,
        path: str,
        method: gateway.HttpMethod,
        reason: str,
        integration: integrations.HttpLambdaIntegration,
    ) -> None:
        for route in self.http_api.add_routes(path=path, methods=[method], integration=integration):
            acknowledge(route, "AwsSolutions-APIG4", reason)

    def _stage(self, options: Options) -> gateway.HttpStage:
        log_group = logs.LogGroup(
            self,
            "AccessLogs",
            # AWS lets the service write to groups with this prefix without a line for each in the
            # account's resource policy for logs, whose length is limited.
            log_group_name=f"/aws/vendedlogs/{options.name}/access",
            retention=options.log_retention,
            removal_policy=RemovalPolicy.DESTROY,
        )
        limits = throttle(options)
        stage = gateway.HttpStage(
            self,
            "Stage",
            http_api=self.http_api,
            stage_name="$default",
            auto_deploy=True,
            throttle=limits,
            access_log_settings=_AccessLog(log_group),
        )
        if limits is None:
            reason = "no limit is wanted: the option owner_requests_per_second is 0"
            acknowledge(stage, "Serverless-APIGWDefaultThrottling", reason)
        return stage
