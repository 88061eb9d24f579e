"""The number of fires of a schedule in a span."""

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from itertools import islice

from carillon.schedules.base import EPOCH, LAST_SECOND, Recurrence, seconds_down
from carillon.schedules.calendars.open_days import OnOpenDays
from carillon.schedules.kinds.cron import Cron
from carillon.schedules.kinds.interval import Delay, Every
from carillon.schedules.kinds.union import Union
from carillon.schedules.zones import offsets as zones

MONTH_DAYS = 30
MOST_COUNTED = 10_000
"""Up to this many occurrences are counted one by one; more are estimated."""

_MONTH = timedelta(days=MONTH_DAYS)
_DAY_SECONDS = 86_400
_LAST_INSTANT = EPOCH + timedelta(seconds=LAST_SECOND)
_SAMPLE_STEP_MINUTES = 43
"""Prime to the minutes of an hour and of a day: samples fall on all of them alike."""


def fires_per_month(schedule: Recurrence, after: datetime) -> int:
    """Occurrences in the 30 days after an instant: exact up to 10,000, estimated beyond.

    Intervals are exact always. A cron's estimate leaves the clocks' changes aside; that of a
    combination, or of a schedule under a calendar, is made from a thousand sample minutes. A
    fixed delay is counted for runs that take no time, on open days: there are at most so many.
    """
    until = min(after, _LAST_INSTANT - _MONTH) + _MONTH
    first = max(seconds_down(after), schedule.first_second - 1)
    last = min(seconds_down(until), schedule.last_second)
    if last <= first:
        return 0
    if isinstance(schedule, Every):
        begin = schedule.base_second
        return _intervals(last - begin, schedule) - _intervals(first - begin, schedule)
    if isinstance(schedule, Delay):
        return _delays(schedule, after, last)
    if isinstance(schedule, OnOpenDays) and isinstance(schedule.base, Delay):
        return _delays_on_open_days(schedule, schedule.base, after, until)
    sample = _sample(schedule, first, last)
    # Where the sample alone finds more than the limit, an exact count is not worth its time.
    if sum(sample) <= MOST_COUNTED:
        counted = sum(1 for _ in islice(schedule.between(after, until), MOST_COUNTED + 1))
        if counted <= MOST_COUNTED:
            return counted
    if isinstance(schedule, Cron):
        return max(MOST_COUNTED + 1, _by_days(schedule, first, last))
    minutes = last // 60 - first // 60
    return max(MOST_COUNTED + 1, round(sum(sample) * minutes / len(sample)))


def most_fires_per_day(schedule: Recurrence) -> int:
    """An upper bound of the occurrences in a day of 24 hours."""
    if isinstance(schedule, OnOpenDays):
        return most_fires_per_day(schedule.base)
    if isinstance(schedule, Union):
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


def _delays(schedule: Delay, after: datetime, last: int) -> int:
    """The runs up to an epoch second, where none takes any time."""
    begin = max(seconds_down(after) + schedule.delay_seconds, schedule.first_second)
    return max(0, (last - begin) // schedule.delay_seconds + 1)


def _delays_on_open_days(
    schedule: OnOpenDays, base: Delay, after: datetime, until: datetime
) -> int:
    """The occurrences on open days: the others are skipped, or wait for the next one."""
    last = min(seconds_down(until), base.last_second)
    everywhere = _delays(base, after, last)
    zone = zones.load_zone(schedule.timezone)
    if everywhere <= MOST_COUNTED:
        fires = schedule.between(after, until)
        return sum(1 for at in fires if at.astimezone(zone).date() not in schedule.closed)
    first = max(seconds_down(after), base.first_second - 1)
    days = list(_days(schedule.timezone, first, last))
    opened = sum(seconds for day, seconds in days if day not in schedule.closed)
    return round(everywhere * opened / sum(seconds for _, seconds in days))


def _by_days(schedule: Cron, first: int, last: int) -> int:
    """About as many as there are in (first, last], by the days that match."""
    days = _days(schedule.timezone, first, last)
    seconds = sum(seconds for day, seconds in days if schedule.rule.matches_day(day))
    return round(seconds * most_fires_per_day(schedule) / _DAY_SECONDS)


def _days(timezone: str, first: int, last: int) -> Iterator[tuple[date, int]]:
    """The local days of (first, last], each with its seconds in it."""
    local_time, end = (second + zones.offset_at(timezone, second) for second in (first, last))
    while local_time < end:
        midnight = min(local_time - local_time % _DAY_SECONDS + _DAY_SECONDS, end)
        yield (EPOCH + timedelta(seconds=local_time)).date(), midnight - local_time
        local_time = midnight


def _sample(schedule: Recurrence, first: int, last: int) -> list[int]:
    """The number of occurrences in some of the whole minutes of (first, last]."""
    minutes = range(first // 60 + 1, last // 60)
    return [len(schedule.seconds_of_minute(minute)) for minute in minutes[::_SAMPLE_STEP_MINUTES]]
