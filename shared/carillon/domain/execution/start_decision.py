"""The decision to start a claimed run: by its job's row, and by its job's calendar."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import date, datetime, timedelta

from carillon.clock import id_created_at
from carillon.domain.calendar import CalendarUse, has, local_date, resolve, shifts, shifts_back
from carillon.domain.changes.handing_over import is_in_hand
from carillon.domain.decisions import (
    Claim,
    Defer,
    Drop,
    Proceed,
    Redirect,
    Skip,
    SkipReason,
    Start,
    YieldToLatest,
)
from carillon.domain.execution.lateness import latest_due
from carillon.domain.execution.resuming import is_over
from carillon.domain.execution.successors import start_after
from carillon.domain.job import MOST_REPLACED, Job, JobState, PastGeneration
from carillon.domain.message import Message
from carillon.domain.policies import CatchUp
from carillon.domain.run import Run, RunKey, RunKind
from carillon.domain.wheel.catch_up import skips_itself
from carillon.schedules import ClosedDays, Delay, OnOpenDays
from carillon.schedules.calendars.closed_days import MOST_SHIFTED_DAYS

YOUNG_MESSAGE = timedelta(seconds=60)
"""The row of an unknown generation this young may not be committed yet."""
SHORTEST_YOUNG_DELAY = timedelta(seconds=2)
"""Between two reads of a row that may not be committed yet."""
_ORPHANED = "its generation does not count"
FAR_BACK = f"its generation was replaced more than {MOST_REPLACED} changes ago"


def is_by_schedule(message: Message) -> bool:
    """True if schedule and calendar apply: not to retries, manual runs and redrives."""
    return message.key.is_occurrence and message.attempt == 1


def runs_while_paused(key: RunKey) -> bool:
    """True if the run ignores a paused job: manual runs, redrives and callbacks do."""
    return key.kind in (RunKind.MANUAL, RunKind.CALLBACK) or key.redrive > 0


def decided_as(claim: Claim | None, message: Message, job: Job | None) -> Iterator[Message]:
    """The messages to decide by, each where those before are to be dropped: the one that came, then
    it as one of each other generation that a died run is known by, newest first.

    One that had claimed the run before may have put it under that generation (`being_adopted`),
    whose own message never comes where its catch-up passes the occurrence over. What has announced
    its call goes on as a retry, which no schedule, calendar or other run decides about, under a
    generation that has counted: behind a run of any other no fixed delay goes on.
    """
    over = claim.over if claim is not None and claim.is_takeover else None
    known = set() if over is None else {over.generation_id, *over.other_generations}
    alike = replace(message, slot_key="", missed=None, in_time=None)
    others = [
        replace(alike, generation_id=each)
        for each in sorted(known - {message.generation_id}, reverse=True)
        if message.generation_id in known
    ]
    if claim is not None and claim.has_announced and job is not None:
        for each in (message, *others):
            if not message.key.is_occurrence or job.has_counted(each.generation_id):
                yield replace(each, attempt=claim.run.attempt)
    yield message
    yield from others


def decide_start(
    job: Job | None,
    message: Message,
    now: datetime,
    closed: ClosedDays | None = None,
    before: Run | None = None,
) -> Start:
    """The decision about a claimed run, by the job row as read after the claim.

    `closed` are the days closed in the job's calendar, read after the row; None if it has none.
    `before` is the run whose end has started this one.
    """
    key = message.key
    by_schedule = is_by_schedule(message)
    if job is None:
        if by_schedule and _young(message.generation_id, now):
            return _wait_for_commit(message.generation_id, now)
        return Drop("there is no such job")
    moved_back = _moved_back(job, message, closed) if by_schedule else None
    if moved_back is not None:
        return moved_back
    stopped = _stopped(job, key, now)
    if key.kind is RunKind.AFTER and message.attempt == 1 and key.redrive == 0:
        following = start_after(job, key, before)
        if stopped is None or isinstance(following, Drop):
            return following
        return _before_resumption(job, message, now) or Skip(stopped)
    if stopped is not None and not by_schedule:
        return _before_resumption(job, message, now) or Skip(stopped)
    if not by_schedule:
        return Proceed()
    if stopped is not None and job.state is not JobState.RENAMED:
        return _of_stopped(job, message, now, stopped)
    start = _by_generation(job, message, now, closed)
    if isinstance(start, Proceed) and stopped is not None:
        return Skip(stopped)
    if isinstance(start, Proceed):
        start = _by_calendar(job, message, now, closed)
    if isinstance(start, Proceed) and job.spec.catch_up is CatchUp.LATEST:
        latest = latest_due(job, message, closed, now)
        return start if latest is None else YieldToLatest(latest, start)
    return start


def _stopped(job: Job, key: RunKey, now: datetime) -> SkipReason | None:
    """The reason why no run of this key starts; None while its job's state lets it. What came due
    before a paused job was renamed or handed over does not start until that pause is over."""
    if job.state is JobState.DELETED:
        return SkipReason.DELETED
    was_paused = job.paused_at is not None and not is_over(job, now)
    is_paused = job.state is JobState.PAUSED or was_paused
    return SkipReason.PAUSED if is_paused and not runs_while_paused(key) else None


def _before_resumption(job: Job, message: Message, now: datetime) -> Defer | None:
    """The wait of what is due after the end of a pause, for the resumption that is on its way."""
    resume_at = job.resume_at if job.state is JobState.PAUSED else None
    if resume_at is None or message.starts_at < resume_at:
        return None
    reason = "its job is to be resumed before it"
    return Defer.twice_as_late(message.starts_at, now, reason, shortest=SHORTEST_YOUNG_DELAY)


def _of_stopped(job: Job, message: Message, now: datetime, reason: SkipReason) -> Start:
    """Of a stopped job, only occurrences of generations that have counted are recorded: the others
    are orphaned by a change that lost, or belong to a resume or revival that has yet to commit."""
    if job.has_counted(message.generation_id):
        if job.resume_at is not None and message.nominal_at >= job.resume_at:
            # A row would take its place in the generation that begins there, however late.
            return Drop("the job is to be resumed before it")
        # What was due before, and has waited, may start then.
        return _before_resumption(job, message, now) or Skip(reason)
    newer = message.generation_id > job.generation.generation_id
    if newer and _young(message.generation_id, now):
        return _wait_for_commit(message.generation_id, now)
    return Drop(_ORPHANED)


def _by_generation(job: Job, message: Message, now: datetime, closed: ClosedDays | None) -> Start:
    """An occurrence of the job's own generation runs, whatever its zone's rules have become
    since."""
    key = message.key
    if job.state is JobState.RENAMED:
        # Its own schedule goes on under the new name.
        start = _decide_other_generation(job, message, now)
        is_to_come = is_in_hand(job) and message.nominal_at > job.generation.from_at
        # Should the job come back, a row would take its place in the generation that begins there.
        is_kept_free = is_to_come and isinstance(start, Skip)
        return Drop("its job is between two owners") if is_kept_free else start
    if message.generation_id == job.generation.generation_id:
        return Proceed()
    own = [at for at in (key.fire_at, message.nominal_at) if at > job.generation.from_at]
    if any(yields(job, at, closed) for at in own):
        # What was only moved there, from before the generation, no tick sends for it.
        sent = resolve(job.schedule, job.spec.calendar, closed).sent
        is_caught_up = message.in_time is not None and any(has(sent, at) for at in own)
        due_at = key.fire_at + timedelta(seconds=job.spread_seconds)
        is_chunked = job.is_chunked(due_at)
        if is_caught_up or is_chunked:
            if message.generation_id > job.generation.generation_id:
                # Once that is committed, its own message may be the only one.
                return _decide_other_generation(job, message, now)
            if is_caught_up:
                return Drop("the job's own generation catches up on it")
            # It may go in a chunk, which no row of it would stop.
            return Drop("the entries of the job's own generation are settled: a tick sends it")
        if max(now, message.due_at) < due_at:
            # Another generation's place in the window: the run starts at the place that counts.
            later = replace(message, due_at=due_at, slot_key="")
            return Redirect(later, "before its place in the window")
        return Proceed()
    return _decide_other_generation(job, message, now)


def adopted(job: Job, message: Message) -> Message | None:
    """The message that may start, as one of the job's own generation, which yields its occurrence
    too; None where it starts on its own generation's account.

    The outcome of the run then belongs to the generation that counts: that of the message may not
    count any more when it comes again.
    """
    if not is_by_schedule(message) or message.generation_id == job.generation.generation_id:
        return None
    if max(message.key.fire_at, message.nominal_at) <= job.generation.from_at:
        return None
    return replace(message, generation_id=job.generation.generation_id, slot_key="")


def _decide_other_generation(job: Job, message: Message, now: datetime) -> Start:
    """An occurrence that the job's current generation does not contain."""
    fire_at, generation = message.nominal_at, job.generation
    is_older = message.generation_id < generation.generation_id
    if is_older and isinstance(job.schedule, Delay) and message.key.fire_at > generation.from_at:
        # It may be the instant of the fixed delay's own occurrence, whose chain a row would end.
        return Drop("its generation had ended")
    next_from_at = generation.from_at
    for known in job.replaced:
        if message.generation_id == known.generation_id:
            return _by_replaced(job, known, fire_at, next_from_at)
        next_from_at = known.from_at
    if not is_older and _young(message.generation_id, now):
        return _wait_for_commit(message.generation_id, now)
    if len(job.replaced) == MOST_REPLACED and fire_at <= next_from_at:
        return Skip(SkipReason.CHANGED, FAR_BACK)
    # Orphaned by a change that never committed. Recording a skip here could take the place of the
    # outcome of a real occurrence of the same instant.
    return Drop(_ORPHANED)


