"""Handing a job over to another owner: which may be, and the rows that it makes of one.

The job ends under the one owner at the instant at which it begins under the other, as where it is
renamed. That instant is in the row that ends it: so whoever repeats the rest begins there, too.
"""

from dataclasses import replace
from datetime import datetime

from carillon.domain.calendar import Calendar, shifts
from carillon.domain.job import Generation, HandOver, Job, JobState
from carillon.domain.operation import Operation
from carillon.domain.spec.names import job_id_of


def refusal_of(job: Job, operation: Operation, *, is_followed: bool) -> str:
    """Why a job stays with its owner; "" where it may be handed over."""
    if job.managed_by and not operation.force:
        return f"{job.managed_by} manages it: use force, and move that, too"
    if job.spec.after is not None or is_followed:
        return "it runs after another job, or another runs after it"
    if shifts(job.spec.calendar):
        return "its calendar's rule moves occurrences to other days"
    return ""


def refusal_by(
    taken: Job | None, name: str, to: str, own: Calendar | None, other: Calendar | None
) -> str:
    """Why the owner `to` cannot take a job of this name; "" where it can. `taken` is the row of the
    name there, `own` and `other` are the calendar of the job's as either owner has it."""
    if taken is not None and not taken.is_tombstone:
        return f"{to} has a job {name!r}"
    if own is not None and other is None:
        return f"{to} has no calendar {own.name}"
    if own is not None and other is not None and own.closed != other.closed:
        return f"calendar {own.name} of {to} closes other days"
    return ""


def is_begun(job: Job, operation: Operation) -> bool:
    """True if the job has ended under its first owner, to be that of the operation."""
    return job.handed_to is not None and job.handed_to.owner == operation.to


def is_taken_over(tombstone: Job, taken: Job | None) -> bool:
    """True if the other owner's row was made of this one, whatever has become of it since."""
    if tombstone.handed_to is None or taken is None or taken.handed_from is None:
        return False
    return taken.handed_from.ended_id == tombstone.handed_to.ended_id


def former_owner(job: Job) -> str:
    """The owner that the job came from, under the id `renamed_from`; "" where it had no other one.

    The mark alone does not say so: it stays in the row of a name whose job is another one by now.
    """
    mark = job.handed_from
    is_from_there = mark is not None and job.renamed_from == job_id_of(mark.owner, job.spec.name)
    return mark.owner if mark is not None and is_from_there else ""


def owner_of_now(tombstone: Job) -> str:
    """The owner of the job `renamed_to`."""
    return tombstone.owner if tombstone.handed_to is None else tombstone.handed_to.owner


def is_in_hand(tombstone: Job | None) -> bool:
    """True if a job is between two owners: it may yet come back."""
    mark = None if tombstone is None else tombstone.handed_to
    return mark is not None and not mark.is_done


def settled(tombstone: Job) -> Job:
    """The tombstone once the other row is there. This is no change: the revision stays."""
    assert tombstone.handed_to is not None
    return replace(tombstone, handed_to=replace(tombstone.handed_to, is_done=True))


def ended(
    job: Job, operation: Operation, generation: Generation, now: datetime, expires_at: datetime
) -> Job:
    """The tombstone of a job that is handed over: nothing that comes due from `generation` on is
    its own."""
    to_id = job_id_of(operation.to, job.spec.name)
    tombstone = job.renamed(generation, now, expires_at, operation.author, to_id)
    return replace(tombstone, handed_to=HandOver(operation.to, generation.generation_id))


def begun(
    tombstone: Job, operation: Operation, generation_id: str, now: datetime, taken: Job | None
) -> Job | None:
    """The other owner's job, in place of the tombstone `taken` that may be of its name there, from
    the instant on at which the first one has ended; None where it could not begin then.

    It keeps its segment, and its place in its window.
    """
    generation = Generation(generation_id, tombstone.generation.from_at)
    is_paused = tombstone.paused_at is not None
    job = replace(
        tombstone,
        owner=operation.to,
        job_id=tombstone.renamed_to,
        generation=generation,
        previous=None,
        earlier=(),
        updated_at=now,
        state=JobState.PAUSED if is_paused else JobState.ACTIVE,
        paused_at=generation.from_at if is_paused else None,
        revision=1,
        fingerprint="",
        creation_key="",
        former_keys=(),
        successors=(),
        author=operation.author,
        renamed_to="",
        renamed_from=tombstone.job_id,
        renamed_at=generation.from_at,
        handed_to=None,
        handed_from=HandOver(operation.owner, tombstone.generation.generation_id),
        expires_at=None,
        last_change=None,
    )
    made = job if taken is None else taken.replaced_by(job)
    return made if made.generation.from_at == generation.from_at else None


def taken_back(tombstone: Job, operation: Operation, generation_id: str, now: datetime) -> Job:
    """The job, with its first owner again, as if it had not ended."""
    generation = Generation(generation_id, tombstone.generation.from_at)
    job = tombstone.in_new_generation(generation, now, operation.author)
    if tombstone.paused_at is not None:
        job = replace(
            job,
            state=JobState.PAUSED,
            paused_at=tombstone.paused_at,
            resume_at=tombstone.resume_at,
            note=tombstone.note,
        )
    return replace(job, renamed_to="", handed_to=None)
