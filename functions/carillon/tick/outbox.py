"""Messages gathered over entries and slots, so that the queue gets them ten a call."""

from collections import Counter, deque
from collections.abc import Sequence
from datetime import datetime

from carillon.domain.chunks.message import Order
from carillon.domain.spec.owners import is_system
from carillon.domain.wheel.segment import Control, Cursor
from carillon.services.indexer import Indexer

FULL = 2_000
"""Messages held at most: a few MB, and a few seconds of sending."""
PART = 200
"""Messages sent together: a visit that runs out of time, or of its lease, notices it between two
parts."""

Progress = tuple[Control, Cursor | None]
"""A segment as it is decided so far, and how far the minute has got that was begun."""


def fair_order(orders: Sequence[Order]) -> list[Order]:
    """By second, and there the first message of each owner before the second of any: where the
    queue keeps its order, one owner's many messages do not come before another's few."""
    taken: Counter[tuple[datetime, str]] = Counter()

    def place(order: Order) -> tuple[datetime, int]:
        # Those of several owners take turns among themselves.
        owner = order.owners[0] if len(set(order.owners)) == 1 else ""
        turn = order.starts_at, owner
        taken[turn] += 1
        return order.starts_at, taken[turn]

    return sorted(orders, key=place)


class Outbox:
    """Holds messages in the order in which they were decided, and sends them in parts, each in fair
    order.

    `marks` are between them: `reached` is the last one before which everything is sent.
    """

    def __init__(self, indexer: Indexer, begin: Progress) -> None:
        self._indexer = indexer
        self._held: list[Order] = []
        self._marks: deque[tuple[int, Progress]] = deque()
        self.reached = begin
        self.sent = 0
        self.occurrences = 0
        """In the messages that were sent: a chunk has many."""
        self.is_busy = False
        """True if any owner's message has come; the deployment's own job is no work."""

    @property
    def held(self) -> Sequence[Order]:
        return self._held

    @property
    def is_full(self) -> bool:
        return len(self._held) >= FULL

    def add(self, order: Order) -> None:
        self._held.append(order)
        self.is_busy = self.is_busy or not all(map(is_system, order.owners))

    def mark(self, progress: Progress) -> None:
        """Note that everything up to `progress` has been added."""
        if not self._held:
            self.reached = progress
            return
        added = self.sent + len(self._held)
        if self._marks and self._marks[-1][0] == added:
            self._marks.pop()
        self._marks.append((added, progress))

    def send_part(self, until: datetime) -> None:
        """Send the first messages, until then at the longest; raises QueueUnavailableError or
        StoreUnavailableError, and holds them still."""
        part = self._held[:PART]
        self._indexer.schedule_messages(fair_order(part), until)
        del self._held[: len(part)]
        self.sent += len(part)
        self.occurrences += sum(len(order.owners) for order in part)
        while self._marks and self._marks[0][0] <= self.sent:
            self.reached = self._marks.popleft()[1]