def _by_replaced(
    job: Job, known: PastGeneration, fire_at: datetime, next_from_at: datetime
) -> Start:
    """An occurrence of a generation that was replaced by one that begins at `next_from_at`."""
    if known.covers(known.generation_id, fire_at):
        return Proceed()
    if known.until_at < fire_at <= next_from_at:
        return Skip(SkipReason.PAUSED)
    if known != job.previous or shifts(job.spec.calendar):
        # A row could take the place of an occurrence that the calendar has moved there.
        return Drop("later generations decide about it")
    return Skip(SkipReason.CHANGED)


def _by_calendar(job: Job, message: Message, now: datetime, closed: ClosedDays | None) -> Start:
    """An occurrence that is to run unless its day is closed, or a catch-up skips it: no catch-up
    does where the open day is yet to come."""
    use, fire_at = job.spec.calendar, message.key.fire_at
    passed_over = Skip(SkipReason.CATCH_UP)
    if use is None or closed is None:
        return passed_over if skips_itself(message) else Proceed()
    day = local_date(job.schedule, fire_at)
    if day not in closed:
        if _is_opened_again(job, message, closed):
            return Drop("the day that it was moved from is open again")
        return (
            passed_over if skips_itself(message) else Proceed(_note_of_move(job, message, closed))
        )
    moved_to = None
    if shifts(use):
        resolved = resolve(job.schedule, use, closed)
        moved_to = resolved.landing(message.nominal_at)
        if moved_to is not None and moved_to <= fire_at:
            # Days that are over were opened since: it continues from where it is.
            moved_to = resolved.landing(fire_at)
    if moved_to is None:
        return Skip(SkipReason.CALENDAR, _note_of_skip(day, use, closed))
    is_missed = skips_itself(message) and moved_to <= now
    return passed_over if is_missed else _moved(job, message, moved_to)


