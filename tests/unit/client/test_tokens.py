"""Tokens, where they come from, and their renewal a minute early."""

import json
import stat
from base64 import urlsafe_b64encode
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from carillon.client import AsyncClient, Client, NotAllowed, Unavailable, settings
from carillon.client.settings import credentials_path
from carillon.client.sign_in import (
    Credentials,
    Refresh,
    load_credentials,
    save_credentials,
)
from carillon.errors import ConfigurationError, InvalidFieldError
from tests.unit.client.conftest import NOON, URL, FakeClock, New, Script

COGNITO = "https://cognito-idp.eu-west-1.amazonaws.com"
REFRESH = Refresh(COGNITO, "client-1", "refresh-1")


def jwt(ends_at: datetime) -> str:
    claims = json.dumps({"exp": int(ends_at.timestamp())}).encode()
    return f"header.{urlsafe_b64encode(claims).decode().rstrip('=')}.signature"


@pytest.fixture(autouse=True)
def path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The file of the stored sign-in."""
    for name in ("CARILLON_API_URL", "CARILLON_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return credentials_path()


def bearers(script: Script) -> list[str]:
    found = [request.headers.get("authorization", "") for request in script.requests]
    return [text.removeprefix("Bearer ") for text in found if text]


def test_a_token_that_is_given_is_sent(new_client: New, script: Script) -> None:
    new_client(script.then(200, {}), " tok\n").status()

    assert bearers(script) == ["tok"]


@pytest.mark.parametrize("token", ["", "a\nb", "ü"])
def test_what_no_header_can_carry_is_refused(new_client: New, script: Script, token: str) -> None:
    with pytest.raises(InvalidFieldError, match="token"):
        new_client(script, token)


@pytest.mark.parametrize("url", ["http://carillon.example.com", "carillon", "ftp://a", "http://["])
def test_a_token_is_sent_over_https_or_to_this_machine(
    new_client: New, script: Script, url: str
) -> None:
    with pytest.raises(InvalidFieldError, match="api_url"):
        new_client(script, "t", url)
    assert new_client(script, "t", "http://127.0.0.1:8000/").api_url == "http://127.0.0.1:8000"


def test_a_function_is_asked_again_a_minute_before_the_end(
    new_client: New, script: Script, clock: FakeClock
) -> None:
    tokens = [jwt(NOON + timedelta(hours=hour)) for hour in (1, 2)]
    client = new_client(script.then(200, {}), iter(tokens).__next__)
    for minute in (0, 58, 59, 60):
        clock.time = NOON + timedelta(minutes=minute)
        client.status()

    assert bearers(script) == [tokens[0], tokens[0], tokens[1], tokens[1]]


def test_one_that_does_not_say_when_it_ends_is_asked_each_time(
    new_client: New, script: Script
) -> None:
    client = new_client(script.then(200, {}), iter(["a", "b"]).__next__)

    client.status()
    client.status()

    assert bearers(script) == ["a", "b"]


def test_repetitions_outlast_a_token(new_client: New, script: Script, clock: FakeClock) -> None:
    """Each answer is waited for 30 s."""
    tokens = [jwt(NOON + timedelta(seconds=seconds)) for seconds in (80, 3600)]
    lost = [httpx2.ReadTimeout("no answer")] * 3

    def answer(request: httpx2.Request) -> httpx2.Response:
        clock.time += timedelta(seconds=30)
        return script(request)

    script.answers = [*lost, httpx2.Response(200, json={})]
    new_client(answer, iter(tokens).__next__).status()

    assert bearers(script) == [tokens[0], *[tokens[1]] * 3]


def test_a_stored_token_is_renewed_and_saved(
    new_client: New, script: Script, clock: FakeClock, path: Path
) -> None:
    old, new = jwt(NOON + timedelta(minutes=1)), jwt(NOON + timedelta(hours=1))
    script.then(200, {"AuthenticationResult": {"AccessToken": new}}).then(200, {})
    save_credentials(path, Credentials(URL, old, REFRESH))
    client = new_client(script, Credentials(URL, old, REFRESH))

    client.status()
    client.status()

    renewal = script.requests[0]
    assert str(renewal.url) == f"{COGNITO}/"
    assert renewal.headers["x-amz-target"] == "AWSCognitoIdentityProviderService.InitiateAuth"
    assert json.loads(renewal.content) == {
        "AuthFlow": "REFRESH_TOKEN_AUTH",
        "AuthParameters": {"REFRESH_TOKEN": "refresh-1"},
        "ClientId": "client-1",
    }
    assert bearers(script) == [new, new]
    assert load_credentials(path) == Credentials(URL, new, REFRESH)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_with_rotation_the_new_means_are_kept(new_client: New, script: Script, path: Path) -> None:
    result = {"AccessToken": jwt(NOON + timedelta(hours=1)), "RefreshToken": "refresh-2"}
    script.then(200, {"AuthenticationResult": result}).then(200, {})
    save_credentials(path, Credentials(URL, jwt(NOON), REFRESH))

    new_client(script, Credentials(URL, jwt(NOON), REFRESH)).status()

    stored = load_credentials(path)
    assert stored is not None
    assert stored.refresh == Refresh(COGNITO, "client-1", "refresh-2")


@pytest.mark.parametrize(
    "meanwhile",
    [
        None,
        Credentials("https://staging.example", "t", Refresh(COGNITO, "client-2", "refresh-9")),
        Credentials(URL, "t", Refresh(COGNITO, "client-1", "refresh-of-somebody-else")),
    ],
)
def test_a_renewal_does_not_undo_a_login_or_logout_of_meanwhile(
    new_client: New, script: Script, path: Path, meanwhile: Credentials | None
) -> None:
    new = jwt(NOON + timedelta(hours=1))
    script.then(200, {"AuthenticationResult": {"AccessToken": new}}).then(200, {})
    client = new_client(script, Credentials(URL, jwt(NOON), REFRESH))
    if meanwhile is not None:
        save_credentials(path, meanwhile)

    client.status()

    assert bearers(script) == [new]
    assert load_credentials(path) == meanwhile


def test_a_renewed_token_is_used_where_it_cannot_be_saved(
    new_client: New, script: Script, path: Path
) -> None:
    new = jwt(NOON + timedelta(hours=1))
    script.then(200, {"AuthenticationResult": {"AccessToken": new}}).then(200, {})
    path.parent.write_text("no folder")

    new_client(script, Credentials(URL, jwt(NOON), REFRESH)).status()

    assert bearers(script) == [new]


def test_a_sign_in_that_has_ended_says_so(new_client: New, script: Script, path: Path) -> None:
    client = new_client(script, Credentials(URL, jwt(NOON), REFRESH))
    refused = {"__type": "NotAuthorizedException", "message": "revoked"}
    for answer in (httpx2.Response(400, json=refused), httpx2.Response(200, text="?")):
        script.answers = [answer]
        with pytest.raises(NotAllowed, match="carillon login"):
            client.status()
    script.answers = [httpx2.ConnectError("refused")]
    with pytest.raises(Unavailable, match="cognito-idp"):
        client.status()
    assert not path.exists()


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (500, "InternalErrorException"),
        (503, ""),
        (400, "TooManyRequestsException"),
    ],
)
def test_a_cognito_that_is_busy_has_not_ended_the_sign_in(
    new_client: New, script: Script, status: int, kind: str
) -> None:
    client = new_client(script.then(status, {"__type": kind}), Credentials(URL, jwt(NOON), REFRESH))
    with pytest.raises(Unavailable, match="cognito-idp"):
        client.status()


def test_without_the_means_a_token_is_sent_as_it_is(new_client: New, script: Script) -> None:
    new_client(script.then(200, {}), Credentials(URL, jwt(NOON))).status()

    assert bearers(script) == [jwt(NOON)]


KINDS: list[Any] = [Client, AsyncClient]


@pytest.mark.parametrize("kind", KINDS)
def test_the_environment_names_the_deployment(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CARILLON_API_URL", f"{URL}/")
    with pytest.raises(ConfigurationError, match="CARILLON_TOKEN"):
        kind.from_env()
    monkeypatch.setenv("CARILLON_TOKEN", "t")
    assert kind.from_env().api_url == URL


@pytest.mark.parametrize("kind", KINDS)
def test_else_it_is_the_one_signed_in_to(
    kind: Any, monkeypatch: pytest.MonkeyPatch, path: Path
) -> None:
    with pytest.raises(ConfigurationError, match="CARILLON_API_URL"):
        kind.from_env()
    save_credentials(path, Credentials(URL, "stored"))
    assert kind.from_env().api_url == URL
    # A stored token is not for another API.
    monkeypatch.setenv("CARILLON_API_URL", "https://other.example")
    with pytest.raises(ConfigurationError, match="CARILLON_TOKEN"):
        kind.from_env()


@pytest.mark.parametrize(
    "content", ["{", "[]", "{}", '{"api_url": "u", "token": "t", "refresh": 1}']
)
def test_a_damaged_sign_in_names_its_file(path: Path, content: str) -> None:
    path.parent.mkdir()
    path.write_text(content)

    with pytest.raises(ConfigurationError, match=r"credentials\.json.*carillon login"):
        Client.from_env()


def test_a_damaged_sign_in_is_not_told(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b'{"api_url": "https://a", "token": "the-secret", "note": "\xff"}')

    with pytest.raises(ConfigurationError) as raised:
        Client.from_env()

    assert "the-secret" not in str(raised.value)


def test_a_token_s_file_is_read_when_it_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CARILLON_TOKEN", raising=False)
    monkeypatch.setenv("CARILLON_TOKEN_FILE", str(tmp_path / "token"))
    read = settings.token()
    assert callable(read)
    with pytest.raises(ConfigurationError, match="CARILLON_TOKEN_FILE"):
        read()

    (tmp_path / "token").write_text("fresh\n")
    assert read() == "fresh\n"
    monkeypatch.setenv("CARILLON_TOKEN", "given")
    assert settings.token() == "given"
