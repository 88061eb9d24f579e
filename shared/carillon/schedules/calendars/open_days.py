"""A schedule under a calendar: occurrences on closed days are left out, or moved to open ones."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime

from carillon.schedules.base import (
    FIRST_SECOND,
    LAST_SECOND,
    Derived,
    Fold,
    Gap,
    seconds_down,
)
from carillon.schedules.calendars.closed_days import MOST_SHIFTED_DAYS, CalendarRule, ClosedDays
from carillon.schedules.kinds.interval import Delay
from carillon.schedules.zones import offsets as zones
from carillon.schedules.zones.wall_schedule import first_from, last_until, nominal_local_times

_DAY_SECONDS = 86_400
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_LAST_LOCAL = LAST_SECOND + _DAY_SECONDS
_REACH_SECONDS = (MOST_SHIFTED_DAYS + 2) * _DAY_SECONDS
_SEARCHED_DAYS = (1, 40, 400, 50 * 366)
"""The reach of the first search ahead, and of the later ones: a near find makes a far search
needless."""


@dataclass(frozen=True, slots=True)
class OnOpenDays(Derived):
    """The occurrences of `base` whose day, local to its zone, is open; and by `rule` those moved.

    A moved occurrence keeps its nominal local time, whatever the clocks did on the closed day, and
    fires once on the new one: at the first pass of a repeated hour unless the DST rule says second;
    in a gap at the transition, or not at all when the rule says skip. Several at one instant are
    one occurrence. Bounds hold for the nominal times, before moving: what is moved may lie up to 31
    days outside of `start_at` and `end_at`. Where 31 days in a row are closed, or nothing comes in
    50 years, there is no occurrence.

    The occurrences of a fixed delay follow from runs, of which each takes the next open day: also
    by the rule of the previous one, where that lies in the past. Only the runs know those that are
    to be skipped: `next` yields them.
    """

    closed: ClosedDays
    rule: CalendarRule

    @property
    def first_second(self) -> int:
        early = _REACH_SECONDS if self.rule is CalendarRule.PREVIOUS_BUSINESS_DAY else 0
        return max(FIRST_SECOND, self.base.first_second - early)

    @property
    def last_second(self) -> int:
        late = _REACH_SECONDS if self.shifts else 0
        return min(LAST_SECOND, self.base.last_second + late)

    @property
    def shifts(self) -> bool:
        """True if occurrences are moved, not left out."""
        return self.rule is not CalendarRule.SKIP

    def second_after(self, second: int) -> int | None:
        return self._after(second, self.last_second)

    def between(self, after: datetime, until: datetime) -> Iterator[datetime]:
        """As of any other; but nothing beyond `until` is searched: the next may be years ahead."""
        second = max(seconds_down(after), self.first_second - 1)
        end = min(seconds_down(until), self.last_second)
        while second < end:
            found = self._after(second, end)
            if found is None or found > end:
                return
            yield datetime.fromtimestamp(found, UTC)
            second = found

    def _after(self, second: int, end: int) -> int | None:
        """The first one after an epoch second; one beyond `end` need not be found."""
        if isinstance(self.base, Delay):
            return self._after_delay(self.base, second)
        if self.closed.is_always:
            return None
        near = nominal_local_times(self.base).second_after(second - _REACH_SECONDS)
        if near is None:
            return None
        start = max(second, near - _REACH_SECONDS)
        for days in _SEARCHED_DAYS:
            limit = min(start + days * _DAY_SECONDS, end)
            staying = self._staying_after(second, limit)
            moved = self._moved_after(second, start, limit if staying is None else staying)
            if staying is not None or moved is not None or limit == end:
                return staying if moved is None else moved
        return None

    def second_before(self, second: int) -> int | None:
        if isinstance(self.base, Delay) or self.closed.is_always:
            return None
        near = nominal_local_times(self.base).second_before(second + _REACH_SECONDS)
        if near is None:
            return None
        start, end = min(second, near + _REACH_SECONDS), self.first_second
        for days in _SEARCHED_DAYS:
            limit = max(start - days * _DAY_SECONDS, end)
            staying = self._staying_before(second, limit)
            moved = self._moved_before(second, start, limit if staying is None else staying)
            if staying is not None or moved is not None or limit == end:
                return staying if moved is None else moved
        return None

    def seconds_of_minute(self, minute: int) -> tuple[int, ...]:
        start = minute * 60
        found = {
            second for second in self.base.seconds_of_minute(minute) if self._stays(start + second)
        }
        found.update(landing - start for landing, _ in self._landings(start, start + 60))
        return tuple(sorted(found))

    def has(self, second: int) -> bool:
        return second % 60 in self.seconds_of_minute(second // 60)

    def moved_from(self, fire_at: datetime) -> tuple[date, ...]:
        """The closed days from which occurrences were moved to this one, ascending.

        None for a fixed delay: only its runs know where they came from.
        """
        second = seconds_down(fire_at)
        days = {source for _, source in self._landings(second, second + 1)}
        return tuple(_date_of(day) for day in sorted(days))

    def _after_delay(self, base: Delay, second: int) -> int | None:
        found = base.second_after(second)
        if found is None or found > base.last_second or not self.shifts:
            return found
        if self.closed.is_always:
            return None
        local_time = found + zones.offset_at(self.timezone, found)
        day, time = divmod(local_time, _DAY_SECONDS)
        if not self._is_closed(day):
            return found
        earlier = range(day - 1, day - 1 - MOST_SHIFTED_DAYS, -1)
        later = range(day + 1, day + _SEARCHED_DAYS[-1])
        previous_first = self.rule is CalendarRule.PREVIOUS_BUSINESS_DAY
        for days in (earlier, later) if previous_first else (later,):
            target = next((day for day in days if not self._is_closed(day)), None)
            landing = None if target is None else self._landing(target * _DAY_SECONDS + time)
            if landing is not None and landing > second:
                return landing
        return None

    def _staying_after(self, second: int, limit: int) -> int | None:
        """The first occurrence in (second, limit] that its own day keeps."""
        while (found := first_from(self.base, second + 1)) is not None and found <= limit:
            if self._stays(found):
                return found
            second = self._same_day_around(found)[1]
        return None

    def _staying_before(self, second: int, limit: int) -> int | None:
        """The last occurrence in [limit, second) that its own day keeps."""
        while (found := last_until(self.base, second - 1)) is not None and found >= limit:
            if self._stays(found):
                return found
            second = min(found, self._same_day_around(found)[0])
        return None

    def _stays(self, second: int) -> bool:
        """True if an occurrence of the base is on an open day, and so remains where it is."""
        span = zones.span_at(self.timezone, second)
        local_time = second + span.offset
        skipped = second + span.before
        if (
            second == span.start
            and skipped // _DAY_SECONDS < local_time // _DAY_SECONDS
            and self.shifts
        ):
            # The clocks skip midnight, as in Nuuk: what fires here may belong to the day before.
            return any(
                next(self._local_times_between(low, high), None) is not None
                for day, low, high in _days_between(skipped, local_time + 1)
                if not self._is_closed(day)
            )
        return not self._is_closed(local_time // _DAY_SECONDS)

    def _same_day_around(self, second: int) -> tuple[int, int]:
        """The first and last instant of a stretch around this one that shows a closed day.

        Of an open day, just the instant: what does not stay there belongs to the day before.
        """
        span = zones.span_at(self.timezone, second)
        day, time = divmod(second + span.offset, _DAY_SECONDS)
        if not self._is_closed(day):
            return second, second
        midnight = second - time
        return max(span.start + 1, midnight), min(span.end, midnight + _DAY_SECONDS) - 1

    def _moved_after(self, second: int, start: int, limit: int) -> int | None:
        """The first occurrence in (second, limit] that was moved; none lies before `start`."""
        if not self.shifts:
            return None
        span = zones.span_at(self.timezone, second)
        # Walls up to this one land at `second` or before, whichever of two passes is theirs.
        passed = min(second + span.offset, span.end + span.following - 1)
        first = max(passed + 1, start - _DAY_SECONDS) // _DAY_SECONDS
        for target in range(first, limit // _DAY_SECONDS + 2):
            landings = [
                landing
                for source in self._sources(target)
                for landing in self._first_landing(source, target, passed + 1, second)
            ]
            if landings:
                found = min(landings)
                return found if found <= limit else None
        return None

    def _moved_before(self, second: int, start: int, limit: int) -> int | None:
        """The last occurrence in [limit, second) that was moved; none lies after `start`."""
        if not self.shifts:
            return None
        span = zones.span_at(self.timezone, second - 1)
        # Walls from this one on land at `second` or later, whichever of two passes is theirs.
        ahead = max(second + span.offset, span.start + span.before)
        last = min(ahead - 1, start + _DAY_SECONDS) // _DAY_SECONDS
        for target in range(last, limit // _DAY_SECONDS - 2, -1):
            landings = [
                landing
                for source in self._sources(target)
                for landing in self._last_landing(source, target, ahead, second)
            ]
            if landings:
                found = max(landings)
                return found if found >= limit else None
        return None

    def _first_landing(self, source: int, target: int, low: int, second: int) -> Iterator[int]:
        """The first instant after `second` of those moved from one day to another, if any.

        `low`: local times on the target day before it need no search.
        """
        shift = (target - source) * _DAY_SECONDS
        low = max(source * _DAY_SECONDS, low - shift)
        for local_time in self._local_times_between(low, (source + 1) * _DAY_SECONDS):
            landing = self._landing(local_time + shift)
            if landing is not None and landing > second:
                yield landing
                return

    def _last_landing(self, source: int, target: int, high: int, second: int) -> Iterator[int]:
        """The last instant before `second` of those moved from one day to another, if any."""
        shift = (target - source) * _DAY_SECONDS
        first, last = self._bounds()
        first = max(first, source * _DAY_SECONDS)
        local_time: int | None = min((source + 1) * _DAY_SECONDS, high - shift, last + 1)
        local_times = nominal_local_times(self.base)
        while (
            local_time is not None
            and (local_time := local_times.second_before(local_time)) is not None
        ):
            if local_time < first:
                return
            landing = self._landing(local_time + shift)
            if landing is not None and landing < second:
                yield landing
                return

    def _landings(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """The places in [start, end) where moved occurrences fire, each with the day it comes
        from."""
        if not self.shifts:
            return
        for low, high in self._local_times_reached(start, end):
            for target, first, last in _days_between(low, high):
                for source in self._sources(target):
                    shift = (target - source) * _DAY_SECONDS
                    for local_time in self._local_times_between(first - shift, last - shift):
                        landing = self._landing(local_time + shift)
                        if landing is not None and start <= landing < end:
                            yield landing, source

    def _local_times_reached(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """The local times (from, until) that clocks show in [start, end), and those they skip
        there."""
        while start < end:
            span = zones.span_at(self.timezone, start)
            skips = start == span.start and span.before < span.offset
            stop = min(end, span.end)
            yield start + (span.before if skips else span.offset), stop + span.offset
            start = stop

    def _local_times_between(self, low: int, high: int) -> Iterator[int]:
        """The base's nominal local times low <= w < high, ascending."""
        local_times = nominal_local_times(self.base)
        first, last = self._bounds()
        if not low % 60 and high == low + 60:
            found = (low + second for second in local_times.seconds_of_minute(low // 60))
            yield from (local_time for local_time in found if first <= local_time <= last)
            return
        low, high = max(low, first), min(high, last + 1)
        local_time = local_times.second_after(low - 1)
        while local_time is not None and local_time < high:
            yield local_time
            local_time = local_times.second_after(local_time)

    def _bounds(self) -> tuple[int, int]:
        """The first and last local time that the clocks reach between the base's start and end."""
        first = 0 if self.start_at is None else self._latest_local(self.base.first_second - 1) + 1
        last = _LAST_LOCAL if self.end_at is None else self._latest_local(self.base.last_second)
        return first, last

    def _latest_local(self, second: int) -> int:
        """The latest local time that the clocks have reached by an instant."""
        span = zones.span_at(self.timezone, second)
        return max(second + span.offset, span.start + span.before - 1)

    def _sources(self, target: int) -> Iterator[int]:
        """The closed days whose occurrences are moved to a day."""
        if self._is_closed(target) or isinstance(self.base, Delay):
            return
        step = 1 if self.rule is CalendarRule.PREVIOUS_BUSINESS_DAY else -1
        for distance in range(1, MOST_SHIFTED_DAYS + 1):
            day = target + step * distance
            if not self._is_closed(day):
                return
            yield day

    def _landing(self, local_time: int) -> int | None:
        """The instant at which a moved occurrence fires; None when the DST rule leaves it out."""
        reached = zones.first_reached(self.timezone, local_time)
        if reached + zones.offset_at(self.timezone, reached) != local_time:
            return None if self.dst.gap is Gap.SKIP else reached
        if self.dst.fold is Fold.SECOND:
            return zones.instant_of(self.timezone, local_time, second_pass=True)
        return reached

    def _is_closed(self, day: int) -> bool:
        return _date_of(day) in self.closed


def _date_of(day: int) -> date:
    return date.fromordinal(day + _EPOCH_ORDINAL)


def _days_between(low: int, high: int) -> Iterator[tuple[int, int, int]]:
    """The days of local times low <= w < high, each with the part (from, until) that lies in it."""
    for day in range(low // _DAY_SECONDS, (high - 1) // _DAY_SECONDS + 1):
        yield day, max(low, day * _DAY_SECONDS), min(high, (day + 1) * _DAY_SECONDS)
