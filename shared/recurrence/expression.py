"""Cron expressions as rules of wall time: no zone, no DST. The engine is cronsim."""

import re
from copy import copy
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import lru_cache

from cronsim import CronSim, CronSimError
from cronsim.cronsim import Field

from shared.errors import InvalidFieldError
from shared.recurrence.messages import quoted
from shared.recurrence.zones import WALL_EPOCH

_SECOND = timedelta(seconds=1)
_ANY_WALL = datetime(2024, 1, 1)
_FIELDS = {
    Field.SECOND: ("second", "0-59"),
    Field.MINUTE: ("minute", "0-59"),
    Field.HOUR: ("hour", "0-23"),
    Field.DAY: ("day-of-month", "1-31, L (last day) or LW (last weekday)"),
    Field.MONTH: ("month", "1-12 or JAN-DEC"),
    Field.DOW: ("day-of-week", "0-7 or SUN-SAT (0 and 7 are Sunday), FRI#2 (second), 5L (last)"),
}
_DAY_POSITION = -3


@dataclass(frozen=True, slots=True)
class Expression:
    """A compiled expression. Walls are seconds from 1970-01-01T00:00:00 on the clock."""

    text: str
    is_time_of_day: bool
    """Neither minutes nor hours begin with a star and there are five fields: Debian's cron runs
    such a job once per wall time, whatever the clocks do. The others follow elapsed time."""
    _sim: CronSim

    @property
    def minutes_of_day(self) -> frozenset[int]:
        """The wall minutes of the day (0-1439) at which it can fire."""
        hours, minutes = self._sim.hours, self._sim.minutes
        return frozenset(hour * 60 + minute for hour in hours for minute in minutes)

    def matches_day(self, day: date) -> bool:
        return day.month in self._sim.months and self._sim.match_day(day)

    def after(self, wall: int) -> int | None:
        """The first match strictly after a wall; None if there is none within 50 years."""
        return self._step(wall, 1)

    def before(self, wall: int) -> int | None:
        """The last match strictly before a wall; None if there is none within 50 years."""
        return self._step(wall, -1)

    def _step(self, wall: int, direction: int) -> int | None:
        # A copy of the parsed expression, put at the wall, costs a third of parsing it again.
        sim = copy(self._sim)
        sim.dt = WALL_EPOCH + timedelta(seconds=wall)
        sim.tick_direction = direction
        try:
            return (next(sim) - WALL_EPOCH) // _SECOND
        except (StopIteration, OverflowError):
            return None


@lru_cache(maxsize=8192)
def compile_expression(text: str) -> Expression:
    """The rule of an expression in canonical text.

    Raises InvalidFieldError on `schedule.cron`, with the bad term and its position, and for
    expressions that match no day (30 February).
    """
    refuse_bad_terms(text)
    try:
        sim = CronSim(text, _ANY_WALL)
        next(copy(sim))
    except (CronSimError, StopIteration):
        day = list(re.finditer(r"\S+", text))[_DAY_POSITION]
        raise InvalidFieldError(
            "schedule.cron",
            f"{quoted(text)} matches no date: see the day-of-month field {quoted(day[0])} at "
            f"position {day.start() + 1} together with month and day-of-week",
        ) from None
    minute, hour = sim.parts[1:3]
    is_time_of_day = len(text.split()) == 5 and not (minute[0] == "*" or hour[0] == "*")
    return Expression(text, is_time_of_day, sim)


def refuse_bad_terms(text: str) -> None:
    """Raises InvalidFieldError on `schedule.cron` for the first term that is none, where it is."""
    words = list(re.finditer(r"\S+", text))
    if len(words) not in (5, 6):
        raise InvalidFieldError(
            "schedule.cron",
            f"{quoted(text)} has {len(words)} fields: a cron expression has five (minute hour "
            "day-of-month month day-of-week), or six with the second first",
        )
    for field, word in zip(list(Field)[-len(words) :], words, strict=True):
        position = word.start() + 1
        for term in word[0].split(","):
            _refuse_bad_term(field, term, position)
            position += len(term) + 1


def _refuse_bad_term(field: Field, term: str, position: int) -> None:
    try:
        field.parse(term.upper())
    except (CronSimError, ValueError):
        name, values = _FIELDS[field]
        raise InvalidFieldError(
            "schedule.cron",
            f"{quoted(term)} at position {position} is no {name}: use {values}, and of these "
            "*, ranges (1-5), steps (*/2) and lists (1,3)",
        ) from None
