"""Several schedules as one: their union, without the exceptions."""

from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache

from carillon.schedules.base import DstRule, Recurrence
from carillon.schedules.kinds.at import At
from carillon.schedules.kinds.cron import Cron
from carillon.schedules.kinds.exclusion_search import Exclusion
from carillon.schedules.kinds.interval import Every
from carillon.schedules.zones import offsets as zones

Simple = At | Every | Cron
"""The kinds of schedule that a union can hold."""

LONGEST_SEARCH_SECONDS = 50 * 366 * 86_400
"""A search ends when exceptions have removed everything for this long."""

LONGEST_DRIFTING_SEARCH_SECONDS = 5 * 366 * 86_400
"""The same with intervals that are no whole part of a day: no two days are alike then, so that the
search looks at each."""

_STEPS = 8
"""Up to this many removed instants are passed one by one; then whole days are searched."""

_DAY_SECONDS = 86_400
_NEVER = 1 << 62


@dataclass(frozen=True, slots=True)
class Union(Recurrence):
    """The union of `schedules`, where an instant counts once, without those of `exceptions`.

    An exception in whole minutes (a cron expression without seconds) takes out the minutes that
    it matches by the clocks as they are shown, whatever the DST rule, and what it would fire
    itself; every other exception takes out its own instants. Zone, start, end and DST rule are
    those of `schedules`: raises ValueError where these disagree, or are none. An occurrence that
    comes only after 50 years of which all is taken out is not found, unless an `at` gives it; nor
    after 5 years, if an interval is no whole part of a day.
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

    def second_after(self, second: int) -> int | None:
        ahead = [_after(schedule, second) for schedule in self.schedules]
        for _ in range(_STEPS):
            found = min(ahead)
            if found == _NEVER:
                return None
            if not self._removes(found):
                return found
            ahead = [
                _after(schedule, found) if at == found else at
                for schedule, at in zip(self.schedules, ahead, strict=True)
            ]
        instants = [at for at in self._instants if at > found and not self._removes(at)]
        limit = min([found + self._longest_search, self.last_second + _DAY_SECONDS, *instants])
        left = _exclusion_of(self).after(found + 1, limit)
        return min(instants, default=None) if left is None else left

    def second_before(self, second: int) -> int | None:
        behind = [_before(schedule, second) for schedule in self.schedules]
        for _ in range(_STEPS):
            found = max(behind)
            if found == -_NEVER:
                return None
            if not self._removes(found):
                return found
            behind = [
                _before(schedule, found) if at == found else at
                for schedule, at in zip(self.schedules, behind, strict=True)
            ]
        instants = [at for at in self._instants if at < found and not self._removes(at)]
        limit = max([found - self._longest_search, self.first_second - _DAY_SECONDS, *instants])
        left = _exclusion_of(self).before(found - 1, limit)
        return max(instants, default=None) if left is None else left

    def seconds_of_minute(self, minute: int) -> tuple[int, ...]:
        found: set[int] = set()
        for schedule in self.schedules:
            found.update(schedule.seconds_of_minute(minute))
        if not found:
            return ()
        start = minute * 60
        return tuple(second for second in sorted(found) if not self._removes(start + second))

    def has(self, second: int) -> bool:
        if not any(schedule.has(second) for schedule in self.schedules):
            return False
        return not self._removes(second)

    @property
    def _longest_search(self) -> int:
        is_slow = any(map(is_drifting, (*self.schedules, *self.exceptions)))
        return LONGEST_DRIFTING_SEARCH_SECONDS if is_slow else LONGEST_SEARCH_SECONDS

    @property
    def _instants(self) -> list[int]:
        return [schedule.second for schedule in self.schedules if isinstance(schedule, At)]

    def _removes(self, second: int) -> bool:
        """True if an exception takes an instant out."""
        for exception in self.exceptions:
            if (
                isinstance(exception, Cron)
                and not exception.rule.has_seconds
                and exception.covers_minute_of(second)
            ):
                return True
            if exception.has(second):
                return True
        return False


def is_drifting(schedule: Simple) -> bool:
    """True for an interval that is no whole part of a day."""
    return isinstance(schedule, Every) and _DAY_SECONDS % schedule.interval_seconds != 0


def _after(schedule: Simple, second: int) -> int:
    found = schedule.second_after(second)
    return _NEVER if found is None else found


def _before(schedule: Simple, second: int) -> int:
    found = schedule.second_before(second)
    return -_NEVER if found is None else found


# The days are kept with it: few, namely those being searched now.
@lru_cache(maxsize=32)
def _exclusion_of(combined: Union) -> Exclusion:
    members = [
        schedule
        for schedule in combined.schedules
        if not isinstance(schedule, At) and schedule not in combined.exceptions
    ]
    return Exclusion(members, combined.exceptions, combined.timezone)


zones.when_cleared(_exclusion_of.cache_clear)
