"""A machine signs in by its client's id and secret, once an hour."""

import asyncio
import base64
import itertools
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import httpx2
import pytest

from carillon.client import AsyncClient, Client, Machine, NotAllowed, Unavailable, settings
from carillon.client.machines import MachineToken
from carillon.client.steps import Wait
from carillon.errors import CarillonError, ConfigurationError, InvalidFieldError
from tests.unit.client.conftest import NOON, URL, FakeClock, New, Script
from tests.unit.client.test_tokens import bearers, jwt

TOKEN_URL = "https://users.example/oauth2/token"
MACHINE = Machine("c1", "s/1+", "")
HOUR = timedelta(hours=1)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return tmp_path / "carillon"


def told(script: Script, token: str) -> Script:
    return script.then(200, {"token_url": TOKEN_URL}).then(200, {"access_token": token})


def test_it_gets_a_token_where_the_api_says_and_keeps_it(
    new_client: New, script: Script, clock: FakeClock, folder: Path
) -> None:
    first, second = jwt(NOON + HOUR), jwt(NOON + 2 * HOUR)
    told(script, first).then(200, {}).then(200, {}).then(200, {})
    told(script, second).then(200, {})
    client = new_client(script, MACHINE)
    for minute in (0, 30, 58, 59):
        clock.time = NOON + timedelta(minutes=minute)
        client.status()

    where, asked, *calls = script.requests
    assert str(where.url) == f"{URL}/.well-known/carillon"
    assert "authorization" not in where.headers
    assert (asked.method, str(asked.url)) == ("POST", TOKEN_URL)
    assert asked.headers["content-type"] == "application/x-www-form-urlencoded"
    assert parse_qs(asked.content.decode()) == {"grant_type": ["client_credentials"]}
    pair = base64.b64decode(asked.headers["authorization"].removeprefix("Basic ")).decode()
    assert pair == "c1:s%2F1%2B"
    used = [each.headers["authorization"] for each in calls if each.url.path == "/status"]
    assert used == [f"Bearer {first}"] * 3 + [f"Bearer {second}"]
    (file,) = folder.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_text() == second


def test_requests_at_once_ask_for_one_token() -> None:
    """An issuer may charge for each."""
    asked: list[str] = []

    async def answer(request: httpx2.Request) -> httpx2.Response:
        await asyncio.sleep(0.01)
        asked.append(request.url.path)
        token = jwt(datetime.now(UTC) + HOUR)
        return httpx2.Response(200, json={"token_url": TOKEN_URL, "access_token": token})

    async def main() -> None:
        transport = httpx2.MockTransport(answer)
        async with AsyncClient(URL, MACHINE, transport=transport) as client:
            await asyncio.gather(*(client.status() for _ in range(20)))

    asyncio.run(main())

    assert asked == ["/.well-known/carillon", "/oauth2/token", *["/status"] * 20]


def test_one_that_never_gets_it_holds_up_nobody_for_long(clock: FakeClock) -> None:
    """A request may be cancelled, or its process forked, while it asks."""
    tokens = MachineToken(URL, MACHINE, settings.credentials_path().parent)
    cancelled = tokens.current(clock)
    next(cancelled)

    waits = list(itertools.takewhile(lambda step: isinstance(step, Wait), tokens.current(clock)))

    assert sum(step.seconds for step in waits if isinstance(step, Wait)) == pytest.approx(10)


def test_the_next_process_takes_the_token_that_is_kept(
    new_client: New, script: Script, clock: FakeClock
) -> None:
    token = jwt(NOON + HOUR)
    told(script, token).then(200, {})
    new_client(script, MACHINE).status()
    again = Script().then(200, {})
    new_client(again, MACHINE).status()
    assert bearers(again) == [token]
    # Another secret, or another scope, is to show that it is good for one.
    for other in (Machine("c1", "s2"), Machine("c1", MACHINE.secret, "carillon/a:viewer")):
        fresh = told(Script(), token).then(200, {})
        new_client(fresh, other).status()
        assert len(fresh.requests) == 3
    assert b"scope=carillon%2Fa%3Aviewer" in fresh.requests[1].content


