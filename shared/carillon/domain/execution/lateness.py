"""Late occurrences: what an executor does about them, whichever part of the scheduler was down.

Catch-up at the tick (wheel/due.py) covers what was never sent. What was sent, and comes late to its
target, is decided here.
"""

from dataclasses import replace
from datetime import datetime, timedelta

from carillon.domain.calendar import resolve
from carillon.domain.job import Job, JobState
from carillon.domain.message import Message
from carillon.domain.policies import CatchUp
from carillon.schedules import ClosedDays, Delay

LATE = timedelta(seconds=60)
"""The grace of a job that states none."""


def grace_of(job: Job) -> timedelta:
    """The lateness up to which an occurrence of the job is still in time."""
    return LATE if job.spec.grace is None else timedelta(seconds=job.spec.grace)


def is_kept_waiting(message: Message) -> bool:
    """True if a policy, its calendar or a throttled catch-up decides when it comes, or has decided:
    then nothing of it is late."""
    is_held = message.waits > 0 or message.wait_until is not None or message.in_time
    return is_held or message.missed is not None or message.moved_from is not None


def follows_its_schedule(job: Job) -> bool:
    """True if a later occurrence can represent one of the job: neither of a one-shot, nor of a
    fixed delay, whose next one follows from its run."""
    return job.schedule.is_recurring and not isinstance(job.schedule, Delay)


def latest_due(
    job: Job, message: Message, closed: ClosedDays | None, now: datetime
) -> Message | None:
    """The message for the latest occurrence that is due, which represents the message's own.

    None where that is in time, where it is the latest itself, or where each is to run. Occurrences
    are those of the message's generation, as long as that is the job's own: it alone is known
    whole.
    """
    if (
        job.spec.catch_up is CatchUp.ALL
        or not follows_its_schedule(job)
        or is_kept_waiting(message)
    ):
        return None
    if job.state is not JobState.ACTIVE or message.generation_id != job.generation.generation_id:
        return None
    if now - message.starts_at <= grace_of(job):
        return None
    offset = message.due_at - message.key.fire_at
    opened = resolve(job.schedule, job.spec.calendar, closed).open
    latest = opened.last_between(message.key.fire_at, now - offset)
    if latest is None:
        return None
    key = replace(message.key, fire_at=latest)
    # It was chosen in time: however late it comes now, it is not skipped.
    return replace(
        message,
        key=key,
        due_at=latest + offset,
        slot_key="",
        in_time=True,
        returns=0,
    )
