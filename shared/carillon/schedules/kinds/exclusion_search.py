"""A search, by whole days, for what exceptions leave of a union.

A day is a number of 86,400 bits, one for each second that the clocks show: exceptions are taken out
of it at once. The days that need no search are known for whole months: there are but 28 kinds of
these.
"""

from calendar import monthrange
from collections.abc import Sequence
from datetime import date

from carillon.schedules.base import Fold, Recurrence
from carillon.schedules.cron.days import Days
from carillon.schedules.kinds.at import At
from carillon.schedules.kinds.cron import Cron
from carillon.schedules.kinds.interval import Every
from carillon.schedules.zones import offsets as zones

_DAY = 86_400
_WHOLE_DAY = (1 << _DAY) - 1
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_LAST_DAY = date(9999, 12, 30).toordinal() - _EPOCH_ORDINAL
_KEPT_DAYS = 32
_KEPT_MONTHS = 4_096
_KEPT_PHASES = 4_096


class Exclusion:
    """The instants of `members` that no exception takes out; bounds of the members' ends aside.

    An exception in whole minutes (cron without seconds) takes out the minutes that it matches by
    the clocks as they are shown, and what it would fire itself; every other one its instants.
    """

    def __init__(
        self, members: Sequence[Recurrence], exceptions: Sequence[Recurrence], zone: str
    ) -> None:
        self._zone = zone
        self._members = _Side(members)
        self._exceptions = _Side(exceptions)
        crons = [*self._members.crons, *self._exceptions.crons]
        self._all_days: tuple[Days, ...] = tuple({cron.rule.days: None for cron in crons})
        self._has_years = any(days.years is not None for days in self._all_days)
        steady = [*self._members.steady, *self._exceptions.steady]
        self._has_steady = bool(steady)
        # Before and after these, bounds make days unlike others.
        self._first = max((every.base_second for every in steady), default=-(1 << 60))
        self._last = 1 << 60
        for exception in (*self._exceptions.crons, *self._exceptions.steady):
            self._first = max(self._first, exception.first_second)
            self._last = min(self._last, exception.last_second)
        self._days: dict[tuple[int, int], tuple[int, int]] = {}
        self._is_open: dict[tuple[int, int], bool] = {}
        self._months: dict[tuple[int, int, int, int, int], int] = {}
        self._empty_phases: set[tuple[int, ...]] = set()
        self._nothing = (0, -1)
        self._in_month: tuple[tuple[int, int], list[int]] = ((0, 0), [])

    def after(self, second: int, limit: int) -> int | None:
        """The first instant from `second` to `limit`, both inclusive."""
        begun, nothing = second, self._nothing
        if nothing[0] <= second <= nothing[1]:
            begun, second = nothing[0], nothing[1] + 1
        found = None
        while second <= limit:
            span = self._span_at(second)
            day = (second + span.offset) // _DAY
            if day > _LAST_DAY:
                break
            start, bits, is_plain = self._day(day, span)
            bits >>= second - start
            if bits:
                found = second + (bits & -bits).bit_length() - 1
                break
            # From a day that is like others on to the next of these, not beyond the last of them.
            last = min((self._plain(span)[1] + span.offset) // _DAY, limit // _DAY + 2)
            if is_plain and last > day + 1:
                day = self._open_from(day + 1, last, span.offset) - 1
            second = min((day + 1) * _DAY - span.offset, span.end)
        self._nothing = (begun, (second if found is None else found) - 1)
        return None if found is None or found > limit else found

    def before(self, second: int, limit: int) -> int | None:
        """The last instant from `second` down to `limit`, both inclusive."""
        begun, nothing = second, self._nothing
        if nothing[0] <= second <= nothing[1]:
            begun, second = nothing[1], nothing[0] - 1
        found = None
        while second >= limit:
            span = self._span_at(second)
            day = (second + span.offset) // _DAY
            start, bits, is_plain = self._day(day, span)
            bits &= (1 << (second - start + 1)) - 1
            if bits:
                found = start + bits.bit_length() - 1
                break
            first = max(-((-self._plain(span)[0] - span.offset) // _DAY), limit // _DAY - 1)
            if is_plain and first < day - 1:
                day = self._open_until(day - 1, first, span.offset) + 1
            second = max(day * _DAY - span.offset, span.start) - 1
        self._nothing = ((second if found is None else found) + 1, begun)
        return None if found is None or found < limit else found

    def _span_at(self, second: int) -> zones.Span:
        """The span around an instant, also where a slice of the zone's ends within it."""
        span = zones.span_at(self._zone, second)
        if span.following == span.offset and span.end < 1 << 61:
            later = zones.span_at(self._zone, span.end)
            span = span._replace(end=later.end, following=later.following)
        if span.before == span.offset and span.start > -(1 << 61):
            earlier = zones.span_at(self._zone, span.start - 1)
            span = span._replace(start=earlier.start, before=earlier.before)
        return span

    def _plain(self, span: zones.Span) -> tuple[int, int]:
        """The instants (from, until) within which neither a transition nor a bound matters."""
        low = span.start + abs(span.before - span.offset)
        high = span.end - abs(span.following - span.offset)
        return max(low, self._first + 1), min(high, self._last + 1)

    def _day(self, day: int, span: zones.Span) -> tuple[int, int, bool]:
        """The part of a local time day in a span: where it begins, what is left, and if it is
        plain."""
        midnight = day * _DAY - span.offset
        low, high = self._plain(span)
        if low <= midnight and midnight + _DAY <= high:
            return midnight, self._left_of(day, span.offset), True
        start, end = max(midnight, span.start), min(midnight + _DAY, span.end)
        found = self._members.bits(start, end, span, is_taken_out=False)
        if found:
            found &= ~self._exceptions.bits(start, end, span, is_taken_out=True)
        return start, found, False

    def _left_of(self, day: int, offset: int) -> int:
        """The remainder of a plain day."""
        kind = self._kind_of(day)
        start = day * _DAY - offset
        loose = (*self._members.loose, *self._exceptions.loose)
        phases = None
        if loose and all(isinstance(part, Every) for part in loose):
            phases = (kind, offset, *(_phase(part, start) for part in loose))
            if phases in self._empty_phases:
                return 0
        found, removed = self._of_kind(kind, offset)
        for part in self._members.loose:
            found |= part.bits(start, start + _DAY) & ~removed
        for part in self._exceptions.loose:
            if not found:
                break
            found &= ~part.bits(start, start + _DAY)
        if not found and phases is not None and -1 not in phases:
            if len(self._empty_phases) >= _KEPT_PHASES:
                self._empty_phases.clear()
            self._empty_phases.add(phases)
        for second in self._exceptions.single:
            if start <= second < start + _DAY:
                found &= ~(1 << (second - start))
        return found

    def _kind_of(self, day: int) -> int:
        """The days that match this one, as a number with a bit for each of them."""
        shown = date.fromordinal(day + _EPOCH_ORDINAL)
        month = (shown.year, shown.month)
        # Read and replaced as one: segments and runs ask side by side, in threads.
        known, in_month = self._in_month
        if known != month:
            in_month = [days.in_month(*month) for days in self._all_days]
            self._in_month = month, in_month
        place = shown.day - 1
        return sum((days >> place & 1) << bit for bit, days in enumerate(in_month))

    def _of_kind(self, kind: int, offset: int) -> tuple[int, int]:
        """The remainder and the exclusions of plain days on which the same days match."""
        offset = self._shift(offset)
        known = self._days.get((kind, offset))
        if known is not None:
            return known
        matching = {days for number, days in enumerate(self._all_days) if kind >> number & 1}
        removed = self._exceptions.local_bits(matching, offset, is_taken_out=True)
        left = 0
        if removed != _WHOLE_DAY:
            left = self._members.local_bits(matching, offset, is_taken_out=False) & ~removed
        if len(self._days) >= _KEPT_DAYS:
            self._days.clear()
        self._days[kind, offset] = left, removed
        return left, removed

    def _open_from(self, day: int, last: int, offset: int) -> int:
        """The first plain day of [day, last) that may have something left; `last` if none."""
        while day < last:
            shown = date.fromordinal(day + _EPOCH_ORDINAL)
            days = self._open_days(shown.year, shown.month, offset) >> (shown.day - 1)
            if days:
                return min(day + (days & -days).bit_length() - 1, last)
            day += 32 - shown.day
            day -= date.fromordinal(day + _EPOCH_ORDINAL).day - 1
        return last

    def _open_until(self, day: int, first: int, offset: int) -> int:
        """The last plain day of [first, day] that may have something left; first - 1 if none."""
        while day >= first:
            shown = date.fromordinal(day + _EPOCH_ORDINAL)
            days = self._open_days(shown.year, shown.month, offset) & ((1 << shown.day) - 1)
            if days:
                return max(day - shown.day + days.bit_length(), first - 1)
            day -= shown.day
        return first - 1

    def _open_days(self, year: int, month: int, offset: int) -> int:
        """The plain days of a month that may have something left, the first as the lowest bit."""
        weekday, length = monthrange(year, month)
        key = (year if self._has_years else 0, month, weekday, length, self._shift(offset))
        found = self._months.get(key)
        if found is not None:
            return found
        kinds = {0: (1 << length) - 1}
        for number, days in enumerate(self._all_days):
            matching = days.in_month(year, month)
            inside = {kind | 1 << number: mask & matching for kind, mask in kinds.items()}
            outside = {kind: mask & ~matching for kind, mask in kinds.items()}
            kinds = {kind: mask for kind, mask in (inside | outside).items() if mask}
        found = 0
        for kind, mask in kinds.items():
            if self._is_open_kind(kind, offset):
                found |= mask
        if len(self._months) >= _KEPT_MONTHS:
            self._months.clear()
        self._months[key] = found
        return found

    def _shift(self, offset: int) -> int:
        """Days by the local time are alike whatever the offset, unless intervals are among them."""
        return offset if self._has_steady else 0

    def _is_open_kind(self, kind: int, offset: int) -> bool:
        offset = self._shift(offset)
        is_open = self._is_open.get((kind, offset))
        if is_open is None:
            left, removed = self._of_kind(kind, offset)
            is_open = bool(left) or (bool(self._members.loose) and removed != _WHOLE_DAY)
            if len(self._is_open) >= _KEPT_PHASES:
                self._is_open.clear()
            self._is_open[kind, offset] = is_open
        return is_open


class _Side:
    """The members, or the exceptions, by how their seconds of a day are known.

    Those of a cron are by the local time, `steady` ones are the same on every UTC day, `loose` ones
    are not, `single` is what an `at` gives.
    """

    def __init__(self, parts: Sequence[Recurrence]) -> None:
        self.crons = tuple(part for part in parts if isinstance(part, Cron))
        everies = [part for part in parts if isinstance(part, Every)]
        self.steady = tuple(every for every in everies if _DAY % every.interval_seconds == 0)
        self.loose: tuple[Recurrence, ...] = tuple(
            part for part in parts if not isinstance(part, Cron | At) and part not in self.steady
        )
        self.single = tuple(part.second for part in parts if isinstance(part, At))

    def local_bits(self, matching: set[Days], offset: int, *, is_taken_out: bool) -> int:
        """A whole day of the crons whose days match, and of what is the same on every day."""
        found = 0
        for cron in self.crons:
            if cron.rule.days in matching:
                found |= _bits_of_day(cron, is_taken_out)
                if found == _WHOLE_DAY:
                    return found
        for every in self.steady:
            # Bounds do not matter on plain days, which are all alike.
            interval = every.interval_seconds
            start = 2 * _DAY - offset
            found |= Every(interval, every.base_second % interval).bits(start, start + _DAY)
        return found

    def bits(self, start: int, end: int, span: zones.Span, *, is_taken_out: bool) -> int:
        """All in [start, end), a part of one local day that lies in a span."""
        found = 0
        for cron in self.crons:
            found |= _bits_around(cron, start, end, span, is_taken_out)
        for part in (*self.steady, *self.loose):
            found |= part.bits(start, end)
        for second in self.single:
            if start <= second < end:
                found |= 1 << (second - start)
        return found


def _bits_of_day(cron: Cron, is_taken_out: bool) -> int:
    """The seconds of a day whose local times fire; or that an exception in whole minutes takes
    out."""
    return cron.rule.bits_of_shown_minutes if _covers(cron, is_taken_out) else cron.rule.bits_of_day


def _covers(cron: Cron, is_taken_out: bool) -> bool:
    return is_taken_out and not cron.rule.has_seconds


def _bits_around(cron: Cron, start: int, end: int, span: zones.Span, is_taken_out: bool) -> int:
    """Of [start, end), a part of one local day in a span, also beside a transition."""
    day, second = divmod(start + span.offset, _DAY)
    found = 0
    if cron.rule.matches_day(date.fromordinal(day + _EPOCH_ORDINAL)):
        found = _bits_of_day(cron, is_taken_out) >> second & ((1 << (end - start)) - 1)
    if not _covers(cron, is_taken_out):
        low, high = start, end
        if cron.fold is Fold.FIRST:
            low = max(low, span.start + span.before - span.offset)
        if cron.fold is Fold.SECOND:
            high = min(high, span.end + span.following - span.offset)
        if is_taken_out:
            low, high = max(low, cron.first_second), min(high, cron.last_second + 1)
        if low >= high:
            found = 0
        else:
            found &= ((1 << (high - low)) - 1) << (low - start)
    # What a gap skips may fire at the transition itself.
    if start == span.start and cron.has(start):
        found |= 1
    return found


def _phase(every: Recurrence, start: int) -> int:
    """The first time in a day beginning at an instant at which an interval ends; -1 when bounds
    matter."""
    assert isinstance(every, Every)
    if start <= every.base_second or start + _DAY > every.last_second:
        return -1
    return min((every.base_second - start) % every.interval_seconds, _DAY)
