"""Jobs that keep lasting long, and hosts that hang."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from carillon.domain.admission.state import AdmissionRow
from carillon.domain.decisions import Redirect
from carillon.domain.job import Job, Lane, Slow
from carillon.domain.message import Message
from carillon.domain.run import Run
from carillon.domain.targets import WebhookTarget
from carillon.schedules import Delay

MANY = 3
"""This many slow attempts make a slow job; one that timed out counts twice."""
LATELY = timedelta(minutes=10)
OCCURRENCES = 5
"""Slow attempts count for ten minutes, or for this many occurrences if those take longer."""
BEHAVED = timedelta(hours=1)
"""A quick attempt brings a job back from lane slow if its last slow one is this old."""
_OWNERS_PART = 4
"""One owner holds at most one of this many places of lane slow."""
_NOTED = timedelta(minutes=1)
"""In lane slow the last slow attempt is noted no more often than that."""
_REMEMBERED = timedelta(days=400)
"""A gate outlives the time between two occurrences of a yearly job."""
_TIMEOUT = "timeout"


def share_of_an_owner(places: int) -> int:
    """The number of places of lane slow that one owner may hold."""
    return max(1, places // _OWNERS_PART)


def weight_of(run: Run, slow_after_seconds: int) -> int:
    """The weight of the attempt that has just ended: 0 if it was quick."""
    began_at = run.attempt_started_at
    if began_at is None or run.updated_at - began_at <= timedelta(seconds=slow_after_seconds):
        return 0
    return 2 if run.error is not None and run.error.kind == _TIMEOUT else 1


def with_slow_attempt(gate: AdmissionRow, run: Run, job: Job, weight: int) -> AdmissionRow:
    """The job's gate after a slow attempt of `run` has ended; in lane slow only the last counts."""
    ended_at = run.updated_at
    if job.lane is Lane.SLOW:
        known = bool(gate.slow_at) and ended_at - gate.slow_at[-1] < _NOTED
        slow_at = gate.slow_at if known else (ended_at,)
    else:
        since = _counts_since(run, job)
        recent = [at for at in gate.slow_at if at >= since]
        slow_at = (*recent, *[ended_at] * weight)[-MANY:]
    if slow_at == gate.slow_at:
        return gate
    return replace(gate, slow_at=slow_at).lasting(ended_at + _REMEMBERED)


def mark(gate: AdmissionRow, run: Run, slow_after_seconds: int) -> Slow | None:
    """The mark that the job gets for the slow attempts in its gate; None while they are few."""
    if len(gate.slow_at) < MANY:
        return None
    began_at = run.attempt_started_at or run.updated_at
    took_seconds = (run.updated_at - began_at).total_seconds()
    reason = (
        f"attempts keep lasting longer than {slow_after_seconds} s; "
        f"the last one, of {run.key.run_id}, took {took_seconds:.1f} s"
    )
    return Slow(run.updated_at, reason)


def may_have_behaved(run: Run, job: Job) -> bool:
    """True if a quick attempt of a job in lane slow may bring it back; its gate knows."""
    return job.slow is not None and run.updated_at - job.slow.since >= BEHAVED


def has_behaved(gate: AdmissionRow | None, run: Run) -> bool:
    """True if the last slow attempt is long ago when a quick one has ended."""
    last = gate.slow_at[-1:] if gate is not None else ()
    return not last or run.updated_at - last[0] >= BEHAVED


def redirected(message: Message, job: Job) -> Redirect:
    """The message for the lane that its job is served in.

    What it stood for besides its own occurrence is recorded by now.
    """
    there = replace(message, lane=job.lane, slot_key="", missed=None)
    return Redirect(there, f"its job is served in lane {job.lane.value}")


def _counts_since(run: Run, job: Job) -> datetime:
    """From when on slow attempts count at the end of one of `run`."""
    occurrence = run.key.fire_at
    for _ in range(OCCURRENCES - 1):
        if isinstance(job.schedule, Delay):
            occurrence -= timedelta(seconds=job.schedule.delay_seconds)
        else:
            occurrence = job.schedule.previous(occurrence) or occurrence
    return min(run.updated_at - LATELY, occurrence)


IN_A_ROW = 5
"""This many attempts of one owner at a host have timed out, and none has ended otherwise
meanwhile."""
FRESH = timedelta(minutes=1)
"""Older attempts prove nothing about the host's present state."""


@dataclass(frozen=True, slots=True)
class TimeOuts:
    """Attempts in a row that timed out at one host; the last ended at `last_at`."""

    count: int
    last_at: datetime


def host_of(job: Job) -> tuple[str, str] | None:
    """The job's owner and the host and port that it calls; None where it calls no webhook. How long
    a task lasts is its payload's matter."""
    target = job.spec.target
    return (job.owner, target.address) if isinstance(target, WebhookTarget) else None


def with_time_out(seen: TimeOuts | None, at: datetime) -> TimeOuts:
    count = seen.count if seen is not None and at - seen.last_at <= FRESH else 0
    return TimeOuts(count + 1, max(at, seen.last_at) if seen is not None else at)


def mark_by_host(seen: TimeOuts | None, host: tuple[str, str], now: datetime) -> Slow | None:
    """The mark of a job whose host hangs; None for a host of which that is not known."""
    if seen is None or seen.count < IN_A_ROW or now - seen.last_at > FRESH:
        return None
    return Slow(now, f"the last {seen.count} attempts at {host[1]} timed out")
