"""Looking for missed occurrences: a job's schedule compared with its history."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice

from shared.domain.job import Job
from shared.domain.missing import MissedOccurrence, missed_among, pauses_of
from shared.domain.run import Run, RunKind
from shared.recurrence import Delay, Recurrence
from shared.stores.ports import RunStore

CHUNK = 250
"""Occurrences that are compared at once."""
MOST_LOOKED_AT = 10_000
"""Occurrences, or rows of the history, that one search looks at."""
_PAGE = 1_000
_SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Found:
    """What a search came to, newest first; it has looked at everything since `from_at`."""

    items: tuple[MissedOccurrence, ...]
    from_at: datetime
    is_complete: bool


class MissedSearch:
    """Compares occurrences with runs; raises StoreUnavailableError.

    `opened` is always the job's schedule under its calendar, as both are now: days that are closed
    are not missed, and what another schedule yielded before a change is not looked for.
    """

    def __init__(self, runs: RunStore) -> None:
        self._runs = runs

    def newest(
        self,
        job: Job,
        opened: Recurrence,
        from_at: datetime,
        until_at: datetime,
        now: datetime,
        limit: int,
    ) -> Found:
        """At most `limit` missed occurrences from the newest on, in [from_at, until_at].

        A fixed delay has none: its occurrences follow from its runs.
        """
        if isinstance(job.schedule, Delay):
            return Found((), from_at, is_complete=True)
        found: list[MissedOccurrence] = []
        covering: list[Run] = []
        looked_at = 0
        before = _before(opened, from_at, until_at)
        while chunk := list(islice(before, CHUNK)):
            rows = self.rows(job, chunk[-1], chunk[0])
            covering += [row for row in rows if row.key.kind is RunKind.MISSED]
            own = [row for row in rows if row.key.kind is not RunKind.MISSED]
            for missed in missed_among(job, chunk, [*covering, *own], now):
                if len(found) == limit:
                    return Found(tuple(found), found[-1].fire_at, is_complete=False)
                found.append(missed)
            looked_at += max(len(chunk), len(rows))
            if looked_at >= MOST_LOOKED_AT:
                is_complete = next(before, None) is None
                return Found(tuple(found), from_at if is_complete else chunk[-1], is_complete)
        return Found(tuple(found), from_at, is_complete=True)

    def rows(self, job: Job, first: datetime, last: datetime) -> list[Run]:
        """All rows of the job with fire times in [first, last]."""
        found: list[Run] = []
        cursor: str | None = None
        while True:
            page = self._runs.list(
                job.owner, job.job_id, _PAGE, cursor, from_at=first, until_at=last
            )
            found += page.items
            cursor = page.next_cursor
            if cursor is None:
                return found


def last_pause_at(job: Job) -> datetime | None:
    """When the job's last pause began, whether it goes on or not; None if none is remembered."""
    return next((began for began, _ in pauses_of(job)), None)


def _before(opened: Recurrence, from_at: datetime, until_at: datetime) -> Iterator[datetime]:
    """The occurrences in [from_at, until_at], descending."""
    found = opened.previous(until_at.replace(microsecond=0) + _SECOND)
    while found is not None and found >= from_at:
        yield found
        found = opened.previous(found)
