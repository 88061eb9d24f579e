"""The days that a cron expression's day, month and year fields mean.

Days are counted from 1970-01-01. Weekdays are numbered as in unix cron: 0 is Sunday.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date

LONGEST_SEARCH_YEARS = 50
"""29 February on a given weekday comes every 28 years, and once after 40."""

_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_EPOCH_WEEKDAY = 4
_LENGTHS = (0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_SHORTEST = 28
_LAST_YEAR = 9999
_EVERY_SEVENTH = sum(1 << day for day in range(0, 35, 7))
_KEPT_ANSWERS = 512
_NONE_AHEAD = 1 << 62
_NONE_BEHIND = -_NONE_AHEAD


@dataclass(frozen=True, slots=True)
class MonthDays:
    """A day-of-month field: `days` (1-31), and those that depend on the month.

    `last` is its last day, `last_weekday` the last from Monday to Friday; `nearest` are days (1-31)
    whose nearest day from Monday to Friday in the same month is meant.
    """

    days: frozenset[int]
    last: bool = False
    last_weekday: bool = False
    nearest: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class WeekDays:
    """A day-of-week field: `days` (0-6, 0 is Sunday) of every week.

    `nth` are pairs of a weekday and which of the month it is (1-5); `last` are weekdays of which
    the month's last is meant.
    """

    days: frozenset[int]
    nth: frozenset[tuple[int, int]] = frozenset()
    last: frozenset[int] = frozenset()


ANY_MONTH_DAY = MonthDays(frozenset(range(1, 32)))
ANY_WEEK_DAY = WeekDays(frozenset(range(7)))


class Days:
    """A set of days, to be shared by all expressions that mean the same.

    There are but 28 kinds of months: by their length and the weekday of their first. The matching
    days of each are worked out once, as a mask whose lowest bit is the first of the month.
    """

    __slots__ = (
        "_ahead",
        "_behind",
        "_following",
        "_is_ever",
        "_masks",
        "_years",
        "is_every_day",
        "month_days",
        "months",
        "needs_both",
        "week_days",
        "years",
    )

    def __init__(
        self,
        month_days: MonthDays,
        months: Iterable[int],
        week_days: WeekDays,
        needs_both: bool,
        years: tuple[int, ...] | None = None,
    ) -> None:
        """`needs_both`: a day must match both day fields, not just one. No `years`: all of them."""
        self.month_days = month_days
        self.months = frozenset(months)
        self.week_days = week_days
        self.needs_both = needs_both
        self.years = years
        # As a number whose n-th bit is the year n: a set of them takes 25 times as much.
        self._years = None if years is None else sum(1 << year for year in years)
        any_month_day, any_week_day = month_days == ANY_MONTH_DAY, week_days == ANY_WEEK_DAY
        is_any_day = any_month_day and any_week_day if needs_both else any_month_day or any_week_day
        self.is_every_day = is_any_day and len(self.months) == 12 and years is None
        self._masks: list[int | None] = [None] * 28
        self._following: dict[int, int | None] = {}
        # From where the last searches went, and as far as where they found nothing.
        self._ahead = (0, -1)
        self._behind = (0, 1)
        self._is_ever: bool | None = None

    def matches(self, day: date) -> bool:
        if day.month not in self.months or not self._has_year(day.year):
            return False
        first_weekday = (day.isoweekday() - day.day + 1) % 7
        mask = self._mask(first_weekday, _length(day.year, day.month))
        return bool(mask >> (day.day - 1) & 1)

    def in_month(self, year: int, month: int) -> int:
        """Its days as a number whose lowest bit is the first of the month."""
        if month not in self.months or not self._has_year(year):
            return 0
        first_weekday = date(year, month, 1).isoweekday() % 7
        return self._mask(first_weekday, _length(year, month))

    @property
    def is_ever(self) -> bool:
        """True if there is such a day at all, past or to come."""
        if self._is_ever is None:
            self._is_ever = self.is_every_day or self._find_any()
        return self._is_ever

    def _find_any(self) -> bool:
        if self.years is not None:
            return self._search(date(self.years[0], 1, 1).toordinal() - _EPOCH_ORDINAL) is not None
        # Every kind of month that a month of the year can be comes within 400 years.
        lengths = {_LENGTHS[month] for month in self.months}
        if 2 in self.months:
            lengths.add(29)
        return any(self._mask(first, length) for length in lengths for first in range(7))

    def next_from(self, day: int) -> int | None:
        """The first such day at or after one; None when there is none within 50 years."""
        if self.is_every_day:
            return day
        try:
            return self._following[day]
        except KeyError:
            if len(self._following) >= _KEPT_ANSWERS:
                self._following.clear()
            found = self._following[day] = self._next_from(day)
            return found

    def last_until(self, day: int) -> int | None:
        """The last such day at or before one; None when there is none within 50 years."""
        if self.is_every_day:
            return day
        begun, reached = self._behind
        if not reached <= day <= begun:
            found = self._search_back(day)
            begun, reached = self._behind = day, _NONE_BEHIND if found is None else found
        return None if reached == _NONE_BEHIND else reached

    def _next_from(self, day: int) -> int | None:
        # Each of many days, as a calendar closes, is asked about: one search answers for all of
        # them up to what it finds, which may be years ahead.
        begun, reached = self._ahead
        if not begun <= day <= reached:
            found = self._search(day)
            begun, reached = self._ahead = day, _NONE_AHEAD if found is None else found
        return None if reached == _NONE_AHEAD else reached

    def _search_back(self, day: int) -> int | None:
        start = date.fromordinal(day + _EPOCH_ORDINAL)
        year, month, length = start.year, start.month, start.day
        first = day - length + 1
        first_year = year - LONGEST_SEARCH_YEARS
        if self.years is not None:
            first_year = min(first_year, self.years[0])
        while year >= first_year:
            if month in self.months and self._has_year(year):
                mask = self._mask((first + _EPOCH_WEEKDAY) % 7, _length(year, month))
                mask &= (1 << length) - 1
                if mask:
                    return first + mask.bit_length() - 1
            month -= 1
            if not month:
                year, month = year - 1, 12
            length = _length(year, month)
            first -= length
        return None

    def _search(self, day: int) -> int | None:
        start = date.fromordinal(day + _EPOCH_ORDINAL)
        year, month, passed = start.year, start.month, start.day - 1
        first = day - passed
        last_year = min(year + LONGEST_SEARCH_YEARS, _LAST_YEAR)
        if self.years is not None:
            last_year = max(last_year, self.years[-1])
        while year <= last_year:
            length = _length(year, month)
            if month in self.months and self._has_year(year):
                mask = self._mask((first + _EPOCH_WEEKDAY) % 7, length) >> passed
                if mask:
                    return first + passed + (mask & -mask).bit_length() - 1
            passed = 0
            first += length
            month += 1
            if month == 13:
                year, month = year + 1, 1
        return None

    def _has_year(self, year: int) -> bool:
        return self._years is None or bool(self._years >> year & 1)

    def _mask(self, first_weekday: int, length: int) -> int:
        place = first_weekday * 4 + length - _SHORTEST
        mask = self._masks[place]
        if mask is None:
            in_month = _month_mask(self.month_days, first_weekday, length)
            in_weeks = _week_mask(self.week_days, first_weekday, length)
            mask = in_month & in_weeks if self.needs_both else in_month | in_weeks
            self._masks[place] = mask
        return mask


def _length(year: int, month: int) -> int:
    if month == 2 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0):
        return 29
    return _LENGTHS[month]


def _month_mask(field: MonthDays, first_weekday: int, length: int) -> int:
    days = set(field.days)
    if field.last:
        days.add(length)
    if field.last_weekday:
        days.add(_nearest_weekday(length, first_weekday, length))
    # A month without the day itself has none that is nearest to it.
    days.update(
        _nearest_weekday(day, first_weekday, length) for day in field.nearest if day <= length
    )
    return sum(1 << (day - 1) for day in days if day <= length)


def _nearest_weekday(day: int, first_weekday: int, length: int) -> int:
    """The day from Monday to Friday that is nearest to a day of the month, and in that month."""
    weekday = (first_weekday + day - 1) % 7
    if weekday == 6:
        return day - 1 if day > 1 else day + 2
    if weekday == 0:
        return day + 1 if day < length else day - 2
    return day


def _week_mask(field: WeekDays, first_weekday: int, length: int) -> int:
    mask = 0
    for weekday in field.days:
        mask |= _EVERY_SEVENTH << ((weekday - first_weekday) % 7)
    for weekday, count in field.nth:
        mask |= 1 << ((weekday - first_weekday) % 7 + 7 * (count - 1))
    for weekday in field.last:
        mask |= 1 << (length - 1 - (first_weekday + length - 1 - weekday) % 7)
    return mask & ((1 << length) - 1)
