"""GET /runs/{run_id}/logs: route, models and service."""

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import accumulate

from aws_lambda_powertools.event_handler import Response
from pydantic import BaseModel

from carillon.api.http.fields import UtcTime
from carillon.api.http.problems import Kind, MissingError, ProblemError
from carillon.api.http.routing import Resource, Routes, route
from carillon.api.http.throttle import Throttle
from carillon.api.jobs.routes import JSON, Cursor
from carillon.api.jobs.service import PAGE_BYTES
from carillon.api.runs.routes import RunId
from carillon.api.runs.service import run_key_of
from carillon.clock import Clock
from carillon.domain.run import Run
from carillon.domain.spec.teams import Role
from carillon.services.history import History
from carillon.stores.cursors import decode_cursor, encode_cursor
from carillon.stores.task_logs import Lines, TaskLogs
from carillon.telemetry import Action

PAGE_LINES = 200
MESSAGE_CHARACTERS = 8_000
READS_PER_SECOND = 1
READS_BURST = 5
"""Of each owner, in each process of the API: all of an account share a few of CloudWatch's."""

_BEFORE = timedelta(seconds=5)
_AFTER = timedelta(minutes=2)
"""The clocks of executors and of CloudWatch differ, and a task may log while it is ended."""


class LogLineForm(BaseModel):
    """A line that a task has logged or printed in an attempt of the run."""

    at: UtcTime
    level: str
    message: str
    attempt: int | None


class LogPage(BaseModel):
    """`next_cursor` is null where no more lines are known now; a page may be empty before."""

    items: list[LogLineForm]
    next_cursor: str | None


class LogService:
    """Nothing here writes; raises MissingError, StoreUnavailableError, and InvalidFieldError for
    cursors."""

    def __init__(self, history: History, logs: TaskLogs, clock: Clock) -> None:
        self._history = history
        self._logs = logs
        self._clock = clock
        self._throttle = Throttle(READS_BURST)

    def page(self, owner: str, run_id: str, cursor: str | None) -> LogPage:
        """The lines of the owner's run, of all attempts, oldest first in each lane.

        Whatever the search finds, only lines of this run are shown: the search is no boundary
        between owners. Where the lines are long there are fewer of them: an answer is limited in
        size.
        """
        key = run_key_of(owner, run_id)
        run = None if key is None else self._history.get(key)
        if run is None:
            raise MissingError("run", run_id)
        scope = ("logs", owner, run_id)
        position = "" if cursor is None else decode_cursor(scope, cursor)
        if run.started_at is None:
            return LogPage(items=[], next_cursor=None)
        self._refuse_flood_of(owner)
        span = self._span(run, run.started_at)
        found = self._logs.find(run_id, *span, PAGE_LINES, position)
        lines = _lines_of(run_id, found)
        fitting = _fitting(lines)
        if fitting < len(lines):
            found = self._logs.find(run_id, *span, fitting, position)
            lines = _lines_of(run_id, found)
        return LogPage(
            items=[line for line in lines if line is not None],
            next_cursor=encode_cursor(scope, found.position) if found.position else None,
        )

    def _span(self, run: Run, started_at: datetime) -> tuple[datetime, datetime]:
        ended_at = run.finished_at or self._clock.now()
        return started_at - _BEFORE, ended_at + _AFTER

    def _refuse_flood_of(self, owner: str) -> None:
        wait_seconds = self._throttle.wait_seconds(owner, READS_PER_SECOND, self._clock.now())
        if wait_seconds:
            raise ProblemError(
                Kind.TOO_MANY_REQUESTS,
                f"logs are read {READS_PER_SECOND} time a second at most: ask again later",
                headers={"Retry-After": str(wait_seconds)},
            )


def _lines_of(run_id: str, found: Lines) -> list[LogLineForm | None]:
    return [_line_of(run_id, at, text) for at, text in found.items]


def _fitting(lines: Sequence[LogLineForm | None]) -> int:
    """The number of the first lines that fit into one answer, as it escapes them; at least one."""
    sizes = accumulate(0 if line is None else len(json.dumps(line.message)) for line in lines)
    return max(1, sum(1 for size_bytes in sizes if size_bytes <= PAGE_BYTES))


def _line_of(run_id: str, at: datetime, text: str) -> LogLineForm | None:
    """The line as it is shown, None for any that is not the run's."""
    try:
        members = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(members, dict):
        return None
    if members.get("run_id") != run_id or members.get("action") != Action.TASK_LOG:
        return None
    said = [_shown(members[name]) for name in ("message", "exception") if members.get(name)]
    attempt = members.get("attempt")
    return LogLineForm(
        at=at,
        level=_shown(members.get("level", "INFO")),
        message="\n".join(said)[:MESSAGE_CHARACTERS],
        attempt=attempt if isinstance(attempt, int) else None,
    )


def _shown(value: object) -> str:
    """As text that everybody can encode: a task may log half of a pair of surrogates."""
    return str(value).encode("utf-8", "replace").decode()


class LogRoutes(Resource):
    """One route."""

    def __init__(self, routes: Routes, service: LogService) -> None:
        super().__init__(routes)
        self._service = service

    @route(
        "GET /runs/<run_id>/logs",
        "Read what a run has logged",
        {200: "A page"},
        Kind.NOT_FOUND,
        role=Role.VIEWER,
    )
    def list_logs(self, run_id: RunId, cursor: Cursor = None) -> Response[LogPage]:
        """The output of the run's task, in all its attempts: what it logs by `context.logger` or
        `logging`, and what it prints. Lines come some seconds after they were written. One reading
        a second; runs of other targets have none."""
        return Response(200, JSON, self._service.page(self._owner(), run_id, cursor))
