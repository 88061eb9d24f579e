"""The limit of one attempt, as an instant of the machine's monotonic clock."""

from dataclasses import dataclass

# The wall clock is no measure for a limit: it may be set, and tests let it stand still.
from time import monotonic


@dataclass(frozen=True, slots=True)
class Deadline:
    """An instant that every process of this machine understands alike (Linux: since boot)."""

    at: float

    @classmethod
    def after(cls, seconds: float) -> "Deadline":
        """The deadline that is `seconds` from now."""
        return cls(monotonic() + seconds)

    def remaining(self) -> float:
        """Seconds left, 0 when it has passed."""
        return max(0.0, self.at - monotonic())

    @property
    def passed(self) -> bool:
        return self.remaining() == 0.0
