"""Messages that their lane has given up: sent back to it, as long as an attempt can be made.

A reception that found no free executor counts as one that killed it. So a message that a lane has
given up proves nothing about its run: the row decides.
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
    """The wait of a returned message: 30 s, 60 s, 120 s ... up to 15 minutes."""
    return min(LONGEST_DELAY_SECONDS, _FIRST_DELAY_SECONDS << min(message.returns - 1, 10))


def is_too_old(message: Message, now: datetime, retention: timedelta) -> bool:
    """True if a run that has never begun is given up: due longer ago than a queue keeps
    messages."""
    return now - message.starts_at > retention


def is_given_up(
    claim: Claim, message: Message, job: Job | None, now: datetime, retention: timedelta
) -> bool:
    """True if a run that can be claimed is given up without a further attempt.

    One that has yet to begin is made, unless it is too old. One that died is followed by another
    as long as the job, read for a takeover only, has any left.
    """
    if claim.is_takeover:
        return job is not None and claim.run.attempt > job.spec.retry.max_attempts
    return is_too_old(message, now, retention)
