"""The end of a pause that was to last until an instant
(docs/running.md#run-now-pause-pause-until)."""

from datetime import datetime, timedelta

from carillon.domain.decisions import Defer, Drop, Proceed
from carillon.domain.job import Job, JobState
from carillon.domain.message import Message
from carillon.domain.run import RunKey, RunKind
from carillon.schedules import Delay
from carillon.schedules.base import EPOCH

SHORTEST_PAUSE = timedelta(minutes=1)
"""By its end the row has surely been written: the message that resumes the job is sent before."""
LONGEST_PAUSE = timedelta(days=366)
_YOUNG = timedelta(minutes=2)
"""The row of a pause this young may not be written yet, by the clocks of others."""
_AGAIN = timedelta(seconds=10)


def resume_message(job: Job) -> Message:
    """The message that resumes a paused job; it names the pause and its end, so that it is of no
    use once either is another. Raises ValueError for a job that is not to be resumed by itself."""
    if job.paused_at is None or job.resume_at is None:
        raise ValueError(f"job {job.job_id} is not paused until an instant")
    began_us = (job.paused_at - EPOCH) // timedelta(microseconds=1)
    key = RunKey(job.owner, job.job_id, RunKind.RESUME, job.resume_at, str(began_us))
    return Message.of(job, key, job.resume_at)


def is_over(job: Job, now: datetime) -> bool:
    """True if a paused job is to be resumed by now."""
    return job.resume_at is not None and now >= job.resume_at


def resumed_after(job: Job, now: datetime) -> datetime:
    """The instant after which a job that is resumed now has its occurrences: the present second,
    or, where its pause is over, the end of that, of which one at that very instant is no part."""
    if job.resume_at is None or now < job.resume_at:
        return now.replace(microsecond=0)
    return _beginning(job, job.resume_at)


def was_resumed_by(job: Job, message: Message) -> bool:
    """True if the job goes on in the generation that began at the end of the message's pause."""
    begin = _beginning(job, message.key.fire_at)
    return job.state is JobState.ACTIVE and job.generation.from_at == begin


def decide_resume(job: Job | None, message: Message, now: datetime) -> Proceed | Defer | Drop:
    """The decision about a message that resumes a job, at its time, by the row as it is now."""
    is_paused = job is not None and job.state is JobState.PAUSED and job.resume_at is not None
    if job is not None and is_paused and resume_message(job).key == message.key:
        return Proceed()
    paused_at = EPOCH + timedelta(microseconds=int(message.key.request_id))
    left = paused_at + _YOUNG - now
    if left > timedelta() and not (job is not None and was_resumed_by(job, message)):
        reason = "the pause may not be recorded yet"
        return Defer.twice_as_late(message.due_at, now, reason, shortest=_AGAIN, longest=left)
    return Drop("the job is not paused until then any more")


def _beginning(job: Job, resume_at: datetime) -> datetime:
    is_delay = isinstance(job.schedule, Delay)
    return resume_at - timedelta(seconds=0 if is_delay else 1)
