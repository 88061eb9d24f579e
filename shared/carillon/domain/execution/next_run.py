"""The next run after a final one: fixed delays, queued runs."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from carillon.clock import ceil_second
from carillon.domain import policies
from carillon.domain.calendar import resolve, shifts
from carillon.domain.decisions import SkipReason
from carillon.domain.events import EventType
from carillon.domain.execution.transitions import EXECUTOR_DIED
from carillon.domain.job import Job, JobState
from carillon.domain.message import LONGEST_DELAY_SECONDS, Message
from carillon.domain.policies import OnComplete, Overlap
from carillon.domain.run import Run, RunKey, RunKind
from carillon.domain.targets import Target
from carillon.domain.wheel.entry import message_of
from carillon.schedules import ClosedDays, Delay
from carillon.schedules.calendars.closed_days import MOST_SHIFTED_DAYS


def queued_run_message(run: Run, job: Job) -> Message:
    """The message for the first attempt of a run that waits in its row: its turn has come.

    It comes besides the one that checks from time to time, and is as current: the other finds the
    run begun, or waiting anew.
    """
    return Message(
        key=run.key,
        generation_id=run.generation_id,
        segment=job.segment,
        lane=job.lane,
        due_at=run.effective_at or run.key.fire_at,
        after_finish=run.key.is_occurrence and isinstance(job.schedule, Delay),
        waits=run.waits,
    )


_ENDS_THE_SEQUENCE = frozenset({SkipReason.PAUSED, SkipReason.DELETED, SkipReason.CHANGED})

SETTLED = timedelta(seconds=5)
"""After its due time a run has begun, unless its queue or its executors are behind."""


def next_after_finish(
    job: Job | None, run: Run, message: Message, closed: ClosedDays | None
) -> Message | None:
    """The message of the occurrence that follows a final run of a fixed delay; None if none does.

    A function of the run's end, so that all executors send the same. Only the job's own generation
    continues: a resume or change has begun a sequence of its own.
    """
    if job is None or job.state is not JobState.ACTIVE or not isinstance(job.schedule, Delay):
        return None
    if job.generation.generation_id != message.generation_id or run.reason in _ENDS_THE_SEQUENCE:
        return None
    end = _end_of(run)
    # A calendar without any open day does not end the chain: it may be opened again.
    following = resolve(job.schedule, job.spec.calendar, closed).sent.next(
        end
    ) or job.schedule.next(end)
    return None if following is None else message_of(job, following)


def check_again_at(following: Message, now: datetime) -> datetime | None:
    """The instant at which a message whose run had ended checks that `following`, the next one, has
    begun.

    None at once: when it must have by now, or when it is for the wheel, which keeps but one of
    it. In the queue each sending would be another one, and each of these would send again.
    """
    check_at = following.due_at + SETTLED
    ahead_seconds = (following.due_at - now).total_seconds()
    return check_at if now < check_at and ahead_seconds <= LONGEST_DELAY_SECONDS else None


def message_of_cancelled(job: Job, run: Run, now: datetime) -> Message | None:
    """A message for a cancelled run, so that what follows from its end is done, and an attempt that
    died is told of: the run's own may come much later. None where nothing follows."""
    message = queued_run_message(run, job)
    if run.completion is not None:  # it may have kept permits
        return replace(message, due_at=now.replace(microsecond=0), attempt=run.attempt)
    if run.key.kind is RunKind.CALLBACK:
        return None
    has_died = any(each.error == EXECUTOR_DIED for each in run.attempts[-1:])
    follows = message.after_finish or job.spec.overlap is not Overlap.ALLOW
    goes_on = job.state is JobState.RENAMED  # it may complete the job that it is by now
    if has_died or follows or goes_on or may_complete(job, run):
        return replace(message, due_at=now.replace(microsecond=0))
    return None


def may_complete(job: Job, run: Run) -> bool:
    """True if the end of the run could be the end of its job, apart from the schedule, and somebody
    wants to know. A job that is kept may be run manually long after its end."""
    if job.spec.after is not None:
        return False
    kept = job.spec.on_complete is OnComplete.KEEP
    if job.state is not JobState.ACTIVE or (
        kept and EventType.JOB_COMPLETED not in job.spec.events
    ):
        return False
    return run.key.kind is RunKind.SCHEDULED if kept else run.key.kind is not RunKind.CALLBACK


