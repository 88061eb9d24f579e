"""The slots of the wheel under which a schedule is indexed."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, timedelta
from enum import StrEnum
from functools import lru_cache
from hashlib import blake2s
from math import gcd

from carillon.schedules.base import Gap
from carillon.schedules.cron.expression import compile_expression
from carillon.schedules.kinds.at import At
from carillon.schedules.kinds.cron import Cron
from carillon.schedules.kinds.interval import Delay, Every
from carillon.schedules.kinds.union import Union
from carillon.schedules.parsing import Schedule
from carillon.schedules.zones import offsets as zones

FILED_YEARS = range(2024, 2061)
"""Years whose offsets and transitions are taken into account; the rules in force today repeat
themselves, so that later years bring no others."""

_DAY = 1440
_DAY_SECONDS = 86_400
_EVERY_MINUTE = frozenset(range(_DAY))


@dataclass(frozen=True, slots=True)
class ZoneShape:
    """The changes of a zone's clocks in the indexed years, as far as slots depend on them.

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
    """Eight hexadecimal digits that change when schedules of the zone may have to be re-indexed."""
    shape = shape_of(zone)
    text = f"{sorted(shape.offsets)} {sorted(shape.gaps)}"
    return blake2s(text.encode(), digest_size=4).hexdigest()


zones.when_cleared(shape_of.cache_clear)
zones.when_cleared(digest_of_zone.cache_clear)


def minutes_of(schedule: At | Every | Cron, spread_seconds: int, shifts: bool) -> frozenset[int]:
    """The minutes of the UTC day (0-1439) that hold every effective time of a schedule.

    Effective times lie `spread_seconds` after the nominal ones. If it `shifts`, any of them may be
    moved by whole local days. A naive `at` is taken for a local time on any day.
    """
    match schedule:
        case Cron():
            return _minutes_of_cron(schedule, spread_seconds, shifts)
        case Every():
            return _minutes_of_every(schedule, spread_seconds, shifts)
        case At():
            return _minutes_of_at(schedule, spread_seconds, shifts)


