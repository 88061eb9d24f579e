"""`carillon admin users` and its like on moto: who is added to what, and what the user is told."""

import io
import json
import zipfile
from typing import Any

import boto3
import pytest

from carillon.domain.job import Lane
from tests.unit.cli.conftest import Run


def create_stack(name: str, outputs: dict[str, str]) -> None:
    """moto's CloudFormation makes no user pools: the outputs name what is there already."""
    template = {
        "Resources": {"Queue": {"Type": "AWS::SQS::Queue"}},
        "Outputs": {key: {"Value": value} for key, value in outputs.items()},
    }
    boto3.client("cloudformation").create_stack(StackName=name, TemplateBody=json.dumps(template))


def create_function(name: str, **variables: str) -> None:
    """The api function, whose environment tells how the deployment reads teams."""
    assumed = {"Version": "2012-10-17", "Statement": []}
    role = boto3.client("iam").create_role(
        RoleName=name, AssumeRolePolicyDocument=json.dumps(assumed)
    )
    code = io.BytesIO()
    with zipfile.ZipFile(code, "w") as archive:
        archive.writestr("f.py", "")
    tables = {"JOBS_TABLE": "jobs", "WHEEL_TABLE": "wheel", "RUNS_TABLE": "runs"}
    queues = json.dumps({lane.value: f"https://q/{lane.value}" for lane in Lane})
    boto3.client("lambda").create_function(
        FunctionName=name,
        Runtime="python3.11",
        Role=role["Role"]["Arn"],
        Handler="f.f",
        Code={"ZipFile": code.getvalue()},
        Environment={"Variables": {**tables, "LANE_QUEUES": queues, **variables}},
    )


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
    create_function("api")
    create_function("other-api", TEAM_PATTERN="/(?P<team>[a-z]+)/(?P<role>[a-z]+)")
    create_stack("Carillon", plain | users | {"ApiFunction": "api"})
    create_stack("Patterned", plain | users | {"ApiFunction": "other-api"})
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
    assert "groups: operators" in run("admin", "add-user", "ieva", "--operator").stdout
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


def groups_of(pool_id: str, user: str) -> list[str]:
    found = boto3.client("cognito-idp").admin_list_groups_for_user(
        UserPoolId=pool_id, Username=user
    )["Groups"]
    return sorted(group["GroupName"] for group in found)


def listed(run: Run) -> dict[str, Any]:
    return {row.pop("name"): row for row in json.loads(run("admin", "users", "--json").stdout)}


def test_a_user_is_added_to_a_team_whose_group_is_made(run: Run, pool_id: str) -> None:
    told = run("admin", "add-user", "ieva", "--team", "billing", "--role", "editor", "--json")
    assert json.loads(told.stdout)["groups"] == "billing:editor"
    assert groups_of(pool_id, "ieva") == ["billing:editor"]
    # Of one who is there the password stays, and the rest counts.
    again = run("admin", "add-user", "ieva", "--team", "shipping", "--role", "admin", "--operator")
    assert "groups: shipping:admin, operators" in again.stdout
    assert "temporary_password" not in again.stdout
    assert groups_of(pool_id, "ieva") == ["billing:editor", "operators", "shipping:admin"]


def test_a_role_takes_the_place_of_the_one_before(run: Run, pool_id: str) -> None:
    run("admin", "add-user", "ieva", "--team", "billing", "--role", "admin", "--operator")
    run("admin", "add-to-team", "ieva", "--team", "shipping", "--role", "editor")
    told = run("admin", "add-to-team", "ieva", "--team", "billing", "--role", "viewer")
    assert told.stdout == "ieva is viewer of billing, from the next token on\n"
    assert groups_of(pool_id, "ieva") == ["billing:viewer", "operators", "shipping:editor"]


