"""The filing rule: under which slots of the wheel a schedule stands."""

from dataclasses import dataclass
from datetime import date, timedelta
from enum import StrEnum
from functools import lru_cache

from carillon.schedules.cron.expression import compile_expression
from carillon.schedules.kinds.at import At
from carillon.schedules.kinds.cron import Cron
from carillon.schedules.kinds.delay import Delay
from carillon.schedules.kinds.interval import Every
from carillon.schedules.kinds.union import Combined
from carillon.schedules.parsing import Schedule
from carillon.schedules.placement.filed_minutes import digest_of_zone, minutes_of
from carillon.schedules.zones import offsets as zones

__all__ = ["SlotKind", "Slots", "digest_of_zone", "is_zone_dependent", "slots", "zone_digest"]

MOST_ENTRIES = 60
"""Entries that one job may take on the wheel."""

MOST_VISITS_PER_FIRE = 120
"""Beyond, a chain of dated entries is cheaper: one write costs about as much as 120 visits."""

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
    """The slots that hold every effective time of a schedule from 2024 on.

    Effective times lie `spread_seconds` after the nominal ones; when it `rolls`, a calendar may
    move them by whole local days. Of the kinds that take at most 60 entries, the one visited
    least often a day (an hourly number costs 24 visits, a daily one 1), on a tie the one with
    fewer entries. Dated for a single instant, and when even that is visited more than 120 times
    per minute that fires; but never when it rolls, as any day may then get the occurrence. A fixed
    delay is dated always.
    """
    if isinstance(schedule, Delay):
        return Slots(SlotKind.DATED)
    members = schedule.schedules if isinstance(schedule, Combined) else (schedule,)
    minutes = frozenset[int]().union(
        *(minutes_of(member, spread_seconds, rolls) for member in members)
    )
    visits, filed = _cheapest(minutes)
    if not rolls:
        firing_minutes = sum(_firing_minutes_per_day(member) for member in members)
        if visits > MOST_VISITS_PER_FIRE * firing_minutes:
            return Slots(SlotKind.DATED)
    return filed


def is_zone_dependent(schedule: Schedule) -> bool:
    """Whether other rules of its zone would move occurrences: wall times in a zone not UTC."""
    match schedule:
        case Combined():
            return any(is_zone_dependent(member) for member in schedule.schedules)
        case Cron():
            return schedule.timezone != "UTC"
        case At():
            return schedule.timezone != "UTC" and schedule.moment.tzinfo is None
        case Every() | Delay():
            return False


def zone_digest(schedule: Schedule, spread_seconds: int = 0, rolls: bool = False) -> str:
    """By which rules of its zone a schedule's standing entries are filed: 8 hexadecimal digits.

    The slots follow from the schedule and from the offsets and gaps of its zone: it is a digest
    of these, `digest_of_zone`. "" where no change of a zone's rules can move the slots, and for
    dated filing.
    """
    # A calendar's days are local ones, so that it moves even an interval by the zone's offsets.
    if not is_zone_dependent(schedule) and not (rolls and schedule.timezone != "UTC"):
        return ""
    if slots(schedule, spread_seconds, rolls).kind is SlotKind.DATED:
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
