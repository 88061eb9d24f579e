"""What fires next: of one schedule, of one job, or of all jobs of an owner."""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice

from functions.api.schemas import PreviewBody
from functions.api.service import JobService
from shared.clock import Clock
from shared.domain.job import Job, JobState
from shared.recurrence import Schedule, SlotKind, Slots, parse_schedule, slots

PAGE_SIZE = 100
MOST_PAGES = 10
"""`GET /upcoming` and `GET /status` look at so many pages of jobs: 1,000 jobs, by job id."""

_FAR = datetime(9998, 12, 31, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A coming fire time of a job."""

    fire_at: datetime
    job: Job


@dataclass(frozen=True, slots=True)
class Upcoming:
    """`is_complete` is False when the owner has more jobs than were looked at."""

    occurrences: tuple[Occurrence, ...]
    is_complete: bool


@dataclass(frozen=True, slots=True)
class Preview:
    schedule: Schedule
    fire_times: tuple[datetime, ...]
    slots: Slots

    @property
    def entry_count(self) -> int:
        """How many entries a job with this schedule takes on the wheel at a time."""
        if self.slots.kind is SlotKind.DATED:
            return 1
        return len(self.slots.numbers)


class OccurrenceService:
    """Nothing here writes; raises MissingError, StoreUnavailableError as JobService."""

    def __init__(self, jobs: JobService, clock: Clock) -> None:
        self._jobs = jobs
        self._clock = clock

    def preview(self, body: PreviewBody) -> Preview:
        """The next fire times of a schedule; raises InvalidFieldError."""
        schedule = parse_schedule(body.schedule, body.timezone, body.start_at)
        after = body.after or self._clock.now()
        fire_times = islice(schedule.between(after, _FAR), body.count)
        return Preview(schedule, tuple(fire_times), slots(schedule))

    def of_job(self, owner: str, job_id: str, count: int) -> Upcoming:
        """The job's next occurrences; a paused one has none."""
        job = self._jobs.get(owner, job_id)
        coming = self._coming(job, self._clock.now(), _FAR)
        return Upcoming(tuple(islice(coming, count)), is_complete=True)

    def of_owner(self, owner: str, count: int, until: datetime | None) -> Upcoming:
        """The next occurrences across the owner's first 1,000 jobs, at most until an instant."""
        now = self._clock.now()
        last = _FAR if until is None else until
        nearest: list[Occurrence] = []
        cursor: str | None = None
        for _ in range(MOST_PAGES):
            page = self._jobs.list(owner, PAGE_SIZE, cursor)
            streams = [self._coming(job, now, last) for job in page.items]
            merged = heapq.merge(nearest, *streams, key=_order)
            nearest = list(islice(merged, count))
            cursor = page.next_cursor
            if cursor is None:
                break
        return Upcoming(tuple(nearest), is_complete=cursor is None)

    def _coming(self, job: Job, now: datetime, until: datetime) -> Iterator[Occurrence]:
        if job.state is not JobState.ACTIVE:
            return
        after = max(now, job.filing.from_at)
        for fire_at in job.schedule.between(after, until):
            yield Occurrence(fire_at, job)


def next_fire_at(job: Job, now: datetime) -> datetime | None:
    """When the job fires next; None while it is paused and when nothing is left."""
    if job.state is not JobState.ACTIVE:
        return None
    return job.schedule.next(max(now, job.filing.from_at))


def _order(occurrence: Occurrence) -> tuple[datetime, str]:
    return occurrence.fire_at, occurrence.job.job_id
