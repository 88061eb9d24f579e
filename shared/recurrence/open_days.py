"""A schedule under a calendar: occurrences on closed days are left out, or moved to open ones."""

from dataclasses import dataclass
from datetime import date, datetime

from shared.recurrence.closed_days import CalendarRule, ClosedDays
from shared.recurrence.value import Recurrence


@dataclass(frozen=True, slots=True)
class OnOpenDays(Recurrence):
    """The occurrences of `base` whose day, local to its zone, is open; and by `rule` those moved.

    A moved occurrence keeps its wall time, read on the new day by the schedule's DST rule. Several
    that meet at one instant are one occurrence. Bounds hold for the nominal times, before moving.
    """

    base: Recurrence
    closed: ClosedDays
    rule: CalendarRule

    def moved_from(self, fire_at: datetime) -> tuple[date, ...]:
        """The closed days from which occurrences were moved to this one, ascending."""
        raise NotImplementedError