def test_who_is_removed_has_no_role_there(run: Run, pool_id: str) -> None:
    run("admin", "add-user", "ieva", "--team", "billing", "--role", "admin")
    run("admin", "add-to-team", "ieva", "--team", "shipping", "--role", "viewer")
    told = run("admin", "remove-from-team", "ieva", "--team", "billing")
    assert "ieva is not in billing any more; the user's last token counts until" in told.stdout
    assert groups_of(pool_id, "ieva") == ["shipping:viewer"]
    again = run("admin", "remove-from-team", "ieva", "--team", "billing")
    assert (again.exit_code, again.stderr) == (4, "Error: ieva is not in billing\n")


def test_now_ends_the_sign_ins_too(run: Run, pool_id: str) -> None:
    added = run("admin", "add-user", "ieva", "--team", "billing", "--role", "admin", "--json")
    cognito = boto3.client("cognito-idp")
    (client,) = cognito.list_user_pool_clients(UserPoolId=pool_id)["UserPoolClients"]
    password = json.loads(added.stdout)["temporary_password"]
    cognito.admin_set_user_password(
        UserPoolId=pool_id, Username="ieva", Password=password, Permanent=True
    )
    signed_in = cognito.initiate_auth(
        ClientId=client["ClientId"],
        AuthFlow="USER_PASSWORD_AUTH",
        AuthParameters={"USERNAME": "ieva", "PASSWORD": password},
    )["AuthenticationResult"]

    def renew() -> Any:
        return cognito.initiate_auth(
            ClientId=client["ClientId"],
            AuthFlow="REFRESH_TOKEN_AUTH",
            AuthParameters={"REFRESH_TOKEN": signed_in["RefreshToken"]},
        )

    assert renew()["AuthenticationResult"]
    told = run("admin", "remove-from-team", "ieva", "--team", "billing", "--now", "--json")
    assert json.loads(told.stdout) == {
        "user": "ieva",
        "groups": ["billing:admin"],
        "signed_out": True,
    }
    with pytest.raises(cognito.exceptions.NotAuthorizedException):
        renew()
    # The sign-out may have failed the first time: it can be repeated.
    again = run("admin", "remove-from-team", "ieva", "--team", "billing", "--now")
    assert again.exit_code == 0, again.stderr


def test_users_are_listed_with_their_teams(run: Run, pool_id: str) -> None:
    run("admin", "add-user", "zane", "--email", "zane@example.com")
    run("admin", "add-user", "ieva", "--team", "billing", "--role", "editor", "--operator")
    run("admin", "add-to-team", "ieva", "--team", "shipping", "--role", "viewer")
    boto3.client("cognito-idp").admin_disable_user(UserPoolId=pool_id, Username="zane")
    assert listed(run) == {
        "ieva": {
            "email": None,
            "status": "force_change_password",
            "teams": ["billing:editor", "shipping:viewer"],
            "is_operator": True,
        },
        "zane": {
            "email": "zane@example.com",
            "status": "disabled",
            "teams": [],
            "is_operator": False,
        },
    }
    assert "billing:editor, shipping:viewer" in run("admin", "users").stdout


@pytest.mark.parametrize(
    ("arguments", "exit_code", "said"),
    [
        (("add-user", "ieva", "--team", "billing"), 2, "--team and --role are given together"),
        (("add-user", "ieva", "--team", "b", "--role", "owner"), 2, "owner"),
        (("add-user", "ieva", "--team", "No Team", "--role", "admin"), 3, "No such team"),
        (
            ("add-user", "ieva", "--team", "b", "--role", "admin", "--stack", "Patterned"),
            3,
            "by which b:admin is no admin of b",
        ),
        (("add-to-team", "nobody", "--team", "b", "--role", "admin"), 4, "nobody was not added"),
        (("remove-from-team", "nobody", "--team", "b"), 4, "nobody was not removed from b"),
    ],
)
def test_what_makes_no_member_is_refused(
    run: Run, pool_id: str, arguments: tuple[str, ...], exit_code: int, said: str
) -> None:
    told = run("admin", *arguments)
    assert told.exit_code == exit_code, told.output
    assert said in told.stderr
    assert "ieva" not in listed(run)
