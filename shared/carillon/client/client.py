"""The clients: everything that an owner can ask of a deployment, with and without asyncio."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack

from carillon.client import settings
from carillon.client.clock import Clock
from carillon.client.drivers import AsyncClosing, AsyncDriver, Closing, Driver
from carillon.client.paths import instant
from carillon.client.resources.jobs import Jobs, span_of
from carillon.client.resources.others import Calendars, Changes, Notifications, Operations, Quotas
from carillon.client.resources.runs import DeadLetters, Runs
from carillon.client.session import Query, Session
from carillon.client.sign_in import (
    load_credentials,
    sign_in_of,
)
from carillon.client.steps import DriverT, Resource, Steps, call
from carillon.client.tokens import Token
from carillon.errors import ConfigurationError

if TYPE_CHECKING:
    from carillon.client.drivers import AsyncTransport, Transport
    from carillon.client.types.answers import (
        ApplyForm,
        ForecastForm,
        PreviewForm,
        StatusForm,
        UpcomingForm,
    )
    from carillon.client.types.requests import ApplyBody, PreviewBody


class Api(Resource[DriverT]):
    """The parts that both clients have."""

    def __init__(self, session: Session, driver: DriverT) -> None:
        super().__init__(session, driver)
        self.jobs = Jobs(session, driver)
        self.runs = Runs(session, driver)
        self.dead_letters = DeadLetters(session, driver)
        self.operations = Operations(session, driver)
        self.calendars = Calendars(session, driver)
        self.changes = Changes(session, driver)
        self.notifications = Notifications(session, driver)
        self.quotas = Quotas(session, driver)

    @property
    def api_url(self) -> str:
        """The API's address, without a slash at the end."""
        return self._session.api_url

    @call
    def apply(self, **manifest: Unpack[ApplyBody]) -> Steps[ApplyForm]:
        """Make jobs and calendars what a manifest says: all of it or, where an item is refused,
        nothing. The answer says what became, or would become, of each."""
        answer: ApplyForm = yield from self._session.ask("POST", "/apply", body=manifest)
        return answer

    @call
    def preview(self, **schedule: Unpack[PreviewBody]) -> Steps[PreviewForm]:
        """The next occurrences of a schedule that need not be a job's, in words, with its cost."""
        path = "/schedules/preview"
        answer: PreviewForm = yield from self._session.ask("POST", path, body=schedule)
        return answer

    @call
    def forecast(
        self,
        *,
        from_at: str | datetime | None = None,
        to: str | datetime | None = None,
        by: Literal["minute", "hour"] | None = None,
    ) -> Steps[ForecastForm]:
        """The runs that are expected to start in each minute, or hour."""
        query = {**span_of(from_at, to), **({} if by is None else {"by": by})}
        answer: ForecastForm = yield from self._session.ask("GET", "/forecast", query=query)
        return answer

    @call
    def upcoming(
        self, *, count: int = 10, until: str | datetime | None = None
    ) -> Steps[UpcomingForm]:
        """The next occurrences of all jobs."""
        query: Query = {"count": count} | ({} if until is None else {"until": instant(until)})
        answer: UpcomingForm = yield from self._session.ask("GET", "/upcoming", query=query)
        return answer

    @call
    def status(self) -> Steps[StatusForm]:
        """Idle or processing; operators see each segment."""
        answer: StatusForm = yield from self._session.ask("GET", "/status")
        return answer

    @call
    def request(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> Steps[Any]:
        """The JSON object that any other request answers, None for one without content, with the
        same repetitions and errors."""
        return (yield from self._session.ask(method, path, query=query, body=body, headers=headers))


class Client(Closing, Api[Driver]):
    """One deployment's API for one owner."""

    def __init__(
        self,
        api_url: str,
        token: Token | None = None,
        *,
        team: str | None = None,
        transport: Transport | None = None,
        clock: Clock | None = None,
    ) -> None:
        """All requests act for `team`, without one for the token's subject. Without a token only
        what answers anybody can be read.

        Raises InvalidFieldError for an address that no token may be sent to, and for what is no
        team's name.
        """
        session = Session.of(api_url, token, clock or Clock(), team)
        super().__init__(session, Driver.to(session.api_url, clock or Clock(), transport))

    @classmethod
    def from_env(cls) -> Self:
        """The deployment of CARILLON_API_URL, and CARILLON_TOKEN, CARILLON_TOKEN_FILE, or
        CARILLON_CLIENT_ID with CARILLON_CLIENT_SECRET, else the one that `carillon login` signed
        in to, for the team of CARILLON_TEAM; raises ConfigurationError, InvalidFieldError."""
        return cls(*_from_env(), team=settings.team())


class AsyncClient(AsyncClosing, Api[AsyncDriver]):
    """As `Client`, under asyncio: what answers there is to be awaited here."""

    def __init__(
        self,
        api_url: str,
        token: Token | None = None,
        *,
        team: str | None = None,
        transport: AsyncTransport | None = None,
        clock: Clock | None = None,
    ) -> None:
        """As for `Client`."""
        session = Session.of(api_url, token, clock or Clock(), team)
        super().__init__(session, AsyncDriver.to(session.api_url, clock or Clock(), transport))

    @classmethod
    def from_env(cls) -> Self:
        """As `Client.from_env`."""
        return cls(*_from_env(), team=settings.team())


def _from_env() -> tuple[str, Token]:
    url, token = sign_in_of(
        settings.api_url(), settings.token(), lambda: load_credentials(settings.credentials_path())
    )
    if url is None:
        raise ConfigurationError(settings.API_URL, "is not set; or run `carillon login`")
    if token is None:
        raise ConfigurationError(settings.TOKEN, f"is not set; or run `carillon login` for {url}")
    return url, token
