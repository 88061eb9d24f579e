import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from carillon.cdk.constructs.api import throttle
from carillon.cdk.constructs.storage import SECRET_LENGTH
from carillon.cdk.options import Options
from tests.infra.stacks import REGION, SynthesizedStack, deployed, referred, synthesize


def routes(stack: SynthesizedStack) -> dict[str, Mapping[str, Any]]:
    return {
        str(route["RouteKey"]): route for route in stack.properties("ApiGatewayV2::Route").values()
    }


def jwt(stack: SynthesizedStack) -> tuple[str, list[str]]:
    (authorizer,) = stack.properties("ApiGatewayV2::Authorizer").values()
    assert authorizer["AuthorizerType"] == "JWT"
    configuration = authorizer["JwtConfiguration"]
    return deployed(configuration["Issuer"]), [deployed(one) for one in configuration["Audience"]]


def test_every_route_needs_a_token_but_two_and_reports(
    production: SynthesizedStack,
) -> None:
    (authorizer,) = production.properties("ApiGatewayV2::Authorizer")
    needed = {
        key: referred(route["AuthorizerId"]) if route["AuthorizationType"] == "JWT" else None
        for key, route in routes(production).items()
    }
    assert needed == {
        "ANY /": authorizer,
        "ANY /{proxy+}": authorizer,
        "GET /openapi.json": None,
        "GET /.well-known/carillon": None,
        "POST /completions/{run_id}/{action}": None,
    }


def test_every_route_leads_to_the_one_function(production: SynthesizedStack) -> None:
    (integration,) = production.properties("ApiGatewayV2::Integration").values()
    assert production.called(integration["IntegrationUri"]) == "api"
    assert integration["PayloadFormatVersion"] == "2.0"


def test_the_users_are_a_pool_by_default(production: SynthesizedStack) -> None:
    pool = production.output("UserPoolId")
    assert jwt(production) == (
        f"https://cognito-idp.{REGION}.amazonaws.com/{pool}",
        [production.output("UserPoolClientId")],
    )


def test_pages_of_other_sites_call_it_only_where_they_are_named(
    production: SynthesizedStack, unusual: SynthesizedStack
) -> None:
    (api,) = production.properties("ApiGatewayV2::Api").values()
    assert "CorsConfiguration" not in api
    (api,) = unusual.properties("ApiGatewayV2::Api").values()
    cors = api["CorsConfiguration"]
    assert cors["AllowOrigins"] == ["https://console.example.com", "http://localhost:8080"]
    assert {"authorization", "content-type", "if-match", "idempotency-key"} <= {
        *cors["AllowHeaders"]
    }
    assert {"etag", "location", "retry-after"} <= {*cors["ExposeHeaders"]}
    assert not cors.get("AllowCredentials")
    asked = {key.split(" ")[0] for key, route in routes(unusual).items() if "AuthorizerId" in route}
    assert asked == {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"}, "a preflight has no token"


def test_any_issuer_and_audience_take_the_pools_place(unusual: SynthesizedStack) -> None:
    assert jwt(unusual) == ("https://login.example.com/", ["carillon"])
    assert not unusual.properties("Cognito::UserPool")
    assert not {"UserPoolId", "UserPoolClientId"} & set(unusual.template["Outputs"])


def test_nobody_registers_without_an_administrator(production: SynthesizedStack) -> None:
    (pool,) = production.properties("Cognito::UserPool").values()
    assert pool["AdminCreateUserConfig"] == {"AllowAdminCreateUserOnly": True}
    assert pool["Policies"]["PasswordPolicy"]["MinimumLength"] == 12


def test_people_and_programs_can_sign_in(production: SynthesizedStack) -> None:
    (client,) = production.properties("Cognito::UserPoolClient").values()
    assert set(client["ExplicitAuthFlows"]) == {
        "ALLOW_USER_PASSWORD_AUTH",
        "ALLOW_USER_SRP_AUTH",
        "ALLOW_ADMIN_USER_PASSWORD_AUTH",
        "ALLOW_REFRESH_TOKEN_AUTH",
    }
    assert client["PreventUserExistenceErrors"] == "ENABLED"
    assert client.get("GenerateSecret", False) is False


def test_the_operators_group_is_the_one_that_the_functions_know(
    production: SynthesizedStack,
) -> None:
    (group,) = production.properties("Cognito::UserPoolGroup").values()
    variables = production.functions()["api"]["Environment"]["Variables"]
    assert group["GroupName"] == variables["OPERATORS_GROUP"] == "operators"


def test_the_stage_lets_through_ten_times_what_one_owner_may_send(
    production: SynthesizedStack, unusual: SynthesizedStack
) -> None:
    for stack, rate, burst in ((production, 200, 400), (unusual, 50, 70)):
        (stage,) = stack.properties("ApiGatewayV2::Stage").values()
        limits = {"ThrottlingBurstLimit": burst, "ThrottlingRateLimit": rate}
        assert stage["DefaultRouteSettings"] == limits


def test_the_stage_is_logged(production: SynthesizedStack) -> None:
    (stage,) = production.properties("ApiGatewayV2::Stage").values()
    assert stage["StageName"] == "$default"
    log_group = referred(stage["AccessLogSettings"]["DestinationArn"])
    properties = production.properties("Logs::LogGroup")[log_group]
    assert properties["RetentionInDays"] == 30
    assert properties["LogGroupName"] == "/aws/vendedlogs/Carillon/access"
    fields = json.loads(stage["AccessLogSettings"]["Format"])
    assert fields["request_id"] == "$context.requestId"
    assert fields["owner"] == "$context.authorizer.claims.sub"


def test_the_signing_secret_is_made_by_aws(production: SynthesizedStack) -> None:
    (secret,) = production.properties("SecretsManager::Secret").values()
    assert "SecretString" not in secret
    assert secret["GenerateSecretString"] == {
        "PasswordLength": SECRET_LENGTH,
        "ExcludePunctuation": True,
    }
    # Standard Webhooks: 24 to 64 bytes. The text's bytes are the key.
    assert 24 <= SECRET_LENGTH <= 64


def test_the_api_function_knows_what_it_tells_of_signing_in(
    production: SynthesizedStack, unusual: SynthesizedStack
) -> None:
    for stack in (production, unusual):
        variables = stack.functions()["api"]["Environment"]["Variables"]
        told = (deployed(variables["ISSUER"]), [deployed(variables["AUDIENCE"])])
        assert told == jwt(stack)


def test_where_no_owner_has_a_limit_the_stage_has_none(tmp_path: Path) -> None:
    assert throttle(Options(owner_requests_per_second=0)) is None
    stack = synthesize(tmp_path, owner_requests_per_second="0")
    (stage,) = stack.properties("ApiGatewayV2::Stage").values()
    assert "DefaultRouteSettings" not in stage
