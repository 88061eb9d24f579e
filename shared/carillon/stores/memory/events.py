"""Lifecycle events in a list, or nowhere."""

from collections.abc import Sequence
from threading import Lock

from carillon.domain.events import Event


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
