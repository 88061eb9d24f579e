"""`every`: an interval and an offset, counted from an anchor."""

from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache

from carillon.errors import InvalidFieldError
from carillon.schedules.base import (
    DEFAULT_DST,
    FIRST_SECOND,
    DstRule,
    Recurrence,
    first_second_of,
    last_second_of,
)
from carillon.schedules.durations import format_duration

LONGEST_INTERVAL_SECONDS = 3_653 * 86_400
"""Ten years."""


@dataclass(frozen=True, slots=True)
class Every(Recurrence):
    """Occurrences at anchor + offset + n * interval, n >= 1; the anchor is `start_at` or the epoch.

    Elapsed time, so neither zone nor DST matters. Raises InvalidFieldError for an interval outside
    of 1 s to ten years and an offset outside of [0, interval).
    """

    interval_seconds: int
    offset_seconds: int = 0
    timezone: str = "UTC"
    start_at: datetime | None = None
    end_at: datetime | None = None
    dst: DstRule = DEFAULT_DST
    first_second: int = field(init=False, repr=False, compare=False)
    last_second: int = field(init=False, repr=False, compare=False)
    base_second: int = field(init=False, repr=False, compare=False)
    """Anchor + offset, in epoch seconds: the occurrences are whole intervals after it."""

    def __post_init__(self) -> None:
        if not 1 <= self.interval_seconds <= LONGEST_INTERVAL_SECONDS:
            interval = format_duration(max(0, self.interval_seconds))
            longest = format_duration(LONGEST_INTERVAL_SECONDS)
            raise InvalidFieldError(
                "schedule.every", f"{interval} is no interval: use 1s to {longest}"
            )
        if not 0 <= self.offset_seconds < self.interval_seconds:
            interval = format_duration(self.interval_seconds)
            offset = format_duration(max(0, self.offset_seconds))
            raise InvalidFieldError(
                "schedule.offset", f"{offset} must be shorter than the interval, {interval}"
            )
        keep = object.__setattr__
        keep(self, "first_second", first_second_of(self.start_at))
        keep(self, "last_second", last_second_of(self.end_at))
        anchor = FIRST_SECOND if self.start_at is None else self.first_second
        keep(self, "base_second", anchor + self.offset_seconds)

    @property
    def text(self) -> str:
        offset = f" offset {format_duration(self.offset_seconds)}" if self.offset_seconds else ""
        return f"every {format_duration(self.interval_seconds)}{offset}"

    def second_after(self, second: int) -> int | None:
        base = self.base_second
        count = max(1, (second - base) // self.interval_seconds + 1)
        return base + count * self.interval_seconds

    def second_before(self, second: int) -> int | None:
        base = self.base_second
        count = (second - 1 - base) // self.interval_seconds
        return base + count * self.interval_seconds if count >= 1 else None

    def has(self, second: int) -> bool:
        since = second - self.base_second
        return since > 0 and since % self.interval_seconds == 0 and second <= self.last_second

    def bits(self, start: int, end: int) -> int:
        interval = self.interval_seconds
        first = max(start, self.base_second + 1)
        first += (self.base_second - first) % interval
        end = min(end, self.last_second + 1)
        if first >= end:
            return 0
        found = _comb(interval, 1 << (end - first - 1).bit_length())
        return (found & ((1 << (end - first)) - 1)) << (first - start)

    def seconds_of_minute(self, minute: int) -> tuple[int, ...]:
        start = minute * 60
        first = (self.base_second - start) % self.interval_seconds
        if first >= 60:
            return ()
        if start + first <= self.base_second or start + 59 > self.last_second:
            return Recurrence.seconds_of_minute(self, minute)
        return tuple(range(first, 60, self.interval_seconds))


@lru_cache(maxsize=256)
def _comb(interval: int, length: int) -> int:
    """A number of some length with every n-th bit set, beginning with the lowest."""
    found, reached = 1, interval
    while reached < length:
        found |= found << reached
        reached *= 2
    return found & ((1 << length) - 1)


@dataclass(frozen=True, slots=True)
class Delay(Recurrence):
    """Each occurrence lies `delay_seconds` after the end of the run before it.

    The instants follow from the runs and cannot be computed ahead: `next` of the instant at which
    a run ended is the occurrence that follows it, and `between` gives the earliest possible ones,
    of runs that take no time. The first lies one delay after the job's generation, not before
    `start_at`. It is indexed as a dated message, one at a time, never under standing slots.

    Raises InvalidFieldError for a delay outside of 1 s to ten years.
    """

    delay_seconds: int
    timezone: str = "UTC"
    start_at: datetime | None = None
    end_at: datetime | None = None
    dst: DstRule = DEFAULT_DST

    def __post_init__(self) -> None:
        if not 1 <= self.delay_seconds <= LONGEST_INTERVAL_SECONDS:
            delay = format_duration(max(0, self.delay_seconds))
            longest = format_duration(LONGEST_INTERVAL_SECONDS)
            raise InvalidFieldError("schedule.every", f"{delay} is no delay: use 1s to {longest}")

    @property
    def text(self) -> str:
        return f"every {format_duration(self.delay_seconds)} after finish"

    def second_after(self, second: int) -> int | None:
        return max(second + self.delay_seconds, self.first_second)

    def second_before(self, second: int) -> int | None:
        """None: only the runs know which instants came before."""
        return None

    def seconds_of_minute(self, minute: int) -> tuple[int, ...]:
        """None: no minute can be known to hold an occurrence."""
        return ()

    def has(self, second: int) -> bool:
        """False: no instant can be known to be an occurrence."""
        return False

    def _next_second(self, second: int) -> int | None:
        # Not from the start on, as other kinds: a delay that ends before it is cut short.
        found = max(second + self.delay_seconds, self.first_second)
        return found if found <= self.last_second else None
