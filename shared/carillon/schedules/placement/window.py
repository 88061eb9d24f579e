"""The shortest time between two occurrences of a schedule."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date
from functools import lru_cache, reduce
from itertools import chain, combinations, count, pairwise
from math import gcd
from operator import or_

from carillon.errors import InvalidFieldError, quoted
from carillon.schedules.base import DstRule, Fold, Gap, Recurrence, seconds_down
from carillon.schedules.calendars.open_days import OnOpenDays
from carillon.schedules.cron.expression import Expression
from carillon.schedules.durations import format_duration, parse_duration
from carillon.schedules.kinds.at import At
from carillon.schedules.kinds.cron import Cron
from carillon.schedules.kinds.interval import Delay, Every
from carillon.schedules.kinds.union import Simple, Union
from carillon.schedules.placement.slots import FILED_YEARS, shape_of
from carillon.schedules.zones import offsets as zones

_DAY_SECONDS = 86_400
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_FIRST_DAY = date(FILED_YEARS.start, 1, 1).toordinal() - _EPOCH_ORDINAL


def shortest_gap_seconds(schedule: Recurrence) -> int | None:
    """The shortest time between two occurrences, DST included; None when there is but one.

    Measured over 2024-2060, without the schedule's start and end. Exceptions and calendars only
    make gaps longer, so they do not matter here, nor do the days to which a calendar moves
    occurrences. Exact for a single schedule, and for a union of crons; a lower bound for one with
    intervals, whose next coincidence with other members may be decades away. For a fixed delay the
    delay.
    """
    match schedule:
        case At():
            return None
        case Every():
            return schedule.interval_seconds
        case Delay():
            return schedule.delay_seconds
        case OnOpenDays():
            return shortest_gap_seconds(schedule.base)
        case Cron():
            return _shortest_of_crons((_unbounded(schedule),))
        case Union():
            return _shortest_of_union(schedule.schedules)
    raise TypeError(f"{type(schedule).__name__} is no schedule")


def shortest_shifted_gap(schedule: Recurrence) -> int | None:
    """The shortest time between two occurrences when a calendar may move each to any other day.

    A lower bound: that of times of day which all fire on every day, under a DST rule that leaves
    out nothing of what the schedule's own or the calendar's would fire.
    """
    base = schedule.base if isinstance(schedule, OnOpenDays) else schedule
    if isinstance(base, At | Delay):
        return shortest_gap_seconds(base)
    members = base.schedules if isinstance(base, Union) else (base,)
    folds = {member.fold for member in members if isinstance(member, Cron)}
    # What is moved fires at the first pass by default, and after a gap unless the rule says skip.
    fold = Fold.BOTH if Fold.BOTH in folds else base.dst.fold or Fold.FIRST
    dst = DstRule(base.dst.gap or Gap.RUN_AFTER, fold)
    daily = [_on_every_day(member, dst) for member in members]
    gaps = [_shortest_of_union(daily)]
    transitions = [second for second, _, _ in shape_of(base.timezone).gaps]
    gaps += [
        _shortest_between(member, transitions)
        for member in daily
        if transitions and isinstance(member, Every)
    ]
    return min((gap for gap in gaps if gap is not None), default=None)


def _on_every_day(member: Recurrence, dst: DstRule) -> Cron | Every:
    """A schedule of the times of day of another one, whatever its days are."""
    zone = member.timezone
    match member:
        case Cron():
            rule = member.rule
            fields = (rule.seconds, rule.minutes, rule.hours)
        case At():
            local_time = member.second + zones.offset_at(zone, member.second)
            if member.moment.tzinfo is None:
                local_time = seconds_down(member.moment.replace(tzinfo=UTC))
            fields = ((local_time % 60,), (local_time // 60 % 60,), (local_time // 3600 % 24,))
        case Every():
            # Moved by days, and by what one offset of the zone is more than another.
            offsets = sorted(shape_of(zone).offsets)
            step = gcd(
                member.interval_seconds, _DAY_SECONDS, *(each - offsets[0] for each in offsets)
            )
            return Every(step, member.base_second % step, zone)
        case _:
            raise TypeError(f"{type(member).__name__} is never moved")
    texts = (",".join(map(str, numbers)) for numbers in fields)
    return Cron(f"{' '.join(texts)} * * *", zone, dst=dst)


def _shortest_of_union(members: Sequence[Simple]) -> int | None:
    crons = [member for member in members if isinstance(member, Cron)]
    everies = [member for member in members if isinstance(member, Every)]
    ats = sorted({member.second for member in members if isinstance(member, At)})
    gaps = [every.interval_seconds for every in everies]
    gaps += [later - earlier for earlier, later in pairwise(ats)]
    gaps += [gap for one, other in combinations(everies, 2) for gap in _gaps_of_everies(one, other)]
    gaps += [gap for at in ats for gap in _gaps_beside(at, [*crons, *everies])]
    if crons:
        bare = tuple(_unbounded(cron) for cron in crons)
        among_crons = _shortest_of_crons(bare)
        gaps += [] if among_crons is None else [among_crons]
        seconds = _utc_seconds_of_day(bare) if everies else frozenset[int]()
        gaps += [_shortest_between(every, seconds) for every in everies]
    return min(gaps, default=None)


def _gaps_of_everies(one: Every, other: Every) -> Iterator[int]:
    """The shortest positive distance that multiples of two intervals can come to."""
    step = gcd(one.interval_seconds, other.interval_seconds)
    distance = (one.base_second - other.base_second) % step
    yield min(distance, step - distance) or step


def _shortest_between(every: Every, seconds: Iterable[int]) -> int:
    """The shortest positive distance of an interval's multiples from seconds of the UTC day."""
    step = gcd(every.interval_seconds, _DAY_SECONDS)
    distances = {(second - every.base_second) % step for second in seconds}
    return min(min(distance, step - distance) or step for distance in distances)


