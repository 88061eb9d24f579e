"""Whether a claimed run may start: by its job's row, and by its job's calendar."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

from shared.clock import id_created_at
from shared.domain.calendar import CalendarUse
from shared.domain.decisions import Drop, Go, SendInstead, SendOn, Skip, SkipReason, Start
from shared.domain.job import Job, JobState
from shared.domain.message import Message
from shared.domain.passing_over import skips_itself
from shared.domain.resolving import resolve, rolls
from shared.domain.run import RunKind
from shared.domain.wheel import YOUNG_ENTRY
from shared.recurrence import At, ClosedDays, Delay, OnOpenDays, zones
from shared.recurrence.closed_days import MOST_ROLLED_DAYS

YOUNG_MESSAGE = timedelta(seconds=60)
"""The row of an unknown filing this young may not be committed yet."""
YOUNG_DELAY_SECONDS = 2


def is_by_schedule(message: Message) -> bool:
    """Whether schedule and calendar have a say: not in retries, manual runs and redrives."""
    key = message.key
    return key.kind is RunKind.SCHEDULED and message.attempt == 1 and key.redrive == 0


def decide_start(
    job: Job | None, message: Message, now: datetime, closed: ClosedDays | None = None
) -> Start:
    """Whether a claimed run may start, by the job row as read after the claim.

    `closed` are the days closed in the job's calendar, read after the row; None if it has none.
    """
    key = message.key
    by_schedule = is_by_schedule(message)
    if job is None:
        if by_schedule and _young(message.filing_id, now):
            return _wait_for_commit(now)
        return Drop("there is no such job")
    if job.state is JobState.DELETED:
        return Skip(SkipReason.DELETED)
    newer = message.filing_id > job.filing.filing_id
    if job.state is JobState.PAUSED and key.kind is not RunKind.MANUAL:
        if by_schedule and newer and _young(message.filing_id, now):
            return _wait_for_commit(now)  # a resume that has yet to commit
        return Skip(SkipReason.PAUSED)
    if not by_schedule:
        return Go()
    start = _by_filing(job, message, now, closed)
    return _by_calendar(job, message, closed) if isinstance(start, Go) else start


def _by_filing(job: Job, message: Message, now: datetime, closed: ClosedDays | None) -> Start:
    """An occurrence of the job's own filing runs, whatever its zone's rules have become since."""
    key = message.key
    if message.filing_id == job.filing.filing_id:
        return Go()
    if key.fire_at > job.filing.from_at and yields(job, key.fire_at, closed):
        due_at = key.fire_at + timedelta(seconds=job.spread_seconds)
        if max(now, message.due_at) < due_at and not skips_itself(message):
            # Another filing's place in the window: the run starts at the place that counts.
            later = _instead(message, key.fire_at, due_at)
            return SendInstead(later, "before its place in the window")
        return Go()
    return _decide_other_filing(job, message, now)


def _decide_other_filing(job: Job, message: Message, now: datetime) -> Start:
    """An occurrence that the job's current filing does not contain."""
    previous = job.previous
    fire_at = message.key.fire_at
    if previous is not None and message.filing_id == previous.filing_id:
        if previous.covers(message.filing_id, fire_at):
            return Go()
        in_pause = previous.until_at < fire_at <= job.filing.from_at
        return Skip(SkipReason.PAUSED if in_pause else SkipReason.CHANGED)
    if message.filing_id > job.filing.filing_id and _young(message.filing_id, now):
        return _wait_for_commit(now)
    if previous is not None and fire_at <= previous.from_at:
        return Skip(SkipReason.CHANGED)
    # Noise of a change that never committed. Recording a skip here could take the place of the
    # outcome of a real occurrence of the same instant.
    return Drop("its filing does not count")