def is_over(job: Job, run: Run, message: Message, closed: ClosedDays | None, now: datetime) -> bool:
    """True if no occurrence of the job is to come after a final run.

    A calendar that leaves none at present is not enough, since it may be opened again: the nominal
    times must be over, too. So what ran on an earlier day completes the job on its own day, when
    the message that was sent for that meets the run.
    """
    after = _passed(job, run, message, now)
    generation = job.generation
    is_of_chain = message.after_finish and message.generation_id == generation.generation_id
    if isinstance(job.schedule, Delay) and not is_of_chain:
        # The chain knows when its next one comes, and ends its job. For others there must be none,
        # or it must be past the end of all where they may end after the chain.
        end_at, first = job.schedule.end_at, job.schedule.next(generation.from_at)
        is_past = job.spec.overlap is not Overlap.ALLOW and end_at is not None and end_at < after
        return first is None or is_past
    opened = resolve(job.schedule, job.spec.calendar, closed).open
    if opened.next(after) is not None or _is_owed(job, now):
        return False
    return job.schedule.next(after) is None


def has_chain_ended(job: Job, newest_first: Iterable[Run], now: datetime) -> bool:
    """True if no occurrence of a fixed delay is to come, by the newest rows of its job: whatever
    ends behind the last run of the chain may be the last of all, long before the end of that."""
    own_id = job.generation.generation_id
    chain = (run for run in newest_first if run.key.is_occurrence and run.generation_id == own_id)
    last = next(chain, None)
    is_last = last is not None and last.is_final and job.schedule.next(_end_of(last)) is None
    return is_last and not _is_owed(job, now)


def _is_owed(job: Job, now: datetime) -> bool:
    """True if an occurrence of a replaced generation is to start yet, by its offset in the window
    of then: a generation covers what was nominally due before its end."""
    return any(each.owes_until is not None and each.owes_until > now for each in job.replaced)


def _was_put_off(job: Job, run: Run) -> bool:
    """True if its window has put the run off beyond the end of its generation: it may end last."""
    owed = {each.owes_until for each in job.replaced} - {None}
    return run.effective_at in owed


def last_of(
    job: Job, run: Run, message: Message, closed: ClosedDays | None, now: datetime
) -> RunKey | None:
    """The run of the last occurrence of a job that `is_over`; None where it has no row, or is the
    one that has ended. That may have been moved from a day that is open again."""
    opened = resolve(job.schedule, job.spec.calendar, closed).open
    last = opened.previous(_passed(job, run, message, now) + timedelta.resolution)
    if last is None or last <= job.generation.from_at:
        return None
    own = (run.key.fire_at, message.nominal_at)
    is_own = last <= max(own) if job.spec.overlap is Overlap.ALLOW else last in own
    if run.key.is_occurrence and is_own:
        return None
    return RunKey(job.owner, job.job_id, RunKind.SCHEDULED, last)


def completed_until(job: Job, now: datetime, lifetime: timedelta) -> datetime | None:
    """The time that the row of a completed job is kept. None, for good, where a manifest or stack
    declares it: applied without the row it would be a new job, which runs again or has no
    occurrence left."""
    return None if job.managed_by else needed_until(job, now, lifetime)


def needed_until(job: Job, now: datetime, lifetime: timedelta) -> datetime:
    """The time that the row of a job is needed after the last occurrence of its own: its runs, and
    the callbacks about them, may be open, or wait for retries, for long, and so may an occurrence
    that was moved to another day."""
    backoff = job.spec.retry.backoff
    longest_seconds = max(
        backoff.base_seconds, backoff.cap_seconds, policies.LONGEST_RETRY_DELAY_SECONDS
    )
    waits_seconds = (job.spec.retry.max_attempts - 1) * longest_seconds
    moved = timedelta(days=MOST_SHIFTED_DAYS if shifts(job.spec.calendar) else 0)
    callback = max(_open_seconds(job.spec.on_success), _open_seconds(job.spec.on_failure))
    open_seconds = job.spec.retry.max_attempts * (_open_seconds(job.spec.target) + callback)
    return now + lifetime + moved + timedelta(seconds=waits_seconds + open_seconds)


def _open_seconds(target: Target | None) -> int:
    """The time that an attempt at the target may last behind its call."""
    terms = None if target is None else target.completion
    return 0 if terms is None else terms.within


def _passed(job: Job, run: Run, message: Message, now: datetime) -> datetime:
    """The nominal time up to which, at the end of the run, no occurrence is to come any more.

    A job that is kept, and whose runs overlap, is told to be complete once, at the end of the last
    occurrence's run, or of one that was put off beyond that. Of any other any run may end after it:
    where they wait for each other or are skipped, or did before a change.
    """
    passed = max(run.key.fire_at, message.nominal_at, job.generation.from_at)
    if isinstance(job.schedule, Delay):
        passed = max(passed, _end_of(run))
    is_told_once = job.spec.on_complete is OnComplete.KEEP and job.spec.overlap is Overlap.ALLOW
    if not is_told_once or _was_put_off(job, run):
        passed = max(passed, now - timedelta(seconds=job.spread_seconds))
    return passed


def _end_of(run: Run) -> datetime:
    """The first whole second at which the run had ended."""
    return ceil_second(run.finished_at or run.updated_at)