def _gaps_beside(second: int, members: Iterable[Cron | Every]) -> Iterator[int]:
    """The distance from one instant to the nearest other occurrences."""
    for member in members:
        before, after = member.second_before(second), member.second_after(second)
        if before is not None:
            yield second - before
        if after is not None:
            yield after - second


def _unbounded(cron: Cron) -> Cron:
    return Cron(cron.expression, cron.timezone, dst=cron.dst)


def _utc_seconds_of_day(crons: Sequence[Cron]) -> frozenset[int]:
    """The seconds of the UTC day at which crons of one zone can fire, transitions included."""
    shape = shape_of(crons[0].timezone)
    local_times = {local_time for cron in crons for local_time in cron.rule.seconds_of_day}
    shown = {
        (local_time - offset) % _DAY_SECONDS
        for local_time in local_times
        for offset in shape.offsets
    }
    return frozenset(shown | {second for second, _, _ in shape.gaps})


@lru_cache(maxsize=1024)
def _shortest_of_crons(crons: tuple[Cron, ...]) -> int | None:
    """Of the union of crons in one zone, under one DST rule, without bounds."""
    on_the_clock = _shortest_on_the_clock([cron.rule for cron in crons])
    if on_the_clock is None or on_the_clock == 1 or crons[0].timezone == "UTC":
        return on_the_clock
    union = Union(crons)
    around = (_gaps_around(transition, union) for transition in _different_transitions(crons))
    return min(chain([on_the_clock], *around))


zones.when_cleared(_shortest_of_crons.cache_clear)


def _shortest_on_the_clock(rules: Sequence[Expression]) -> int | None:
    """The shortest time between two local times, as if no clock were ever changed."""
    times: dict[tuple[bool, ...], _TimesOfDay] = {}
    meetings: set[tuple[tuple[bool, ...], int, tuple[bool, ...]]] = set()
    last: tuple[tuple[bool, ...], int] | None = None
    for day in _days_of(rules):
        matching = tuple(rule.days.next_from(day) == day for rule in rules)
        if matching not in times:
            chosen = (rule for rule, matches in zip(rules, matching, strict=True) if matches)
            times[matching] = _TimesOfDay.of(reduce(or_, (rule.bits_of_day for rule in chosen)))
        if last is not None:
            meetings.add((last[0], day - last[1], matching))
        last = (matching, day)
    found = [each.shortest for each in times.values() if each.shortest is not None]
    found += [
        days * _DAY_SECONDS + times[later].first - times[earlier].last
        for earlier, days, later in meetings
    ]
    return min(found, default=None)


_FEW = 500
"""Seconds of a day that are listed to compare neighbours. Two of more than these are close:
shifting all bits finds how close in a few steps."""


@dataclass(frozen=True, slots=True)
class _TimesOfDay:
    """The first and the last of the seconds of a day, and the shortest time between two of them."""

    first: int
    last: int
    shortest: int | None

    @classmethod
    def of(cls, bits: int) -> "_TimesOfDay":
        """Of those whose bits are set. Lists of them for hundreds of kinds of days would take
        hundreds of megabytes."""
        seconds = list(_places(bits)) if bits.bit_count() <= _FEW else []
        shortest = min((later - earlier for earlier, later in pairwise(seconds)), default=None)
        if not seconds:
            shortest = next(gap for gap in count(1) if bits & bits >> gap)
        return cls((bits & -bits).bit_length() - 1, bits.bit_length() - 1, shortest)


def _places(bits: int) -> Iterator[int]:
    """The places of the bits that are set, ascending."""
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest


