"""Messages that their lane has given up: sent back to it, as long as an attempt can be made.

A reception that found no free executor counts as one that killed it. So what a lane has given up
tells nothing of its run: the row does.
"""

from dataclasses import replace
from datetime import datetime, timedelta

from carillon.domain.decisions import Claim
from carillon.domain.job import Job
from carillon.domain.message import LONGEST_DELAY_SECONDS, Message

_FIRST_DELAY_SECONDS = 30


def returned(message: Message) -> Message:
    """The message as it goes back to its lane."""
    return replace(message, returns=message.returns + 1)


def delay_seconds(message: Message) -> int:
    """How long a returned message waits: 30 s, 60 s, 120 s ... up to 15 minutes."""
    return min(LONGEST_DELAY_SECONDS, _FIRST_DELAY_SECONDS << min(message.returns - 1, 10))


def is_too_old(message: Message, now: datetime, retention: timedelta) -> bool:
    """Whether what has never begun is given up: due longer ago than a queue keeps messages."""
    return now - message.starts_at > retention


def is_given_up(
    claim: Claim, message: Message, job: Job | None, now: datetime, retention: timedelta
) -> bool:
    """Whether a run that can be claimed is settled without a further attempt.

    One that has yet to begin is made, unless it is too old. One that died is followed by another
    as long as the job, read for a takeover only, has any left.
    """
    if claim.is_takeover:
        return job is not None and claim.run.attempt > job.spec.retry.max_attempts
    return is_too_old(message, now, retention)