def _minutes_of_cron(schedule: Cron, spread_seconds: int, shifts: bool) -> frozenset[int]:
    shape = shape_of(schedule.timezone)
    local_times = schedule.rule.minutes_of_day
    # Fields are independent: every matching minute has the same seconds.
    moves = {(second + spread_seconds) // 60 for second in schedule.rule.seconds}
    minutes = {
        ((local_time * 60 - offset) // 60 + shift) % _DAY
        for offset in shape.offsets
        for local_time in local_times
        for shift in moves
    }
    if schedule.gap is Gap.RUN_AFTER or _moved_run_after(schedule, shifts):
        minutes |= _gap_minutes(
            shape, [local_time * 60 for local_time in local_times], spread_seconds
        )
    return frozenset(minutes)


def _minutes_of_every(schedule: Every, spread_seconds: int, shifts: bool) -> frozenset[int]:
    """By the seconds of the UTC day that multiples of the interval can ever reach."""
    step = gcd(schedule.interval_seconds, _DAY_SECONDS)
    if step <= 60:
        return _EVERY_MINUTE
    reached = range(schedule.base_second % step, _DAY_SECONDS, step)
    return _minutes_of_seconds(schedule, reached, spread_seconds, shifts)


def _minutes_of_at(schedule: At, spread_seconds: int, shifts: bool) -> frozenset[int]:
    if schedule.moment.tzinfo is not None:
        return _minutes_of_seconds(schedule, [schedule.second], spread_seconds, shifts)
    time = schedule.moment.time()
    local_time = time.hour * 3600 + time.minute * 60 + time.second
    shape = shape_of(schedule.timezone)
    minutes = {(local_time - offset + spread_seconds) // 60 % _DAY for offset in shape.offsets}
    if _moved_run_after(schedule, shifts):
        minutes |= _gap_minutes(shape, [local_time], spread_seconds)
    return frozenset(minutes)


def _minutes_of_seconds(
    schedule: At | Every, seconds: Iterable[int], spread_seconds: int, shifts: bool
) -> frozenset[int]:
    """Of instants, given by their seconds of the UTC day."""
    if not shifts:
        return frozenset((second + spread_seconds) // 60 % _DAY for second in seconds)
    # The local time of one day is kept on another, which may have another offset.
    shape = shape_of(schedule.timezone)
    local_times = {second + offset for second in seconds for offset in shape.offsets}
    minutes = {
        (local_time - offset + spread_seconds) // 60 % _DAY
        for local_time in local_times
        for offset in shape.offsets
    }
    if _moved_run_after(schedule, shifts):
        minutes |= _gap_minutes(shape, local_times, spread_seconds)
    return frozenset(minutes)


def _moved_run_after(schedule: At | Every | Cron, shifts: bool) -> bool:
    """True if what a calendar moves into a gap fires at the transition."""
    return shifts and schedule.dst.gap is not Gap.SKIP


def _gap_minutes(shape: ZoneShape, local_times: Iterable[int], spread_seconds: int) -> set[int]:
    """The minutes of transitions at which something skipped fires; local times in seconds."""
    times = {local_time % _DAY_SECONDS for local_time in local_times}
    return {
        (second + spread_seconds) // 60 % _DAY
        for second, before, after in shape.gaps
        if any((time - second - before) % _DAY_SECONDS < after - before for time in times)
    }


__all__ = ["SlotKind", "Slots", "digest_of_zone", "is_zone_dependent", "slots", "zone_digest"]

MOST_ENTRIES = 60
"""Entries that one job may take on the wheel."""

MOST_VISITS_PER_FIRE = 120
"""Beyond, a chain of dated entries is cheaper: one write costs about as much as 120 visits."""

_HOUR = 60
_SAMPLE_DAYS = tuple(date(2024, 1, 1) + timedelta(days=day) for day in range(1461))


class SlotKind(StrEnum):
    """The kinds of minute buckets (docs/architecture.md#the-wheel)."""

    HOURLY = "hourly"
    DAILY = "daily"
    DATED = "dated"


@dataclass(frozen=True, slots=True)
class Slots:
    """The slots of a schedule.

    `numbers` are minutes of the UTC hour (hourly, 0-59) or of the UTC day (daily, 0-1439), at
    most 60; empty for dated, whose minute is that of the next occurrence.
    """

    kind: SlotKind
    numbers: frozenset[int] = frozenset()


@lru_cache(maxsize=1024)
def slots(schedule: Schedule, spread_seconds: int = 0, shifts: bool = False) -> Slots:
    """The slots that hold every effective time of a schedule from 2024 on.

    Effective times lie `spread_seconds` after the nominal ones; when it `shifts`, a calendar may
    move them by whole local days. Of the kinds that take at most 60 entries, the one visited
    least often a day (an hourly number costs 24 visits, a daily one 1), on a tie the one with
    fewer entries. Dated for a single instant, and when even that is visited more than 120 times
    per minute that fires; but never when it rolls, as any day may then get the occurrence. A fixed
    delay is dated always.
    """
    if isinstance(schedule, Delay):
        return Slots(SlotKind.DATED)
    members = schedule.schedules if isinstance(schedule, Union) else (schedule,)
    minutes = frozenset[int]().union(
        *(minutes_of(member, spread_seconds, shifts) for member in members)
    )
    visits, indexed = _cheapest(minutes)
    if not shifts:
        firing_minutes = sum(_firing_minutes_per_day(member) for member in members)
        if visits > MOST_VISITS_PER_FIRE * firing_minutes:
            return Slots(SlotKind.DATED)
    return indexed


def is_zone_dependent(schedule: Schedule) -> bool:
    """True if other rules of its zone would move occurrences: local times in a zone not UTC."""
    match schedule:
        case Union():
            return any(is_zone_dependent(member) for member in schedule.schedules)
        case Cron():
            return schedule.timezone != "UTC"
        case At():
            return schedule.timezone != "UTC" and schedule.moment.tzinfo is None
        case Every() | Delay():
            return False


def zone_digest(schedule: Schedule, spread_seconds: int = 0, shifts: bool = False) -> str:
    """By which rules of its zone a schedule's standing entries are indexed: 8 hexadecimal digits.

    The slots follow from the schedule and from the offsets and gaps of its zone: it is a digest
    of these, `digest_of_zone`. "" where no change of a zone's rules can move the slots, and for
    dated generation.
    """
    # A calendar's days are local ones, so that it moves even an interval by the zone's offsets.
    if not is_zone_dependent(schedule) and not (shifts and schedule.timezone != "UTC"):
        return ""
    if slots(schedule, spread_seconds, shifts).kind is SlotKind.DATED:
        return ""
    return digest_of_zone(schedule.timezone)


zones.when_cleared(slots.cache_clear)


def _cheapest(minutes: frozenset[int]) -> tuple[int, Slots]:
    """The visits a day and the slots of minutes of the UTC day."""
    hourly = frozenset(minute % _HOUR for minute in minutes)
    # As many visits either way means every hour of the day: then hourly takes fewer entries.
    if len(minutes) <= MOST_ENTRIES and len(minutes) < 24 * len(hourly):
        return len(minutes), Slots(SlotKind.DAILY, minutes)
    return 24 * len(hourly), Slots(SlotKind.HOURLY, hourly)


def _firing_minutes_per_day(schedule: At | Every | Cron) -> float:
    match schedule:
        case At():
            return 0
        case Every():
            return min(_DAY, _DAY_SECONDS / schedule.interval_seconds)
        case Cron():
            return _firing_minutes_of_cron(schedule.expression)


@lru_cache(maxsize=8192)
def _firing_minutes_of_cron(expression: str) -> float:
    """Over four years, so that 29 February counts for what it is."""
    rule = compile_expression(expression)
    if rule.days.is_every_day:
        return len(rule.minutes_of_day)
    days = sum(1 for day in _SAMPLE_DAYS if rule.matches_day(day))
    return days * len(rule.minutes_of_day) / len(_SAMPLE_DAYS)
