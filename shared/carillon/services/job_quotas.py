"""The row that says how many jobs an owner has: it rises before a job comes, by creation or from
another owner, and falls after it is gone (shared/carillon/domain/quotas.py)."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from threading import Lock

from carillon.clock import Clock, Entropy
from carillon.domain.quotas import (
    NOTHING,
    Exceeded,
    Limits,
    Load,
    Quota,
    QuotaExceededError,
    Recount,
    Use,
    decide,
    fires_of,
)
from carillon.errors import StoreUnavailableError
from carillon.services.quotas import Quotas
from carillon.stores.ports import JobStore, VersionedRows

_ROUNDS = 12
"""Others may change the row under a request this often."""
_PAGE_SIZE = 1_000
_NAME = "jobs"


@dataclass(slots=True)
class _Asked:
    """A change of an owner's load; `outcome` is the row with it, or why there is none."""

    load: Load
    outcome: Use | Exceeded | BaseException | None = None


class JobQuotas:
    """The one writer of those rows. Requests that a process has at once, as those of a bulk
    creation, share a read and a write."""

    def __init__(
        self,
        quotas: Quotas,
        jobs: JobStore,
        uses: VersionedRows[Use],
        clock: Clock,
        entropy: Entropy,
        turn: AbstractContextManager[object] | None = None,
    ) -> None:
        """Requests wait for each other in `turn`."""
        self._quotas = quotas
        self._jobs = jobs
        self._uses = uses
        self._clock = clock
        self._entropy = entropy
        self._turn = Lock() if turn is None else turn
        self._lock = Lock()
        self._waiting: dict[str, list[_Asked]] = {}

    def add(self, owner: str, load: Load) -> None:
        """Put the load into the owner's row, before what it stands for is written.

        Raises QuotaExceededError, and StoreUnavailableError.
        """
        self._change(owner, load)

    def remove(self, owner: str, load: Load) -> None:
        """Take a load away that is gone, or has never come. Raises nothing: a row that stays too
        high is made good by the next count."""
        with suppress(StoreUnavailableError):
            self._change(owner, NOTHING - load)

    def refusals(self, owner: str, loads: Sequence[Load]) -> list[QuotaExceededError | None]:
        """The refusals of those loads that would not be added now, one after the other; nothing is
        added."""
        asked = [_Asked(load) for load in loads]
        if any(self._is_limited(owner, load) for load in loads):
            self._settle(owner, asked, is_written=False)
        return [
            QuotaExceededError(each.outcome) if isinstance(each.outcome, Exceeded) else None
            for each in asked
        ]

    def counted(self, owner: str, limits: Limits, revision: int = 0) -> Use:
        """The owner's jobs as their index has them, which is seconds behind at most; how often
        they fire only where a limit asks for it. Raises StoreUnavailableError."""
        now = self._clock.now()
        if limits[Quota.SCHEDULED]:
            return Use(owner, revision, now, *self._summed(owner))
        return Use(owner, revision, now, self._tallied(owner))

    def _change(self, owner: str, load: Load) -> None:
        if not self._is_limited(owner, load):
            return
        asked = _Asked(load)
        with self._lock:
            self._waiting.setdefault(owner, []).append(asked)
        with self._turn:
            with self._lock:
                together = self._waiting.pop(owner, [])
            try:
                self._settle(owner, together)
            except BaseException as error:
                for each in together:
                    each.outcome = error
        if isinstance(asked.outcome, Exceeded):
            raise QuotaExceededError(asked.outcome)
        if isinstance(asked.outcome, BaseException):
            raise asked.outcome

    def _is_limited(self, owner: str, load: Load) -> bool:
        """True if a limit asks for the load to be in the row: else nobody counts it."""
        limits = self._quotas.of(owner)
        return bool(
            (load != NOTHING and limits[Quota.SCHEDULED]) or (load.jobs and limits[Quota.JOBS])
        )

    def _settle(self, owner: str, asked: Sequence[_Asked], *, is_written: bool = True) -> None:
        """Decide about each in turn, and put the row that results."""
        for _ in range(_ROUNDS if asked else 0):
            stored, limits = self._uses.get(owner, _NAME), self._quotas.of(owner)
            use, granted = stored, NOTHING
            for each in asked:
                if use is None and each.load.rise == NOTHING:
                    continue  # whoever counts first will find it gone
                verdict = decide(use, each.load, limits, self._clock.now())
                if isinstance(verdict, Recount):
                    counted = self.counted(owner, limits, use.revision if use else 0)
                    use = counted.with_load(granted)  # no count has found these yet
                    verdict = decide(use, each.load, limits, use.counted_at)
                assert not isinstance(verdict, Recount)  # of what was counted just now
                each.outcome = verdict
                if isinstance(verdict, Use):
                    use, granted = verdict, granted + each.load.rise
            if use is None or not is_written or use == stored or self._put(use, stored):
                return
        if asked:
            raise StoreUnavailableError(f"the row of {owner}'s jobs changed at every step")

    def _put(self, use: Use, over: Use | None) -> bool:
        writer = self._entropy.new_id(self._clock.now())
        made = replace(use, revision=use.revision + 1, writer=writer)
        return self._uses.put(made, None if over is None else over.revision)

    def _tallied(self, owner: str) -> int:
        jobs = 0
        cursor: str | None = None
        while True:
            tally = self._jobs.tally(owner, cursor)
            jobs += sum(tally.counts.values()) + len(tally.ending) + tally.unreadable
            cursor = tally.next_cursor
            if cursor is None:
                return jobs

    def _summed(self, owner: str) -> tuple[int, int]:
        """The number of jobs, and their fires a day, each read with its schedule."""
        jobs = fires = 0
        cursor: str | None = None
        while True:
            page = self._jobs.summaries(owner, _PAGE_SIZE, cursor)
            jobs += len(page.items) + len(page.unreadable)
            fires += sum(map(fires_of, page.items))
            cursor = page.next_cursor
            if cursor is None:
                return jobs, fires
