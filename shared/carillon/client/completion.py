"""Reports about a run that ends later than its call, by whoever got its address and token."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

from carillon.client.clock import Clock
from carillon.client.drivers import AsyncClosing, AsyncDriver, Closing, Driver
from carillon.client.session import Session
from carillon.client.steps import DriverT, Resource, Steps, call
from carillon.errors import InvalidFieldError

if TYPE_CHECKING:
    from carillon.client.drivers import AsyncTransport, Transport
    from carillon.client.types.answers import ReportForm


_LONGEST_MESSAGE = 4096
"""Characters that the API takes; the history keeps fewer."""


class Reports(Resource[DriverT]):
    """The parts that both kinds have. Each report is repeated while no answer comes; NotFound for a
    wrong token, Conflict where the attempt has ended otherwise."""

    @call
    def complete(self, result: Any = None) -> Steps[ReportForm]:
        """The run has succeeded; `result`, any JSON value, is kept in its history, cut."""
        answer: ReportForm = yield from self._session.once("/complete", {"result": result}, None)
        return answer

    @call
    def fail(
        self, message: str, *, kind: str | None = None, permanent: bool = False
    ) -> Steps[ReportForm]:
        """The attempt has failed; its job's retry policy, which knows errors by their `kind`,
        decides what follows. `permanent`: no retry can help. A long `message` is cut; in place of
        an empty one stands the kind."""
        # An exception's text may be anything: a report that is refused would leave the run open.
        text = message[:_LONGEST_MESSAGE].encode(errors="replace").decode()
        body = {"message": text or kind or "failed", "permanent": permanent}
        named = body if kind is None else {**body, "kind": kind}
        answer: ReportForm = yield from self._session.once("/fail", named, None)
        return answer

    @call
    def heartbeat(self) -> Steps[ReportForm]:
        """The work goes on; `lease_until` says until when the next report is due."""
        answer: ReportForm = yield from self._session.once("/heartbeat", None, None)
        return answer


class Completion(Closing, Reports[Driver]):
    """One attempt of a run, by the address and the token that its target got."""

    def __init__(
        self,
        url: str,
        token: str,
        *,
        transport: Transport | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Raises InvalidFieldError for an address that no token may be sent to."""
        session = Session.of(url, token, clock or Clock())
        super().__init__(session, Driver.to(session.api_url, clock or Clock(), transport))

    @classmethod
    def of_webhook(cls, headers: Mapping[str, str]) -> Self:
        """That of a request which `verify` has let through; raises InvalidFieldError for one
        without."""
        return cls(*_told(headers))


class AsyncCompletion(AsyncClosing, Reports[AsyncDriver]):
    """As `Completion`, under asyncio."""

    def __init__(
        self,
        url: str,
        token: str,
        *,
        transport: AsyncTransport | None = None,
        clock: Clock | None = None,
    ) -> None:
        """As for `Completion`."""
        session = Session.of(url, token, clock or Clock())
        super().__init__(session, AsyncDriver.to(session.api_url, clock or Clock(), transport))

    @classmethod
    def of_webhook(cls, headers: Mapping[str, str]) -> Self:
        """As `Completion.of_webhook`."""
        return cls(*_told(headers))


def _told(headers: Mapping[str, str]) -> tuple[str, str]:
    given = {name.lower(): value for name, value in headers.items()}
    url, token = (given.get(f"carillon-completion-{name}") for name in ("url", "token"))
    if not url or not token:
        message = "is missing: the job's target has no `completion`"
        raise InvalidFieldError("Carillon-Completion-Url", message)
    return url, token
