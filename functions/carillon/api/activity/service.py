"""The activity of an owner's jobs, apart from HTTP."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from carillon.api.http.problems import MissingError
from carillon.api.jobs.service import JobService
from carillon.api.schedules.outlook import FAR
from carillon.api.schedules.request_models import whole_span
from carillon.clock import Clock
from carillon.domain.activity.results import Result, result_of
from carillon.domain.activity.summary import Bucket, buckets
from carillon.errors import InvalidFieldError
from carillon.schedules.base import EPOCH
from carillon.services.activity import KEPT_LONGER, Activity, ActivityFilter
from carillon.services.history import History
from carillon.services.summing import Summing
from carillon.stores.pages import Page

OVERLAP = timedelta(seconds=10)
"""The span that `after` reads again: clocks differ, and the feed is eventually consistent."""
MOST_BUCKETS = 200
"""Of one summary, in time."""
MOST_FORMS = 5_000
"""Of one summary, for all jobs or tags together."""
_STEPS = {
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
}
_ROWS_AT_ONCE = 100
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
        summing: Summing,
        clock: Clock,
        lifetime: timedelta,
        run_lifetime: timedelta,
    ) -> None:
        self._summing = summing
        self._jobs = jobs
        self._history = history
        self._activity = activity
        self._clock = clock
        self._lifetime = lifetime
        self._run_lifetime = run_lifetime

    def across_jobs(
        self, owner: str, only: ActivityFilter, span: Span, limit: int, cursor: str | None
    ) -> Page[Result]:
        """A page of the owner's feed, of which it has what is younger than `lifetime`."""
        now = self._clock.now()
        oldest = [now - self._lifetime, span.from_at, span.after and span.after - OVERLAP]
        from_at = max(each for each in oldest if each is not None)
        until_at = min(span.until_at or FAR, now + OVERLAP)
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
    ) -> Page[Result]:
        """A page of one job's history, newest fire time first. What is looked through for those to
        choose is read by the hundred, whatever the limit: each page costs several requests."""
        job = self._jobs.find(owner, job_id)
        if job is None:
            raise MissingError("job", job_id)
        tags = tuple(sorted(job.spec.tags.items()))
        from_at, until_at = whole_span(span.from_at, span.until_at)
        since = None if span.after is None else span.after - OVERLAP
        takes_all = since is None and only == ActivityFilter()
        size = limit if takes_all else max(limit, _ROWS_AT_ONCE)
        found, unreadable = list[Result](), dict[str, str]()
        for _ in range(-(-_MOST_ROWS // size)):
            page = self._history.page(
                owner, job_id, size, cursor, from_at=from_at, until_at=until_at
            )
            unreadable |= page.unreadable
            for run in page.items:
                result = result_of(run, job.spec.name, tags)
                if only.chooses(result) and (since is None or run.updated_at >= since):
                    found.append(result)
                if len(found) == limit:
                    is_last = run is page.items[-1] and page.next_cursor is None
                    behind = None if is_last else self._history.behind(run)
                    return Page(tuple(found), behind, unreadable)
            cursor = page.next_cursor
            if cursor is None:
                return Page(tuple(found), None, unreadable)
        # Runs change soon after they fire. Whoever asks again and again for what came since would
        # otherwise be told each time that there is more.
        if since and page.items and all(run.updated_at < since for run in page.items):
            cursor = None
        return Page(tuple(found), cursor, unreadable)

    def summary(
        self,
        owner: str,
        from_at: datetime | None,
        until_at: datetime | None,
        by: str,
        group: str,
    ) -> tuple[Mapping[tuple[datetime, str | None], Bucket], bool]:
        """The sums of whole buckets from that of `from_at` to that of `until_at`; False beside them
        where something is left out: runs that the feed does not show any more, and the buckets of
        those that may be gone."""
        now, step = self._clock.now(), _STEPS[by]
        until_at = now if until_at is None else until_at
        from_at = until_at - timedelta(days=1) if from_at is None else from_at
        begin, kept_since = _floor(from_at, step), now - self._lifetime - KEPT_LONGER
        is_kept = begin >= kept_since
        if begin < now - self._run_lifetime:
            begin = _floor(now - self._run_lifetime, step) + step
        count = (until_at - begin) // step + 1
        if until_at < from_at:
            raise InvalidFieldError("to", "must not lie before from")
        if count > MOST_BUCKETS:
            raise InvalidFieldError("by", f"{count} buckets of a {by} are more than {MOST_BUCKETS}")
        if until_at < now - self._lifetime:
            raise InvalidFieldError("to", f"must lie in the last {self._lifetime.days} days")
        pages = list(self._jobs.first_pages(owner))
        jobs = [job for page in pages for job in page.items]
        is_whole = pages[-1].next_cursor is None and not any(page.unreadable for page in pages)
        sums = self._summing.of(owner, jobs, begin, begin + count * step, kept_since)
        begins = [begin + number * step for number in range(count)]
        found = buckets(sums.counted, begins, group)
        if len(found) > MOST_FORMS:
            raise InvalidFieldError("by", f"{len(found)} sums are more than {MOST_FORMS}")
        return found, is_kept and is_whole and sums.is_complete


def _floor(instant: datetime, step: timedelta) -> datetime:
    """The begin of the bucket, in UTC."""
    return instant - (instant - EPOCH) % step
