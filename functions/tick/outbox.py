"""Messages gathered over entries and slots, so that the queue gets them ten a call."""

from shared.domain.message import Message
from shared.filing import Filer

FLUSH_AT = 2_000
"""Messages held at most: a few MB, and a few seconds of sending."""


class Outbox:
    """Holds messages until `flush`; counts what the queue, or for later the wheel, has taken."""

    def __init__(self, filer: Filer) -> None:
        self._filer = filer
        self._held: list[Message] = []
        self.sent = 0

    def add(self, message: Message) -> None:
        self._held.append(message)
        if len(self._held) >= FLUSH_AT:
            self.flush()

    def flush(self) -> None:
        """Send all; raises QueueUnavailableError or StoreUnavailableError, and holds them still."""
        if self._held:
            self._filer.file_messages(self._held)
            self.sent += len(self._held)
            self._held = []
