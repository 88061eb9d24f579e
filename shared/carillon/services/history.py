"""The history: what runs a job, or an owner, has had."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime

from carillon.domain.run import Attention, Run, RunKey
from carillon.stores.ports import DeadLetterFilter, Page, RunStore

PARALLEL_JOBS = 16
"""Jobs whose newest runs are read side by side."""


class History:
    """The one reader of lists of runs; raises StoreUnavailableError.

    Everybody else reads single rows at most, by their keys, to claim, finish or settle them.
    """

    def __init__(self, runs: RunStore) -> None:
        self._runs = runs

    def get(self, key: RunKey) -> Run | None:
        """The run as it is now; one past its `expires_at` may still be answered."""
        return self._runs.get(key)

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
        return self._runs.list(
            owner,
            job_id,
            limit,
            cursor,
            from_at=from_at,
            until_at=until_at,
            consistent=consistent,
        )

    def latest(self, owner: str, job_id: str, count: int = 1) -> tuple[Run, ...]:
        """At most `count` of the job's runs, newest fire time first; may be a little behind."""
        return self._runs.newest(owner, job_id, count)

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
