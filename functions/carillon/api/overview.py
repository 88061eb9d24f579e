"""Whether an owner's jobs are idle; and for operators, how far each segment has come."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime

from carillon.api.jobs.service import JobService
from carillon.api.schedules.outlook import CalendarReader, shown_state
from carillon.clock import Clock
from carillon.domain.job import JobState
from carillon.domain.run import RunStatus
from carillon.domain.wheel.entry import minute_end
from carillon.errors import UnreadableRowError
from carillon.settings import Settings
from carillon.stores.ports import CalendarStore, RunStore, WheelStore
from carillon.stores.segments import segments_in_use

JOBS_LOOKED_INTO = 100
"""Of so many jobs, by job id, the newest runs are read: one query each."""

RUNS_LOOKED_AT = 20
"""Newest runs of each of those jobs."""

SHOWN = (JobState.ACTIVE, JobState.PAUSED, JobState.COMPLETED)
UNFINISHED = (RunStatus.SCHEDULED, RunStatus.RUNNING, RunStatus.RETRYING)


@dataclass(frozen=True, slots=True)
class Overview:
    """Counts over the jobs looked at; `is_complete` is False when the owner has more.

    Jobs are counted by the state that they show: COMPLETED, not ACTIVE, with no occurrence left.
    Runs are counted by status among the newest RUNS_LOOKED_AT of the first JOBS_LOOKED_INTO jobs.
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
    """How far a segment is dispatched; None for both instants before its first use.

    Every minute up to `watermark_at` is dispatched or in the backlog; every one up to `horizon_at`
    is announced. `unreadable` says why nothing of it is known, and how that is mended.
    `backlog_minutes` still wait since an outage. `lag_minutes` is how far complete
    dispatch is behind the previous minute.
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
        calendars: CalendarStore,
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
        calendars, now = CalendarReader(self._calendars, owner), self._clock.now()
        for page in self._jobs.first_pages(owner):
            states.update(shown_state(job, calendars, now) for job in page.items)
            first_ids += [job.job_id for job in page.items[: JOBS_LOOKED_INTO - len(first_ids)]]
            has_more = page.next_cursor is not None
            unreadable_jobs += len(page.unreadable)
        runs: Counter[RunStatus] = Counter()
        for job_id in first_ids:
            newest = self._runs.list(owner, job_id, RUNS_LOOKED_AT).items
            runs.update(run.status for run in newest)
        return Overview(
            jobs={state: states[state] for state in SHOWN},
            runs={status: runs[status] for status in UNFINISHED},
            jobs_looked_into=len(first_ids),
            is_complete=not has_more and states.total() <= JOBS_LOOKED_INTO,
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
