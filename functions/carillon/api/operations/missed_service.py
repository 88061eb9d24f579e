"""What of a job was missed, apart from HTTP."""

from datetime import datetime, timedelta

from carillon.api.jobs.service import JobService
from carillon.api.schedules.outlook import CalendarReader
from carillon.clock import Clock
from carillon.errors import InvalidFieldError
from carillon.services.missed_search import Found, MissedSearch, last_pause_at
from carillon.stores.ports import CalendarStore, RunStore

DEFAULT_SPAN = timedelta(days=1)
LONGEST_SPAN = timedelta(days=366)


class MissedService:
    """Nothing here writes; raises MissingError, StoreUnavailableError as JobService."""

    def __init__(
        self, jobs: JobService, calendars: CalendarStore, runs: RunStore, clock: Clock
    ) -> None:
        self._jobs = jobs
        self._calendars = calendars
        self._search = MissedSearch(runs)
        self._clock = clock

    def of_job(
        self,
        owner: str,
        job_id: str,
        from_at: datetime | None,
        until_at: datetime | None,
        limit: int,
    ) -> Found:
        """The missed occurrences of [from_at, until_at], newest first; raises InvalidFieldError.

        From the beginning of the last pause on (a year back at most), or of the last day if there
        was none; until now at the latest; and none before the job was created.
        """
        job = self._jobs.get(owner, job_id)
        now = self._clock.now()
        last = min(until_at or now, now)
        since = last_pause_at(job) or now - DEFAULT_SPAN
        first = max(job.created_at, from_at or max(since, last - LONGEST_SPAN))
        if until_at is not None and from_at is not None and until_at < from_at:
            raise InvalidFieldError("to", "must not lie before from")
        if last - first > LONGEST_SPAN:
            raise InvalidFieldError("from", f"must lie within {LONGEST_SPAN.days} days of to")
        if last < first:
            return Found((), first, is_complete=True)
        opened = CalendarReader(self._calendars, owner).opened(job.schedule, job.calendar)
        return self._search.newest(job, opened, first, last, now, limit)
