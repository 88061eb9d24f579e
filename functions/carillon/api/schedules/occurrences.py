"""What fires next: of one job, or of all jobs of an owner."""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from carillon.api.jobs.service import JobService
from carillon.api.schedules.outlook import FAR, CalendarReader, Occurrence, after_finish, coming
from carillon.clock import Clock
from carillon.domain.job import Job, JobState
from carillon.domain.run import Run, RunKind
from carillon.schedules import Delay
from carillon.stores.ports import CalendarStore, RunStore

_RUNS_LOOKED_AT = 100
"""Newest runs among which the last scheduled one is looked for: manual ones lie between."""


@dataclass(frozen=True, slots=True)
class Upcoming:
    """`is_complete` is False when the owner has more jobs than were looked at."""

    occurrences: tuple[Occurrence, ...]
    is_complete: bool


class OccurrenceService:
    """Nothing here writes; raises MissingError, StoreUnavailableError as JobService."""

    def __init__(
        self, jobs: JobService, calendars: CalendarStore, runs: RunStore, clock: Clock
    ) -> None:
        self._jobs = jobs
        self._calendars = calendars
        self._runs = runs
        self._clock = clock

    def of_job(self, owner: str, job_id: str, count: int) -> Upcoming:
        """The job's next occurrences, which its calendar leaves; a paused job has none.

        Of a fixed delay there is at most one, counted from the end of its newest run.
        """
        job = self._jobs.get(owner, job_id)
        calendars = CalendarReader(self._calendars, owner)
        now = self._clock.now()
        found: Iterator[Occurrence] = coming(job, calendars, now)
        if isinstance(job.schedule, Delay) and job.state is JobState.ACTIVE:
            following = after_finish(job, self._newest_run(job), calendars, now)
            found = iter(() if following is None else (following,))
        return Upcoming(tuple(islice(found, count)), is_complete=True)

    def of_owner(self, owner: str, count: int, until: datetime | None) -> Upcoming:
        """The next occurrences across the owner's first 1,000 jobs, at most until an instant.

        They are in the order of their effective times; fixed delays have none here.
        """
        now = self._clock.now()
        last = FAR if until is None else until
        calendars = CalendarReader(self._calendars, owner)
        nearest: list[Occurrence] = []
        has_more = False
        for page in self._jobs.first_pages(owner):
            streams = [coming(job, calendars, now, last) for job in page.items]
            merged = heapq.merge(nearest, *streams, key=_order)
            nearest = list(islice(merged, count))
            has_more = page.next_cursor is not None
        return Upcoming(tuple(nearest), is_complete=not has_more)

    def _newest_run(self, job: Job) -> Run | None:
        """The newest scheduled run under the job's filing, if there is one."""
        newest = self._runs.list(job.owner, job.job_id, _RUNS_LOOKED_AT).items
        for run in newest:
            is_scheduled = run.key.kind is RunKind.SCHEDULED
            if is_scheduled and run.filing_id == job.filing.filing_id:
                return run
        return None


def _order(occurrence: Occurrence) -> tuple[datetime, str]:
    return occurrence.effective_at, occurrence.job.job_id
