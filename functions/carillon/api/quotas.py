"""/quota and /owners/{kind}/{name}/quota: routes, models and service."""

import re
from typing import Annotated, Literal
from urllib.parse import unquote

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body, Path
from pydantic import BaseModel, Field

from carillon.api.http.callers import MOST_SUBJECT_CHARACTERS, is_subject
from carillon.api.http.problems import ContendedError, Kind
from carillon.api.http.routing import OPERATOR, Resource, Routes, route
from carillon.api.http.throttle import Throttle
from carillon.api.jobs.routes import JSON
from carillon.api.jobs.service import ATTEMPTS
from carillon.clock import Clock
from carillon.domain.admission.limits import permits_taken
from carillon.domain.admission.rate_line import starts_taken
from carillon.domain.admission.state import (
    OWNER_ROW,
    PERMITS_ROW,
    AdmissionRow,
    first_admission,
)
from carillon.domain.policies import Rate
from carillon.domain.quotas import MOST, QUOTAS_OWNER, Limits, OwnLimits, Quota
from carillon.domain.spec.fields import Document
from carillon.domain.spec.owners import Author, team_owner, user_owner
from carillon.domain.spec.teams import TEAM_NAME, Role
from carillon.errors import InvalidFieldError
from carillon.services.job_quotas import JobQuotas
from carillon.services.quotas import Quotas
from carillon.stores.ports import Stores
from carillon.stores.recording import RecordedRows
from carillon.telemetry import Action, Telemetry

OwnerKind = Annotated[
    Literal["team", "user"], Path(description="Whether the owner is a team or a person.")
]
OwnerName = Annotated[
    str,
    Path(
        min_length=1,
        max_length=3 * MOST_SUBJECT_CHARACTERS,  # each may be encoded
        description="The team's name, or the subject of the person's tokens.",
    ),
]


_PATH = "/owners/<kind>/<name>/quota"


class QuotaBody(Document):
    """The limits that one owner has in place of the deployment's; 0 is none. One that is left out,
    or null, is the deployment's."""

    jobs: Annotated[int | None, Field(ge=0, le=MOST[Quota.JOBS])] = None
    scheduled_per_minute: Annotated[int | None, Field(ge=0, le=MOST[Quota.SCHEDULED])] = None
    starts_per_minute: Annotated[int | None, Field(ge=0, le=MOST[Quota.STARTS])] = None
    concurrent_runs: Annotated[int | None, Field(ge=0, le=MOST[Quota.RUNS])] = None
    requests_per_second: Annotated[int | None, Field(ge=0, le=MOST[Quota.REQUESTS])] = None

    @property
    def limits(self) -> dict[Quota, int]:
        """Those that are given."""
        return {Quota(name): limit for name, limit in self if limit is not None}


class QuotaForm(BaseModel):
    """A quota: its `limit`, 0 for none, which is the owner's `own` where operators have set it; and
    how much of it is in use, null where nobody counts it without a limit."""

    name: Quota
    limit: int
    own: bool
    use: int | float | None = Field(
        description="Jobs; their mean starts a minute, of those that are paused, too; starts in "
        "the last minute; runs that have lasted for 2 s; requests of the last second, as far as "
        "the process that answers has served them."
    )


class QuotasForm(BaseModel):
    """The quotas of an owner."""

    owner: str
    quotas: list[QuotaForm]


