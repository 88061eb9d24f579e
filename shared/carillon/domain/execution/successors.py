"""Runs of jobs that run after another one: their messages, and the decision to start them."""

from collections.abc import Iterator
from datetime import timedelta

from carillon.domain.decisions import Drop, Proceed, Skip, SkipReason
from carillon.domain.job import Job
from carillon.domain.message import Message
from carillon.domain.run import Run, RunKey, RunKind
from carillon.domain.spec.after import After
from carillon.domain.spec.names import job_id_of
from carillon.schedules import format_duration

COUNTED_KINDS = frozenset({RunKind.SCHEDULED, RunKind.MANUAL, RunKind.BACKFILL})
"""The kinds of runs whose end starts others. One that was itself started so is none of them:
whatever jobs name each other, no chain is longer than two."""
PREDECESSOR_GONE = "the run that it follows is gone"


def messages_after(run: Run, job: Job) -> Iterator[Message]:
    """The orders to start the successors of `job` that the end of its run demands: due at once.

    A function of the run's row and the links, so that a repetition sends the same.
    """
    ended_at = run.finished_at
    if run.key.kind not in COUNTED_KINDS or ended_at is None:
        return
    for link in job.successors:
        if link.when.fits(run.status) and link.since <= ended_at:
            yield Message(
                key=run.key.successor(link.job_id),
                generation_id=run.generation_id,
                segment=link.segment,
                lane=link.lane,
                due_at=ended_at.replace(microsecond=0),
            )


def start_after(job: Job, key: RunKey, before: Run | None) -> Proceed | Skip | Drop:
    """The decision about the first attempt of a run that the run `before` has started, by its job's
    row, which is in force.

    A link stands for more than its job's setting while that is changed, and for a job that was
    never committed: then there is nothing to record.
    """
    after = job.spec.after
    if after is None or job_id_of(job.owner, after.job) != key.predecessor.job_id:
        return Drop("its job does not run after that one")
    if before is None:
        return Skip(SkipReason.CHANGED, PREDECESSOR_GONE)
    if not after.when.fits(before.status):
        return Drop(f"the run that it follows is {before.status.value}")
    late = _late(after, before)
    return Proceed() if late is None else Skip(SkipReason.MISFIRE, late)


def _late(after: After, before: Run) -> str | None:
    """The reason why the run before has ended too late, in words; None if it has not."""
    if after.within is None:
        return None
    taken = (before.finished_at or before.updated_at) - (before.effective_at or before.key.fire_at)
    if taken <= timedelta(seconds=after.within):
        return None
    late, within = format_duration(int(taken.total_seconds())), format_duration(after.within)
    return f"{before.key.run_id} ended {late} after its time, later than within {within}"
