"""Machine clients in the stack: what each may ask for, who lets them in, and where they sign in."""

from pathlib import Path
from typing import Any

import pytest

from carillon.cdk.emulation import Emulation
from carillon.cdk.options import MOST_MACHINES, MOST_SCOPES, Options
from carillon.errors import ConfigurationError
from tests.infra.stacks import SynthesizedStack, deployed, synthesize
from tests.infra.test_api import jwt

MACHINES = '{"ci": ["billing:editor", "shipping:viewer"], "deploy-bot": ["billing:editor"]}'


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> SynthesizedStack:
    return synthesize(tmp_path_factory.mktemp("machines"), machine_clients=MACHINES, console=True)


def clients(stack: SynthesizedStack) -> dict[str, tuple[str, Any]]:
    """Logical id and properties of each client with a secret, by its name."""
    found = stack.properties("Cognito::UserPoolClient").items()
    return {each["ClientName"]: (key, each) for key, each in found if each.get("GenerateSecret")}


def test_there_are_none_unless_they_are_wanted(production: SynthesizedStack) -> None:
    assert clients(production) == {}
    assert not production.properties("Cognito::UserPoolResourceServer")
    assert not production.properties("Cognito::UserPoolDomain")
    assert "TOKEN_URL" not in production.functions()["api"]["Environment"]["Variables"]


def test_each_may_ask_for_its_own_scopes_alone(stack: SynthesizedStack) -> None:
    (server,) = stack.properties("Cognito::UserPoolResourceServer").values()
    assert server["Identifier"] == "carillon"
    scopes = [each["ScopeName"] for each in server["Scopes"]]
    assert scopes == ["billing:editor", "shipping:viewer"]
    found = clients(stack)
    assert set(found) == {"ci", "deploy-bot"}
    granted = {
        name: [deployed(each).rpartition("/")[2] for each in client["AllowedOAuthScopes"]]
        for name, (_, client) in found.items()
    }
    assert granted == {"ci": scopes, "deploy-bot": ["billing:editor"]}
    for _, client in found.values():
        assert client["AllowedOAuthFlows"] == ["client_credentials"]
        assert "CallbackURLs" not in client
        assert client["ExplicitAuthFlows"] == ["ALLOW_REFRESH_TOKEN_AUTH"], "no person signs in"


def test_the_gateway_lets_them_in(stack: SynthesizedStack) -> None:
    ids = [key for key, _ in clients(stack).values()]
    audiences = jwt(stack)[1]
    assert len(audiences) == 4
    assert audiences[2:] == ids


def test_the_api_knows_their_names_and_where_they_sign_in(stack: SynthesizedStack) -> None:
    (domain,) = stack.properties("Cognito::UserPoolDomain").values()
    variables = stack.functions()["api"]["Environment"]["Variables"]
    address = f"https://{deployed(domain['Domain'])}.auth."
    assert deployed(variables["TOKEN_URL"]).startswith(address)
    assert deployed(variables["TOKEN_URL"]).endswith(".amazoncognito.com/oauth2/token")
    (names,) = [
        each["Value"]
        for each in stack.properties("SSM::Parameter").values()
        if deployed(each["Name"]).endswith("/MACHINE_NAMES/1")
    ]
    ids = {name: key for name, (key, _) in clients(stack).items()}
    assert deployed(names) == f"{ids['ci']}=ci,{ids['deploy-bot']}=deploy-bot"


@pytest.mark.parametrize("name", ["Payments-on-AWS", "c" * 51])
def test_a_name_that_can_be_no_domain_of_cognito_is_refused(tmp_path: Path, name: str) -> None:
    """Its deployment would fail, but for one in which nobody signs in at the domain."""
    with pytest.raises(ConfigurationError) as raised:
        synthesize(tmp_path, name=name, machine_clients=MACHINES)
    assert raised.value.name == "name"


def test_an_emulator_has_its_own_address(tmp_path: Path) -> None:
    emulation = Emulation(layer_directory="/somewhere")
    stack = synthesize(tmp_path, emulation, stage="local", machine_clients=MACHINES)
    assert stack.functions()["api"]["Environment"]["Variables"]["TOKEN_URL"] == "/oauth2/token"


ISSUER = {"issuer": "https://login.example.com/", "audience": "carillon"}


@pytest.mark.parametrize(
    ("options", "name", "said"),
    [
        ({"machine_clients": "{"}, "machine_clients", "Expecting"),
        ({"machine_clients": ["ci"]}, "machine_clients", "expected an object such as"),
        ({"machine_clients": {"CI": ["billing:editor"]}}, "machine_clients", "is no name"),
        ({"machine_clients": {"ci": []}}, "machine_clients.ci", "expected at least 1"),
        ({"machine_clients": {"ci": 5}}, "machine_clients.ci", "expected text"),
        ({"machine_clients": {"ci": ["billing"]}}, "machine_clients.ci", "'billing' names no team"),
        ({"machine_clients": {"ci": ["billing:owner"]}}, "machine_clients.ci", "`team_pattern`"),
        ({"machine_clients": {"ci": ["operators"]}}, "machine_clients.ci", "names no team"),
        (
            {
                "machine_clients": {"ci": ["/billing/editor"]},
                "team_pattern": r"/(?P<team>\w+)/(?P<role>\w+)",
            },
            "machine_clients.ci",
            "no scope with blanks, slashes",
        ),
        (
            {"machine_clients": {f"m{n}": ["a:viewer"] for n in range(MOST_MACHINES + 1)}},
            "machine_clients",
            "at most 48",
        ),
        (
            {"machine_clients": {"ci": [f"t{n}:viewer" for n in range(MOST_SCOPES + 1)]}},
            "machine_clients.ci",
            "at most 50",
        ),
        (
            {
                "machine_clients": {
                    f"m{n}": [f"t{n}-{m}:viewer" for m in range(MOST_SCOPES)] for n in range(3)
                }
            },
            "machine_clients",
            "at most 100",
        ),
        ({"machine_clients": {"ci": ["a:viewer"]}, **ISSUER}, "machine_clients", "make them there"),
    ],
)
def test_what_cannot_be_one_is_refused(options: Any, name: str, said: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        Options.from_context(options)
    assert raised.value.name == name
    assert said in str(raised.value)


def test_a_team_s_default_role_counts_for_machines_too() -> None:
    pattern = r"(?P<team>[a-z]+)(:(?P<role>\w+))?"
    clients: Any = {"ci": ["billing", "billing"]}
    options = Options(team_pattern=pattern, team_default_role="viewer", machine_clients=clients)
    assert options.machine_clients == {"ci": ("billing",)}
