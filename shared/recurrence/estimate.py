"""How often a schedule fires."""

from datetime import datetime, timedelta

from shared.recurrence import zones
from shared.recurrence.combined import Combined
from shared.recurrence.cron import Cron
from shared.recurrence.delay import Delay
from shared.recurrence.every import Every
from shared.recurrence.open_days import OnOpenDays
from shared.recurrence.value import EPOCH, Recurrence, seconds_down

MONTH_DAYS = 30
MOST_COUNTED = 10_000
"""So many occurrences are counted one by one; more are estimated."""

_DAY_SECONDS = 86_400
_SAMPLE_STEP_MINUTES = 43
"""Prime to the minutes of an hour and of a day: samples fall on all of them alike."""
_MARGIN = 1.1
"""An estimate that little above MOST_COUNTED may be of fewer."""


def fires_per_month(schedule: Recurrence, after: datetime) -> int:
    """Occurrences in the 30 days after an instant: exact up to 10,000, estimated beyond.

    Intervals are exact always. A cron's estimate leaves the clocks' changes aside; that of a
    combination, or of a schedule under a calendar, is made from a thousand sample minutes. A
    fixed delay is counted for runs that take no time: there are at most so many.
    """
    first = max(seconds_down(after), schedule.first_second - 1)
    last = min(seconds_down(after + timedelta(days=MONTH_DAYS)), schedule.last_second)
    if last <= first:
        return 0
    if isinstance(schedule, Every):
        begin = schedule.base_second
        return _intervals(last - begin, schedule) - _intervals(first - begin, schedule)
    if isinstance(schedule, Delay):
        begin = max(seconds_down(after) + schedule.delay_seconds, schedule.first_second)
        return max(0, (last - begin) // schedule.delay_seconds + 1)
    likely = _at_most(schedule, first, last)
    if likely <= MOST_COUNTED * _MARGIN:
        return sum(1 for _ in schedule.between(after, after + timedelta(days=MONTH_DAYS)))
    return likely if isinstance(schedule, Cron) else _sampled(schedule, first, last)


def most_fires_per_day(schedule: Recurrence) -> int:
    """An upper bound of the occurrences in a day of 24 hours."""
    if isinstance(schedule, OnOpenDays):
        return most_fires_per_day(schedule.base)
    if isinstance(schedule, Combined):
        return min(_DAY_SECONDS, sum(map(most_fires_per_day, schedule.schedules)))
    if isinstance(schedule, Every):
        return -(-_DAY_SECONDS // schedule.interval_seconds)
    if isinstance(schedule, Delay):
        return -(-_DAY_SECONDS // schedule.delay_seconds)
    if isinstance(schedule, Cron):
        rule = schedule.rule
        return len(rule.seconds) * len(rule.minutes) * len(rule.hours)
    return 1


def _intervals(seconds: int, schedule: Every) -> int:
    return max(0, seconds // schedule.interval_seconds)


def _at_most(schedule: Recurrence, first: int, last: int) -> int:
    """About as many as there are in (first, last], or more where some are taken out."""
    if isinstance(schedule, OnOpenDays):
        return _at_most(schedule.base, first, last)
    if isinstance(schedule, Combined):
        return sum(_at_most(member, first, last) for member in schedule.schedules)
    if not isinstance(schedule, Cron):
        return (last - first) * most_fires_per_day(schedule) // _DAY_SECONDS + 1
    wall, end = (second + zones.offset_at(schedule.timezone, second) for second in (first, last))
    seconds = 0
    while wall < end:
        midnight = min(wall - wall % _DAY_SECONDS + _DAY_SECONDS, end)
        if schedule.rule.matches_day((EPOCH + timedelta(seconds=wall)).date()):
            seconds += midnight - wall
        wall = midnight
    return round(seconds * most_fires_per_day(schedule) / _DAY_SECONDS)


def _sampled(schedule: Recurrence, first: int, last: int) -> int:
    minutes = range(first // 60 + 1, last // 60 + 1)
    sample = minutes[::_SAMPLE_STEP_MINUTES]
    if not sample:
        return 0
    found = sum(len(schedule.seconds_of_minute(minute)) for minute in sample)
    return round(found * len(minutes) / len(sample))
