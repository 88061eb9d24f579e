"""The minutes of the UTC day in which a schedule can fire, whatever its zone's clocks do."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2s
from math import gcd

from carillon.schedules.dst import Gap
from carillon.schedules.kinds.at import At
from carillon.schedules.kinds.cron import Cron
from carillon.schedules.kinds.interval import Every
from carillon.schedules.zones import offsets as zones

FILED_YEARS = range(2024, 2061)
"""Years whose offsets and transitions are taken into account; the rules in force today repeat
themselves, so that later years bring no others."""

_DAY = 1440
_DAY_SECONDS = 86_400
_EVERY_MINUTE = frozenset(range(_DAY))


@dataclass(frozen=True, slots=True)
class ZoneShape:
    """What a zone's clocks do in the filed years, as far as filing depends on it.

    `offsets` are in seconds; `gaps` are (second of the UTC day, offset before, offset after), one
    of each kind.
    """

    offsets: frozenset[int]
    gaps: frozenset[tuple[int, int, int]]


@lru_cache(maxsize=1024)
def shape_of(zone: str) -> ZoneShape:
    changes = [change for year in FILED_YEARS for change in zones.transitions(zone, year)]
    first = zones.offset_at(zone, zones.year_start(FILED_YEARS.start))
    return ZoneShape(
        frozenset({first, *(change.after for change in changes)}),
        frozenset(
            (change.second % _DAY_SECONDS, change.before, change.after)
            for change in changes
            if change.after > change.before
        ),
    )


@lru_cache(maxsize=1024)
def digest_of_zone(zone: str) -> str:
    """Eight hexadecimal digits that change when schedules of the zone may have to be refiled."""
    shape = shape_of(zone)
    text = f"{sorted(shape.offsets)} {sorted(shape.gaps)}"
    return blake2s(text.encode(), digest_size=4).hexdigest()


zones.when_cleared(shape_of.cache_clear)
zones.when_cleared(digest_of_zone.cache_clear)


def minutes_of(schedule: At | Every | Cron, spread_seconds: int, rolls: bool) -> frozenset[int]:
    """The minutes of the UTC day (0-1439) that hold every effective time of a schedule.

    Effective times lie `spread_seconds` after the nominal ones. If it `rolls`, any of them may be
    moved by whole local days. A naive `at` is taken for a wall time on any day.
    """
    match schedule:
        case Cron():
            return _minutes_of_cron(schedule, spread_seconds, rolls)
        case Every():
            return _minutes_of_every(schedule, spread_seconds, rolls)
        case At():
            return _minutes_of_at(schedule, spread_seconds, rolls)


def _minutes_of_cron(schedule: Cron, spread_seconds: int, rolls: bool) -> frozenset[int]:
    shape = shape_of(schedule.timezone)
    walls = schedule.rule.minutes_of_day
    # Fields are independent: every matching minute has the same seconds.
    shifts = {(second + spread_seconds) // 60 for second in schedule.rule.seconds}
    minutes = {
        ((wall * 60 - offset) // 60 + shift) % _DAY
        for offset in shape.offsets
        for wall in walls
        for shift in shifts
    }
    if schedule.gap is Gap.RUN_AFTER or _moved_run_after(schedule, rolls):
        minutes |= _gap_minutes(shape, [wall * 60 for wall in walls], spread_seconds)
    return frozenset(minutes)


def _minutes_of_every(schedule: Every, spread_seconds: int, rolls: bool) -> frozenset[int]:
    """By the seconds of the UTC day that multiples of the interval can ever reach."""
    step = gcd(schedule.interval_seconds, _DAY_SECONDS)
    if step <= 60:
        return _EVERY_MINUTE
    reached = range(schedule.base_second % step, _DAY_SECONDS, step)
    return _minutes_of_seconds(schedule, reached, spread_seconds, rolls)


def _minutes_of_at(schedule: At, spread_seconds: int, rolls: bool) -> frozenset[int]:
    if schedule.moment.tzinfo is not None:
        return _minutes_of_seconds(schedule, [schedule.second], spread_seconds, rolls)
    time = schedule.moment.time()
    wall = time.hour * 3600 + time.minute * 60 + time.second
    shape = shape_of(schedule.timezone)
    minutes = {(wall - offset + spread_seconds) // 60 % _DAY for offset in shape.offsets}
    if _moved_run_after(schedule, rolls):
        minutes |= _gap_minutes(shape, [wall], spread_seconds)
    return frozenset(minutes)


def _minutes_of_seconds(
    schedule: At | Every, seconds: Iterable[int], spread_seconds: int, rolls: bool
) -> frozenset[int]:
    """Of instants, given by their seconds of the UTC day."""
    if not rolls:
        return frozenset((second + spread_seconds) // 60 % _DAY for second in seconds)
    # The wall time of one day is kept on another, which may have another offset.
    shape = shape_of(schedule.timezone)
    walls = {second + offset for second in seconds for offset in shape.offsets}
    minutes = {
        (wall - offset + spread_seconds) // 60 % _DAY for wall in walls for offset in shape.offsets
    }
    if _moved_run_after(schedule, rolls):
        minutes |= _gap_minutes(shape, walls, spread_seconds)
    return frozenset(minutes)


def _moved_run_after(schedule: At | Every | Cron, rolls: bool) -> bool:
    """Whether what a calendar moves into a gap fires at the transition."""
    return rolls and schedule.dst.gap is not Gap.SKIP


def _gap_minutes(shape: ZoneShape, walls: Iterable[int], spread_seconds: int) -> set[int]:
    """The minutes of transitions at which something skipped fires; walls in seconds."""
    times = {wall % _DAY_SECONDS for wall in walls}
    return {
        (second + spread_seconds) // 60 % _DAY
        for second, before, after in shape.gaps
        if any((time - second - before) % _DAY_SECONDS < after - before for time in times)
    }
