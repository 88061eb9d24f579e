"""Two recurrences as one."""

from dataclasses import dataclass

from carillon.schedules.base import Derived, Recurrence
from carillon.schedules.zones.wall_schedule import first_from, last_until


@dataclass(frozen=True, slots=True)
class Either(Derived):
    """The occurrences of either of two recurrences, each within its own bounds."""

    others: Recurrence

    @property
    def first_second(self) -> int:
        return min(self.others.first_second, self.base.first_second)

    @property
    def last_second(self) -> int:
        return max(self.others.last_second, self.base.last_second)

    def second_after(self, second: int) -> int | None:
        found = (first_from(one, second + 1) for one in (self.others, self.base))
        return min((second for second in found if second is not None), default=None)

    def second_before(self, second: int) -> int | None:
        found = (last_until(one, second - 1) for one in (self.others, self.base))
        return max((second for second in found if second is not None), default=None)

    def seconds_of_minute(self, minute: int) -> tuple[int, ...]:
        others, own = self.others.seconds_of_minute(minute), self.base.seconds_of_minute(minute)
        return tuple(sorted({*others, *own})) if others else own
