"""GET /status: route, models and service."""

from collections import Counter
from datetime import datetime
from typing import Literal

from aws_lambda_powertools.event_handler import Response
from pydantic import BaseModel, Field

from carillon.api.http.fields import UtcTime
from carillon.api.http.routing import Resource, Routes, route
from carillon.api.jobs.routes import JSON
from carillon.api.schedules.outlook import shown_state
from carillon.clock import Clock
from carillon.domain.job import JobState
from carillon.domain.run import Attention
from carillon.domain.spec.teams import Role
from carillon.domain.wheel.entry import minute_end
from carillon.errors import UnreadableRowError
from carillon.services.calendar_reader import CalendarReader
from carillon.services.history import History
from carillon.settings import Settings
from carillon.stores.ports import Stores
from carillon.stores.segments import segments_in_use

MOST_RUNS = 1_000
"""Counted of each kind that needs attention."""

MOST_REQUESTS = 10
"""Of the index of jobs: each reads a megabyte, some 2,500 jobs."""


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
    """The owner's jobs and runs as of `as_of`, but for the last few seconds, in which the indexes
    may lag behind. Active jobs with no occurrence left count as completed.

    `retrying_runs` wait for their next attempt, `waiting_runs` for what a policy demands; of each,
    and of dead letters, about 1,000 are counted at most. `complete` is false where there was more
    to count. `segments` is for operators.
    """

    state: Literal["idle", "processing"] = Field(
        description="Processing while runs are to be retried, or wait. Runs that are under way in "
        "their first attempt are not counted anywhere: `GET /runs` has them as they end."
    )
    as_of: UtcTime
    active_jobs: int
    paused_jobs: int
    completed_jobs: int
    waiting_runs: int
    retrying_runs: int
    dead_letters: int
    complete: bool
    unreadable_jobs: int = Field(
        default=0, description="Jobs that cannot be read; `GET /jobs` names them."
    )
    segments: list[SegmentForm] | None = None


class OverviewService:
    """Nothing here writes; raises StoreUnavailableError."""

    def __init__(self, stores: Stores, history: History, clock: Clock, settings: Settings) -> None:
        self._jobs = stores.jobs
        self._calendars = stores.calendars
        self._wheel = stores.wheel
        self._history = history
        self._clock = clock
        self._settings = settings

    def of_owner(self, owner: str) -> StatusForm:
        """The owner's jobs by state, and the runs that need attention."""
        now = self._clock.now()
        states, unreadable_jobs, all_counted = self._states(owner, now)
        runs = {each: self._history.count(owner, each, MOST_RUNS) for each in Attention}
        is_idle = not runs[Attention.WAITING] and not runs[Attention.RETRYING]
        return StatusForm(
            state="idle" if is_idle else "processing",
            as_of=now,
            active_jobs=states[JobState.ACTIVE],
            paused_jobs=states[JobState.PAUSED],
            completed_jobs=states[JobState.COMPLETED],
            waiting_runs=runs[Attention.WAITING],
            retrying_runs=runs[Attention.RETRYING],
            dead_letters=runs[Attention.DEAD],
            complete=all_counted and max(runs.values()) < MOST_RUNS,
            unreadable_jobs=unreadable_jobs,
        )

    def _states(self, owner: str, now: datetime) -> tuple[Counter[JobState], int, bool]:
        """The numbers of jobs by the state that they show; of those that cannot be read; and
        whether these are all."""
        states: Counter[JobState] = Counter()
        unreadable, cursor, calendars = 0, None, CalendarReader(self._calendars)
        for _ in range(MOST_REQUESTS):
            tally = self._jobs.tally(owner, cursor)
            states.update(tally.counts)
            states.update(shown_state(job, calendars, now) for job in tally.ending)
            unreadable, cursor = unreadable + tally.unreadable, tally.next_cursor
            if cursor is None:
                break
        return states, unreadable, cursor is None

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
    """One route; operators see the segments."""

    def __init__(self, routes: Routes, service: OverviewService) -> None:
        super().__init__(routes)
        self._service = service

    @route("GET /status", "Whether your jobs are idle", {200: "The status"}, role=Role.VIEWER)
    def get_status(self) -> Response[StatusForm]:
        """Your jobs by state, and the runs that need attention, whatever their number of jobs."""
        caller = self._caller()
        status = self._service.of_owner(caller.owner)
        if caller.is_operator:
            status.segments = self._service.segments()
        return Response(200, JSON, status)
