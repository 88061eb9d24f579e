"""Several schedules as one: their union, without the exceptions."""

from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any

from shared.recurrence import zones
from shared.recurrence.at import At
from shared.recurrence.cron import Cron
from shared.recurrence.dst import DstRule, Fold
from shared.recurrence.every import Every
from shared.recurrence.expression import Expression, compile_expression
from shared.recurrence.value import Recurrence

Simple = At | Every | Cron
"""What can be combined."""

MOST_REMOVED = 200_000
MOST_COMPARED = 4_000_000
LONGEST_SEARCH_SECONDS = 50 * 366 * 86_400
"""A search ends when exceptions have taken out so many stretches, of many members and exceptions
fewer (so many pairs of them are looked at), or all there was for so long."""

_DAY_SECONDS = 86_400
_DAY_MINUTES = 1440
_NEVER = 1 << 62


@dataclass(frozen=True, slots=True)
class Combined(Recurrence):
    """The union of `schedules`, where an instant counts once, without those of `exceptions`.

    An exception in whole minutes (a cron expression without seconds) takes out the minutes that
    it matches by the clocks as they are shown, whatever the DST rule, and what it would fire
    itself; every other exception takes out its own instants. Zone, start, end and DST rule are
    those of `schedules`: raises ValueError where these disagree, or are none. An occurrence that
    comes only after 50 years without one, or after 200,000 that are taken out, is not found.
    """

    schedules: tuple[Simple, ...]
    exceptions: tuple[Simple, ...] = ()
    timezone: str = field(init=False, repr=False, compare=False)
    start_at: datetime | None = field(init=False, repr=False, compare=False)
    end_at: datetime | None = field(init=False, repr=False, compare=False)
    dst: DstRule = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        settings = {
            (member.timezone, member.start_at, member.end_at, member.dst)
            for member in self.schedules
        }
        if len(settings) != 1 or any(
            exception.timezone != self.schedules[0].timezone for exception in self.exceptions
        ):
            raise ValueError("a combination's members must agree in zone, start, end and DST rule")
        for name, value in zip(
            ("timezone", "start_at", "end_at", "dst"), settings.pop(), strict=True
        ):
            object.__setattr__(self, name, value)

    @property
    def is_recurring(self) -> bool:  # type: ignore[override]  # the kind alone does not tell
        return any(schedule.is_recurring for schedule in self.schedules)

    @property
    def text(self) -> str:
        text = " | ".join(schedule.text for schedule in self.schedules)
        if self.exceptions:
            text += " except " + " | ".join(exception.text for exception in self.exceptions)
        return text

    def as_json(self) -> dict[str, Any]:
        form: dict[str, Any] = {"any": [schedule.as_json() for schedule in self.schedules]}
        if self.exceptions:
            form["except"] = [exception.as_json() for exception in self.exceptions]
        return form

    @property
    def _most_removed(self) -> int:
        pairs = len(self.schedules) * max(1, len(self.exceptions))
        return min(MOST_REMOVED, MOST_COMPARED // pairs)

    def second_after(self, second: int) -> int | None:
        ahead = [_after(schedule, second) for schedule in self.schedules]
        limit = None
        for _ in range(self._most_removed):
            found = min(ahead)
            if found == _NEVER or (limit is not None and found > limit):
                return None
            removed = self._removed_around(found)
            if removed is None:
                return found
            if limit is None:
                limit = found + LONGEST_SEARCH_SECONDS
            last = removed[1]
            ahead = [
                _after(schedule, last) if at <= last else at
                for schedule, at in zip(self.schedules, ahead, strict=True)
            ]
        return None

    def second_before(self, second: int) -> int | None:
        behind = [_before(schedule, second) for schedule in self.schedules]
        limit = None
        for _ in range(self._most_removed):
            found = max(behind)
            if found == -_NEVER or (limit is not None and found < limit):
                return None
            removed = self._removed_around(found)
            if removed is None:
                return found
            if limit is None:
                limit = found - LONGEST_SEARCH_SECONDS
            first = removed[0]
            behind = [
                _before(schedule, first) if at >= first else at
                for schedule, at in zip(self.schedules, behind, strict=True)
            ]
        return None

    def seconds_of_minute(self, minute: int) -> tuple[int, ...]:
        found: set[int] = set()
        for schedule in self.schedules:
            found.update(schedule.seconds_of_minute(minute))
        if not found:
            return ()
        start = minute * 60
        return tuple(
            second for second in sorted(found) if self._removed_around(start + second) is None
        )

    def has(self, second: int) -> bool:
        if not any(schedule.has(second) for schedule in self.schedules):
            return False
        return self._removed_around(second) is None

    def _removed_around(self, second: int) -> tuple[int, int] | None:
        """The first and last instant of a stretch taken out that holds this one; None if none."""
        for exception in self.exceptions:
            if isinstance(exception, Cron) and exception.covers_minute_of(second):
                rule = exception.rule
                if not rule.has_seconds or (len(rule.seconds) == 60 and exception.has(second)):
                    return _covered_around(exception, second)
            if exception.has(second):
                return second, second
        return None


def _after(schedule: Simple, second: int) -> int:
    found = schedule.second_after(second)
    return _NEVER if found is None else found


def _before(schedule: Simple, second: int) -> int:
    found = schedule.second_before(second)
    return -_NEVER if found is None else found


def _covered_around(exception: Cron, second: int) -> tuple[int, int]:
    """The stretch around a covered instant in which all minutes shown are covered.

    It ends with the day and with a change of the clocks. A search that leaves it at once takes
    steps of a day through what `* * * * *` takes out.
    """
    span = zones.span_at(exception.timezone, second)
    begin, end = span.start, span.end
    if exception.rule.has_seconds:
        # Its instants are taken out, not minutes: the pass of a fold at which it fires has a say.
        begin += max(0, span.before - span.offset) if exception.fold is Fold.FIRST else 0
        end -= max(0, span.offset - span.following) if exception.fold is Fold.SECOND else 0
    wall = second + span.offset
    start_of_day = second - wall % _DAY_SECONDS
    first, last = _runs(exception.rule.text)[wall % _DAY_SECONDS // 60]
    begin, end = max(begin, start_of_day + first * 60), min(end, start_of_day + (last + 1) * 60)
    return begin, end - 1


@lru_cache(maxsize=256)
def _runs(expression: str) -> tuple[tuple[int, int], ...]:
    """For each minute of the day the first and last of the matching ones that it stands among."""
    rule: Expression = compile_expression(expression)
    matching = rule.minutes_of_day
    runs: list[tuple[int, int]] = []
    minute = 0
    while minute < _DAY_MINUTES:
        last = minute
        while last + 1 in matching and minute in matching:
            last += 1
        runs += [(minute, last)] * (last - minute + 1)
        minute = last + 1
    return tuple(runs)
