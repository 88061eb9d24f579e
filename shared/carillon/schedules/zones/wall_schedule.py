"""A schedule by its local times alone: what it would do if no clock were ever changed."""

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import cast

from carillon.schedules.base import DEFAULT_DST, DstRule, Recurrence
from carillon.schedules.kinds.at import At
from carillon.schedules.kinds.cron import Cron
from carillon.schedules.kinds.union import Simple, Union
from carillon.schedules.zones import offsets as zones

_DAY_SECONDS = 86_400


@lru_cache(maxsize=1024)
def nominal_local_times(schedule: Recurrence) -> Recurrence:
    """The local times of a schedule, as a schedule in UTC whose epoch seconds are the local times.

    Cron and a naive `at` are rules of local time already: skipped local times are among them,
    repeated ones count once. Of the others, it is what the clocks show at their instants. The
    bounds of local rules are left out. Without meaning for a fixed delay.
    """
    match schedule:
        case Cron():
            return Cron(schedule.expression)
        case At() if schedule.moment.tzinfo is None:
            return At(schedule.moment.replace(tzinfo=UTC))
        case Union():
            members = tuple(nominal_local_times(member) for member in schedule.schedules)
            exceptions = tuple(nominal_local_times(exception) for exception in schedule.exceptions)
            # Combined asks its members nothing that only these three kinds could answer.
            return Union(
                cast("tuple[Simple, ...]", members), cast("tuple[Simple, ...]", exceptions)
            )
    return ShownLocalTimes(schedule)


@dataclass(frozen=True, slots=True)
class ShownLocalTimes(Recurrence):
    """The clock readings at the occurrences of `schedule`, as epoch seconds, each once."""

    schedule: Recurrence
    timezone: str = "UTC"
    start_at: datetime | None = None
    end_at: datetime | None = None
    dst: DstRule = DEFAULT_DST

    @property
    def text(self) -> str:
        return self.schedule.text

    def second_after(self, second: int) -> int | None:
        zone, local_time = self.schedule.timezone, second
        best = None
        # No offset reaches a day. A local time that a fold repeats lies within a day of its first
        # showing.
        instant = local_time - _DAY_SECONDS
        limit = None
        while limit is None or instant <= limit:
            span = zones.span_at(zone, instant)
            low = max(instant, local_time + 1 - span.offset)
            found = first_from(self.schedule, low)
            if found is not None and found < span.end:
                best = found + span.offset if best is None else min(best, found + span.offset)
                limit = found + _DAY_SECONDS if limit is None else limit
            elif found is None and low <= span.end:
                return best
            instant = span.end
        return best

    def second_before(self, second: int) -> int | None:
        zone, local_time = self.schedule.timezone, second
        best = None
        instant = local_time + _DAY_SECONDS
        limit = None
        while limit is None or instant >= limit:
            span = zones.span_at(zone, instant)
            high = min(instant, local_time - 1 - span.offset)
            found = last_until(self.schedule, high)
            if found is not None and found >= span.start:
                best = found + span.offset if best is None else max(best, found + span.offset)
                limit = found - _DAY_SECONDS if limit is None else limit
            elif found is None and high >= span.start - 1:
                return best
            instant = span.start - 1
        return best

    def seconds_of_minute(self, minute: int) -> tuple[int, ...]:
        local_time = minute * 60
        span = zones.span_at(self.schedule.timezone, local_time - _DAY_SECONDS)
        if span.end <= local_time + _DAY_SECONDS or span.offset % 60:
            return Recurrence.seconds_of_minute(self, minute)
        return self.schedule.seconds_of_minute(minute - span.offset // 60)

    def bits(self, start: int, end: int) -> int:
        zone, found = self.schedule.timezone, 0
        # No offset reaches a day.
        instant = start - _DAY_SECONDS
        while instant < end + _DAY_SECONDS:
            span = zones.span_at(zone, instant)
            low, high = max(span.start, start - span.offset), min(span.end, end - span.offset)
            if low < high:
                found |= self.schedule.bits(low, high) << (low + span.offset - start)
            instant = span.end
        return found

    def has(self, second: int) -> bool:
        return second % 60 in self.seconds_of_minute(second // 60)


def first_from(schedule: Recurrence, second: int) -> int | None:
    """The first occurrence at or after an instant, within the schedule's bounds."""
    found = schedule.second_after(max(second, schedule.first_second) - 1)
    return None if found is None or found > schedule.last_second else found


def last_until(schedule: Recurrence, second: int) -> int | None:
    """The last occurrence at or before an instant, within the schedule's bounds."""
    found = schedule.second_before(min(second, schedule.last_second) + 1)
    return None if found is None or found < schedule.first_second else found