def test_a_home_that_cannot_be_written_is_done_without(
    new_client: New, script: Script, folder: Path
) -> None:
    folder.write_text("no folder")
    told(script, jwt(NOON + HOUR)).then(200, {})
    client = new_client(script, MACHINE)
    client.status()
    client.status()
    assert len(script.requests) == 4


@pytest.mark.parametrize("content", ["", "ü"])
def test_a_kept_token_that_is_none_is_done_without(
    new_client: New, script: Script, folder: Path, content: str
) -> None:
    """A machine that loses power may leave an empty file."""
    told(script, jwt(NOON + HOUR)).then(200, {})
    new_client(script, MACHINE).status()
    (file,) = folder.iterdir()
    file.write_text(content)
    again = told(Script(), jwt(NOON + 2 * HOUR)).then(200, {})
    new_client(again, MACHINE).status()
    assert bearers(again)[-1] == file.read_text() == jwt(NOON + 2 * HOUR)


def test_another_issuer_s_description_says_where(new_client: New, script: Script) -> None:
    script.then(200, {"token_url": None, "issuer": "https://login.example/realms/x/"})
    script.then(200, {"token_endpoint": TOKEN_URL})
    script.then(200, {"access_token": jwt(NOON + HOUR)}).then(200, {})
    new_client(script, MACHINE).status()
    urls = [str(each.url) for each in script.requests[1:3]]
    assert urls == ["https://login.example/realms/x/.well-known/openid-configuration", TOKEN_URL]


@pytest.mark.parametrize(
    ("answers", "error", "said"),
    [
        ([(400, {"error": "invalid_client"})], NotAllowed, "invalid_client: check CARILLON_CLIENT"),
        ([(400, {"error": "invalid_scope"})], NotAllowed, "the client has no such scope"),
        ([(429, {"error": "slow_down"})], Unavailable, "429: slow_down"),
        ([(200, {"token_type": "Bearer"})], NotAllowed, "answers OK"),
        ([(500, None)], Unavailable, "answers 500"),
    ],
)
def test_a_refusal_says_what_was_wrong(
    new_client: New, script: Script, answers: Any, error: type[CarillonError], said: str
) -> None:
    script.then(200, {"token_url": TOKEN_URL})
    for status, body in answers:
        script.then(status, body)
    with pytest.raises(error, match=said):
        new_client(script, MACHINE).status()


def test_the_secret_is_sent_over_a_safe_way_only(new_client: New, script: Script) -> None:
    script.then(200, {"token_url": "http://users.example/oauth2/token"})
    with pytest.raises(InvalidFieldError, match="must be https"):
        new_client(script, MACHINE).status()
    assert len(script.requests) == 1
    with pytest.raises(Unavailable, match="refused"):
        new_client(Script().fail(httpx2.ConnectError("refused")), MACHINE).status()
    assert "s/1+" not in repr(MACHINE)


def test_the_environment_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TOKEN", "TOKEN_FILE"):
        monkeypatch.delenv(f"CARILLON_{name}", raising=False)
    monkeypatch.setenv("CARILLON_API_URL", URL)
    monkeypatch.setenv("CARILLON_CLIENT_ID", "c1")
    with pytest.raises(ConfigurationError, match=r"CARILLON_CLIENT_SECRET: must be set together"):
        Client.from_env()
    monkeypatch.setenv("CARILLON_CLIENT_SECRET", "s")
    assert settings.token() == Machine("c1", "s")
    monkeypatch.setenv("CARILLON_CLIENT_SCOPE", "carillon/a:viewer")
    assert settings.token() == Machine("c1", "s", "carillon/a:viewer")
    assert Client.from_env().api_url == URL
    monkeypatch.setenv("CARILLON_TOKEN", "t")
    assert settings.token() == "t"
    monkeypatch.delenv("CARILLON_TOKEN")
    monkeypatch.delenv("CARILLON_CLIENT_ID")
    with pytest.raises(ConfigurationError, match=r"CARILLON_CLIENT_ID: must be set together"):
        Client.from_env()
