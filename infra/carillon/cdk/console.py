"""The console, served by the stack: a function without rights, on the API's own address."""

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_apigatewayv2 as gateway
from aws_cdk import aws_apigatewayv2_integrations as integrations
from aws_cdk import aws_cognito as cognito
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from carillon.cdk import packages
from carillon.cdk.assets import built
from carillon.cdk.constructs.functions import FINDINGS
from carillon.cdk.constructs.helpers import acknowledge
from carillon.cdk.options import Options
from carillon.cdk.runtime import runtime_of
from carillon.cdk.users import Users

PATH = "console/index.html"
ROUTES = ("/console", "/console/{proxy+}")
_OPEN = "it serves the files of a page, which are no secret; the page's requests bear a token"


class Console(Construct):
    """`client_id` is what its tokens are for, `sign_in_url` where people sign in to the pool; empty
    for another issuer, whose own description says it."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        options: Options,
        users: Users | None,
        http_api: gateway.HttpApi,
    ) -> None:
        super().__init__(scope, construct_id)
        self.client_id, self.sign_in_url = options.console_client_id, ""
        if users is not None:
            self._sign_in_to(users, http_api)
        # A policy's source with a path is that one address; the issuer's has more below and beside.
        issuer = "/".join(options.issuer.split("/")[:3])
        function = self._function(options, " ".join(filter(None, (issuer, self.sign_in_url))))
        integration = integrations.HttpLambdaIntegration("Function", function)
        for path in ROUTES:
            (route,) = http_api.add_routes(
                path=path, methods=[gateway.HttpMethod.GET], integration=integration
            )
            acknowledge(route, "AwsSolutions-APIG4", _OPEN)

    def _sign_in_to(self, users: Users, http_api: gateway.HttpApi) -> None:
        self.sign_in_url = users.sign_in_url
        page = f"{http_api.api_endpoint}/{PATH}"
        client = users.pool.add_client(
            "Console",
            prevent_user_existence_errors=True,
            access_token_validity=Duration.hours(1),
            refresh_token_validity=Duration.hours(12),
            enable_token_revocation=True,
            refresh_token_rotation_grace_period=Duration.seconds(30),
            o_auth=cognito.OAuthSettings(
                flows=cognito.OAuthFlows(authorization_code_grant=True),
                scopes=[cognito.OAuthScope.OPENID],
                callback_urls=[page],
                logout_urls=[page],
            ),
        )
        own = client.node.default_child
        assert isinstance(own, cognito.CfnUserPoolClient)
        # Without any, Cognito allows the exchange of refresh tokens that are never rotated.
        own.explicit_auth_flows = ["ALLOW_USER_SRP_AUTH"]
        self.client_id = client.user_pool_client_id

    def _function(self, options: Options, connect_to: str) -> lambda_.Function:
        log_group = logs.LogGroup(
            self, "Logs", retention=options.log_retention, removal_policy=RemovalPolicy.DESTROY
        )
        role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
        log_group.grant_write(role)
        runtime = runtime_of(options.python)
        function = lambda_.Function(
            self,
            "Function",
            code=built(packages.console_digest(), packages.build_console, runtime),
            handler="carillon.console.handler.handler",
            runtime=runtime,
            architecture=lambda_.Architecture.ARM_64,
            role=role,
            log_group=log_group,
            logging_format=lambda_.LoggingFormat.JSON,
            system_log_level_v2=lambda_.SystemLogLevel.WARN,
            memory_size=128,
            timeout=Duration.seconds(10),
            environment={"CONNECT_TO": connect_to, "POWERTOOLS_SERVICE_NAME": "console"},
            description="Serves the files of the console",
        )
        for rule, reason in FINDINGS.items():
            acknowledge(self, rule, reason)
        return function
