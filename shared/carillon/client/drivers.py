"""The senders: the only modules of the client's that know HTTP's library, with and without asyncio.

httpx2 is imported on first use: who only verifies webhooks never needs it.
"""

import os
from collections.abc import AsyncGenerator, Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar

from carillon.client.clock import Clock
from carillon.client.sign_in import is_loopback
from carillon.client.steps import Answer, Lost, Request, Steps, Stream, Wait, next_page
from carillon.errors import InvalidFieldError

if TYPE_CHECKING:
    import httpx2

    Transport = httpx2.BaseTransport
    AsyncTransport = httpx2.AsyncBaseTransport

T = TypeVar("T")

TIMEOUT_SECONDS = 30.0
AGENT = "carillon-client"


class Driver:
    """Does the steps one after the other, in the caller's thread."""

    def __init__(self, new_http: "Callable[[], httpx2.Client]", clock: Clock) -> None:
        self._new_http = new_http
        self._http, self._process = new_http(), os.getpid()
        self._clock = clock

    @classmethod
    def to(
        cls, url: str, clock: Clock, transport: "Transport | None" = None, agent: str = AGENT
    ) -> "Driver":
        """A driver for one API, which notes who made a change with the `agent`."""
        import httpx2

        return cls(partial(httpx2.Client, transport=transport, **_options(url, agent)), clock)

    def close(self) -> None:
        self._http.close()

    def run(self, steps: Steps[T]) -> T:
        given: Answer | Lost | None = None
        while True:
            try:
                step = steps.send(given)
            except StopIteration as end:
                done: T = end.value
                return done
            given = self._do(step)

    def stream(self, steps: Stream[T]) -> Iterator[T]:
        while (page := self.run(next_page(steps))) is not None:
            yield from page

    def _do(self, step: Request | Wait) -> Answer | Lost | None:
        if isinstance(step, Wait):
            self._clock.sleep(step.seconds)
            return None
        try:
            http = self._own_http()
            return _answer(http.send(_built(http, step)))
        except Exception as error:
            return _lost(error)

    def _own_http(self) -> "httpx2.Client":
        """Connections are of one process: two that shared them after a fork, as in a pool, would
        read each other's answers."""
        if self._process != os.getpid():
            self._http, self._process = self._new_http(), os.getpid()
        return self._http


class AsyncDriver:
    """Does the steps under asyncio."""

    def __init__(self, http: "httpx2.AsyncClient", clock: Clock) -> None:
        self._http = http
        self._clock = clock

    @classmethod
    def to(
        cls, url: str, clock: Clock, transport: "AsyncTransport | None" = None, agent: str = AGENT
    ) -> "AsyncDriver":
        """As `Driver.to`."""
        import httpx2

        return cls(httpx2.AsyncClient(transport=transport, **_options(url, agent)), clock)

    async def close(self) -> None:
        await self._http.aclose()

    async def run(self, steps: Steps[T]) -> T:
        given: Answer | Lost | None = None
        while True:
            try:
                step = steps.send(given)
            except StopIteration as end:
                done: T = end.value
                return done
            given = await self._do(step)

    async def stream(self, steps: Stream[T]) -> AsyncGenerator[T, None]:
        while (page := await self.run(next_page(steps))) is not None:
            for item in page:
                yield item

    async def _do(self, step: Request | Wait) -> Answer | Lost | None:
        if isinstance(step, Wait):
            await self._clock.sleep_async(step.seconds)
            return None
        try:
            return _answer(await self._http.send(_built(self._http, step)))
        except Exception as error:
            return _lost(error)


def _options(url: str, agent: str) -> dict[str, Any]:
    """Requests to this machine bypass the environment's proxy."""
    return {
        "timeout": TIMEOUT_SECONDS,
        "trust_env": not is_loopback(url),
        "headers": {"User-Agent": agent},
    }


def _built(http: "httpx2.Client | httpx2.AsyncClient", step: Request) -> "httpx2.Request":
    return http.build_request(
        step.method,
        step.url,
        params=step.query or None,
        json=step.body,
        data=step.form,
        headers=step.headers,
    )


def _answer(response: "httpx2.Response") -> Answer:
    return Answer(response.status_code, response.reason_phrase, response.headers, response.content)


def _lost(error: Exception) -> Lost:
    """The failure as a step's result; raises InvalidFieldError for what cannot be sent, and every
    error that is not about sending."""
    import httpx2

    # A header or a JSON value that HTTP has no form for: half a surrogate pair, infinity ...
    unsendable = (httpx2.LocalProtocolError, ValueError, TypeError, RecursionError)
    if isinstance(error, unsendable):
        raise InvalidFieldError("request", f"cannot be sent: {error}") from error
    # The body of an answer may be broken, too, as a proxy has compressed it.
    if isinstance(error, httpx2.TransportError | httpx2.DecodingError | httpx2.InvalidURL):
        never_began = (
            httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.InvalidURL,
            httpx2.UnsupportedProtocol, httpx2.ProxyError,
        )  # fmt: skip
        return Lost(str(error) or type(error).__name__, not isinstance(error, never_began))
    raise error


class Closing:
    """The holder of a driver of its own, which ends with it."""

    _driver: Driver

    def close(self) -> None:
        self._driver.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class AsyncClosing:
    """The same under asyncio."""

    _driver: AsyncDriver

    async def close(self) -> None:
        await self._driver.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()
