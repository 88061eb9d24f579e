"""Occurrences on their way from a closed day to an open one: their messages may have stood on the
wheel, and no row tells of them."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from carillon.domain.calendar import has, local_date, resolve
from carillon.domain.job import Job
from carillon.domain.message import Message
from carillon.domain.wheel.entry import message_of
from carillon.schedules import CalendarRule, ClosedDays


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
            nominal_times = resolved.moved_to(instant, job.generation.from_at, since)
            nominal_at = max(nominal_times, default=None)
            if nominal_at is not None:
                yield replace(message_of(job, instant), moved_from=nominal_at)
        instant = resolved.open.next(instant)
