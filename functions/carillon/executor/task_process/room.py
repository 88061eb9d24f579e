"""Room for calls of chunks, which share few child processes."""

from threading import Condition
from time import monotonic

STANDSTILL_SECONDS = 0.5
"""Where no place becomes free for so long, calls that last hold them all."""
LONGEST_SECONDS = 1.5
"""A call of a chunk waits no longer for its turn: the chunk's end waits with it, and so does the
record of all others. Also while the first children start, when nothing becomes free."""


class Room:
    """So many places; usable from several threads."""

    def __init__(
        self,
        places: int,
        standstill_seconds: float = STANDSTILL_SECONDS,
        longest_seconds: float = LONGEST_SECONDS,
    ) -> None:
        self._free = places
        self._standstill_seconds = standstill_seconds
        self._longest_seconds = longest_seconds
        self._freed_at: float | None = None
        self._changed = Condition()

    def take(self) -> bool:
        """Wait for a place; False if none has become free for so long that others last."""
        came_at = monotonic()
        with self._changed:
            while not self._free:
                left = self._gives_up_at(came_at) - monotonic()
                if left <= 0:
                    return False
                self._changed.wait(left)
            self._free -= 1
            return True

    def _gives_up_at(self, came_at: float) -> float:
        longest = came_at + self._longest_seconds
        if self._freed_at is None:
            return longest
        return min(longest, max(came_at, self._freed_at) + self._standstill_seconds)

    def free(self) -> None:
        with self._changed:
            self._free += 1
            self._freed_at = monotonic()
            self._changed.notify()
