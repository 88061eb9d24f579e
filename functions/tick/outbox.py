"""Messages gathered over entries and slots, so that the queue gets them ten a call."""

from shared.clock import Clock
from shared.domain.message import Message
from shared.stores.ports import LaneQueue

FLUSH_AT = 2_000
"""Messages held at most: a few MB, and a few seconds of sending."""


class Outbox:
    """Holds messages until `flush`; counts what the queue has acknowledged."""

    def __init__(self, queue: LaneQueue, clock: Clock) -> None:
        self._queue = queue
        self._clock = clock
        self._held: list[Message] = []
        self.sent = 0

    def add(self, message: Message) -> None:
        self._held.append(message)
        if len(self._held) >= FLUSH_AT:
            self.flush()

    def flush(self) -> None:
        """Send all; raises QueueUnavailableError, and then holds them still."""
        if not self._held:
            return
        now = self._clock.now()
        self._queue.send(self._held, [message.delay_seconds(now) for message in self._held])
        self.sent += len(self._held)
        self._held = []
