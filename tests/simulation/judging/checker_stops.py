"""Runs that are stopped while their targets are called: how soon, and what the rows say then."""

from collections.abc import Iterator
from datetime import timedelta

from carillon.audit.evidence import Violation
from carillon.domain.run import Run, RunStatus
from tests.simulation.judging.evidence import BY_CHUNK, Delivery, RunWrite
from tests.simulation.judging.known import Known

_STOPPED = timedelta(seconds=4)
"""Of docs/running.md: the call of a stopped run has ended by then, where nothing strikes."""
_YOUNGEST = timedelta(seconds=2)
"""A call is no younger than this when it is stopped."""
_HALVES = 4
"""Of calls: of a look at the row, and of the one after it, or before."""


def stopped(known: Known) -> Iterator[Violation]:
    """The call of a run that is cancelled while it is running ends soon, and is on record."""
    for key, writes in known.writes.items():
        in_chunk = None
        for write in writes:
            if write.method == BY_CHUNK[0]:
                in_chunk = write.after
            for text in _faults_of(known, write, in_chunk):
                yield Violation("stop", key.job_id, f"{key.run_id}: {text}", key.fire_at)


def came_between(known: Known, write: RunWrite, delivery: Delivery) -> bool:
    """True if the write stopped a run between the look of its caller and the call: the caller looks
    at the row, or at the clock, two calls before."""
    after = write.after
    is_stop = after is not None and after.status is RunStatus.CANCELLED
    return is_stop and delivery.begun_at <= write.at + _HALVES * _latency(known)


def _latency(known: Known) -> timedelta:
    return timedelta(seconds=known.evidence.circumstances.latency_seconds)


def _faults_of(known: Known, write: RunWrite, in_chunk: Run | None) -> Iterator[str]:
    """`in_chunk` is the run as its chunk had it, in the place of no row."""
    before, after = write.before or in_chunk, write.after
    if before is None or after is None or before.status is not RunStatus.RUNNING:
        return
    if after.status is not RunStatus.CANCELLED:
        return
    lapsed = before.lease_until is None or before.lease_until <= after.updated_at
    began_at = before.attempt_started_at or before.updated_at
    if write.before is None and not lapsed:
        yield f"it was stopped at {write.at} in a chunk, under a lease until {before.lease_until}"
    if not (lapsed or before.is_open) and after.updated_at - began_at < _YOUNGEST:
        yield f"it was stopped at {write.at}, and had begun at {began_at}"
    if [each.attempt for each in after.attempts[len(before.attempts) :]] != [before.attempt]:
        yield f"it was stopped at {write.at}, and attempt {before.attempt} is not on record"
    if after.finished_at is None or after.lease_until is not None:
        yield f"it was stopped at {write.at}, and is not at its end"
    for each in known.deliveries.get(after.key.run_id, ()):
        ends_by = max(write.at, each.begun_at) + _STOPPED + _HALVES * _latency(known)
        if each.is_untouched and (each.ended_at is None or each.ended_at > ends_by):
            yield f"it was stopped at {write.at}, and its call lasted until {each.ended_at}"
