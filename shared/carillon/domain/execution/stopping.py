"""Cancelling a run: one that waits, or one whose target is being called."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from carillon.domain.execution.transitions import EXECUTOR_DIED
from carillon.domain.run import AttemptRecord, Run, RunError, RunStatus

LOOK_SECONDS = 2
"""An executor reads the row of a run this often during its call. A call that is shorter is never
looked at, so a younger one is not cancelled: it may have ended by the time anybody could stop
it."""
ON_REQUEST = "on request"
"""The reason of a run that somebody cancelled."""
STOPPED = RunError("stopped", "the run was cancelled, or taken over, during its call")


@dataclass(frozen=True, slots=True)
class NotCancellable:
    """`again_after_seconds` is when to ask again; None where the run has ended."""

    reason: str
    again_after_seconds: int | None = None


def decide_cancel(
    seen: Run, claim_id: str, now: datetime, expires_at: datetime
) -> Run | NotCancellable:
    """The cancelled row for `RunStore.claim`, over the row that was seen.

    A call that is under way under a live lease must have lasted LOOK_SECONDS, counted from the
    claim; its attempt is kept among the others. An executor whose lease has lapsed is dead: nobody
    has to be stopped then. Of an open run no executor waits for the end.
    """
    cancelled = seen.cancelled(ON_REQUEST, claim_id, now, expires_at)
    if seen.status in (RunStatus.SCHEDULED, RunStatus.RETRYING):
        return replace(cancelled, claim_id=seen.claim_id)  # it may have waited in a place
    if seen.status is not RunStatus.RUNNING:
        return NotCancellable(f"is {seen.status.value}: it has ended")
    began_at = seen.attempt_started_at or seen.updated_at
    if seen.is_open:
        error, note = STOPPED, "nobody waits for its report any more"
    elif seen.lease_until is None or seen.lease_until <= now:
        error, note = EXECUTOR_DIED, "its executor had died"
    elif now - began_at < timedelta(seconds=LOOK_SECONDS):
        young = f"has been running for less than {LOOK_SECONDS} s: cancel it again after that"
        return NotCancellable(young, LOOK_SECONDS)
    else:
        error, note = STOPPED, "its call was stopped"
    record = AttemptRecord(seen.attempt, began_at, now, error)
    return replace(
        cancelled,
        note=note if seen.note is None else f"{seen.note}; {note}",
        attempts=(*seen.attempts, record),
        other_generations=(),
    )


def is_overdue(run: Run, now: datetime) -> bool:
    """True if a claimed run could be cancelled, though its call has yet to begin: what is in front
    of it has taken its time."""
    claimed_at = run.attempt_started_at
    return claimed_at is not None and now - claimed_at >= timedelta(seconds=LOOK_SECONDS)
