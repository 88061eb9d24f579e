"""The entries and messages owed to a job whose entries may be gone, by its row and its history."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from carillon.domain.calendar import resolve
from carillon.domain.execution.completing import check_of
from carillon.domain.execution.next_run import next_after_finish, queued_run_message
from carillon.domain.execution.resuming import resume_message
from carillon.domain.job import Job, JobState
from carillon.domain.message import Message
from carillon.domain.operation import STEP_SECONDS, Operation
from carillon.domain.run import NO_RUNS, Run, RunKind, RunStatus
from carillon.domain.wheel.entry import (
    DATED_ENTRY_LIFETIME,
    Entry,
    entries_of,
    message_of,
    minute_of,
    watch_entries_of,
)
from carillon.domain.wheel.segment import LEASE, Backlog, Control
from carillon.reindexing.moved import on_their_way
from carillon.schedules import ClosedDays, Delay, Recurrence, SlotKind

_WAITING = frozenset({RunStatus.SCHEDULED, RunStatus.RETRYING})
_LONGEST_PAUSE_SECONDS = 600
"""Between two steps of a backfill whose job is paused."""
_BEHIND = timedelta(minutes=2)
"""In another minute of the wheel, where it replaces nothing, and after what comes from there."""


@dataclass(slots=True)
class Past:
    """The facts in the rows of a job, read page by page in any order.

    `last_at` is the newest fire time that a scheduled run has, or that the row of a catch-up
    covers; `newest` the run of the newest one under the job's own generation; `told_at` the newest
    one that was told of as missed. `waiting` have yet to begin an attempt, or are open: what comes
    for them may have stood on the wheel. Of what was due before `kept_since` rows may have expired.
    """

    generation_id: str
    kept_since: datetime
    last_at: datetime | None = None
    told_at: datetime | None = None
    newest: Run | None = None
    waiting: list[Run] = field(default_factory=list)

    def add(self, rows: Iterable[Run]) -> None:
        for row in rows:
            key = row.key
            if key.kind in (RunKind.SCHEDULED, RunKind.MISSED):
                self.last_at = max(self.last_at or key.fire_at, key.fire_at)
            if key.kind is RunKind.WATCH:
                self.told_at = max(self.told_at or key.fire_at, key.fire_at)
            is_waiting = row.status in _WAITING or row.is_open
            if is_waiting and key.kind not in NO_RUNS:
                self.waiting.append(row)
            is_own = key.kind is RunKind.SCHEDULED and row.generation_id == self.generation_id
            if is_own and not key.redrive:
                is_newer = self.newest is None or self.newest.key.fire_at < key.fire_at
                self.newest = row if is_newer else self.newest


@dataclass(frozen=True, slots=True)
class Owed:
    """The entries and messages to put and send for a job. `first` is the first epoch minute in
    which a tick is to read one of the entries; None where nothing is to come. `first_run` is the
    same of those that send runs."""

    entries: tuple[Entry, ...] = ()
    messages: tuple[Message, ...] = ()
    first: int | None = None
    first_run: int | None = None

    def in_time(self, began_at: datetime) -> "Owed":
        """The part that may be put before it is owed that ticks read an entry in minutes before
        that of `began_at`: all of it, all but the missed-run checks, or messages alone."""
        began = minute_of(began_at)
        if self.first is None or self.first >= began:
            return self
        has_missed = self.first_run is not None and self.first_run < began
        entries = () if has_missed else tuple(each for each in self.entries if not each.is_watch)
        return replace(self, entries=entries, first=None if has_missed else self.first_run)


def owed_to(job: Job, past: Past, since: datetime, closed: ClosedDays | None) -> Owed:
    """Everything that ticks and queues are to have of a job: its entries, for occurrences whose
    nominal time is after `since`, and a message for each run that waits.

    The entries are those of the generation that the row has, with a later beginning: the same keys,
    so that remaining entries are replaced and a repetition changes nothing. The row is left as it
    is, with its revision, its streak of failures and the generations that it remembers. Runs of
    paused and deleted jobs come too: the executor knows what becomes of them. Of a job that was
    changed in its pause nothing else comes: its schedule yields nothing before it is resumed.
    `closed` are the days closed in the job's calendar; None if it has none.
    """
    messages = [waiting_message(run, job) for run in past.waiting]
    if job.resume_at is not None:
        messages.append(resume_message(job))
    if job.state in (JobState.DELETED, JobState.RENAMED) or not job.is_as_filed:
        return Owed(messages=tuple(messages))
    sent = resolve(job.schedule, job.spec.calendar, closed).sent
    if isinstance(job.schedule, Delay):
        return Owed(messages=(*messages, *_sequence(job, past, since, sent, closed)))
    is_active = job.state is JobState.ACTIVE
    entries = entries_of(_beginning(job, since), sent) if is_active else []
    if is_active:
        messages += on_their_way(job, since, closed)
    looks = _looks(job, past, since)
    runs, checks = [*_minutes(entries, sent)], [*_minutes(looks, job.schedule)]
    first, first_run = min([*runs, *checks], default=None), min(runs, default=None)
    return Owed((*entries, *looks), tuple(messages), first, first_run)


def since_when(job: Job, past: Past, settled_until: datetime, earliest: datetime) -> datetime:
    """The nominal time after which a job is owed what its schedule yields: of its newest occurrence
    in the history, but never later than what ticks know to be settled, nor before `earliest`.

    Ticks count effective times: what was due by `settled_until` in a window may have yet to come.
    """
    last = past.last_at or job.generation.from_at
    settled = settled_until - timedelta(seconds=job.spread_seconds)
    return max(min(last, settled), job.generation.from_at, earliest)


def waiting_message(run: Run, job: Job) -> Message:
    """The message of a run that waits in its row, or the check of an open one: as current as the
    one that may be lost, so that the claim absorbs one of the two."""
    message = replace(queued_run_message(run, job), attempt=run.attempt + 1)
    if run.is_open:
        return check_of(message, run)
    if run.status is RunStatus.RETRYING:
        message = replace(message, due_at=run.next_attempt_at or run.updated_at)
    return replace(message, wait_until=_waits_until(run))


def _waits_until(run: Run) -> datetime | None:
    """Until when a run that a policy holds back is left to the message that it waits for: that one
    alone knows the start that it was granted, and whether it was in time once."""
    at = run.next_attempt_at
    return at + _BEHIND if run.waits and at is not None else None


def step_of(operation: Operation) -> Message:
    """The order to do the step that an operation is at, when the last one's pause is over."""
    pause_seconds = _LONGEST_PAUSE_SECONDS if operation.note else STEP_SECONDS
    due_at = operation.updated_at + timedelta(seconds=pause_seconds)
    return operation.step_message(due_at.replace(microsecond=0))


