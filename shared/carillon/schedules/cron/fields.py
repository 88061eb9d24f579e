"""The fields of a cron expression: lists of terms, each a set of numbers or of days.

The rules that both dialects share, and the unix dialect: Debian's cron, as cronsim 2.8 reads it.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from carillon.errors import quoted
from carillon.schedules.cron.days import ANY_MONTH_DAY, ANY_WEEK_DAY, MonthDays, WeekDays

_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
MONTH_NAMES = {name: number for number, name in enumerate(_MONTHS, 1)}
WEEKDAY_NAMES = {name: number for number, name in enumerate(_WEEKDAYS)}


class BadTermError(Exception):
    """A term that means nothing in its field; the text is a remedy, or empty."""


# Compared by identity: fields are keys of caches.
@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """The numbers low-high that a field takes, and their names.

    `values` is their text in a message. `wraps`: a range may run over the end, as in 20-2. `opens`:
    with a step a range of one number, as 5-5/2, counts to the field's end, as 5/2 does (so
    cronsim).
    """

    name: str
    low: int
    high: int
    values: str
    names: Mapping[str, int] | None = None
    wraps: bool = False
    opens: bool = False
    _all: tuple[int, ...] = field(init=False, repr=False)
    """Every one, of which all ranges are parts: each year is a number in memory once."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "_all", tuple(range(self.low, self.high + 1)))

    def number(self, text: str) -> int:
        found = None if self.names is None else self.names.get(text)
        if found is None:
            if not (text.isascii() and text.isdigit()):
                raise BadTermError("")
            try:
                found = int(text)
            except ValueError:  # thousands of digits
                found = -1
            if not self.low <= found <= self.high:
                raise BadTermError("")
        return found

    def numbers(self, term: str) -> tuple[int, ...]:
        """The numbers of a star, a number, a range or one of these with a step; ascending.

        A step counts from a single number to the field's end. Raises BadTermError.
        """
        if term == "*":
            return self._all
        if "/" in term:
            head, _, step = term.partition("/")
            numbers = self.numbers(head)
            if len(numbers) == 1 and (self.opens or "-" not in head):
                numbers = self._range(numbers[0], self.high)
            return numbers[:: step_of(step)]
        if "-" in term:
            first, _, last = term.partition("-")
            return self._range(self.number(first), self.number(last))
        return (self.number(term),)

    def _range(self, first: int, last: int) -> tuple[int, ...]:
        if first <= last:
            return self._all[first - self.low : last - self.low + 1]
        if not self.wraps:
            raise BadTermError("the range runs backwards")
        # In the order of the range, so that a step counts from its first.
        return self._all[first - self.low :] + self._all[: last - self.low + 1]


SECOND = Field("second", 0, 59, "0-59", opens=True)
MINUTE = Field("minute", 0, 59, "0-59", opens=True)
HOUR = Field("hour", 0, 23, "0-23", opens=True)
MONTH_DAY = Field("day-of-month", 1, 31, "1-31, L (last day) or LW (last weekday)", opens=True)
MONTH = Field("month", 1, 12, "1-12 or JAN-DEC", MONTH_NAMES, opens=True)
WEEK_DAY = Field(
    "day-of-week",
    0,
    7,
    "0-7 or SUN-SAT (0 and 7 are Sunday), FRI#2 (second), 5L (last)",
    WEEKDAY_NAMES,
    opens=True,
)
FIELDS = (SECOND, MINUTE, HOUR, MONTH_DAY, MONTH, WEEK_DAY)
"""Of the unix dialect; five fields leave out the first."""

_HASH = re.compile(r"H(?:[(/].*)?")
_NEAREST = re.compile(r"\d+W")


