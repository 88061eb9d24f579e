"""The limits of owners, as far as a process knows them."""

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from threading import Lock

from carillon.clock import Clock
from carillon.domain.quotas import NO_LIMITS, QUOTAS_OWNER, Limits, OwnLimits
from carillon.errors import StoreUnavailableError
from carillon.stores.ports import VersionedRows

KNOWN_FOR = timedelta(seconds=30)
"""A change of limits counts everywhere after so long."""
_LONGEST_WAIT_SECONDS = 1.0
"""For another thread's read: a store that hangs holds up one run, not a batch."""
_PAGE_SIZE = 1_000


class Quotas:
    """The limits of owners: the deployment's, or those of their own, which are all read at once, 30
    seconds apart at most. So an owner without any costs nothing.

    While the store fails those that are known go on: it must not hold up, or let through, whatever
    asks for a limit. For several threads.
    """

    def __init__(
        self,
        defaults: Limits,
        rows: VersionedRows[OwnLimits] | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Without `rows` every owner has the defaults."""
        self.defaults = defaults
        self._rows = rows
        self._clock = clock
        self._known: Mapping[str, Limits] = {}
        self._until: datetime | None = None
        self._lock = Lock()

    def of(self, owner: str) -> Limits:
        """The limit of every quota of an owner; raises nothing."""
        if self._rows is None or self._clock is None:
            return self.defaults
        # Who comes meanwhile waits: a batch begins with ten at once, in a process that knows
        # nothing yet, or only what was so before it stood still.
        if self._lock.acquire(timeout=_LONGEST_WAIT_SECONDS):
            try:
                self._refresh(self._rows, self._clock.now())
            finally:
                self._lock.release()
        own = self._known.get(owner)
        return self.defaults if own is None else {**self.defaults, **own}

    def forget(self) -> None:
        """Have the next one who asks read anew."""
        self._until = None

    def _refresh(self, rows: VersionedRows[OwnLimits], now: datetime) -> None:
        if self._until is None or not self._until - KNOWN_FOR <= now < self._until:
            self._until = now + KNOWN_FOR
            with suppress(StoreUnavailableError):
                self._known = self._read(rows)

    def _read(self, rows: VersionedRows[OwnLimits]) -> Mapping[str, Limits]:
        found: dict[str, Limits] = {}
        cursor: str | None = None
        while True:
            page = rows.list(QUOTAS_OWNER, _PAGE_SIZE, cursor)
            found |= {row.of: row.limits for row in page.items}
            cursor = page.next_cursor
            if cursor is None:
                return found


UNLIMITED = Quotas(NO_LIMITS)
