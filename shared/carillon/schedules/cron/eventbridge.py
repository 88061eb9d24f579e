"""The fields of `cron(minute hour day-of-month month day-of-week year)`, as EventBridge has them.

The authority is AWS's documentation: "Cron expressions reference" in the EventBridge user guide
and "Schedule types" in that of EventBridge Scheduler. Where both are silent, Quartz's rules hold,
from which the syntax comes.
"""

from functools import lru_cache

from carillon.schedules.cron.days import ANY_MONTH_DAY, ANY_WEEK_DAY, MonthDays, WeekDays
from carillon.schedules.cron.fields import (
    MONTH_NAMES,
    WEEKDAY_NAMES,
    BadTermError,
    Field,
    nth_of,
    numbers_of,
)

MINUTE = Field("minute", 0, 59, "0-59", wraps=True)
HOUR = Field("hour", 0, 23, "0-23", wraps=True)
MONTH_DAY = Field(
    "day-of-month",
    1,
    31,
    "1-31, L (last day), LW (last weekday), 3W (weekday nearest to the 3rd) or ?",
    wraps=True,
)
MONTH = Field("month", 1, 12, "1-12 or JAN-DEC", MONTH_NAMES, wraps=True)
WEEK_DAY = Field(
    "day-of-week",
    1,
    7,
    "1-7 or SUN-SAT (1 is Sunday), 3#2 (second Tuesday), 6L (last Friday), L (Saturday) or ?",
    {name: number + 1 for name, number in WEEKDAY_NAMES.items()},
    wraps=True,
)
YEAR = Field("year", 1970, 2199, "1970-2199")
FIELDS = (MINUTE, HOUR, MONTH_DAY, MONTH, WEEK_DAY, YEAR)

_SATURDAY = 6


@lru_cache(maxsize=4096)
def numbers(field: Field, text: str) -> tuple[int, ...]:
    """Of a minute, hour, month or year field, ascending. Raises BadTermError."""
    for term in text.split(","):
        _refuse_open_step(term)
    return numbers_of(field, text)


@lru_cache(maxsize=4096)
def month_days(text: str) -> MonthDays:
    """Of a day-of-month field. Raises BadTermError."""
    if text in ("*", "?"):
        return ANY_MONTH_DAY
    days: set[int] = set()
    nearest: set[int] = set()
    last = last_weekday = False
    for term in text.split(","):
        _refuse_open_step(term)
        if term == "L":
            last = True
        elif term == "LW":
            last_weekday = True
        elif term.endswith("W"):
            nearest.add(MONTH_DAY.number(term[:-1]))
        else:
            days.update(MONTH_DAY.numbers(term))
    return MonthDays(frozenset(days), last, last_weekday, frozenset(nearest))


@lru_cache(maxsize=4096)
def week_days(text: str) -> WeekDays:
    """Of a day-of-week field, in numbers from 0 (Sunday). Raises BadTermError."""
    if text in ("*", "?"):
        return ANY_WEEK_DAY
    if "#" in text:
        if "," in text:
            raise BadTermError("# takes the field for itself: make it a list of schedules")
        day, count = nth_of(WEEK_DAY, text)
        return WeekDays(frozenset(), frozenset({((day - 1) % 7, count)}))
    days: set[int] = set()
    last: set[int] = set()
    for term in text.split(","):
        _refuse_open_step(term)
        if term == "L":
            days.add(_SATURDAY)
        elif term.endswith("L"):
            last.add(WEEK_DAY.number(term[:-1]) - 1)
        else:
            days.update(number - 1 for number in WEEK_DAY.numbers(term))
    return WeekDays(frozenset(days), frozenset(), frozenset(last))


def parse(field: Field, text: str) -> object:
    """Whatever a field means. Raises BadTermError."""
    if field is MONTH_DAY:
        return month_days(text)
    if field is WEEK_DAY:
        return week_days(text)
    return numbers(field, text)


def _refuse_open_step(term: str) -> None:
    if term.startswith("/"):
        raise BadTermError(f"a step needs its start, as in 0{term[:4]}")
