"""Messages gathered over entries and slots, so that the queue gets them ten a call."""

from shared.clock import Clock
from shared.domain.message import Message
from shared.stores.ports import LaneQueue

FLUSH_AT = 2_000
"""Messages held at most: a few MB, and a few seconds of sending."""


class Outbox:
    """Holds messages until `flush`; counts what the queue has acknowledged.

    With a `share`, so many messages are spread over a minute by their delays.
    """

    def __init__(self, queue: LaneQueue, clock: Clock, share: int | None = None) -> None:
        self._queue = queue
        self._clock = clock
        self._share = share
        self._held: list[tuple[Message, int]] = []
        self.sent = 0

    @property
    def is_used_up(self) -> bool:
        """Whether the share is. An entry's messages go together, so that it may be exceeded."""
        return self._share is not None and self.sent + len(self._held) >= self._share

    def add(self, message: Message) -> None:
        at_least = 0
        if self._share is not None:
            at_least = min(59, 60 * (self.sent + len(self._held)) // self._share)
        self._held.append((message, at_least))
        if len(self._held) >= FLUSH_AT:
            self.flush()

    def flush(self) -> None:
        """Send all; raises QueueUnavailableError, and then holds them still."""
        if not self._held:
            return
        now = self._clock.now()
        messages = [message for message, _ in self._held]
        delays = [max(message.delay_seconds(now), at_least) for message, at_least in self._held]
        self._queue.send(messages, delays)
        self.sent += len(self._held)
        self._held = []
