"""`every … after finish`: a fixed delay, counted from the end of the last run."""

from dataclasses import dataclass
from datetime import datetime

from carillon.errors import InvalidFieldError
from carillon.schedules.base import Recurrence
from carillon.schedules.dst import DEFAULT_DST, DstRule
from carillon.schedules.durations import format_duration
from carillon.schedules.kinds.interval import LONGEST_INTERVAL_SECONDS


@dataclass(frozen=True, slots=True)
class Delay(Recurrence):
    """Each occurrence lies `delay_seconds` after the end of the run before it.

    The instants follow from the runs and cannot be computed ahead: `next` of the instant at which
    a run ended is the occurrence that follows it, and `between` gives the earliest possible ones,
    of runs that take no time. The first lies one delay after the job's filing, not before
    `start_at`. It is filed as a dated message, one at a time, never under standing slots.

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
        """None: which instants came before, only the runs tell."""
        return None

    def seconds_of_minute(self, minute: int) -> tuple[int, ...]:
        """None: no minute can be said to hold an occurrence."""
        return ()

    def has(self, second: int) -> bool:
        """False: no instant can be said to be an occurrence."""
        return False

    def _next_second(self, second: int) -> int | None:
        # Not from the start on, as other kinds: a delay that ends before it is cut short.
        found = max(second + self.delay_seconds, self.first_second)
        return found if found <= self.last_second else None
