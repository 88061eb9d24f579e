"""What came late: under `latest` it leaves its place to a later occurrence that is due, and in a
chunk it is not called."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from datetime import timedelta

from carillon.audit.evidence import Violation
from carillon.domain.job import Job, JobState
from carillon.domain.policies import CatchUp
from carillon.domain.run import RunKey
from carillon.schedules import Delay
from tests.simulation.judging.known import Known

_SLACK = timedelta(seconds=5)
"""Between the look at the clock that decides and the claim."""
_LONGEST_IN_CHUNK = timedelta(seconds=2)
"""From the answer to a chunk's claim to the last call under it."""


def ran_late(known: Known) -> Iterator[Violation]:
    """Occurrences that were called late, though a later one was due when they were claimed.

    Lenient: where anything had struck since they were due, or an outage of ticks had a say; what
    was held back before; what was chosen in the place of others, as after a pause or a hand-over;
    under calendars; what came so late that its job was completed by then, whose last occurrence
    represents no other.
    """
    evidence = known.evidence
    if not evidence.is_complete:
        return
    chosen = {
        (row.note or "").split(" ")[0]
        for rows in known.rows.values()
        for row in rows
        if row.reason == "catch_up"
    }
    for run_id, deliveries in known.deliveries.items():
        key, first = known.run_ids.get(run_id), deliveries[0]
        job = known.job_at(first.job_id, first.job_revision)
        if key is None or job is None or run_id in chosen or not _is_asked_of(key, job):
            continue
        if job.state is not JobState.ACTIVE or first.may_be_late:
            continue
        claim = next(iter(known.writes.get(key, ())), None)
        if claim is None or claim.after is None or claim.process != first.process:
            continue
        if claim.after.generation_id != job.generation.generation_id or claim.at > first.begun_at:
            continue
        due_at = claim.after.effective_at or key.fire_at
        if any(gap.from_at <= claim.at for gap in known.gaps_of(job.job_id)):
            continue
        if bisect_left(evidence.faults, due_at) != bisect_right(evidence.faults, first.begun_at):
            continue
        grace = timedelta(seconds=60 if job.spec.grace is None else job.spec.grace)
        following = job.schedule.next(key.fire_at)
        next_at = None if following is None else following + (due_at - key.fire_at)
        is_late = claim.at - due_at > grace + _SLACK
        if is_late and next_at is not None and next_at <= claim.at - _SLACK:
            text = (
                f"{run_id} was claimed at {claim.at}, {claim.at - due_at} late: {next_at} was due"
            )
            yield Violation("late", key.job_id, text, key.fire_at)


def late_in_chunk(known: Known) -> Iterator[Violation]:
    """Calls that were made so long after their chunk's claim that others might have taken it over.

    That holds of a process that stood still, too: it looks at the clock after all that it asks. But
    it may stand still once more before the call itself.
    """
    answer = timedelta(seconds=known.evidence.circumstances.latency_seconds)
    for run_id, deliveries in known.deliveries.items():
        for each in deliveries:
            claimed_at, asked_at = each.chunk_claimed_at, each.asked_at
            if claimed_at is None or asked_at is None:
                continue
            if asked_at - claimed_at <= answer + _LONGEST_IN_CHUNK:
                continue
            key = known.run_ids.get(run_id)
            fire_at = None if key is None else key.fire_at
            text = (
                f"{run_id} was called at {each.begun_at} by who had asked for something at"
                f" {asked_at}, in a chunk claimed at {claimed_at}"
            )
            yield Violation("I2", each.job_id, text, fire_at)


def _is_asked_of(key: RunKey, job: Job) -> bool:
    """Whether the policy has a say in this run."""
    if not key.is_occurrence or job.spec.calendar is not None:
        return False
    is_recurring = job.schedule.is_recurring and not isinstance(job.schedule, Delay)
    return job.spec.catch_up is CatchUp.LATEST and is_recurring
