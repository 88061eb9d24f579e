"""The filing rule: under which slots of the wheel a schedule stands."""

from dataclasses import dataclass
from datetime import date, timedelta
from enum import StrEnum
from functools import lru_cache
from math import gcd

from shared.recurrence import zones
from shared.recurrence.at import At
from shared.recurrence.cron import Cron
from shared.recurrence.every import Every
from shared.recurrence.parse import Schedule

MOST_ENTRIES = 60
"""Entries that one job may take on the wheel."""

MOST_VISITS_PER_FIRE = 120
"""Beyond, a chain of dated entries is cheaper: one write costs about as much as 120 visits."""

_FILED_YEARS = range(2024, 2061)
"""Years whose offsets and transitions are taken into account; the rules in force today repeat
themselves, so that later years bring no others."""

_HOUR = 60
_DAY = 1440
_DAY_SECONDS = 86_400
_SAMPLE_DAYS = tuple(date(2024, 1, 1) + timedelta(days=day) for day in range(1461))


class SlotKind(StrEnum):
    """The kinds of minute buckets; see DESIGN, 'Why a wheel'."""

    HOURLY = "hourly"
    DAILY = "daily"
    DATED = "dated"


@dataclass(frozen=True, slots=True)
class Slots:
    """Where a schedule is filed.

    `numbers` are minutes of the UTC hour (hourly, 0-59) or of the UTC day (daily, 0-1439), at
    most 60; empty for dated, whose minute is that of the next occurrence.
    """

    kind: SlotKind
    numbers: frozenset[int] = frozenset()


@lru_cache(maxsize=8192)
def slots(schedule: Schedule, spread_seconds: int = 0, rolls: bool = False) -> Slots:
    """The slots that hold every occurrence of a schedule from 2024 on.

    Of the kinds that take at most 60 entries, the one visited least often a day (an hourly
    number costs 24 visits, a daily one 1), on a tie the one with fewer entries. Dated for a
    single instant, and when even that is visited more than 120 times per minute that fires.
    """
    match schedule:
        case At():
            return Slots(SlotKind.DATED)
        case Every():
            minutes = _minutes_of_every(schedule)
            firing_minutes = min(_DAY, _DAY_SECONDS / schedule.interval_seconds)
        case Cron():
            minutes = _minutes_of_cron(schedule)
            firing_minutes = _firing_minutes_per_day(schedule.expression)
        case _:
            raise NotImplementedError
    return _cheapest(minutes, firing_minutes)


def _cheapest(minutes: frozenset[int], firing_minutes: float) -> Slots:
    """Of minutes of the UTC day and the number that fire on an average day."""
    hourly = frozenset(minute % _HOUR for minute in minutes)
    # As many visits either way means every hour of the day: then hourly takes fewer entries.
    if len(minutes) <= MOST_ENTRIES and len(minutes) < 24 * len(hourly):
        visits, filed = len(minutes), Slots(SlotKind.DAILY, minutes)
    else:
        visits, filed = 24 * len(hourly), Slots(SlotKind.HOURLY, hourly)
    if visits > MOST_VISITS_PER_FIRE * firing_minutes:
        return Slots(SlotKind.DATED)
    return filed


def _minutes_of_every(schedule: Every) -> frozenset[int]:
    """The minutes of the UTC day that multiples of the interval can ever reach."""
    step = gcd(schedule.interval_seconds, _DAY_SECONDS)
    first = schedule.base_second % step
    return frozenset(second // 60 for second in range(first, _DAY_SECONDS, step))


def _minutes_of_cron(schedule: Cron) -> frozenset[int]:
    """The minutes of the UTC day at which the expression can fire, by any offset of its zone."""
    rule, zone = schedule.rule, schedule.timezone
    walls = rule.minutes_of_day
    minutes = {(wall * 60 - offset) // 60 % _DAY for offset in _offsets(zone) for wall in walls}
    if rule.is_time_of_day:
        # What a gap skips fires at the transition.
        minutes |= {
            transition.second // 60 % _DAY
            for transition in _gaps(zone)
            if any(_is_skipped(transition, wall) for wall in walls)
        }
    return frozenset(minutes)


def _is_skipped(transition: zones.Transition, wall: int) -> bool:
    """Whether clocks put forward by the transition skip this wall minute of the day."""
    start = transition.second + transition.before
    return (wall * 60 - start) % _DAY_SECONDS < transition.after - transition.before


@lru_cache(maxsize=1024)
def _changes(zone: str) -> frozenset[zones.Transition]:
    return frozenset(change for year in _FILED_YEARS for change in zones.transitions(zone, year))


@lru_cache(maxsize=1024)
def _offsets(zone: str) -> frozenset[int]:
    first = zones.offset_at(zone, zones.year_start(_FILED_YEARS.start))
    return frozenset({first} | {change.after for change in _changes(zone)})


@lru_cache(maxsize=1024)
def _gaps(zone: str) -> tuple[zones.Transition, ...]:
    """One transition of each shape: time of day, offset before, offset after."""
    shapes = {
        (change.second % _DAY_SECONDS, change.before, change.after): change
        for change in _changes(zone)
        if change.after > change.before
    }
    return tuple(shapes.values())


@lru_cache(maxsize=8192)
def _firing_minutes_per_day(expression: str) -> float:
    """Over four years, so that 29 February counts for what it is."""
    rule = Cron(expression).rule
    days = sum(1 for day in _SAMPLE_DAYS if rule.matches_day(day))
    return days * len(rule.minutes_of_day) / len(_SAMPLE_DAYS)