def _moved_back(job: Job, message: Message, closed: ClosedDays | None) -> Redirect | None:
    """The occurrence of a closed day as that of the earlier day which it belongs to.

    Its run was to be there: if there is one it has been absorbed, whatever the job has become.
    """
    if closed is None or not shifts_back(job.spec.calendar) or skips_itself(message):
        return None
    day = local_date(job.schedule, message.key.fire_at)
    if isinstance(job.schedule, Delay) or day not in closed:
        return None
    moved_to = resolve(job.schedule, job.spec.calendar, closed).landing(message.nominal_at)
    return None if moved_to is None else _moved(job, message, moved_to)


def _is_opened_again(job: Job, message: Message, closed: ClosedDays) -> bool:
    """True if a tick sent it for a later, closed day, which will have its own message."""
    return (
        shifts_back(job.spec.calendar)
        and not isinstance(job.schedule, Delay)
        and message.moved_from is None
        and message.missed is None
        and message.generation_id == job.generation.generation_id
        and not yields(job, message.key.fire_at, closed)
    )


def yields(job: Job, fire_at: datetime, closed: ClosedDays | None = None) -> bool:
    """True if the job's schedule has an occurrence at exactly this instant: a nominal one, or one
    that its calendar moves there."""
    resolved = resolve(job.schedule, job.spec.calendar, closed)
    return has(resolved.sent, fire_at) or (
        shifts(job.spec.calendar) and has(resolved.open, fire_at)
    )


def _moved(job: Job, message: Message, moved_to: datetime) -> Redirect:
    """The message for the instant that the calendar moves its occurrence to; the occurrences it
    represents are recorded already."""
    key = replace(message.key, fire_at=moved_to)
    due_at = moved_to + timedelta(seconds=job.spread_seconds)
    moved = replace(
        message,
        key=key,
        due_at=due_at,
        slot_key="",
        missed=None,
        wait_until=None,
        waits=0,
        rate_slot=None,
        owner_slot=None,
    )
    if not isinstance(job.schedule, Delay):
        nominal_at = message.nominal_at
        moved = replace(moved, moved_from=None if moved_to == nominal_at else nominal_at)
    day = local_date(job.schedule, message.key.fire_at)
    return Redirect(moved, f"{day} is closed")


def _note_of_skip(day: date, use: CalendarUse, closed: ClosedDays) -> str:
    note = f"{day} is closed in calendar {use.name}"
    if not shifts(use):
        return note
    open_day = closed.open_day_from(day, use.rule)
    if open_day is None:
        return f"{note}, as all of {MOST_SHIFTED_DAYS} days around it"
    return f"{note}, and the clocks skip its time on {open_day}"


def _note_of_move(job: Job, message: Message, closed: ClosedDays) -> str | None:
    use = job.spec.calendar
    if use is None or not shifts(use) or isinstance(job.schedule, Delay):
        return None
    days = {*OnOpenDays(job.schedule, closed, use.rule).moved_from(message.key.fire_at)}
    if message.moved_from is not None:
        days.add(local_date(job.schedule, message.moved_from))
    if not days:
        return None
    return f"moved from {', '.join(map(str, sorted(days)))} by calendar {use.name}"


def _young(generation_id: str, now: datetime) -> bool:
    return now - id_created_at(generation_id) < YOUNG_MESSAGE


def _wait_for_commit(generation_id: str, now: datetime) -> Defer:
    reason = "the generation may not be committed yet"
    since = id_created_at(generation_id)
    return Defer.twice_as_late(since, now, reason, shortest=SHORTEST_YOUNG_DELAY)
