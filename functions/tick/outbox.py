"""Messages gathered over entries and slots, so that the queue gets them ten a call."""

from shared.domain.canary import is_system
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
        self.is_busy = False
        """Whether any owner's message has come; the deployment's own job is no work."""

    def add(self, message: Message) -> None:
        self._held.append(message)
        self.is_busy = self.is_busy or not is_system(message.key.owner)
        if len(self._held) >= FLUSH_AT:
            self.flush()

    def flush(self) -> None:
        """Send all; raises QueueUnavailableError or StoreUnavailableError, and holds them still."""
        if self._held:
            self._filer.file_messages(self._held)
            self.sent += len(self._held)
            self._held = []
