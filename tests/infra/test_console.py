"""The console in the stack: whom it serves, what its function may do, and who signs in to it."""

from pathlib import Path
from typing import Any

import pytest

from carillon.errors import ConfigurationError
from tests.infra.stacks import SynthesizedStack, synthesize
from tests.infra.test_api import jwt, routes


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> SynthesizedStack:
    return synthesize(tmp_path_factory.mktemp("console"), console=True)


def test_there_is_none_unless_it_is_wanted(production: SynthesizedStack) -> None:
    assert "console" not in production.functions()
    assert not production.properties("Cognito::UserPoolDomain")


def test_its_files_need_no_token_and_all_else_does(stack: SynthesizedStack) -> None:
    open_routes = {key for key, route in routes(stack).items() if "AuthorizerId" not in route}
    assert {"GET /console", "GET /console/{proxy+}"} <= open_routes
    assert len(open_routes) == 5


def test_its_function_has_no_rights_but_its_log(stack: SynthesizedStack) -> None:
    function = stack.functions()["console"]
    role = function["Role"]["Fn::GetAtt"][0]
    policies = [
        each["PolicyDocument"]["Statement"]
        for each in stack.properties("IAM::Policy").values()
        if {"Ref": role} in each.get("Roles", ())
    ]
    (statements,) = policies
    actions = [action for each in statements for action in each["Action"]]
    assert set(actions) == {"logs:CreateLogStream", "logs:PutLogEvents"}
    assert "ManagedPolicyArns" not in stack.properties("IAM::Role")[role]
    assert (function["MemorySize"], function.get("Layers")) == (128, None)


def test_people_sign_in_by_code_and_their_tokens_open_the_api(stack: SynthesizedStack) -> None:
    clients = stack.properties("Cognito::UserPoolClient")
    name, client = next((k, v) for k, v in clients.items() if "CallbackURLs" in v)
    assert client["AllowedOAuthFlows"] == ["code"]
    assert client["AllowedOAuthScopes"] == ["openid"]
    assert client.get("GenerateSecret", False) is False
    assert client["RefreshTokenRotation"]["Feature"] == "ENABLED"
    assert client["ExplicitAuthFlows"] == ["ALLOW_USER_SRP_AUTH"]
    assert name in jwt(stack)[1]
    variables = stack.functions()["api"]["Environment"]["Variables"]
    assert variables["CONSOLE_CLIENT_ID"] == {"Ref": name}
    assert (
        stack.functions()["console"]["Environment"]["Variables"]["CONNECT_TO"]
        == variables["SIGN_IN_URL"]
    )


def test_messages_of_notifications_link_to_it(stack: SynthesizedStack) -> None:
    functions = stack.functions()
    for name in ("executor-normal", "executor-slow"):
        variables = functions[name]["Environment"]["Variables"]
        assert variables["CONSOLE_URL"] == {"Fn::Join": ["", [variables["API_URL"], "/console/"]]}


def test_another_issuer_needs_a_client_for_it(tmp_path: Path) -> None:
    issuer: Any = {"issuer": "https://login.example.com/realms/x", "audience": "carillon"}
    with pytest.raises(ConfigurationError, match="console_client_id"):
        synthesize(tmp_path, console=True, **issuer)
    stack = synthesize(tmp_path, console=True, console_client_id="page", **issuer)
    assert jwt(stack)[1] == ["carillon", "page"]
    variables = stack.functions()["console"]["Environment"]["Variables"]
    assert variables["CONNECT_TO"] == "https://login.example.com"
