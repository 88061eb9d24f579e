"""A window: each job fires at a stable offset of its own after the nominal time."""

import re
from dataclasses import dataclass

from carillon.errors import InvalidFieldError
from carillon.messages import quoted
from carillon.schedules.base import Recurrence
from carillon.schedules.durations import format_duration, parse_duration
from carillon.schedules.placement.window import shortest_gap_seconds, shortest_rolling_gap

__all__ = [
    "Window",
    "parse_window",
    "shortest_gap_seconds",
    "shortest_rolling_gap",
    "spread_seconds",
]

LONGEST_WINDOW_SECONDS = 86_400

_PERCENT = re.compile(r"(\d{1,4})\s*%", re.ASCII)


@dataclass(frozen=True, slots=True)
class Window:
    """How far occurrences may be spread: whole seconds, or a percentage of the interval.

    Raises InvalidFieldError on `window` outside of 1 s to 24 h, or 1 to 100 percent, and
    ValueError when it is not exactly one of the two.
    """

    seconds: int | None = None
    percent: int | None = None

    def __post_init__(self) -> None:
        if (self.seconds is None) is (self.percent is None):
            raise ValueError("a window is either seconds or a percentage")
        if self.seconds is not None and not 1 <= self.seconds <= LONGEST_WINDOW_SECONDS:
            longest = format_duration(LONGEST_WINDOW_SECONDS)
            shown = format_duration(max(0, self.seconds))
            raise InvalidFieldError("window", f"{shown} is no window: use 1s to {longest}")
        if self.percent is not None and not 1 <= self.percent <= 100:
            raise InvalidFieldError("window", f"{self.percent}% is no window: use 1% to 100%")

    @property
    def text(self) -> str:
        """`15m` or `50%`; `parse_window` of it gives an equal value."""
        if self.seconds is None:
            return f"{self.percent}%"
        return format_duration(self.seconds)


def parse_window(text: str) -> Window:
    """The window of a duration (`15m`, `PT15M`) or of a percentage of the interval (`50%`).

    Raises InvalidFieldError on `window`: 1s to 24h, or 1% to 100%.
    """
    stripped = text.strip()
    if not stripped.endswith("%"):
        return Window(seconds=parse_duration(stripped, "window"))
    match = _PERCENT.fullmatch(stripped)
    if match is None:
        raise InvalidFieldError("window", f"{quoted(text)} is no percentage: use 1% to 100%")
    return Window(percent=int(match[1]))


def spread_seconds(
    window: Window, schedule: Recurrence, fraction: float, *, rolls: bool = False
) -> int:
    """The offset of the job whose place in the window is `fraction`, in [0, 1).

    One constant for all occurrences, so that it can be filed: it is measured by the shortest gap
    between two of them, and never reaches the next nominal time; nor where the schedule `rolls`,
    that is where a calendar may move its occurrences to any day. Raises InvalidFieldError on
    `window` for a percentage of a schedule without an interval.
    """
    gap = shortest_rolling_gap(schedule) if rolls else shortest_gap_seconds(schedule)
    if window.seconds is not None:
        room = float(window.seconds if gap is None else min(window.seconds, gap))
    elif gap is not None:
        room = gap * (window.percent or 0) / 100
    else:
        raise InvalidFieldError(
            "window",
            f"{window.text} of what? The schedule has but one occurrence, so that there is no "
            'interval: use a duration as "15m"',
        )
    offset = int(fraction * room)
    # Rounding must not carry a fraction just below 1 to the next occurrence.
    return offset if gap is None else min(offset, gap - 1)
