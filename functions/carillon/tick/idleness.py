"""When a tick's worker begins or ceases to find anything due: once per change."""

from collections.abc import Sequence
from datetime import datetime

from carillon.domain.events import Event, EventType
from carillon.domain.wheel.entry import minute_of
from carillon.tick.reports import SegmentReport


def change_of(
    reports: Sequence[SegmentReport], own: Sequence[int], worker: int, now: datetime
) -> Event | None:
    """The event that tells that a worker, with its `own` segments, is idle or is so no longer.

    None when nothing has changed. The control items remember how it was; a doubled tick finds the
    change made. A tick that fails may leave a change untold.
    """
    was_idle: dict[int, bool] = {}
    idle: dict[int, bool] = {}
    for report in reports:
        if report.segment in own:
            was_idle.setdefault(report.segment, report.was_idle)
            idle[report.segment] = report.idle
    if not idle or all(was_idle.values()) == all(idle.values()):
        return None
    what = EventType.SCHEDULER_IDLE if all(idle.values()) else EventType.SCHEDULER_STARTED
    subject = f"worker/{worker}"
    event_id = f"{subject}/{minute_of(now)}/{what.value}"
    messages = sum(report.messages for report in reports)
    return Event(event_id, what, subject, now, {"worker": worker, "messages": messages})
