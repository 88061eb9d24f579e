"""The team that a client acts for."""

import asyncio

import httpx2
import pytest

from carillon.client import AsyncClient, Client
from carillon.errors import InvalidFieldError
from tests.unit.client.conftest import URL, Script

STATUS = {"state": "idle"}


def test_every_request_names_the_team(script: Script) -> None:
    script.then(200, STATUS).then(200, STATUS).then(200, STATUS)
    transport = httpx2.MockTransport(script)
    with Client(URL, "t", team="billing", transport=transport) as client:
        client.status()
    with Client(URL, "t", transport=transport) as client:
        client.status()

    async def ask() -> None:
        async with AsyncClient(URL, "t", team="billing", transport=transport) as client:
            await client.status()

    asyncio.run(ask())
    sent = [request.headers.get("carillon-team") for request in script.requests]
    assert sent == ["billing", None, "billing"]


@pytest.mark.parametrize("client", [Client, AsyncClient])
def test_the_environment_names_it(
    client: type[Client] | type[AsyncClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CARILLON_API_URL", URL)
    monkeypatch.setenv("CARILLON_TOKEN", "t")
    monkeypatch.setenv("CARILLON_TEAM", "No Team")
    with pytest.raises(InvalidFieldError, match="No Team"):
        client.from_env()


def test_an_empty_team_is_refused() -> None:
    with pytest.raises(InvalidFieldError, match="team"):
        Client(URL, "t", team="")
