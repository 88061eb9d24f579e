"""Lanes in a list, with delays and visibility by an injected clock."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from threading import Lock

from shared.clock import Clock
from shared.domain.job import Lane
from shared.domain.message import Message, decode, encode
from shared.stores.delays import check_delays


@dataclass(frozen=True, slots=True)
class Received:
    """A message as a consumer gets it: `receipt` deletes it; `receive_count` counts from 1."""

    receipt: int
    lane: Lane
    body: str
    visible_at: datetime
    receive_count: int = 0

    @property
    def message(self) -> Message:
        return decode(self.body)


class MemoryQueue:
    """LaneQueue in memory, and its consumer's side.

    A received message is hidden for `visibility_timeout_seconds` and comes again unless deleted.
    """

    def __init__(self, clock: Clock, visibility_timeout_seconds: int = 360) -> None:
        self._clock = clock
        self._visibility = timedelta(seconds=visibility_timeout_seconds)
        self._kept: dict[int, Received] = {}
        self._last_receipt = 0
        self._lock = Lock()

    def send(self, messages: Sequence[Message], delays: Sequence[int]) -> None:
        check_delays(messages, delays)
        now = self._clock.now()
        with self._lock:
            for message, delay in zip(messages, delays, strict=True):
                self._last_receipt += 1
                visible_at = now + timedelta(seconds=delay)
                self._kept[self._last_receipt] = Received(
                    self._last_receipt, message.lane, encode(message), visible_at
                )

    def receive(self, now: datetime, limit: int, lane: Lane | None = None) -> list[Received]:
        """At most `limit` messages visible at `now`, of one lane or of all, longest visible first.

        Each is hidden from other consumers until `now` + the visibility timeout.
        """
        with self._lock:
            taken: list[Received] = []
            for kept in self._in_order():
                if len(taken) == limit or kept.visible_at > now:
                    break
                if lane is None or kept.lane is lane:
                    given = replace(kept, receive_count=kept.receive_count + 1)
                    self._kept[kept.receipt] = replace(given, visible_at=now + self._visibility)
                    taken.append(given)
            return taken

    def delete(self, receipt: int) -> None:
        """Acknowledge a message; nothing happens if it is gone."""
        with self._lock:
            self._kept.pop(receipt, None)

    def kept(self) -> list[Received]:
        """Every message not yet deleted, by the instant it is visible at."""
        with self._lock:
            return self._in_order()

    def _in_order(self) -> list[Received]:
        return sorted(self._kept.values(), key=lambda kept: (kept.visible_at, kept.receipt))
