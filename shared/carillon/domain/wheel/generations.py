"""Generations of a job: versions of when it fires, with ids that order them."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from carillon.clock import id_created_at
from carillon.domain.chunks.placing import Place

_ID_STEP = timedelta(milliseconds=1)
"""Ids are in order if they are made of instants this far apart."""


@dataclass(frozen=True, slots=True)
class Generation:
    """One act of putting a job on the wheel.

    Its occurrences are those of the job's schedule after `from_at`. `generation_id` orders the
    generations of a job, so that the one it belongs to is never smaller than any that it has
    replaced.
    """

    generation_id: str
    from_at: datetime

    def next_id_at(self, now: datetime) -> datetime:
        """The instant for the id of the generation that replaces this one: a later one than its
        own, though both be asked for within a millisecond, or of clocks that differ."""
        return max(now, id_created_at(self.generation_id) + _ID_STEP)


@dataclass(frozen=True, slots=True)
class PastGeneration:
    """A generation that a resume or a change replaced: it still covers (from_at, until_at].

    `place`: where its occurrences may have gone in chunks; None where they all went alone.
    `owes_until`: when its last occurrence is to start, where its window puts that off beyond its
    end.
    """

    generation_id: str
    from_at: datetime
    until_at: datetime
    place: Place | None = None
    owes_until: datetime | None = None

    def covers(self, generation_id: str, fire_at: datetime) -> bool:
        return generation_id == self.generation_id and self.from_at < fire_at <= self.until_at
