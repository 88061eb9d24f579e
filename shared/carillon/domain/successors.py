"""Links to jobs that run after another one, in the row of that one, as values.

A link is put before the job that it leads to is committed, and taken away after that job says
otherwise: so it never stands for less than the job's row does, whatever crashes between.
"""

from dataclasses import replace
from datetime import timedelta

from carillon.domain.job import Job, Successor
from carillon.domain.spec.after import Outcome
from carillon.domain.spec.names import job_id_of

CLOCKS_DIFFER = timedelta(minutes=1)
"""From the end of a run by one clock to the creation of a job by another at most."""
YOUNG_LINK = timedelta(hours=1)
"""A link this young may lead to a job that is yet to be committed."""


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
