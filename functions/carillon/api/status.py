"""GET /status: route, models and service."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from aws_lambda_powertools.event_handler import Response
from pydantic import BaseModel, Field

from carillon.api.http.fields import UtcTime
from carillon.api.http.requests import caller_of
from carillon.api.http.routing import Resource, Routes, route
from carillon.api.jobs.routes import JSON
from carillon.api.jobs.service import JobService
from carillon.api.schedules.outlook import shown_state
from carillon.clock import Clock
from carillon.domain.calendar import Calendar
from carillon.domain.job import JobState
from carillon.domain.run import RunStatus
from carillon.domain.wheel.entry import minute_end
from carillon.errors import UnreadableRowError
from carillon.services.calendar_reader import CalendarReader
from carillon.settings import Settings
from carillon.stores.ports import RunStore, VersionedRows, WheelStore
from carillon.stores.segments import segments_in_use

JOBS_READ = 100
"""The newest runs are read of this many jobs, by job id: one query each."""

RUNS_READ = 20
"""Newest runs of each of those jobs."""

SHOWN = (JobState.ACTIVE, JobState.PAUSED, JobState.COMPLETED)
UNFINISHED = (RunStatus.SCHEDULED, RunStatus.RUNNING, RunStatus.RETRYING)


@dataclass(frozen=True, slots=True)
class Overview:
    """Counts over the jobs that were read; `is_complete` is False when the owner has more.

    Jobs are counted by the state that they show: COMPLETED, not ACTIVE, with no occurrence left.
    Runs are counted by status among the newest RUNS_READ of the first JOBS_READ jobs.
    """

    jobs: dict[JobState, int]
    runs: dict[RunStatus, int]
    jobs_looked_into: int
    is_complete: bool
    unreadable_jobs: int = 0

    @property
    def is_processing(self) -> bool:
        return any(self.runs.values())


@dataclass(frozen=True, slots=True)
class SegmentView:
    """The progress of a segment's dispatch; None for both instants before its first use.

    Every minute up to `watermark_at` is dispatched or in the backlog; every one up to `horizon_at`
    is announced. `unreadable` has the reason why nothing of it is known, and the mend.
    `backlog_minutes` still wait since an outage. `lag_minutes` is how far complete dispatch is
    behind the previous minute.
    """

    segment: int
    watermark_at: datetime | None = None
    horizon_at: datetime | None = None
    lag_minutes: int = 0
    backlog_minutes: int = 0
    lease_until: datetime | None = None
    unreadable: str | None = None


class OverviewService:
    """Nothing here writes; raises StoreUnavailableError."""

    def __init__(
        self,
        jobs: JobService,
        runs: RunStore,
        wheel: WheelStore,
        calendars: VersionedRows[Calendar],
        clock: Clock,
        settings: Settings,
    ) -> None:
        self._jobs = jobs
        self._calendars = calendars
        self._runs = runs
        self._wheel = wheel
        self._clock = clock
        self._settings = settings

    def of_owner(self, owner: str) -> Overview:
        """The owner's jobs by state, up to 1,000, and their unfinished runs."""
        states: Counter[JobState] = Counter()
        first_ids: list[str] = []
        has_more = False
        unreadable_jobs = 0
        calendars, now = CalendarReader(self._calendars), self._clock.now()
        for page in self._jobs.first_pages(owner):
            states.update(shown_state(job, calendars, now) for job in page.items)
            first_ids += [job.job_id for job in page.items[: JOBS_READ - len(first_ids)]]
            has_more = page.next_cursor is not None
            unreadable_jobs += len(page.unreadable)
        runs: Counter[RunStatus] = Counter()
        for job_id in first_ids:
            newest = self._runs.list(owner, job_id, RUNS_READ).items
            runs.update(run.status for run in newest)
        return Overview(
            jobs={state: states[state] for state in SHOWN},
            runs={status: runs[status] for status in UNFINISHED},
            jobs_looked_into=len(first_ids),
            is_complete=not has_more and states.total() <= JOBS_READ,
            unreadable_jobs=unreadable_jobs,
        )

    def segments(self) -> list[SegmentView]:
        """Every segment of the deployment."""
        now = self._clock.now()
        count = segments_in_use(self._wheel, self._settings.segments)
        return [self._segment(segment, now) for segment in range(count)]

    def _segment(self, segment: int, now: datetime) -> SegmentView:
        try:
            control = self._wheel.get_control(segment)
        except UnreadableRowError as error:
            return SegmentView(segment, unreadable=str(error))
        if control is None:
            return SegmentView(segment)
        return SegmentView(
            segment=segment,
            watermark_at=minute_end(control.watermark),
            horizon_at=minute_end(control.horizon),
            lag_minutes=control.lag_minutes(now),
            backlog_minutes=sum(backlog.until - backlog.done for backlog in control.backlog),
            lease_until=control.lease_until,
        )


