"""Chunks in which an occurrence of a changed job may have run under a generation before."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from carillon.clock import id_created_at
from carillon.domain.chunks.chunk import ref_of
from carillon.domain.chunks.message import ChunkKey
from carillon.domain.chunks.placing import Group, Place, Plan, chunked_from
from carillon.domain.execution.lateness import LATE
from carillon.domain.job import Job
from carillon.domain.message import Message
from carillon.domain.wheel.entry import YOUNG_ENTRY, minute_of

CLAIMED_WITHIN = LATE + timedelta(seconds=5)
"""A chunk that is claimed later than that after its time runs nothing; with the difference of two
clocks."""


@dataclass(frozen=True, slots=True)
class Look:
    """Where a generation's occurrence would be: in a chunk of this group of its minute."""

    job_id: str
    generation_id: str
    segment: int
    minute: int
    group: Group
    spread_seconds: int = 0

    @property
    def ref(self) -> bytes:
        """The reference to the occurrence in its chunk."""
        return ref_of(self.job_id, self.generation_id, self.spread_seconds)

    def key_by(self, plan: Plan | None) -> ChunkKey | None:
        """The chunk by the minute's plan; None where the occurrence goes in none."""
        bucket = None if plan is None else plan.bucket_of(self.group, self.job_id)
        return None if bucket is None else ChunkKey(self.segment, self.minute, *self.group, bucket)


def places_of(job: Job, fire_at: datetime) -> Iterator[Look]:
    """Where the occurrence may be: under the generation that counts, or one that was replaced."""
    known = ((each.generation_id, each.place) for each in job.replaced)
    for generation_id, place in ((job.generation.generation_id, job.place), *known):
        look = None if place is None else look_at(job.job_id, generation_id, place, fire_at)
        if look is not None and chunked_from(generation_id) <= look.minute:
            yield look


def was_just_changed(job: Job, fire_at: datetime) -> bool:
    """True if a chunk may have run the occurrence under a generation that was replaced since."""
    made_at = id_created_at(job.generation.generation_id)
    return bool(job.replaced) and made_at >= fire_at - YOUNG_ENTRY


def looks_of(job: Job, message: Message) -> Iterator[Look]:
    """The looks to be made before an occurrence runs by its own message.

    A chunk reads its jobs when its time has come, and runs the occurrence under the generation that
    counts then. So one that was replaced longer before that has not run it; and where there is no
    chunk yet, the one to come will see the generation that counts now.
    """
    newer = job.generation.generation_id
    for known in job.replaced:
        replaced_at, newer = id_created_at(newer), known.generation_id
        if known.place is None or replaced_at < message.key.fire_at - YOUNG_ENTRY:
            continue
        look = look_at(job.job_id, known.generation_id, known.place, message.key.fire_at)
        if chunked_from(known.generation_id) <= look.minute:
            yield look


def look_at(job_id: str, generation_id: str, place: Place, fire_at: datetime) -> Look:
    """Where the occurrence would be under this generation."""
    due_at = fire_at + timedelta(seconds=place.spread_seconds)
    group = due_at.second, place.lane
    minute, spread_seconds = minute_of(due_at), place.spread_seconds
    return Look(job_id, generation_id, place.segment, minute, group, spread_seconds)
