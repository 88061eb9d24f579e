"""Jobs that run after another one: the links to them in that one's row, the messages that start
their runs, and the decision to start.

A link is put before the job that it leads to is committed, and taken away after that job says
otherwise: so it never stands for less than the job's row does, whatever crashes between.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

from carillon.domain.decisions import Drop, Proceed, Skip, SkipReason
from carillon.domain.job import Job, Successor
from carillon.domain.message import Message
from carillon.domain.run import Run, RunKey, RunKind
from carillon.domain.spec.after import After, Outcome
from carillon.domain.spec.names import job_id_of
from carillon.schedules import format_duration

CLOCKS_DIFFER = timedelta(minutes=1)
"""From the end of a run by one clock to the creation of a job by another at most."""
YOUNG_LINK = timedelta(hours=1)
"""A link this young may lead to a job that is yet to be committed."""
COUNTED_KINDS = frozenset({RunKind.SCHEDULED, RunKind.MANUAL, RunKind.BACKFILL})
"""The kinds of runs whose end starts others. One that was itself started so is none of them:
whatever jobs name each other, no chain is longer than two."""
PREDECESSOR_GONE = "the run that it follows is gone"


def link_of(job: Job) -> Successor | None:
    """The link that stands for exactly the job's setting; None for a job with a schedule."""
    after = job.spec.after
    if after is None:
        return None
    put_at = job.updated_at.replace(microsecond=0)
    since, lane = put_at - CLOCKS_DIFFER, job.spec.priority
    return Successor(job.job_id, after.when, job.segment, lane, job.revision, since, put_at)


def predecessor_id(job: Job | None) -> str | None:
    """The id of the job that this one runs after; None for a job that has none, or is gone."""
    if job is None or job.is_tombstone or job.spec.after is None:
        return None
    return job_id_of(job.owner, job.spec.after.job)


def linked(predecessor: Job, link: Successor) -> Job:
    """The predecessor with `link`. Until that is committed the one that stands for the same job
    counts, too, whoever has put it: so the new one stands for both."""
    for before in predecessor.successors:
        if before.job_id == link.job_id:
            when = link.when if link.when is before.when else Outcome.FINISHED
            link = replace(link, when=when, since=min(before.since, link.since))
    return _with(predecessor, link)


def narrowed(predecessor: Job, link: Successor, *, is_new: bool) -> Job:
    """The predecessor with the link of a job that is committed by now, for that alone. As it is if
    another change of the job has put one since. Unless the job `is_new` here, its runs under the
    former setting may not have been started yet: the link counts as long as it did."""
    for put in predecessor.successors:
        if (put.job_id, put.revision) == (link.job_id, link.revision):
            exact = link if is_new else replace(link, since=put.since)
            return predecessor if put == exact else _with(predecessor, exact)
    return predecessor


def unlinked(predecessor: Job, former: Job) -> Job:
    """The predecessor without the link to a job whose row, by the revision of `former`, does not
    say so any more. As it is if a later revision may."""
    kept = tuple(
        link
        for link in predecessor.successors
        if link.job_id != former.job_id or link.revision > former.revision
    )
    return replace(predecessor, successors=kept)


def _with(predecessor: Job, link: Successor) -> Job:
    others = (each for each in predecessor.successors if each.job_id != link.job_id)
    return replace(predecessor, successors=(*others, link))


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
    never committed, or not yet: then there is nothing to record.
    """
    after = job.spec.after
    if after is None or job_id_of(job.owner, after.job) != key.predecessor.job_id:
        return Drop("its job does not run after that one")
    if before is None:
        return Skip(SkipReason.CHANGED, PREDECESSOR_GONE)
    if (before.finished_at or before.updated_at) < job.created_at - CLOCKS_DIFFER:
        return Drop("the run that it follows had ended before there was its job")
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
