"""Clients of an Api in this process, or of an API that answers what a test tells it to; each test
runs with and without asyncio."""

import asyncio
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import httpx2
import pytest

from carillon.client import AsyncClient, Client
from carillon.client.clock import Clock
from carillon.client.steps import Resource
from carillon.client.tokens import Token
from tests.unit.api.conftest import World, new_world
from tests.unit.api.gateway import OWNER, answer_of, event

URL = "https://api.example"
NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)

Handler = Callable[[httpx2.Request], httpx2.Response]
New = Callable[..., Any]


class FakeClock(Clock):
    """Waits by moving on at once, and notes each wait; chance and keys are known."""

    def __init__(self, start: datetime = NOON) -> None:
        self.time = start
        self.waits: list[float] = []
        self.jitter = 0.0
        self._keys = 0

    def now(self) -> datetime:
        return self.time

    def sleep(self, seconds: float) -> None:
        assert len(self.waits) < 100, "a test that follows for ever"
        self.waits.append(seconds)
        self.time += timedelta(seconds=seconds)

    async def sleep_async(self, seconds: float) -> None:
        self.sleep(seconds)

    def fraction(self) -> float:
        return self.jitter

    def new_key(self) -> str:
        self._keys += 1
        return f"key-{self._keys}"


class Blocking:
    """An asynchronous client as if it were the other one: answers are awaited, items iterated."""

    def __init__(self, inner: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._inner = inner
        self._loop = loop

    def __getattr__(self, name: str) -> Any:
        return self._shown(getattr(self._inner, name))

    def __getitem__(self, name: str) -> Any:
        return self._shown(self._inner[name])

    def _shown(self, value: Any) -> Any:
        if isinstance(value, Resource):
            return Blocking(value, self._loop)
        if inspect.isawaitable(value):
            return self._loop.run_until_complete(cast(Any, value))
        if hasattr(value, "__aiter__"):
            return self._items(value)
        if callable(value):
            return lambda *given, **named: self._shown(value(*given, **named))
        return value

    def _items(self, items: Any) -> Iterator[Any]:
        while True:
            try:
                yield self._loop.run_until_complete(anext(items))
            except StopAsyncIteration:
                return


@dataclass
class Script:
    """Answers in turn, the last one for ever; an exception is raised. It notes the requests."""

    answers: list[httpx2.Response | Exception] = field(default_factory=list)
    requests: list[httpx2.Request] = field(default_factory=list)

    def then(self, status: int, body: Any = None, **headers: str) -> "Script":
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.answers.append(httpx2.Response(status, json=body, headers=named))
        return self

    def fail(self, error: Exception) -> "Script":
        self.answers.append(error)
        return self

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def script() -> Script:
    return Script()


@pytest.fixture(params=["sync", "async"])
def new_client(request: pytest.FixtureRequest, clock: FakeClock) -> Iterator[New]:
    """Makes a client of what answers its requests."""
    if request.param == "sync":

        def make(handler: Handler, token: Token | None = "t", url: str = URL) -> Any:
            return Client(url, token, transport=httpx2.MockTransport(handler), clock=clock)

        yield make
        return
    loop = asyncio.new_event_loop()

    def make_async(handler: Handler, token: Token | None = "t", url: str = URL) -> Any:
        transport = httpx2.MockTransport(handler)
        return Blocking(AsyncClient(url, token, transport=transport, clock=clock), loop)

    yield make_async
    loop.close()


@pytest.fixture
def scripted(new_client: New, script: Script) -> Any:
    """A client of the script."""
    return new_client(script)


@pytest.fixture
def world() -> Iterator[World]:
    made = new_world(NOON)
    yield made
    assert "request.failed" not in made.log.getvalue()


def over(world: World) -> Handler:
    """The API of the world, behind a gateway that lets every request in."""
    api = world.api()

    def answer(request: httpx2.Request) -> httpx2.Response:
        made = event(
            request.method,
            request.url.path,
            body=request.content.decode() or None,
            query=dict(request.url.params),
            headers=dict(request.headers),
            claims={"sub": OWNER.removeprefix("user/")},
        )
        given = answer_of(api, made)
        return httpx2.Response(given.status, headers=given.headers, text=given.text)

    return answer


@pytest.fixture
def client(world: World, new_client: New) -> Any:
    """A client of the world's own API."""
    return new_client(over(world))
