"""Looking for missed occurrences: a job's schedule compared with its history."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice

from carillon.domain.changes.handing_over import former_owner
from carillon.domain.execution.missed import (
    MissedOccurrence,
    missed_among,
    pauses_of,
    settles,
)
from carillon.domain.job import Job
from carillon.domain.run import Run, RunKind
from carillon.schedules import Delay, Recurrence
from carillon.schedules.base import EPOCH
from carillon.services.history import History

CHUNK = 250
"""Occurrences that are compared at once."""
MOST_READ = 10_000
"""Occurrences, or rows of the history, that one search reads."""
_PAGE = 1_000
_PAGE_OF_ONE = 20
"""Rows of one fire time that are read at once."""
_MOST_PAGES_OF_ONE = 2 * CHUNK
"""Of all the fire times of a chunk together, beyond the first one of each."""
_SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Found:
    """The result of a search, newest first; it has read everything since `from_at`."""

    items: tuple[MissedOccurrence, ...]
    from_at: datetime
    is_complete: bool


class MissedSearch:
    """Compares occurrences with runs; raises StoreUnavailableError.

    `opened` is always the job's schedule under its calendar, as both are now: days that are closed
    are not missed, and occurrences of another schedule before a change are not searched.
    """

    def __init__(self, history: History) -> None:
        self._history = history

    def newest(
        self,
        job: Job,
        opened: Recurrence,
        from_at: datetime,
        until_at: datetime,
        now: datetime,
        limit: int,
        kept_since: datetime = EPOCH,
    ) -> Found:
        """At most `limit` missed occurrences from the newest on, in [from_at, until_at]. Rows that
        were written before `kept_since` may have expired.

        A fixed delay has none: its occurrences follow from its runs.
        """
        if isinstance(job.schedule, Delay):
            return Found((), from_at, is_complete=True)
        found: list[MissedOccurrence] = []
        # The row of a catch-up is at the last one that it covers, which may be behind `until_at`.
        over = self._history.covering(job.owner, job.job_id, until_at, now)
        covering = [] if over is None else [over]
        looked_at = 0
        before = _before(opened, from_at, until_at)
        while chunk := list(islice(before, CHUNK)):
            rows, rows_read = self._read_of_all(job, chunk)
            covering += [row for row in rows if row.key.kind is RunKind.MISSED]
            own = [row for row in rows if row.key.kind is not RunKind.MISSED]
            for missed in missed_among(job, chunk, [*covering, *own], now, kept_since):
                if len(found) == limit:
                    return Found(tuple(found), found[-1].fire_at, is_complete=False)
                found.append(missed)
            looked_at += max(len(chunk), rows_read)
            if looked_at >= MOST_READ:
                is_complete = next(before, None) is None
                return Found(tuple(found), from_at if is_complete else chunk[-1], is_complete)
        return Found(tuple(found), from_at, is_complete=True)

    def rows(self, job: Job, fire_times: Sequence[datetime]) -> list[Run]:
        """The job's rows at these fire times, at most CHUNK of them; beside these some or all of
        those that lie between."""
        return self._read((job.owner, job.job_id), fire_times)[0]

    def rows_of_all(self, job: Job, fire_times: Sequence[datetime]) -> list[Run]:
        """The same, and those of the jobs that it was renamed or handed over from. Of another
        owner's only those after which nothing is missed."""
        return self._read_of_all(job, fire_times)[0]

    def _read_of_all(self, job: Job, fire_times: Sequence[datetime]) -> tuple[list[Run], int]:
        found, count = self._read((job.owner, job.job_id), fire_times)
        known: Job | None = job
        while known is not None and (until := known.renamed_at) is not None:
            fire_times = [each for each in fire_times if each <= until]
            if not fire_times:
                break
            owner = former_owner(known) or known.owner
            rows, more = self._read((owner, known.renamed_from), fire_times)
            found += [row for row in rows if owner == job.owner or settles(row)]
            count += more
            known = self._history.former(known)
        return found, count

    def _read(
        self, scope: tuple[str, str], fire_times: Sequence[datetime]
    ) -> tuple[list[Run], int]:
        """The rows of an owner's job, and the number that was requested.

        The history can be far denser than the occurrences, as where a job fired each second before
        its schedule became an hourly one: then each fire time is asked for alone.
        """
        page = self._history.page(*scope, _PAGE, from_at=min(fire_times), until_at=max(fire_times))
        if page.next_cursor is None:
            return list(page.whole), len(page.items)
        # Newest first: what is newer than the last row was read whole.
        behind = page.items[-1].key.fire_at if page.items else max(fire_times)
        found = [row for row in page.whole if row.key.fire_at > behind]
        pages = 0
        for fire_at in fire_times:
            cursor: str | None = None
            while fire_at <= behind:
                at = self._history.page(
                    *scope, _PAGE_OF_ONE, cursor, from_at=fire_at, until_at=fire_at
                )
                found += at.whole
                pages += 1
                cursor = at.next_cursor
                if cursor is None or pages >= _MOST_PAGES_OF_ONE:
                    break
        return found, _PAGE + pages * _PAGE_OF_ONE


def last_pause_at(job: Job) -> datetime | None:
    """The beginning of the job's last pause, over or not; None if none is remembered."""
    return next((began for began, _ in pauses_of(job)), None)


def _before(opened: Recurrence, from_at: datetime, until_at: datetime) -> Iterator[datetime]:
    """The occurrences in [from_at, until_at], descending."""
    found = opened.previous(until_at.replace(microsecond=0) + _SECOND)
    while found is not None and found >= from_at:
        yield found
        found = opened.previous(found)
