"""Two recurrences as one."""

from dataclasses import dataclass, field
from datetime import datetime

from carillon.schedules.base import DstRule, Recurrence
from carillon.schedules.zones.wall_schedule import first_from, last_until


@dataclass(frozen=True, slots=True)
class Either(Recurrence):
    """The occurrences of either of two recurrences, each within its own bounds.

    Never stored: it has the text, zone and bounds of the second, the schedule that it is made of.
    """

    others: Recurrence
    base: Recurrence
    timezone: str = field(init=False, repr=False, compare=False)
    start_at: datetime | None = field(init=False, repr=False, compare=False)
    end_at: datetime | None = field(init=False, repr=False, compare=False)
    dst: DstRule = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("timezone", "start_at", "end_at", "dst"):
            object.__setattr__(self, name, getattr(self.base, name))

    @property
    def is_recurring(self) -> bool:  # type: ignore[override]  # the kind alone does not tell
        return self.base.is_recurring

    @property
    def first_second(self) -> int:
        return min(self.others.first_second, self.base.first_second)

    @property
    def last_second(self) -> int:
        return max(self.others.last_second, self.base.last_second)

    @property
    def text(self) -> str:
        return self.base.text

    def second_after(self, second: int) -> int | None:
        found = (first_from(one, second + 1) for one in (self.others, self.base))
        return min((second for second in found if second is not None), default=None)

    def second_before(self, second: int) -> int | None:
        found = (last_until(one, second - 1) for one in (self.others, self.base))
        return max((second for second in found if second is not None), default=None)

    def seconds_of_minute(self, minute: int) -> tuple[int, ...]:
        others, own = self.others.seconds_of_minute(minute), self.base.seconds_of_minute(minute)
        return tuple(sorted({*others, *own})) if others else own
