"""GET /status: route, models and service."""

from collections import Counter
from datetime import datetime
from typing import Literal

from aws_lambda_powertools.event_handler import Response
from pydantic import BaseModel, Field

from carillon.api.http.fields import UtcTime
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
from carillon.services.history import History
from carillon.settings import Settings
from carillon.stores.ports import VersionedRows, WheelStore
from carillon.stores.segments import segments_in_use

JOBS_READ = 100
"""The newest runs are read of this many jobs, by job id: one query each."""

RUNS_READ = 20
"""Newest runs of each of those jobs."""

UNFINISHED = (RunStatus.SCHEDULED, RunStatus.RUNNING, RunStatus.RETRYING)


class SegmentForm(BaseModel):
    """The progress of a segment's dispatch, in whole minutes; instants are those minutes' ends,
    null before its first use."""

    segment: int
    watermark_at: UtcTime | None = None
    horizon_at: UtcTime | None = None
    lag_minutes: int = 0
    backlog_minutes: int = 0
    lease_until: UtcTime | None = None
    unreadable: str | None = Field(
        default=None, description="Why nothing of it is known, and how an operator mends that."
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


class OverviewService:
    """Nothing here writes; raises StoreUnavailableError."""

    def __init__(
        self,
        jobs: JobService,
        history: History,
        wheel: WheelStore,
        calendars: VersionedRows[Calendar],
        clock: Clock,
        settings: Settings,
    ) -> None:
        self._jobs = jobs
        self._calendars = calendars
        self._history = history
        self._wheel = wheel
        self._clock = clock
        self._settings = settings

    def of_owner(self, owner: str) -> StatusForm:
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
            newest = self._history.latest(owner, job_id, RUNS_READ)
            runs.update(run.status for run in newest)
        return StatusForm(
            state="processing" if any(runs[status] for status in UNFINISHED) else "idle",
            active_jobs=states[JobState.ACTIVE],
            paused_jobs=states[JobState.PAUSED],
            completed_jobs=states[JobState.COMPLETED],
            scheduled_runs=runs[RunStatus.SCHEDULED],
            running_runs=runs[RunStatus.RUNNING],
            retrying_runs=runs[RunStatus.RETRYING],
            jobs_looked_into=len(first_ids),
            complete=not has_more and states.total() <= JOBS_READ,
            unreadable_jobs=unreadable_jobs,
        )

    def segments(self) -> list[SegmentForm]:
        """Every segment of the deployment."""
        now = self._clock.now()
        count = segments_in_use(self._wheel, self._settings.segments)
        return [self._segment(segment, now) for segment in range(count)]

    def _segment(self, segment: int, now: datetime) -> SegmentForm:
        try:
            control = self._wheel.get_control(segment)
        except UnreadableRowError as error:
            return SegmentForm(segment=segment, unreadable=str(error))
        if control is None:
            return SegmentForm(segment=segment)
        return SegmentForm(
            segment=segment,
            watermark_at=minute_end(control.watermark),
            horizon_at=minute_end(control.horizon),
            lag_minutes=control.lag_minutes(now),
            backlog_minutes=sum(backlog.until - backlog.done for backlog in control.backlog),
            lease_until=control.lease_until,
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
        caller = self._caller()
        status = self._service.of_owner(caller.owner)
        if self._operators_group in caller.groups:
            status.segments = self._service.segments()
        return Response(200, JSON, status)
