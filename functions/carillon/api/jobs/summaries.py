"""Jobs as lists show them: read from the index of an owner's jobs, with their newest runs."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from itertools import accumulate
from typing import Annotated

from aws_lambda_powertools.event_handler.openapi.params import Query
from pydantic import BaseModel

from carillon.api.http.fields import ListForm, UtcTime, rest_of
from carillon.api.jobs.response_models import JobForm, sentence_of
from carillon.api.jobs.service import PAGE_BYTES
from carillon.api.schedules.outlook import outlook_of, shown_state
from carillon.clock import Clock
from carillon.domain.calendar import Calendar
from carillon.domain.execution.recent import is_run_again, last_run
from carillon.domain.job import Job, JobState
from carillon.domain.run import Run, RunKind, RunStatus
from carillon.domain.spec.job_summary import JobSummary
from carillon.domain.spec.names import is_job_id
from carillon.errors import InvalidFieldError
from carillon.services.calendar_reader import CalendarReader
from carillon.services.history import History
from carillon.stores.ports import JobFilter, JobStore, Page, VersionedRows

RECENT = 10
"""Rows of its history that are read of a job: half a read unit for each 4 KB."""
_NEWEST = 2
"""Rows that are read for a last run; more only where these are none of a run, or were redriven."""


class View(StrEnum):
    FULL = "full"
    SUMMARY = "summary"


class Include(StrEnum):
    LAST_RUN = "last_run"
    RECENT_RUNS = "recent_runs"


class ShownState(StrEnum):
    """The states in which a job is shown; a completed one has no occurrence left."""

    ACTIVE = "active"
    PAUSED = "paused"
    COMPLETED = "completed"

    @property
    def stored(self) -> str:
        """The state in the rows of such jobs."""
        return JobState.PAUSED if self is ShownState.PAUSED else JobState.ACTIVE


StateQuery = Annotated[ShownState | None, Query(description="Only jobs in this state.")]
SearchQuery = Annotated[
    str | None,
    Query(
        min_length=1,
        max_length=128,
        description="The beginning of a name, whatever its case, or a whole `job_id`.",
    ),
]
ViewQuery = Annotated[View, Query(description="`summary`: what lists show, at less cost.")]
IncludeQuery = Annotated[
    str | None,
    Query(
        max_length=64,
        description="With `view=summary`: `last_run`, `recent_runs`, or both, joined by a comma.",
    ),
]


def included_of(view: View, text: str | None) -> frozenset[Include]:
    """The members that a request includes; raises InvalidFieldError."""
    try:
        included = frozenset(map(Include, text.split(","))) if text else frozenset()
    except ValueError:
        allowed = " and ".join(Include)
        raise InvalidFieldError("include", f"may name {allowed}, joined by a comma") from None
    if included and view is not View.SUMMARY:
        raise InvalidFieldError("include", "goes with view=summary")
    return included


class RunBrief(BaseModel):
    """A run in a line. `duration_seconds` are from the start of its first attempt to its end."""

    run_id: str
    kind: RunKind
    status: RunStatus
    fire_at: UtcTime
    lag_seconds: float | None
    duration_seconds: float | None
    error_kind: str | None

    @classmethod
    def of(cls, run: Run) -> "RunBrief":
        return cls(
            run_id=run.key.run_id,
            kind=run.key.kind,
            status=run.status,
            fire_at=run.key.fire_at,
            lag_seconds=None if run.lag_seconds is None else round(run.lag_seconds, 3),
            duration_seconds=run.duration_seconds,
            error_kind=None if run.error is None else run.error.kind,
        )


class JobDetail(JobForm):
    """A job, with what its ten newest rows of history say: its newest run, callbacks apart, and how
    many runs in a row have ended as dead letters."""

    last_run: RunBrief | None
    failures_in_a_row: int


class JobSummaryForm(BaseModel):
    """A job as the index has it, a few seconds behind at most; the members are those of a job.

    `schedule` is text, a union's members joined by `;`, and null for a job that runs `after`
    another. `last_run` and `recent` are there if the request includes them: the newest run, and
    rows of the history, newest first, callbacks apart; `recent` is null if it does not.
    """

    job_id: str
    name: str
    state: JobState
    resume_at: UtcTime | None
    note: str | None
    schedule: str | None
    sentence: str
    timezone: str
    calendar: str | None
    window: str | None
    parent: str | None
    tags: dict[str, str]
    managed_by: str | None
    next_fire_at: UtcTime | None
    ends_at: UtcTime | None
    last_run: RunBrief | None
    recent: list[RunBrief] | None


class JobSummaryPage(ListForm):
    items: list[JobSummaryForm]


class SummaryService:
    """Nothing here writes; raises StoreUnavailableError, and InvalidFieldError for cursors."""

    def __init__(
        self, jobs: JobStore, history: History, calendars: VersionedRows[Calendar], clock: Clock
    ) -> None:
        self._jobs = jobs
        self._history = history
        self._calendars = calendars
        self._clock = clock

    def page(
        self,
        owner: str,
        limit: int,
        cursor: str | None,
        only: JobFilter,
        state: ShownState | None,
        include: frozenset[Include],
    ) -> JobSummaryPage:
        """One page by name. A page may be short, or empty, and yet not be the last."""
        page = self._found(owner, limit, cursor, only)
        calendars, now = CalendarReader(self._calendars), self._clock.now()
        shown = [
            job
            for job in page.items
            if state is None or shown_state(job, calendars, now).value == state.value
        ]
        recent: Mapping[str, tuple[Run, ...]] = {}
        if include:
            recent = self._recent(owner, [job.job_id for job in shown], include)
        items = [
            _form(job, recent.get(job.job_id), include, calendars, self._clock) for job in shown
        ]
        return JobSummaryPage(items=items, **rest_of(page))

    def _recent(
        self, owner: str, job_ids: Sequence[str], include: frozenset[Include]
    ) -> Mapping[str, tuple[Run, ...]]:
        if Include.RECENT_RUNS in include:
            return self._history.latest_of(owner, job_ids, RECENT)
        found = self._history.latest_of(owner, job_ids, _NEWEST)
        hidden = [
            each
            for each, rows in found.items()
            if rows and ((last := last_run(rows)) is None or is_run_again(last))
        ]
        return found | self._history.latest_of(owner, hidden, RECENT) if hidden else found

    def of_id(self, owner: str, only: JobFilter) -> Page[Job] | None:
        """The page with the job of this id; None where none of them has it: names may begin so."""
        if not is_job_id(only.name):
            return None
        job = self._jobs.get(owner, only.name)
        is_found = job is not None and not job.is_tombstone and replace(only, name="").chooses(job)
        return Page((job,)) if job is not None and is_found else None

    def _found(
        self, owner: str, limit: int, cursor: str | None, only: JobFilter
    ) -> Page[JobSummary]:
        """It is shorter than `limit` where tags are long: an answer is limited in size."""
        of_id = self.of_id(owner, only)
        if of_id is not None:
            return Page(tuple(map(JobSummary.of, of_id.items)))
        page = self._jobs.summaries(owner, limit, cursor, only)
        # As the answer escapes them: 256 letters beyond the first plane take 3 KB.
        sizes = accumulate(len(json.dumps(dict(job.tags))) for job in page.items)
        fitting = max(1, sum(1 for size_bytes in sizes if size_bytes <= PAGE_BYTES))
        if fitting >= len(page.items):
            return page
        return self._jobs.summaries(owner, fitting, cursor, only)


def _form(
    job: JobSummary,
    recent: tuple[Run, ...] | None,
    include: frozenset[Include],
    calendars: CalendarReader,
    clock: Clock,
) -> JobSummaryForm:
    outlook = outlook_of(job, calendars, clock.now())
    rows = [run for run in recent or () if run.key.kind is not RunKind.CALLBACK]
    newest = last_run(rows) if Include.LAST_RUN in include else None
    return JobSummaryForm(
        job_id=job.job_id,
        name=job.name,
        state=outlook.state,
        resume_at=job.resume_at,
        note=job.note or None,
        schedule=None if job.spec.after else job.schedule.text,
        sentence=sentence_of(job),
        timezone=job.spec.timezone,
        calendar=job.spec.calendar.name if job.spec.calendar else None,
        window=job.spec.window,
        parent=job.parent,
        tags=dict(job.tags),
        managed_by=job.managed_by or None,
        next_fire_at=outlook.next_fire_at,
        ends_at=outlook.ends_at,
        last_run=None if newest is None else RunBrief.of(newest),
        recent=[*map(RunBrief.of, rows)] if Include.RECENT_RUNS in include else None,
    )