class QuotaService:
    """All raise StoreUnavailableError."""

    def __init__(
        self, stores: Stores, quotas: Quotas, jobs: JobQuotas, throttle: Throttle, clock: Clock
    ) -> None:
        self._rows = stores.quotas
        self._recorded = RecordedRows(stores.quotas, stores.changes)
        self._admission_rows = stores.admission_rows
        self._quotas = quotas
        self._jobs = jobs
        self._throttle = throttle
        self._clock = clock

    def read(self, owner: str) -> QuotasForm:
        """The owner's limits, as stored, and their use."""
        row = self._rows.get(QUOTAS_OWNER, owner)
        own = {} if row is None else row.limits
        limits = {**self._quotas.defaults, **own}
        use = self._use(owner, limits)
        forms = [
            QuotaForm(name=quota, limit=limits[quota], own=quota in own, use=use.get(quota))
            for quota in Quota
        ]
        return QuotasForm(owner=owner, quotas=forms)

    def put(self, owner: str, body: QuotaBody, author: Author) -> OwnLimits:
        """The owner's limits as the body has them; raises ContendedError."""
        for _ in range(ATTEMPTS):
            stored = self._rows.get(QUOTAS_OWNER, owner)
            if stored is not None and stored.limits == body.limits:
                return stored
            revision = 1 if stored is None else stored.revision + 1
            wanted = OwnLimits(owner, revision, self._clock.now(), body.limits)
            if self._recorded.put(wanted, stored, author):
                self._quotas.forget()
                return wanted
        raise ContendedError(owner, "the quota of")

    def _use(self, owner: str, limits: Limits) -> dict[Quota, float]:
        """The use of each quota that is counted."""
        now, jobs = self._clock.now(), self._jobs.counted(owner, limits)
        found: dict[Quota, float] = {Quota.JOBS: jobs.jobs}
        if jobs.scheduled_per_minute is not None:
            found[Quota.SCHEDULED] = jobs.scheduled_per_minute
        if limits[Quota.STARTS]:
            gate = self._gate(owner, OWNER_ROW)
            found[Quota.STARTS] = starts_taken(gate, Rate(limits[Quota.STARTS], 60), now)
        if limits[Quota.RUNS]:
            found[Quota.RUNS] = permits_taken(self._gate(owner, PERMITS_ROW), now)
        if limits[Quota.REQUESTS]:
            found[Quota.REQUESTS] = self._throttle.use(owner, limits[Quota.REQUESTS], now)
        return found

    def _gate(self, owner: str, name: str) -> AdmissionRow:
        return self._admission_rows.get(owner, name) or first_admission(owner, name)


class QuotaRoutes(Resource):
    """Owners read their own; operators read and set anybody's."""

    def __init__(self, routes: Routes, service: QuotaService, telemetry: Telemetry) -> None:
        super().__init__(routes)
        self._service = service
        self._telemetry = telemetry

    @route("GET /quota", "Read your quotas", {200: "Your quotas"}, role=Role.VIEWER)
    def get_quota(self) -> Response[QuotasForm]:
        """The limits of what you may have and take, and their use. The jobs are counted for it."""
        return Response(200, JSON, self._service.read(self._owner()))

    @route(
        f"GET {_PATH}",
        "Read an owner's quotas",
        {200: "The owner's quotas"},
        Kind.NOT_FOUND,
        role=OPERATOR,
    )
    def get_quota_of_an_owner(self, kind: OwnerKind, name: OwnerName) -> Response[QuotasForm]:
        """Those of a team or a person, for operators. Nobody knows which there are: one who has
        never been here has the deployment's limits."""
        return Response(200, JSON, self._service.read(_owner_of(kind, name)))

    @route(
        f"PUT {_PATH}",
        "Set an owner's quotas",
        {200: "The owner's quotas as they are now"},
        Kind.NOT_FOUND,
        Kind.CONTENDED,
        role=OPERATOR,
    )
    def put_quota_of_an_owner(
        self, kind: OwnerKind, name: OwnerName, body: Annotated[QuotaBody, Body()]
    ) -> Response[QuotasForm]:
        """Replaces the limits that the owner has of its own, all of them. They count everywhere
        within half a minute. What is in use beyond a lower one stays; more of it is refused. The
        change is among those of the owner."""
        owner = _owner_of(kind, name)
        author = self._caller().author
        row = self._service.put(owner, body, author)
        self._telemetry.record(Action.QUOTA_PUT, by=author, owner=owner, revision=row.revision)
        return Response(200, JSON, self._service.read(owner))


def _owner_of(kind: str, name: str) -> str:
    """The owner of a part of a path; raises InvalidFieldError for what cannot be a team, or the
    subject of a token."""
    name = unquote(name)
    if kind == "user":
        if not is_subject(name):
            message = f"must be at most {MOST_SUBJECT_CHARACTERS} printable characters of ASCII"
            raise InvalidFieldError("name", message)
        return user_owner(name)
    if not re.fullmatch(TEAM_NAME, name):
        message = f"{name!r} cannot be a team: lower-case letters, digits and dash, 63 at most"
        raise InvalidFieldError("name", message)
    return team_owner(name)
