"""`carillon admin machine-clients`: on moto, and where moto has no such call on answers of AWS's
form, which botocore checks."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from tests.unit.cli.conftest import Run
from tests.unit.cli.test_admin_users import create_stack

OLD, NEW = (datetime(2026, 11, day, tzinfo=UTC) for day in (1, 20))


@pytest.fixture
def client_id(moto: None) -> str:
    """The client of `ci`, beside those of people and of another program."""
    cognito = boto3.client("cognito-idp")
    pool_id = cognito.create_user_pool(PoolName="users")["UserPool"]["Id"]
    scopes: Any = [
        {"ScopeName": role, "ScopeDescription": role}
        for role in ("billing:editor", "shipping:viewer")
    ]
    cognito.create_resource_server(
        UserPoolId=pool_id, Identifier="carillon", Name="carillon", Scopes=scopes
    )
    cognito.create_user_pool_client(UserPoolId=pool_id, ClientName="cli")
    clients = {
        name: cognito.create_user_pool_client(
            UserPoolId=pool_id,
            ClientName=name,
            GenerateSecret=True,
            AllowedOAuthFlows=["client_credentials"],
            AllowedOAuthScopes=[f"carillon/{role}" for role in roles],
        )["UserPoolClient"]["ClientId"]
        for name, roles in (
            ("ci", ["shipping:viewer", "billing:editor"]),
            ("bot", ["billing:editor"]),
        )
    }
    outputs = {"TickFunction": "tick", "ApiUrl": "https://api.example/", "UserPoolId": pool_id}
    create_stack("Carillon", outputs)
    return clients["ci"]


def test_they_are_listed_with_their_roles_and_no_secret(run: Run, client_id: str) -> None:
    told = run("admin", "machine-clients", "--json")
    rows = {row["name"]: row for row in json.loads(told.stdout)}
    assert rows["ci"] == {
        "name": "ci",
        "client_id": client_id,
        "roles": ["billing:editor", "shipping:viewer"],
    }
    assert set(rows) == {"ci", "bot"}
    assert "billing:editor, shipping:viewer" in run("admin", "machine-clients", "ci").stdout


def test_a_secret_is_shown_for_a_shell(run: Run, client_id: str) -> None:
    told = json.loads(run("admin", "machine-clients", "ci", "--secret", "--json").stdout)
    assert len(told["client_secret"]) > 20
    assert run("admin", "machine-clients", "ci", "--secret").stdout == (
        "export CARILLON_API_URL=https://api.example/\n"
        f"export CARILLON_CLIENT_ID={client_id}\n"
        f"export CARILLON_CLIENT_SECRET={told['client_secret']}\n"
    )


@pytest.mark.parametrize(
    ("arguments", "exit_code", "said"),
    [
        (("cd",), 4, "names no cd"),
        (("cli",), 4, "names no cli"),
        (("--secret",), 2, "name the machine"),
        (("ci", "--secret", "--rotate"), 2, "give one of"),
        (("ci", "--stack", "None"), 5, "No machine was read or changed"),
    ],
)
def test_what_is_no_machine_s_is_refused(
    run: Run, client_id: str, arguments: tuple[str, ...], exit_code: int, said: str
) -> None:
    told = run("admin", "machine-clients", *arguments)
    assert told.exit_code == exit_code, told.output
    assert said in told.stderr


@pytest.fixture
def stubbed(client_id: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stubber]:
    """The calls of a rotation; the others before it are answered here, too."""
    cognito, make = boto3.client("cognito-idp"), boto3.client
    with Stubber(cognito) as stub:
        listed = {"UserPoolClients": [{"ClientName": "ci", "ClientId": client_id}]}
        client = {
            "ClientName": "ci",
            "ClientId": client_id,
            "ClientSecret": "a" * 30,
            "AllowedOAuthFlows": ["client_credentials"],
        }
        stub.add_response("list_user_pool_clients", listed)
        stub.add_response("describe_user_pool_client", {"UserPoolClient": client})
        monkeypatch.setattr(
            boto3, "client", lambda name, **more: cognito if "cognito" in name else make(name)
        )
        yield stub
        stub.assert_no_pending_responses()


def secrets(client_id: str, *made_at: datetime) -> dict[str, Any]:
    return {
        "ClientSecrets": [
            {"ClientSecretId": f"{client_id}--{at:%d}", "ClientSecretCreateDate": at}
            for at in made_at
        ]
    }


def test_a_rotation_begins_with_a_second_secret(run: Run, client_id: str, stubbed: Stubber) -> None:
    made = {"ClientSecretId": f"{client_id}--20", "ClientSecretValue": "b" * 30}
    stubbed.add_response("list_user_pool_client_secrets", secrets(client_id, OLD))
    stubbed.add_response("add_user_pool_client_secret", {"ClientSecretDescriptor": made})
    told = run("admin", "machine-clients", "ci", "--rotate")
    assert told.exit_code == 0, told.output
    assert f"export CARILLON_CLIENT_SECRET={'b' * 30}\n" in told.stdout


def test_a_third_secret_is_refused(run: Run, client_id: str, stubbed: Stubber) -> None:
    stubbed.add_response("list_user_pool_client_secrets", secrets(client_id, NEW, OLD))
    told = run("admin", "machine-clients", "ci", "--rotate")
    assert told.exit_code == 6
    # The older one is in use, and the newer one may have been lost with the terminal.
    assert "--end-rotation ends the older at once: only when every program has" in told.stderr
    assert f"--client-secret-id {client_id}--20" in told.stderr


def test_it_ends_with_the_older_one(run: Run, client_id: str, stubbed: Stubber) -> None:
    stubbed.add_response("list_user_pool_client_secrets", secrets(client_id, NEW, OLD))
    older = f"{client_id}--01"
    pool = boto3.client("cloudformation").describe_stacks(StackName="Carillon")["Stacks"][0]
    pool_id = next(
        each["OutputValue"] for each in pool["Outputs"] if each["OutputKey"] == "UserPoolId"
    )
    asked = {"UserPoolId": pool_id, "ClientId": client_id, "ClientSecretId": older}
    stubbed.add_response("delete_user_pool_client_secret", {}, asked)
    told = run("admin", "machine-clients", "ci", "--end-rotation", "--json")
    assert json.loads(told.stdout)["deleted"] == older


def test_the_last_secret_stays(run: Run, client_id: str, stubbed: Stubber) -> None:
    stubbed.add_response("list_user_pool_client_secrets", secrets(client_id, NEW))
    told = run("admin", "machine-clients", "ci", "--end-rotation")
    assert told.exit_code == 6
    assert "there is one secret" in told.stderr
