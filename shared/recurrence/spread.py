"""A window: each job fires at a stable offset of its own after the nominal time."""

from dataclasses import dataclass

from shared.recurrence.value import Recurrence

LONGEST_WINDOW_SECONDS = 86_400


@dataclass(frozen=True, slots=True)
class Window:
    """How far occurrences may be spread: whole seconds, or a percentage of the interval."""

    seconds: int | None = None
    percent: int | None = None

    @property
    def text(self) -> str:
        """`15m` or `50%`; `parse_window` of it gives an equal value."""
        raise NotImplementedError


def parse_window(text: str) -> Window:
    """Raises InvalidFieldError on `window`: 1s to 24h, or 1% to 100%."""
    raise NotImplementedError


def shortest_gap_seconds(schedule: Recurrence) -> int | None:
    """The shortest time between two occurrences, DST included; None when there is but one."""
    raise NotImplementedError


def spread_seconds(window: Window, schedule: Recurrence, fraction: float) -> int:
    """The offset of the job whose place in the window is `fraction`, in [0, 1).

    One constant for all occurrences, so that it can be filed: it is measured by the shortest gap
    between two of them, and never reaches the next nominal time. Raises InvalidFieldError on
    `window` for a percentage of a schedule without an interval.
    """
    raise NotImplementedError
