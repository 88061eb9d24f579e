"""What a tick sends for an entry: the occurrences of a minute, and catch-up after an outage."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from shared.clock import id_created_at
from shared.domain.job import CatchUp, Job, JobState
from shared.domain.message import Message, Missed
from shared.domain.segment import Backlog
from shared.domain.wheel import YOUNG_ENTRY, Entry, minute_end, minute_of, minute_start
from shared.recurrence import SlotKind


def messages_of(
    entry: Entry, minute: int, horizon: int, backlogs: Sequence[Backlog]
) -> Iterator[Message]:
    """What is to be sent for an entry met in one of the slots of `minute`.

    A standing entry yields the minute's own occurrences; a dated link walks its chain up to the
    horizon; a dated message is sent as it stands. Catch-up decides about those occurrences that lie
    in one of the `backlogs` and were never announced.
    """
    if entry.message is not None:
        yield replace(entry.message, slot_key="")
        return
    for fire_at in _fire_times(entry, minute, horizon):
        backlog = _unannounced_in(backlogs, minute_of(fire_at))
        message = entry.message_at(fire_at)
        caught_up = message if backlog is None else _caught_up(entry, message, backlog)
        if caught_up is not None:
            yield caught_up


def _unannounced_in(backlogs: Sequence[Backlog], minute: int) -> Backlog | None:
    return next((b for b in backlogs if b.announced < minute <= b.until), None)


def _fire_times(entry: Entry, minute: int, horizon: int) -> Iterable[datetime]:
    if entry.slot.kind is SlotKind.DATED:
        return entry.chain(minute_end(horizon))
    if entry.schedule is None:
        return ()
    start = minute_start(minute)
    instants = (start + timedelta(seconds=s) for s in entry.schedule.seconds_of_minute(minute))
    return (fire_at for fire_at in instants if fire_at > entry.from_at)


def _caught_up(entry: Entry, message: Message, backlog: Backlog) -> Message | None:
    """The message for a missed occurrence; None when a later one of the outage stands for it.

    Decided against the backlog's own end, so that every tick that works on it decides alike.
    """
    schedule = entry.schedule
    if schedule is None or not schedule.is_recurring or entry.catch_up is CatchUp.ALL:
        return message
    following = schedule.next(message.key.fire_at)
    if following is not None and following <= minute_end(backlog.until):
        return None
    since = max(minute_end(backlog.announced), entry.from_at)
    return replace(message, missed=Missed(since, entry.catch_up, schedule))


def chain_goes_on(entry: Entry, job: Job | None, now: datetime) -> bool:
    """Whether the next link of a dated chain is to be filed: its filing counts, or may yet."""
    if job is not None and job.filing.filing_id == entry.filing_id:
        return job.state is JobState.ACTIVE
    if job is not None and (
        job.state is JobState.DELETED or entry.filing_id < job.filing.filing_id
    ):
        return False
    return now - id_created_at(entry.filing_id) < YOUNG_ENTRY
