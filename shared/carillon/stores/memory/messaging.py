"""Lanes and lifecycle events in memory."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from heapq import heappop, heappush
from threading import Lock

from carillon.clock import Clock
from carillon.domain import message as single
from carillon.domain.chunks.message import CHUNK_BEGINS, Order, decode, encode
from carillon.domain.events import Event
from carillon.domain.job import Lane
from carillon.domain.message import Message
from carillon.domain.wheel.delaying import check_delays, whole_delay

_decoded = lru_cache(maxsize=4096)(decode)
"""Whoever looks at a queue again and again reads a body once."""


@dataclass(frozen=True, slots=True)
class Received:
    """A message as a consumer gets it: `receipt` deletes it; `receive_count` counts from 1."""

    receipt: int
    lane: Lane
    body: str
    visible_at: datetime
    receive_count: int = 0

    @property
    def is_chunk(self) -> bool:
        return self.body.startswith(CHUNK_BEGINS)

    @property
    def order(self) -> Order:
        """Raises MalformedMessageError."""
        return _decoded(self.body)

    @property
    def message(self) -> Message:
        """The message of a single run; raises MalformedMessageError for any other."""
        return single.decode(self.body)


class MemoryQueue:
    """LaneQueue in memory, and its consumer's side.

    A received message is hidden for `visibility_timeout_seconds` and redelivered unless deleted.
    With `max_receives`, one that was received so often goes to the queue `dead` when it comes
    again, visible at once and as if never received. `on_visible` gets each instant at which a
    message of a lane becomes visible: when it is put, and when it is received and thereby hidden;
    called without the lock, so that it may call the queue.
    """

    def __init__(
        self,
        clock: Clock,
        visibility_timeout_seconds: int = 360,
        *,
        on_visible: Callable[[Lane, datetime], None] | None = None,
        max_receives: int | None = None,
        dead: "MemoryQueue | None" = None,
    ) -> None:
        if (max_receives is None) != (dead is None):
            raise ValueError("max_receives and dead go together")
        self._clock = clock
        self._visibility = timedelta(seconds=visibility_timeout_seconds)
        self._on_visible = on_visible
        self._max_receives = max_receives
        self._dead = dead
        self._kept: dict[int, Received] = {}
        # One (visible_at, receipt) for each message; that of a deleted one is left until its turn.
        self._heaps: dict[Lane, list[tuple[datetime, int]]] = {lane: [] for lane in Lane}
        self._last_receipt = 0
        self._lock = Lock()

    def send(
        self,
        messages: Sequence[Order],
        delays: Sequence[float],
        until: datetime | None = None,
    ) -> None:
        check_delays(messages, delays)
        now = self._clock.now()
        for message, delay in zip(messages, delays, strict=True):
            self.put(message, now + timedelta(seconds=whole_delay(delay)))

    def put(self, message: Order, visible_at: datetime) -> int:
        """Keep a message, to be received from `visible_at` on; answers its receipt."""
        return self.put_body(message.lane, encode(message), visible_at)

    def put_body(self, lane: Lane, body: str, visible_at: datetime) -> int:
        """Keep a body as it is, readable or not; answers its receipt."""
        receipt = self._keep(lane, body, visible_at)
        self._tell([(lane, visible_at)])
        return receipt

    def receive(self, now: datetime, limit: int, lane: Lane | None = None) -> list[Received]:
        """At most `limit` messages visible at `now`, of one lane or of all, longest visible first.

        Each is hidden from other consumers until `now` + the visibility timeout.
        """
        heaps = list(self._heaps.values()) if lane is None else [self._heaps[lane]]
        taken: list[Received] = []
        dead: list[Received] = []
        hidden_until = now + self._visibility
        with self._lock:
            while len(taken) < limit and (kept := self._pop(heaps, now)) is not None:
                if self._dead is not None and kept.receive_count == self._max_receives:
                    del self._kept[kept.receipt]
                    self._dead._keep(kept.lane, kept.body, now)
                    dead.append(kept)
                else:
                    taken.append(_received(kept, kept.visible_at, kept.receive_count + 1))
            for given in taken:
                count = given.receive_count
                self._kept[given.receipt] = _received(given, hidden_until, count)
                heappush(self._heaps[given.lane], (hidden_until, given.receipt))
        self._tell((given.lane, hidden_until) for given in taken)
        if self._dead is not None:
            self._dead._tell((kept.lane, now) for kept in dead)
        return taken

    def delete(self, receipt: int) -> None:
        """Acknowledge a message, visible or not; nothing happens if it is gone."""
        with self._lock:
            self._kept.pop(receipt, None)

    def __len__(self) -> int:
        """The number of messages that are not yet deleted."""
        return len(self._kept)

    def kept(self) -> list[Received]:
        """Every message not yet deleted, by the instant it is visible at."""
        with self._lock:
            return sorted(self._kept.values(), key=lambda kept: (kept.visible_at, kept.receipt))

    def _keep(self, lane: Lane, body: str, visible_at: datetime) -> int:
        with self._lock:
            self._last_receipt += 1
            receipt = self._last_receipt
            self._kept[receipt] = Received(receipt, lane, body, visible_at)
            heappush(self._heaps[lane], (visible_at, receipt))
        return receipt

    def _pop(self, heaps: list[list[tuple[datetime, int]]], now: datetime) -> Received | None:
        """Take the message that has been visible longest off its heap; None when none is."""
        first: list[tuple[datetime, int]] | None = None
        for heap in heaps:
            while heap and heap[0][1] not in self._kept:
                heappop(heap)
            if heap and heap[0][0] <= now and (first is None or heap[0] < first[0]):
                first = heap
        return None if first is None else self._kept[heappop(first)[1]]

    def _tell(self, appearances: Iterable[tuple[Lane, datetime]]) -> None:
        if self._on_visible is not None:
            for lane, visible_at in appearances:
                self._on_visible(lane, visible_at)


def _received(kept: Received, visible_at: datetime, receive_count: int) -> Received:
    """The same message; `dataclasses.replace` would cost more than all else here."""
    return Received(kept.receipt, kept.lane, kept.body, visible_at, receive_count)


class MemoryEvents:
    """EventSink that keeps what it is given."""

    def __init__(self) -> None:
        self.emitted: list[Event] = []
        self._lock = Lock()

    def emit(self, events: Sequence[Event]) -> int:
        with self._lock:
            self.emitted += events
        return 0


class NoEvents:
    """EventSink of a deployment without a bus."""

    def emit(self, events: Sequence[Event]) -> int:
        return 0