def _by_calendar(job: Job, message: Message, closed: ClosedDays | None) -> Start:
    """An occurrence that is to run unless its day is closed, or a catch-up passes over it."""
    use, fire_at = job.calendar, message.key.fire_at
    passed_over = Skip(SkipReason.CATCH_UP)
    if use is None or closed is None:
        return passed_over if skips_itself(message) else Go()
    day = fire_at.astimezone(zones.load_zone(job.schedule.timezone)).date()
    if day not in closed:
        return passed_over if skips_itself(message) else Go(_note_of_move(job, fire_at, closed))
    if not rolls(use):
        return Skip(SkipReason.CALENDAR, _note_of_skip(day, use))
    if skips_itself(message):
        return passed_over
    # The calendar was changed, or could not be read, when it was sent: it belongs to another day.
    moved_to = _moved(job, use, fire_at, closed)
    if moved_to is None:
        note = f"{_note_of_skip(day, use)}, as all of {MOST_ROLLED_DAYS} days around it"
        return Skip(SkipReason.CALENDAR, note)
    due_at = moved_to + timedelta(seconds=job.spread_seconds)
    return SendInstead(_instead(message, moved_to, due_at), _note_of_skip(day, use))


def yields(job: Job, fire_at: datetime, closed: ClosedDays | None = None) -> bool:
    """Whether the job's schedule under its calendar has an occurrence at exactly this instant."""
    epoch_seconds = int(fire_at.timestamp())
    sent = resolve(job.schedule, job.calendar, closed).sent
    return epoch_seconds % 60 in sent.seconds_of_minute(epoch_seconds // 60)


def stale_since(job: Job | None, message: Message, now: datetime) -> datetime | None:
    """Until when the message's entry was of use, if it is of none any more; else None.

    The entry may be removed once every minute up to that instant is dispatched: the effective time
    of the last nominal one that counts.
    """
    nominal = _stale_since_nominal(job, message, now)
    if nominal is None or message.attempt > 1:
        return nominal
    return nominal + (message.due_at - message.key.fire_at)


def _stale_since_nominal(job: Job | None, message: Message, now: datetime) -> datetime | None:
    if job is not None and message.filing_id == job.filing.filing_id:
        if job.state is JobState.PAUSED:
            return job.paused_at
        return job.updated_at if job.is_tombstone else None
    if job is not None and message.filing_id < job.filing.filing_id:
        return job.filing.from_at
    made_at = id_created_at(message.filing_id)
    return made_at if now - made_at > YOUNG_ENTRY else None


def _moved(job: Job, use: CalendarUse, fire_at: datetime, closed: ClosedDays) -> datetime | None:
    """Where the calendar moves the occurrence that is nominally at `fire_at`."""
    alone = At(fire_at.astimezone(UTC), job.schedule.timezone, dst=job.schedule.dst)
    reach = timedelta(days=MOST_ROLLED_DAYS + 2)
    return OnOpenDays(alone, closed, use.rule).next(fire_at - reach)


def _instead(message: Message, fire_at: datetime, due_at: datetime) -> Message:
    """The message with other times; what it has passed over is recorded already."""
    key = replace(message.key, fire_at=fire_at)
    return replace(message, key=key, due_at=due_at, slot_key="", missed=None)


def _note_of_skip(day: date, use: CalendarUse) -> str:
    return f"{day} is closed in calendar {use.name}"


def _note_of_move(job: Job, fire_at: datetime, closed: ClosedDays) -> str | None:
    use = job.calendar
    if use is None or not rolls(use) or isinstance(job.schedule, Delay):
        return None
    days = OnOpenDays(job.schedule, closed, use.rule).moved_from(fire_at)
    if not days:
        return None
    return f"moved from {', '.join(map(str, days))} by calendar {use.name}"


def _young(filing_id: str, now: datetime) -> bool:
    return now - id_created_at(filing_id) < YOUNG_MESSAGE


def _wait_for_commit(now: datetime) -> SendOn:
    at = now + timedelta(seconds=YOUNG_DELAY_SECONDS)
    return SendOn(at, "the filing may not be committed yet")