def _days_of(rules: Sequence[Expression]) -> Iterator[int]:
    """The days on which any of the rules matches: of the indexed years and of the rules' own.

    Beyond these as far as the second one, for a 29 February on a Monday.
    """
    own_years = [rule.days.years[-1] + 1 for rule in rules if rule.days.years]
    end = date(max(FILED_YEARS.stop, *own_years, 0), 1, 1).toordinal() - _EPOCH_ORDINAL
    if all(rule.days.is_every_day for rule in rules):
        end = _FIRST_DAY
    count = 0
    day: int | None = _FIRST_DAY - 1
    while day is not None:
        day = min(
            (found for rule in rules if (found := rule.days.next_from(day + 1)) is not None),
            default=None,
        )
        if day is None or (day >= end and count >= 2):
            return
        count += 1
        yield day


def _different_transitions(crons: Sequence[Cron]) -> Iterable[zones.Transition]:
    """The transitions of the indexed years; alike ones once, where all that matters is near.

    That is so when something matches on each of the days around: no gap is then longer than they.
    """
    found: dict[tuple[object, ...], zones.Transition] = {}
    for year in FILED_YEARS:
        for transition in zones.transitions(crons[0].timezone, year):
            day = transition.second // _DAY_SECONDS
            matching = [
                tuple(cron.rule.days.next_from(near) == near for cron in crons)
                for near in range(day - 2, day + 3)
            ]
            time = transition.second % _DAY_SECONDS
            if all(any(matches) for matches in matching):
                found[(time, transition.before, transition.after, *matching)] = transition
            else:
                found[transition] = transition
    return found.values()


def _gaps_around(transition: zones.Transition, union: Union) -> Iterator[int]:
    """Those of occurrences between which a transition may lie."""
    reach = abs(transition.after - transition.before)
    earlier = union.second_before(transition.second - reach)
    if earlier is None:
        earlier = union.second_after(transition.second - reach - 1)
    while earlier is not None and earlier <= transition.second + reach:
        later = union.second_after(earlier)
        if later is not None:
            yield later - earlier
        earlier = later


__all__ = [
    "Window",
    "parse_window",
    "shortest_gap_seconds",
    "shortest_shifted_gap",
    "spread_seconds",
]

LONGEST_WINDOW_SECONDS = 86_400

_PERCENT = re.compile(r"(\d{1,4})\s*%", re.ASCII)


@dataclass(frozen=True, slots=True)
class Window:
    """The range of jitter offsets: whole seconds, or a percentage of the interval.

    Raises InvalidFieldError on `window` outside of 1 s to 24 h, or 1 to 100 percent, and
    ValueError when it is not exactly one of the two.
    """

    seconds: int | None = None
    percent: int | None = None

    def __post_init__(self) -> None:
        if (self.seconds is None) is (self.percent is None):
            raise ValueError("a window is either seconds or a percentage")
        if self.seconds is not None and not 1 <= self.seconds <= LONGEST_WINDOW_SECONDS:
            longest = format_duration(LONGEST_WINDOW_SECONDS)
            shown = format_duration(max(0, self.seconds))
            raise InvalidFieldError("window", f"{shown} is no window: use 1s to {longest}")
        if self.percent is not None and not 1 <= self.percent <= 100:
            raise InvalidFieldError("window", f"{self.percent}% is no window: use 1% to 100%")

    @property
    def text(self) -> str:
        """`15m` or `50%`; `parse_window` of it gives an equal value."""
        if self.seconds is None:
            return f"{self.percent}%"
        return format_duration(self.seconds)


def parse_window(text: str) -> Window:
    """The window of a duration (`15m`, `PT15M`) or of a percentage of the interval (`50%`).

    Raises InvalidFieldError on `window`: 1s to 24h, or 1% to 100%.
    """
    stripped = text.strip()
    if not stripped.endswith("%"):
        return Window(seconds=parse_duration(stripped, "window"))
    match = _PERCENT.fullmatch(stripped)
    if match is None:
        raise InvalidFieldError("window", f"{quoted(text)} is no percentage: use 1% to 100%")
    return Window(percent=int(match[1]))


def spread_seconds(
    window: Window, schedule: Recurrence, fraction: float, *, shifts: bool = False
) -> int:
    """The offset of the job whose place in the window is `fraction`, in [0, 1).

    One constant for all occurrences, so that it can be indexed: it is measured by the shortest gap
    between two of them, and never reaches the next nominal time; nor where the schedule `shifts`,
    that is where a calendar may move its occurrences to any day. Raises InvalidFieldError on
    `window` for a percentage of a schedule without an interval.
    """
    gap = shortest_shifted_gap(schedule) if shifts else shortest_gap_seconds(schedule)
    if window.seconds is not None:
        room = float(window.seconds if gap is None else min(window.seconds, gap))
    elif gap is not None:
        room = gap * (window.percent or 0) / 100
    else:
        raise InvalidFieldError(
            "window",
            f"{window.text} of what? The schedule has but one occurrence, so that there is no "
            'interval: use a duration as "15m"',
        )
    offset = int(fraction * room)
    # Rounding must not carry a fraction just below 1 to the next occurrence.
    return offset if gap is None else min(offset, gap - 1)
