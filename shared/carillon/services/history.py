"""The history: what runs a job, or an owner, has had."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta

from carillon.clock import Clock
from carillon.domain.job import Job
from carillon.domain.run import Attention, Run, RunKey
from carillon.errors import UnreadableRowError
from carillon.services.packed import PackedRuns
from carillon.stores.cursors import encode_cursor, runs_of
from carillon.stores.ports import DeadLetterFilter, Page, RunStore, Stores

PARALLEL_JOBS = 16
"""Jobs whose newest runs are read side by side."""
MOST_PAGES = 10
"""Pages that are read for the newest runs of a job: in an outage many of its occurrences have
none."""

_CLOSEST = 100
"""Rows that are read at once to find the one that covers an occurrence. Few lie between: those that
were passed over with it have none of their own."""
_SECOND = timedelta(seconds=1)


class History:
    """The one reader of lists of runs; raises StoreUnavailableError.

    Everybody else reads single rows at most, by their keys, to claim, finish or settle them.
    """

    def __init__(self, runs: RunStore, packed: PackedRuns | None = None) -> None:
        """Without `packed` nothing has gone in any chunk."""
        self._runs = runs
        self._packed = packed

    @classmethod
    def of(cls, stores: Stores, clock: Clock, lifetime: timedelta) -> "History":
        """Of runs with and without rows; `lifetime` is that of run rows, and so of chunks."""
        return cls(stores.runs, PackedRuns(stores.jobs, stores.chunks, clock, lifetime))

    def get(self, key: RunKey, job: Job | None = None) -> Run | None:
        """The run as it is now, by its row or by its chunk; one past its `expires_at` may still be
        answered. `job` is its job's row, if the caller has it. Raises UnreadableRowError.

        A chunk's success counts where the row is not final: such a row is to be withdrawn. The row
        is answered as it is where its chunk cannot be read.
        """
        row = self._runs.get(key)
        if self._packed is None or (row is not None and row.is_final):
            return row
        try:
            found = self._packed.get(key, job)
        except UnreadableRowError:
            if row is None:
                raise
            return row
        if found is not None and (row is None or found.is_final):
            return found
        # A row may have been put between the two reads.
        return row if found is not None or row is not None else self._runs.get(key)

    def fence(self, key: RunKey, claim_id: str) -> bool:
        """Take the run's chunk from an executor that has died, see `PackedRuns.fence`."""
        return self._packed is not None and self._packed.fence(key, claim_id)

    def former(self, job: Job) -> Job | None:
        """The row of the job that this one was before, see `PackedRuns.former`."""
        return None if self._packed is None else self._packed.former(job)

    def whole(self, run: Run) -> Run:
        """The run with its whole result, where that is kept beside its row."""
        text = None if run.result_bytes is None else self._runs.get_result(run)
        return run if text is None else replace(run, result=text)

    def page(
        self,
        owner: str,
        job_id: str,
        limit: int,
        cursor: str | None = None,
        *,
        from_at: datetime | None = None,
        until_at: datetime | None = None,
        consistent: bool = False,
    ) -> Page[Run]:
        """The job's runs, newest fire time first; may be behind unless it is to be `consistent`.

        `from_at` and `until_at` bound their fire times, inclusive, in whole seconds.
        """
        rows = self._runs.list(
            owner,
            job_id,
            limit,
            cursor,
            from_at=from_at,
            until_at=until_at,
            consistent=consistent,
        )
        if self._packed is None:
            return rows
        scope, span = (owner, job_id), (from_at, until_at)
        return self._packed.merged(
            rows, self._runs.get, scope, limit, cursor, span, consistent=consistent
        )

    def covering(self, owner: str, job_id: str, fire_at: datetime, now: datetime) -> Run | None:
        """The row of a catch-up that has passed over the job's occurrence, if there is one. By
        strong reads."""
        for row in self._closest(owner, job_id, fire_at, now):
            if row.covers_from is not None and row.covers_from <= fire_at:
                return row
        return None

    def _closest(self, owner: str, job_id: str, begin: datetime, end: datetime) -> tuple[Run, ...]:
        """The rows from `begin` on, some of them at least: none lies between these and it.

        Stores have the newest first, so that the others are found by halves.
        """

        def read(until_at: datetime) -> Page[Run]:
            return self._runs.list(
                owner, job_id, _CLOSEST, from_at=begin, until_at=until_at, consistent=True
            )

        page = read(end)
        while page.next_cursor is not None and begin < end:
            middle = (begin + (end - begin) / 2).replace(microsecond=0)
            first = read(middle)
            if first.items and first.next_cursor is None:
                return first.items
            if first.items:
                end, page = middle, first
            else:
                begin = middle + _SECOND
        return page.items

    def behind(self, run: Run) -> str:
        """The cursor of its job's pages from behind it on."""
        return encode_cursor(runs_of(run.key.owner, run.key.job_id), run.key.sort_key)

    def latest(self, owner: str, job_id: str, count: int = 1) -> tuple[Run, ...]:
        """At most `count` of the job's runs, newest fire time first; may be a little behind."""
        if self._packed is None:
            return self._runs.newest(owner, job_id, count)
        found: tuple[Run, ...] = ()
        cursor: str | None = None
        for _ in range(MOST_PAGES):
            page = self.page(owner, job_id, count - len(found), cursor)
            found, cursor = (*found, *page.items), page.next_cursor
            if cursor is None or len(found) == count:
                return found
        return found or self._runs.newest(owner, job_id, count)

    def latest_of(
        self, owner: str, job_ids: Iterable[str], count: int = 1
    ) -> dict[str, tuple[Run, ...]]:
        """The `latest` of several jobs by job id, read side by side."""
        with ThreadPoolExecutor(PARALLEL_JOBS) as pool:
            return dict(pool.map(lambda one: (one, self.latest(owner, one, count)), job_ids))

    def count(self, owner: str, attention: Attention, most: int) -> int:
        """The number of the owner's runs that need this attention, up to about `most`."""
        return self._runs.count(owner, attention, most)

    def dead_letters(
        self,
        owner: str,
        limit: int,
        cursor: str | None = None,
        only: DeadLetterFilter | None = None,
    ) -> Page[Run]:
        """The owner's dead letters, newest fire time first; eventually consistent."""
        return self._runs.dead_letters(owner, limit, cursor, only)
