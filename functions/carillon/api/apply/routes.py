"""POST /apply: its route and its answer."""

import json
from datetime import datetime, timedelta
from typing import Annotated, Any

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body
from pydantic import BaseModel

from carillon.api.apply.models import ApplyBody
from carillon.api.apply.plan import Applied, Item, ItemAction, ItemKind
from carillon.api.apply.service import ApplyService
from carillon.api.apply.telling import teller
from carillon.api.calendars.service import CalendarPut
from carillon.api.http.fields import UtcTime
from carillon.api.http.problems import Kind, Problem, problem_members
from carillon.api.http.routing import Resource, Routes, route
from carillon.api.jobs.bulk_service import MOST_ERRORS
from carillon.api.jobs.named import ChangeForm
from carillon.api.jobs.response_models import sentence_of
from carillon.api.jobs.routes import JSON
from carillon.api.schedules.outlook import outlook_of
from carillon.api.schedules.preview import report_of
from carillon.api.schedules.response_models import WarningForm
from carillon.clock import Clock
from carillon.domain.calendar import Calendar
from carillon.domain.spec.owners import Via
from carillon.domain.spec.teams import Role
from carillon.services.calendar_reader import CalendarReader
from carillon.stores.ports import VersionedRows
from carillon.telemetry import Telemetry

PATH = "/apply"
DETAILS_BUDGET = timedelta(seconds=4)
"""Beside the time that applying takes: a job's may take 20 ms, and an answer is due after 29 s."""
_MOST_CHANGES = 10
_LONGEST_VALUE = 200
"""Of changes, and of characters of a value in one: 1,000 items go into one answer."""


class ApplyItemForm(BaseModel):
    """`changes` are the first ten of an item that is changed, each value cut at 200 characters.
    `reindexes`: the job fires by new entries. `sentence` says when it fires, where that is new, of
    a paused job, too; `next_fire_at` is its next nominal time, as far as its calendars are there.
    Of very many jobs the last ones may lack that and their warnings: they are worked out for four
    seconds. `problem` says what hinders it."""

    kind: ItemKind
    name: str
    action: ItemAction
    changes: list[ChangeForm]
    reindexes: bool
    sentence: str | None
    next_fire_at: UtcTime | None
    warnings: list[WarningForm]
    problem: Problem | None


class ApplyForm(BaseModel):
    """One item for each that was sent, or is to be pruned. `written` is false for a dry run, and
    where an item is `refused`, `drift` or `unavailable`: nothing is written then. `complete` is
    false where an item was not reached: send the same again. `counts` are by action; `digest` is
    that of the plan."""

    items: list[ApplyItemForm]
    counts: dict[ItemAction, int]
    written: bool
    complete: bool
    digest: str


class ApplyRoutes(Resource):
    """One route."""

    def __init__(
        self,
        routes: Routes,
        service: ApplyService,
        calendars: VersionedRows[Calendar],
        clock: Clock,
        telemetry: Telemetry,
    ) -> None:
        super().__init__(routes)
        self._service = service
        self._calendars = calendars
        self._clock = clock
        self._telemetry = telemetry

    @route(
        f"POST {PATH}",
        "Apply a manifest",
        {200: "What became, or would become, of each item"},
        Kind.PLAN_CHANGED,
        role=Role.EDITOR,
    )
    def apply_manifest(self, body: Annotated[ApplyBody, Body()]) -> Response[ApplyForm]:
        """Makes jobs and calendars what the manifest says, as by PUT: created, changed, or revived;
        a paused job stays paused. All of it is checked first. Sent again it changes nothing.

        The manifest manages the jobs from then on: others change them by `force` only, which the
        next apply reports as `drift`, and `force` here overwrites.
        """
        caller = self._caller()
        author = caller.author.by(Via.APPLY)
        manager = f"manifest/{body.manifest}"
        tell = teller(self._telemetry, author)
        applied = self._service.apply(caller.owner, author, manager, body, tell)
        return Response(200, JSON, self._form(applied))

    def _form(self, applied: Applied) -> ApplyForm:
        calendars, until = CalendarReader(self._calendars), self._clock.now() + DETAILS_BUDGET
        for item in applied.items:
            if isinstance(item.put, CalendarPut):
                calendars.take(item.put.calendar)  # as it will be, where it is only planned
        return ApplyForm(
            items=[self._item(item, calendars, until) for item in applied.items],
            counts={ItemAction(action): count for action, count in applied.counts.items()},
            written=applied.is_written,
            complete=applied.is_complete,
            digest=applied.digest,
        )

    def _item(self, item: Item, calendars: CalendarReader, until: datetime) -> ApplyItemForm:
        now = self._clock.now()
        told, next_fire_at, warnings = None, None, list[WarningForm]()
        if item.job is not None and item.fires_otherwise:
            told = sentence_of(item.job)
        if item.job is not None and item.fires_otherwise and now < until:
            next_fire_at = outlook_of(item.job, calendars, now).next_fire_at
            warnings = report_of(calendars.opened(item.job), now).warnings
        return ApplyItemForm(
            kind=item.kind,
            name=item.name,
            action=item.action,
            changes=[
                ChangeForm(path=path[:_LONGEST_VALUE], before=_cut(before), after=_cut(after))
                for path, before, after in item.changes[:_MOST_CHANGES]
            ],
            reindexes=item.reindexes,
            sentence=told,
            next_fire_at=next_fire_at,
            warnings=warnings,
            problem=_problem(item),
        )


def _problem(item: Item) -> Problem | None:
    if item.problem is None:
        return None
    members = problem_members(item.problem, PATH)
    return Problem(**{**members, "errors": members["errors"][:MOST_ERRORS]})


def _cut(value: Any) -> Any:
    """The value, or the beginning of its JSON where that is long."""
    text = json.dumps(value)
    return value if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"