def step_of(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise BadTermError("")
    if not text.strip("0"):
        raise BadTermError("a step is at least 1")
    # No field has as many values: a longer step means the same as this one.
    return int(text) if len(text) < 10 else 10**9


def numbers_of(field_: Field, text: str) -> tuple[int, ...]:
    """The numbers of a whole field, ascending. Raises BadTermError."""
    if "," not in text:
        numbers = field_.numbers(text)
        return tuple(sorted(numbers)) if field_.wraps else numbers
    return tuple(sorted({number for term in text.split(",") for number in field_.numbers(term)}))


@lru_cache(maxsize=4096)
def unix_numbers(field_: Field, text: str) -> tuple[int, ...]:
    """Of a second, minute, hour or month field. Raises BadTermError."""
    return numbers_of(field_, text)


@lru_cache(maxsize=4096)
def unix_month_days(text: str) -> MonthDays:
    """Of a day-of-month field. Raises BadTermError."""
    if text == "*":
        return ANY_MONTH_DAY
    days: set[int] = set()
    last = last_weekday = False
    for term in text.split(","):
        head, slash, step = term.partition("/")
        if head in ("L", "LW"):
            if slash:
                step_of(step)
            last = last or head == "L"
            last_weekday = last_weekday or head == "LW"
        else:
            days.update(MONTH_DAY.numbers(term))
    return MonthDays(frozenset(days), last, last_weekday)


@lru_cache(maxsize=4096)
def unix_week_days(text: str) -> WeekDays:
    """Of a day-of-week field. Raises BadTermError."""
    if text == "*":
        return ANY_WEEK_DAY
    days: set[int] = set()
    nth: set[tuple[int, int]] = set()
    last: set[int] = set()
    for term in text.split(","):
        if "L" in term:
            if not term.endswith("L") or not term[:-1].isdigit():
                raise BadTermError("")
            last.add(WEEK_DAY.number(term[:-1]) % 7)
        elif "#" in term:
            nth.add(nth_of(WEEK_DAY, term))
        else:
            days.update(number % 7 for number in WEEK_DAY.numbers(term))
    return WeekDays(frozenset(days), frozenset(nth), frozenset(last))


def nth_of(field_: Field, term: str) -> tuple[int, int]:
    """Of FRI#2: the weekday (0-6, as the field numbers them) and which of the month it is."""
    day, _, count = term.partition("#")
    digits = count.lstrip("0")
    if digits not in ("1", "2", "3", "4", "5"):
        raise BadTermError("after # comes its number in the month, 1 to 5")
    return field_.number(day) % 7, int(digits)


def unix_parse(field_: Field, text: str) -> object:
    """Whatever a field of the unix dialect means. Raises BadTermError."""
    if field_ is MONTH_DAY:
        return unix_month_days(text)
    if field_ is WEEK_DAY:
        return unix_week_days(text)
    return unix_numbers(field_, text)


def refusal_of(
    field_: Field, text: str, position: int, parse: Callable[[Field, str], object]
) -> str | None:
    """The error text about the first wrong term, or the whole field; None when all are fine.

    `position` is that of the field in the caller's text, from 1; `text` is as the caller wrote it.
    """
    bad, hint = "", None
    for term in text.split(","):
        bad, hint = term, _fault(field_, term, parse)
        if hint is not None:
            break
        position += len(term) + 1
    else:
        # Each term is fine alone, but not with the others.
        bad, hint = text, _fault(field_, text, parse)
        position -= len(text) + 1
    if hint is None:
        return None
    return (
        f"{quoted(bad)} at position {position} is no {field_.name}: {hint + '; ' if hint else ''}"
        f"use {field_.values}, and of these *, ranges (1-5), steps (*/2) and lists (1,3)"
    )


def _fault(field_: Field, term: str, parse: Callable[[Field, str], object]) -> str | None:
    upper = term.upper()
    try:
        parse(field_, upper)
    except BadTermError as error:
        return str(error) or _foreign(upper)
    return None


def _foreign(term: str) -> str:
    """A remedy for what other schedulers take."""
    if "?" in term:
        return '"?" belongs to cron(…), here * means the same'
    if "~" in term or _HASH.fullmatch(term):
        return "to spread jobs over time, use window"
    if _NEAREST.fullmatch(term):
        return "nearest weekdays belong to cron(…)"
    return ""
