"""Closed days, and what a schedule does about occurrences that fall on one."""

from bisect import bisect_right
from dataclasses import dataclass
from datetime import date, timedelta
from enum import StrEnum


class CalendarRule(StrEnum):
    """The treatment of an occurrence whose local day is closed."""

    SKIP = "skip"
    NEXT_BUSINESS_DAY = "next_business_day"
    PREVIOUS_BUSINESS_DAY = "previous_business_day"


MOST_SHIFTED_DAYS = 31
"""An occurrence moves by at most this many days; if all of them are closed it is skipped."""


@dataclass(frozen=True, slots=True)
class ClosedDays:
    """A set of local days: whole weekdays (0 is Monday), and ranges of dates, ends included.

    `ranges` are sorted and apart from each other: make it by `of`.
    """

    weekdays: frozenset[int] = frozenset()
    ranges: tuple[tuple[date, date], ...] = ()

    @classmethod
    def of(
        cls, weekdays: "frozenset[int] | set[int]", ranges: "list[tuple[date, date]]"
    ) -> "ClosedDays":
        """Overlapping and adjacent ranges are merged; each must not end before it begins."""
        merged: list[tuple[date, date]] = []
        for first, last in sorted(ranges):
            if merged and first - merged[-1][1] <= timedelta(days=1):
                merged[-1] = (merged[-1][0], max(merged[-1][1], last))
            else:
                merged.append((first, last))
        return cls(frozenset(weekdays), tuple(merged))

    @property
    def is_always(self) -> bool:
        """True if no day is open."""
        return len(self.weekdays) == 7

    def __contains__(self, day: date) -> bool:
        if day.weekday() in self.weekdays:
            return True
        place = bisect_right(self.ranges, (day, date.max)) - 1
        return place >= 0 and day <= self.ranges[place][1]

    def open_day_from(self, day: date, rule: CalendarRule) -> date | None:
        """The open day that an occurrence on `day` moves to (itself when open); None if none."""
        step = timedelta(days=-1 if rule is CalendarRule.PREVIOUS_BUSINESS_DAY else 1)
        for _ in range(MOST_SHIFTED_DAYS + 1):
            if day not in self:
                return day
            day += step
        return None
