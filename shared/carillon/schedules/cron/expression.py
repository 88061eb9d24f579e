"""Cron expressions as rules of local time: no zone, no DST. Compiled once and shared.

Two dialects, distinguished by the text: `cron(…)` is EventBridge's (eventbridge.py), the others are
unix cron with five fields, or with six and the second first (fields.py).
"""

import re
from bisect import bisect_left
from collections.abc import Callable
from datetime import date
from functools import lru_cache

from carillon.errors import InvalidFieldError, quoted
from carillon.schedules.base import Fold, Gap
from carillon.schedules.cron import eventbridge, fields
from carillon.schedules.cron.days import Days, MonthDays, WeekDays

_DAY = 86_400
_HOUR = 3_600
_FIVE = "five (minute hour day-of-month month day-of-week), or six with the second first"
_SIX = "six: minute hour day-of-month month day-of-week year"
_PREFIX = "cron("


class Expression:
    """A compiled expression. Walls are seconds from 1970-01-01T00:00:00 on the clock.

    `seconds`, `minutes` and `hours` are the numbers of these fields, ascending; `has_seconds`:
    there is a field of seconds (six unix fields).
    """

    __slots__ = (
        "_first",
        "_hours_down",
        "_hours_up",
        "_last",
        "_minutes",
        "days",
        "has_seconds",
        "hours",
        "is_eventbridge",
        "is_time_of_day",
        "minutes",
        "seconds",
        "text",
    )

    def __init__(
        self,
        text: str,
        times: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]],
        days: Days,
        *,
        is_time_of_day: bool,
        is_eventbridge: bool,
    ) -> None:
        self.text = text
        self.seconds, self.minutes, self.hours = times
        self.days = days
        self.is_time_of_day = is_time_of_day
        self.is_eventbridge = is_eventbridge
        self.has_seconds = not is_eventbridge and len(text.split()) == 6
        self._minutes = _table_of(self.minutes)
        self._hours_up, self._hours_down = _neighbours(self.hours)
        self._first = self.hours[0] * _HOUR + self.minutes[0] * 60 + self.seconds[0]
        self._last = self.hours[-1] * _HOUR + self.minutes[-1] * 60 + self.seconds[-1]

    @property
    def default_dst(self) -> tuple[Gap, Fold]:
        """The rule of its dialect.

        Debian's cron(8): an expression whose minutes and hours do not begin with a star fires once
        per local time, a skipped one at the transition; the others whenever the clocks show a
        match. EventBridge Scheduler: a skipped time is left out, a repeated one fires once.
        """
        if self.is_eventbridge:
            return Gap.SKIP, Fold.FIRST
        return (Gap.RUN_AFTER, Fold.FIRST) if self.is_time_of_day else (Gap.SKIP, Fold.BOTH)

    @property
    def minutes_of_day(self) -> frozenset[int]:
        """The local minutes of the day (0-1439) at which it can fire."""
        return frozenset(hour * 60 + minute for hour in self.hours for minute in self.minutes)

    @property
    def seconds_of_day(self) -> tuple[int, ...]:
        """The local seconds of the day (0-86399) at which it can fire, ascending."""
        return tuple(
            hour * _HOUR + minute * 60 + second
            for hour in self.hours
            for minute in self.minutes
            for second in self.seconds
        )

    @property
    def bits_of_day(self) -> int:
        """The local seconds of the day at which it can fire, as a number: bit n is second n."""
        return _bits_of_day(self.hours, self.minutes, self.seconds)

    @property
    def bits_of_shown_minutes(self) -> int:
        """The same of all seconds of the minutes at which it can fire."""
        return _bits_of_day(self.hours, self.minutes, tuple(range(60)))

    def matches_day(self, day: date) -> bool:
        return self.days.matches(day)

    def matches_minute(self, local_time: int) -> bool:
        """True if the minute of a local time matches, whatever the seconds."""
        day, second = divmod(local_time, _DAY)
        hour = second // _HOUR
        return (
            self._hours_up[hour] == hour
            and self._minutes[second // 60 % 60] == 1
            and (self.days.is_every_day or self.days.next_from(day) == day)
        )

    def after(self, local_time: int) -> int | None:
        """The first match strictly after a local time; None if there is none within 50 years."""
        local_time += 1
        day, second = divmod(local_time, _DAY)
        days = self.days
        found = day if days.is_every_day else days.next_from(day)
        if found == day:
            hour, rest = divmod(second, _HOUR)
            following = self._hours_up[hour]
            if following == hour:
                match = self._in_hour_from(rest)
                if match is not None:
                    return local_time - rest + match
                following = self._hours_up[hour + 1]
            if following < 24:
                return day * _DAY + following * _HOUR + self._first % _HOUR
            found = days.next_from(day + 1)
        return None if found is None else found * _DAY + self._first

    def before(self, local_time: int) -> int | None:
        """The last match strictly before a local time; None if there is none within 50 years."""
        day, second = divmod(local_time, _DAY)
        days = self.days
        if days.is_every_day or days.next_from(day) == day:
            hour, rest = divmod(second, _HOUR)
            if self._hours_up[hour] == hour:
                match = self._in_hour_before(rest)
                if match is not None:
                    return local_time - rest + match
            previous = self._hours_down[hour]
            if previous >= 0:
                return day * _DAY + previous * _HOUR + self._last % _HOUR
        found = days.last_until(day - 1)
        return None if found is None else found * _DAY + self._last

    def _in_hour_from(self, start: int) -> int | None:
        """The first second of an hour at or after one at which minute and second match.

        It is worked out: a list of them has up to 3,600 numbers, and processes keep thousands of
        expressions.
        """
        minute, second = divmod(start, 60)
        if self._minutes[minute]:
            place = bisect_left(self.seconds, second)
            if place < len(self.seconds):
                return start - second + self.seconds[place]
            minute += 1
        place = bisect_left(self.minutes, minute)
        if place == len(self.minutes):
            return None
        return self.minutes[place] * 60 + self.seconds[0]

    def _in_hour_before(self, end: int) -> int | None:
        """The last second of an hour before one at which minute and second match."""
        minute, second = divmod(end, 60)
        if self._minutes[minute]:
            place = bisect_left(self.seconds, second)
            if place:
                return end - second + self.seconds[place - 1]
        place = bisect_left(self.minutes, minute)
        return self.minutes[place - 1] * 60 + self.seconds[-1] if place else None


def canonical_text(text: str) -> str:
    """One space between fields, names in upper case, `cron(…)` without spaces at its ends."""
    if is_eventbridge(text):
        return f"{_PREFIX}{' '.join(_inner(text).split()).upper()})"
    return " ".join(text.split()).upper()


def is_eventbridge(text: str) -> bool:
    """True if a text is in EventBridge's dialect, by how it begins."""
    return text.lstrip()[: len(_PREFIX)].lower() == _PREFIX


@lru_cache(maxsize=8192)
def compile_expression(text: str) -> Expression:
    """The rule of an expression in canonical text.

    Raises InvalidFieldError on `schedule.cron`, with the bad term and its position, and for
    expressions that match no day (30 February).
    """
    try:
        compiled = _eventbridge(text) if is_eventbridge(text) else _unix(text)
    except (fields.BadTermError, _CountError):
        refuse_bad_terms(text)
        raise
    if not compiled.days.is_ever:
        day = _words(text)[-4 if compiled.is_eventbridge else -3]
        raise InvalidFieldError(
            "schedule.cron",
            f"{quoted(text)} matches no date: see the day-of-month field {quoted(day[0])} at "
            f"position {day[1]} together with month and day-of-week",
        )
    return compiled


def refuse_bad_terms(text: str) -> None:
    """Raises InvalidFieldError on `schedule.cron` for the first term that is none, where it is."""
    words = _words(text)
    if is_eventbridge(text):
        _refuse_other_form(text, len(words))
        _refuse_fields(eventbridge.FIELDS, words, eventbridge.parse)
        _refuse_two_day_fields(words[2], words[4])
    else:
        if len(words) not in (5, 6):
            hint = f"; for a year use cron(…), with {_SIX}" if len(words) == 7 else ""
            raise InvalidFieldError(
                "schedule.cron",
                f"{quoted(text)} has {len(words)} fields: a cron expression has {_FIVE}{hint}",
            )
        _refuse_fields(fields.FIELDS[-len(words) :], words, fields.unix_parse)


def clear_caches() -> None:
    """Forgets the compiled expressions; none depends on a zone."""
    compile_expression.cache_clear()


class _CountError(Exception):
    """Not as many fields as the dialect has, or not of its form."""


def _unix(text: str) -> Expression:
    words = text.upper().split()
    if len(words) == 5:
        words.insert(0, "0")
    if len(words) != 6:
        raise _CountError
    second, minute, hour, month_day, month, week_day = words
    days = _days(
        fields.unix_month_days(month_day),
        fields.unix_numbers(fields.MONTH, month),
        fields.unix_week_days(week_day),
        month_day[0] == "*" or week_day[0] == "*",
        None,
    )
    times = (
        fields.unix_numbers(fields.SECOND, second),
        fields.unix_numbers(fields.MINUTE, minute),
        fields.unix_numbers(fields.HOUR, hour),
    )
    # The second field does not matter: a time of day is one with seconds too.
    is_time_of_day = minute[0] != "*" and hour[0] != "*"
    return Expression(text, times, days, is_time_of_day=is_time_of_day, is_eventbridge=False)


def _eventbridge(text: str) -> Expression:
    words = _inner(text).upper().split()
    if len(words) != 6 or not text.rstrip().endswith(")"):
        raise _CountError
    minute, hour, month_day, month, week_day, year = words
    if (month_day == "?") == (week_day == "?"):
        raise _CountError
    # A star is taken for every year: the field's end, 2199, is then no end of the schedule.
    years = None if year == "*" else eventbridge.numbers(eventbridge.YEAR, year)
    days = _days(
        eventbridge.month_days(month_day),
        eventbridge.numbers(eventbridge.MONTH, month),
        eventbridge.week_days(week_day),
        True,
        years,
    )
    times = (
        (0,),
        eventbridge.numbers(eventbridge.MINUTE, minute),
        eventbridge.numbers(eventbridge.HOUR, hour),
    )
    is_time_of_day = minute[0] != "*" and hour[0] != "*"
    return Expression(text, times, days, is_time_of_day=is_time_of_day, is_eventbridge=True)


@lru_cache(maxsize=2048)
def _days(
    month_days: MonthDays,
    months: tuple[int, ...],
    week_days: WeekDays,
    needs_both: bool,
    years: tuple[int, ...] | None,
) -> Days:
    return Days(month_days, months, week_days, needs_both, years)


@lru_cache(maxsize=1024)
def _table_of(minutes: tuple[int, ...]) -> bytes:
    """For each minute of an hour 1 if it is one of these, else 0."""
    return bytes(minute in minutes for minute in range(60))


@lru_cache(maxsize=256)
def _bits_of_day(hours: tuple[int, ...], minutes: tuple[int, ...], seconds: tuple[int, ...]) -> int:
    one_minute = sum(1 << second for second in seconds)
    one_hour = sum(one_minute << minute * 60 for minute in minutes).to_bytes(_HOUR // 8, "little")
    empty = bytes(_HOUR // 8)
    day = b"".join(one_hour if hour in hours else empty for hour in range(24))
    return int.from_bytes(day, "little")


@lru_cache(maxsize=1024)
def _neighbours(hours: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """For each hour 0-24 the first of `hours` at or after it (24: none), and for each the last
    before it (-1: none)."""
    up = tuple(min((hour for hour in hours if hour >= start), default=24) for start in range(25))
    down = tuple(max((hour for hour in hours if hour < start), default=-1) for start in range(25))
    return up, down


def _inner(text: str) -> str:
    stripped = text.strip()
    return stripped[len(_PREFIX) : -1 if stripped.endswith(")") else None]


def _words(text: str) -> list[tuple[str, int]]:
    """The fields and their positions in the text, from 1."""
    begin, end = 0, len(text)
    if is_eventbridge(text):
        begin = text.index("(") + 1
        end = len(text.rstrip()) - text.rstrip().endswith(")")
    return [(word[0], word.start() + 1) for word in re.compile(r"\S+").finditer(text, begin, end)]


def _refuse_fields(
    specs: tuple[fields.Field, ...],
    words: list[tuple[str, int]],
    parse: Callable[[fields.Field, str], object],
) -> None:
    for spec, (word, position) in zip(specs, words, strict=True):
        refusal = fields.refusal_of(spec, word, position, parse)
        if refusal is not None:
            raise InvalidFieldError("schedule.cron", refusal)


def _refuse_other_form(text: str, count: int) -> None:
    """Refuses what is not `cron(…)` around six fields."""
    if not text.rstrip().endswith(")"):
        raise InvalidFieldError("schedule.cron", f'{quoted(text)} does not end with ")"')
    if count != 6:
        raise InvalidFieldError(
            "schedule.cron", f"{quoted(text)} has {count} fields: cron(…) has {_SIX}"
        )


def _refuse_two_day_fields(month_day: tuple[str, int], week_day: tuple[str, int]) -> None:
    if (month_day[0] == "?") != (week_day[0] == "?"):
        return
    raise InvalidFieldError(
        "schedule.cron",
        f"{quoted(week_day[0])} at position {week_day[1]} cannot stand beside day-of-month "
        f"{quoted(month_day[0])}: in cron(…) exactly one of the two is ?",
    )
