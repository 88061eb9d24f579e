"""The activity of an owner's jobs, apart from HTTP."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from carillon.api.http.problems import MissingError
from carillon.api.jobs.service import JobService
from carillon.api.schedules.request_models import whole_span
from carillon.clock import Clock
from carillon.domain.activity import Result, result_of
from carillon.errors import InvalidFieldError
from carillon.services.activity import Activity, ActivityFilter, ActivityPage
from carillon.services.history import History

OVERLAP = timedelta(seconds=10)
"""The span that `after` reads again: clocks differ, and the feed is eventually consistent."""
_MOST_ROWS = 500
"""Rows of one job's history that a page reads."""


@dataclass(frozen=True, slots=True)
class Span:
    """The part of the activity that is asked for; `after` is the instant of an earlier answer."""

    from_at: datetime | None = None
    until_at: datetime | None = None
    after: datetime | None = None


class ActivityService:
    """Nothing here writes; raises MissingError, InvalidFieldError, StoreUnavailableError."""

    def __init__(
        self,
        jobs: JobService,
        history: History,
        activity: Activity,
        clock: Clock,
        lifetime: timedelta,
    ) -> None:
        self._jobs = jobs
        self._history = history
        self._activity = activity
        self._clock = clock
        self._lifetime = lifetime

    def across_jobs(
        self, owner: str, only: ActivityFilter, span: Span, limit: int, cursor: str | None
    ) -> ActivityPage:
        """A page of the owner's feed, of which it has what is younger than `lifetime`."""
        now = self._clock.now()
        oldest = [now - self._lifetime, span.from_at, span.after and span.after - OVERLAP]
        from_at = max(each for each in oldest if each is not None)
        until_at = span.until_at or now + OVERLAP
        if span.from_at is not None and until_at < span.from_at:
            raise InvalidFieldError("to", "must not lie before from, nor from in the future")
        return self._activity.read(owner, only, from_at, until_at, limit, cursor)

    def of_job(
        self,
        owner: str,
        job_id: str,
        only: ActivityFilter,
        span: Span,
        limit: int,
        cursor: str | None,
    ) -> ActivityPage:
        """A page of one job's history, newest fire time first."""
        job = self._jobs.find(owner, job_id)
        if job is None:
            raise MissingError("job", job_id)
        tags = tuple(sorted(job.spec.tags.items()))
        from_at, until_at = whole_span(span.from_at, span.until_at)
        since = None if span.after is None else span.after - OVERLAP
        found: list[Result] = []
        for _ in range(-(-_MOST_ROWS // limit)):
            page = self._history.page(
                owner, job_id, limit - len(found), cursor, from_at=from_at, until_at=until_at
            )
            cursor = page.next_cursor
            results = [
                result_of(run, job.spec.name, tags)
                for run in page.items
                if since is None or run.updated_at >= since
            ]
            found += filter(only.chooses, results)
            if len(found) == limit or cursor is None:
                break
        return ActivityPage(tuple(found), cursor)
