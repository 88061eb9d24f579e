"""What a tick sends for an entry: the occurrences of a minute, and catch-up after an outage.

Minutes, slots and backlogs count effective times; fire times, filings and what a catch-up covers
are nominal.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from shared.clock import id_created_at
from shared.domain.job import Job, JobState
from shared.domain.message import Message, Missed
from shared.domain.policies import CatchUp
from shared.domain.resolving import Resolved, resolve, rolls_back
from shared.domain.segment import Backlog
from shared.domain.wheel import YOUNG_ENTRY, Entry, minute_end, minute_of
from shared.recurrence import Recurrence, SlotKind
from shared.recurrence.value import EPOCH


def messages_of(
    entry: Entry,
    minute: int,
    horizon: int,
    backlogs: Sequence[Backlog],
    resolved: Resolved | None = None,
    rules_since: datetime | None = None,
) -> Iterator[Message]:
    """What is to be sent for an entry met in one of the slots of `minute`.

    A standing entry yields the minute's own occurrences; a dated link walks its chain up to the
    horizon; a dated message is sent as it stands. Catch-up decides about those occurrences that lie
    in one of the `backlogs` and were never announced. `resolved` is the entry's schedule under its
    calendar; without it, as if every day were open. `rules_since`: see `Entry.chain`.
    """
    if entry.message is not None:
        yield replace(entry.message, slot_key="")
        return
    if entry.schedule is None:
        return
    sent = entry.schedule if resolved is None else resolved.sent
    if entry.slot.kind is SlotKind.DATED:
        fire_times: Iterable[datetime] = entry.chain(minute_end(horizon), rules_since)
    else:
        fire_times = _standing_times(entry, sent, minute)
    for fire_at in fire_times:
        message = _by_catch_up(entry, entry.message_at(fire_at), backlogs, resolved)
        if message is not None:
            yield message


def chain_goes_on(entry: Entry, job: Job | None, now: datetime) -> bool:
    """Whether an entry's filing counts, or may yet: its chain's next link is to be filed."""
    if job is not None and job.filing.filing_id == entry.filing_id:
        return job.state is JobState.ACTIVE
    if job is not None and (job.is_tombstone or entry.filing_id < job.filing.filing_id):
        return False
    return now - id_created_at(entry.filing_id) < YOUNG_ENTRY


def _standing_times(entry: Entry, sent: Recurrence, minute: int) -> Iterator[datetime]:
    """The nominal times of the occurrences that are effective in an epoch minute."""
    nominal_minute, into = divmod(minute * 60 - entry.spread_seconds, 60)
    seconds = [nominal_minute * 60 + s for s in sent.seconds_of_minute(nominal_minute) if s >= into]
    if into:
        later = (nominal_minute + 1) * 60
        seconds += [later + s for s in sent.seconds_of_minute(nominal_minute + 1) if s < into]
    instants = (EPOCH + timedelta(seconds=second) for second in seconds)
    return (fire_at for fire_at in instants if fire_at > entry.from_at)


def _by_catch_up(
    entry: Entry, message: Message, backlogs: Sequence[Backlog], resolved: Resolved | None
) -> Message | None:
    """The message for an occurrence; None when a later one of the same outage stands for it.

    Decided against the backlog's own end, so that every tick that works on it decides alike. An
    occurrence that the calendar leaves out stands for nothing but itself; so does one that a later
    day is moved to, which is to find a row there. One that is itself moved out of the outage, to a
    later day or an earlier one, has missed nothing.
    """
    minute = minute_of(message.due_at)
    backlog = next((b for b in backlogs if b.announced < minute <= b.until), None)
    schedule = entry.schedule
    if backlog is None or schedule is None or not schedule.is_recurring:
        return message
    if entry.catch_up is CatchUp.ALL:
        return message
    fire_at, last = message.key.fire_at, minute_end(backlog.until) - entry.spread
    if resolved is None:
        resolved = resolve(schedule, None, None)
    itself = replace(message, missed=Missed(fire_at, CatchUp.SKIP, schedule, entry.calendar))
    landing = resolved.landing(fire_at)
    if landing is None and rolls_back(entry.calendar):
        return itself
    if landing is not None and not fire_at <= landing <= last:
        return message
    if resolved.runs_later(fire_at, last):
        return itself if resolved.is_moved_to(fire_at) else None
    if landing is None:
        return itself
    since = max(minute_end(backlog.announced) - entry.spread, entry.from_at)
    return replace(message, missed=Missed(since, entry.catch_up, schedule, entry.calendar))
