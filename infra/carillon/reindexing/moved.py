"""Occurrences on their way from a closed day to an open one: their messages may have stood on the
wheel, and no row tells of them."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta

from carillon.domain.calendar import Resolved, has, local_date, resolve
from carillon.domain.job import Job
from carillon.domain.message import Message
from carillon.domain.wheel.entry import message_of
from carillon.schedules import CalendarRule, ClosedDays, OnOpenDays

_BEYOND_UTC = timedelta(hours=15)
"""A local day begins and ends this much earlier or later than that of UTC at most."""


def on_their_way(job: Job, since: datetime, closed: ClosedDays | None) -> Iterator[Message]:
    """The messages for occurrences whose nominal time is `since` at the latest, and which run
    later; none where the schedule has an occurrence of its own there: its entry sends that."""
    use = job.spec.calendar
    if closed is None or use is None or use.rule is not CalendarRule.NEXT_BUSINESS_DAY:
        return
    resolved = resolve(job.schedule, use, closed)
    last_day = closed.open_day_from(local_date(job.schedule, since), use.rule)
    instant = None if last_day is None else resolved.open.next(since)
    while instant is not None and last_day and local_date(job.schedule, instant) <= last_day:
        if not has(job.schedule, instant):
            nominal = max(_nominal(job, resolved, instant, since), default=None)
            if nominal is not None:
                yield replace(message_of(job, instant), moved_from=nominal)
        instant = resolved.open.next(instant)


def _nominal(
    job: Job, resolved: Resolved, instant: datetime, since: datetime
) -> Iterator[datetime]:
    """The nominal times of the generation's occurrences up to `since` that run at this instant."""
    assert isinstance(resolved.open, OnOpenDays)
    for day in resolved.open.moved_from(instant):
        begin = datetime.combine(day, time(), UTC) - _BEYOND_UTC
        end = min(begin + timedelta(days=1) + 2 * _BEYOND_UTC, since)
        begin = max(begin, job.generation.from_at)
        for nominal in job.schedule.between(begin, end) if begin < end else ():
            if resolved.landing(nominal) == instant:
                yield nominal
