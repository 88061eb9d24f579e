"""Misfire: what comes later than its job's grace is skipped, where its catch-up is to skip."""

from datetime import datetime

from carillon.domain.decisions import Skip, SkipReason
from carillon.domain.execution.lateness import follows_its_schedule, grace_of, is_kept_waiting
from carillon.domain.job import Job
from carillon.domain.message import Message
from carillon.domain.policies import CatchUp
from carillon.domain.run import Run, RunKind


def misfire(job: Job, run: Run, message: Message, now: datetime) -> Skip | None:
    """The skip of an occurrence whose first attempt would start too late; None if it is in time.

    Its time is the effective one. A grace that the job states counts whatever has held it back
    since: a queue, an outage of the executors, another policy. But not the pace of catching up:
    what was in time by then stays so. Without one, what a policy holds back is not late.
    """
    if job.catch_up is not CatchUp.SKIP or message.in_time or not is_first_of_occurrence(run):
        return None
    if job.grace_seconds is None and (is_kept_waiting(message) or not follows_its_schedule(job)):
        return None
    if message.in_time is not None and message.filing_id != job.filing.filing_id:
        return None  # a tick has caught up on it by the policy of its own, replaced filing
    late, grace = now - (run.effective_at or run.key.fire_at), grace_of(job)
    if late <= grace:
        return None
    seconds, grace_seconds = int(late.total_seconds()), int(grace.total_seconds())
    return Skip(SkipReason.MISFIRE, f"{seconds} s late, with {grace_seconds} s of grace")


def is_first_of_occurrence(run: Run) -> bool:
    """Whether a claimed run is an occurrence of the schedule at its first attempt: not a retry, a
    takeover, a redrive, or a run that somebody asked for."""
    return run.key.kind is RunKind.SCHEDULED and run.attempt == 1 and run.key.redrive == 0