class SegmentForm(BaseModel):
    """The progress of a segment's dispatch, in whole minutes; instants are those minutes' ends."""

    segment: int
    watermark_at: UtcTime | None
    horizon_at: UtcTime | None
    lag_minutes: int
    backlog_minutes: int
    lease_until: UtcTime | None
    unreadable: str | None = Field(
        default=None, description="Why nothing of it is known, and how an operator mends that."
    )

    @classmethod
    def of(cls, view: SegmentView) -> "SegmentForm":
        return cls(
            segment=view.segment,
            watermark_at=view.watermark_at,
            horizon_at=view.horizon_at,
            lag_minutes=view.lag_minutes,
            backlog_minutes=view.backlog_minutes,
            lease_until=view.lease_until,
            unreadable=view.unreadable,
        )


class StatusForm(BaseModel):
    """Runs are those unfinished among the newest 20 of each of `jobs_looked_into` jobs. Active jobs
    with no occurrence left count as completed.

    `complete` is false when the owner has more jobs than that. `segments` is for operators.
    """

    state: Literal["idle", "processing"]
    active_jobs: int
    paused_jobs: int
    completed_jobs: int
    scheduled_runs: int
    running_runs: int
    retrying_runs: int
    jobs_looked_into: int
    complete: bool
    unreadable_jobs: int = Field(
        default=0, description="Jobs that cannot be read; `GET /jobs` names them."
    )
    segments: list[SegmentForm] | None = None

    @classmethod
    def of(cls, overview: Overview, segments: list[SegmentView] | None) -> "StatusForm":
        runs = overview.runs
        return cls(
            state="processing" if overview.is_processing else "idle",
            active_jobs=overview.jobs[JobState.ACTIVE],
            paused_jobs=overview.jobs[JobState.PAUSED],
            completed_jobs=overview.jobs[JobState.COMPLETED],
            scheduled_runs=runs[RunStatus.SCHEDULED],
            running_runs=runs[RunStatus.RUNNING],
            retrying_runs=runs[RunStatus.RETRYING],
            jobs_looked_into=overview.jobs_looked_into,
            complete=overview.is_complete,
            unreadable_jobs=overview.unreadable_jobs,
            segments=None if segments is None else [SegmentForm.of(view) for view in segments],
        )


class StatusRoutes(Resource):
    """One route; `operators_group` names the group whose members see the segments."""

    def __init__(self, routes: Routes, service: OverviewService, operators_group: str) -> None:
        super().__init__(routes)
        self._service = service
        self._operators_group = operators_group

    @route("GET /status", "Whether your jobs are idle", {200: "The status"})
    def get_status(self) -> Response[StatusForm]:
        """Processing while any of the newest runs of your first 100 jobs is unfinished."""
        caller = caller_of(self._app.current_event.raw_event)
        is_operator = self._operators_group in caller.groups
        segments = self._service.segments() if is_operator else None
        return Response(200, JSON, StatusForm.of(self._service.of_owner(caller.owner), segments))
