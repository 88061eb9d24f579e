"""`carillon admin add-user` on moto: who is added, and what the user is told."""

import json

import boto3
import pytest

from tests.unit.cli.conftest import Run


def create_stack(name: str, outputs: dict[str, str]) -> None:
    """moto's CloudFormation makes no user pools: the outputs name what is there already."""
    template = {
        "Resources": {"Queue": {"Type": "AWS::SQS::Queue"}},
        "Outputs": {key: {"Value": value} for key, value in outputs.items()},
    }
    boto3.client("cloudformation").create_stack(StackName=name, TemplateBody=json.dumps(template))


@pytest.fixture
def pool_id(moto: None) -> str:
    cognito = boto3.client("cognito-idp")
    pool_id = cognito.create_user_pool(PoolName="users")["UserPool"]["Id"]
    client = cognito.create_user_pool_client(UserPoolId=pool_id, ClientName="cli")
    cognito.create_group(GroupName="operators", UserPoolId=pool_id)
    users = {
        "UserPoolId": pool_id,
        "UserPoolClientId": client["UserPoolClient"]["ClientId"],
    }
    plain = {"TickFunction": "tick", "ApiUrl": "https://api.example/"}
    create_stack("Carillon", plain | users)
    create_stack("OwnIssuer", plain)
    create_stack("Other", {})
    return pool_id


def test_a_user_has_a_temporary_password_and_a_command_to_sign_in(run: Run, pool_id: str) -> None:
    told = run("admin", "add-user", "ieva", "--email", "ieva@example.com", "--json")
    assert told.exit_code == 0, told.output
    answer = json.loads(told.stdout)
    assert answer["sign_in"] == "carillon login --api-url https://api.example/ --username ieva"
    cognito = boto3.client("cognito-idp")
    user = cognito.admin_get_user(UserPoolId=pool_id, Username="ieva")
    assert user["UserStatus"] == "FORCE_CHANGE_PASSWORD"
    attributes = {each["Name"]: each["Value"] for each in user["UserAttributes"]}
    assert attributes["email"] == "ieva@example.com"
    groups = cognito.admin_list_groups_for_user(UserPoolId=pool_id, Username="ieva")
    assert groups["Groups"] == []
    (client,) = cognito.list_user_pool_clients(UserPoolId=pool_id)["UserPoolClients"]
    began = cognito.initiate_auth(
        ClientId=client["ClientId"],
        AuthFlow="USER_PASSWORD_AUTH",
        AuthParameters={"USERNAME": "ieva", "PASSWORD": answer["temporary_password"]},
    )
    assert began["ChallengeName"] == "NEW_PASSWORD_REQUIRED"


def test_an_operator_is_in_the_group_of_operators(run: Run, pool_id: str) -> None:
    run("admin", "add-user", "ieva")
    assert "group: operators" in run("admin", "add-user", "ieva", "--operator").stdout
    cognito = boto3.client("cognito-idp")
    groups = cognito.admin_list_groups_for_user(UserPoolId=pool_id, Username="ieva")["Groups"]
    assert [group["GroupName"] for group in groups] == ["operators"]


def test_a_user_who_is_there_keeps_the_password(run: Run, pool_id: str) -> None:
    run("admin", "add-user", "ieva")
    again = run("admin", "add-user", "ieva")
    assert again.exit_code == 6
    assert "ieva is there already" in again.stderr
    assert "temporary_password" not in run("admin", "add-user", "ieva", "--operator").stdout


@pytest.mark.parametrize(
    ("stack", "exit_code", "said"),
    [
        ("OwnIssuer", 4, "the deployment has an issuer of its own"),
        ("Other", 4, "is it Carillon's?"),
        ("None", 5, "ieva was not added"),
    ],
)
def test_a_stack_without_users_says_so(
    run: Run, pool_id: str, stack: str, exit_code: int, said: str
) -> None:
    told = run("admin", "add-user", "ieva", "--stack", stack)
    assert told.exit_code == exit_code
    assert said in told.stderr