def owing(
    seen: Control, first: int | None, began_at: datetime, now: datetime, lease_owner: str
) -> Control:
    """The control item that takes the lease over, and owes all minutes from `first` on.

    Those before `began_at` count as missed: each job's catch-up decides. What ticks have dispatched
    since is sent whole: claims absorb it. The minutes to come are live again, so that no tick has
    gone past before an entry was put. A tick that holds the lease loses it.
    """
    previous, began = minute_of(now) - 1, minute_of(began_at)
    done = seen.complete_until if first is None else min(first - 1, seen.complete_until)
    missed_until, backlog = min(began - 1, previous), list[Backlog]()
    if done < missed_until:
        # Entries know where they begin; the earliest announcement has every batch decide alike.
        announced = min([done, *(each.announced for each in seen.backlog)])
        backlog.append(Backlog(announced, done, missed_until, began_at))
    since = max(done, missed_until)
    if since < previous:
        backlog.append(Backlog(previous, since, previous, began_at))
    return replace(
        seen,
        watermark=min(seen.watermark, previous),
        token=seen.token + 1,
        lease_owner=lease_owner,
        lease_until=now + LEASE,
        backlog=tuple(backlog),
        cursor=None,
        backlog_cursor=None,
        shares=None,
        idle=False,
    )


def _beginning(job: Job, since: datetime) -> Job:
    """The job as if its generation began at `since`, unless it does later."""
    from_at = max(job.generation.from_at, since.replace(microsecond=0))
    return replace(job, generation=replace(job.generation, from_at=from_at))


def _looks(job: Job, past: Past, since: datetime) -> list[Entry]:
    """The entries of the job's missed-run check, for the checks that are due, but for the job's
    offset in its window, after `since`. They come later than their occurrences, and a pause ends
    none that came before it. One of `since` or before that was told of is not told of again."""
    later = timedelta(seconds=job.spec.expect_within or 0)
    if job.paused_at is not None and job.paused_at + later <= since:
        return []
    begin = since - later
    if past.told_at is not None and past.told_at <= since:
        begin = max(begin, past.told_at)
    return watch_entries_of(_beginning(job, begin))


def _minutes(entries: Iterable[Entry], sent: Recurrence) -> Iterable[int]:
    """The first minute in which each entry is to be read."""
    for entry in entries:
        following = sent.next(entry.from_at)
        if entry.slot.kind is SlotKind.DATED:
            yield entry.slot.number
        elif following is not None:
            yield minute_of(following + entry.spread)


def is_forgotten(job: Job, past: Past, since: datetime) -> bool:
    """True if the wheel alone knows the next occurrence of a fixed delay: the runs before it may
    have expired, since the delay is longer than rows are sure to be kept."""
    if past.newest is not None or _has_ended(job, since) or not isinstance(job.schedule, Delay):
        return False
    first = job.schedule.next(job.generation.from_at)
    is_long = timedelta(seconds=job.schedule.delay_seconds) > DATED_ENTRY_LIFETIME
    return is_long and first is not None and first < past.kept_since


def _has_ended(job: Job, since: datetime) -> bool:
    """True if nothing of a fixed delay is to come, be it that it had ended before `since`."""
    end_at = job.schedule.end_at
    return job.state is not JobState.ACTIVE or (end_at is not None and end_at <= since)


def _sequence(
    job: Job, past: Past, since: datetime, sent: Recurrence, closed: ClosedDays | None
) -> list[Message]:
    """The next occurrence of a fixed delay: it follows from the end of its newest run. While that
    is under way nothing is owed: its own message comes again. Nor is it where the sequence has
    ended, or may have gone on: the rows of its runs may have expired."""
    newest = past.newest
    if newest is None and (_has_ended(job, since) or is_forgotten(job, past, since)):
        return []
    if newest is None:
        first = sent.next(job.generation.from_at) or job.schedule.next(job.generation.from_at)
        return [] if first is None else [message_of(job, first)]
    if not newest.is_final:
        return []
    following = next_after_finish(job, newest, queued_run_message(newest, job), closed)
    return [] if following is None else [following]
