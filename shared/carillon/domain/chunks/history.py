"""The occurrences of a job that may have run in chunks: by its present generation and those before.

A success in a chunk may have no row. So its schedule says which occurrences there were, and plan
and chunk of each one's minute what has become of it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from heapq import merge
from itertools import groupby
from operator import attrgetter, itemgetter

from carillon.domain.chunks.looking import Look, look_at, places_of
from carillon.domain.chunks.placing import Place, chunked_from
from carillon.domain.job import Job, JobState
from carillon.domain.policies import Lane
from carillon.domain.wheel.entry import COMMITTED_WITHIN, minute_of, minute_start
from carillon.schedules import Schedule

_CLAIMED_WITHIN = timedelta(days=1)
"""How late a chunk may be claimed: its message waits through a backlog or an outage."""
_NOWHERE = Place(-1, Lane.NORMAL, 0)
"""The place of a record that covers nothing: no segment has this number, so no chunk is there."""
_SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class GenerationRecord:
    """The facts about a plain generation by which its runs are found in chunks.

    Its occurrences are those of `schedule` in (from_at, until_at], and they went where `place`
    says. It is taken from revision `revision` of the job's row, and put before another one that
    fires otherwise replaces that. All of its chunks that were claimed within a day have expired at
    `expires_at`.
    """

    owner: str
    job_id: str
    revision: int
    generation_id: str
    from_at: datetime
    until_at: datetime
    schedule: Schedule
    place: Place
    expires_at: datetime

    @property
    def fired_by(self) -> tuple[Schedule, Place]:
        return self.schedule, self.place

    def look(self, fire_at: datetime) -> Look | None:
        """Where its occurrence would be; None where it covers none at this instant, or none that
        goes in a chunk. A chunk may read its job until the change is committed that ended it."""
        look = look_at(self.job_id, self.generation_id, self.place, fire_at)
        is_covered = self.from_at < fire_at <= self.until_at + COMMITTED_WITHIN
        return look if is_covered and chunked_from(self.generation_id) <= look.minute else None

    def newest_first(
        self, newest: datetime, oldest: datetime, now: datetime
    ) -> Iterator[tuple[datetime, Look]]:
        """Its occurrences in [oldest, newest] that may have gone in chunks by now."""
        spread = timedelta(seconds=self.place.spread_seconds)
        begin = max(oldest, minute_start(chunked_from(self.generation_id)) - spread)
        until = min(newest, self.until_at + COMMITTED_WITHIN, now - spread)
        fire_at = self.schedule.previous(until.replace(microsecond=0) + _SECOND)
        while fire_at is not None and fire_at >= begin and fire_at > self.from_at:
            yield fire_at, look_at(self.job_id, self.generation_id, self.place, fire_at)
            fire_at = self.schedule.previous(fire_at)


def left_by(before: Job, after: Job, lifetime: timedelta) -> GenerationRecord | None:
    """The record that a row leaves when `after` replaces it; None where the two fire alike, or
    nothing of it can have gone in chunks. Chunks live for `lifetime` after their claim.

    A generation that becomes plain in a pause has gone in none: its record covers nothing.
    """
    if _fires(before) == _fires(after):
        return None
    until_at = before.paused_at or after.updated_at
    if before.place is not None or before.generation != after.generation:
        return _record(before, until_at, lifetime)
    empty = _record(after, until_at, lifetime)
    if empty is None:
        return None
    return replace(empty, revision=before.revision, until_at=empty.from_at, place=_NOWHERE)


def records_of(
    job: Job | None, stored: Iterable[GenerationRecord], now: datetime, lifetime: timedelta
) -> list[GenerationRecord]:
    """The records of all generations of a job: the `stored` ones, and that of its row as it is.

    A record whose commit has been lost tells less than the row that it was taken from. A generation
    has fired as its first record says: what is changed in a pause fires only when it is resumed, as
    another one, and would have lists look for thousands of runs that never were.
    """
    found = sorted(stored, key=attrgetter("revision"))
    own = None if job is None else _record(job, job.paused_at or now, lifetime)
    if own is not None:
        found.append(own)
    first = {each.generation_id: each.fired_by for each in reversed(found)}
    known = {
        each.generation_id: each for each in found if each.fired_by == first[each.generation_id]
    }
    return list(known.values())


def looks_at(job: Job | None, records: Iterable[GenerationRecord], fire_at: datetime) -> list[Look]:
    """All the chunks in which an occurrence may be."""
    by_row = () if job is None else places_of(job, fire_at)
    by_record = (look for each in records if (look := each.look(fire_at)) is not None)
    return list(dict.fromkeys((*by_row, *by_record)))


def newest_first(
    records: Sequence[GenerationRecord], newest: datetime, oldest: datetime, now: datetime
) -> Iterator[tuple[datetime, tuple[Look, ...]]]:
    """The occurrences in [oldest, newest] that may have gone in chunks by now, each with all the
    chunks in which it may be."""
    ways = (each.newest_first(newest, oldest, now) for each in records)
    at = itemgetter(0)
    for fire_at, found in groupby(merge(*ways, key=at, reverse=True), key=at):
        yield fire_at, tuple(look for _, look in found)


def _fires(job: Job) -> tuple[object, ...]:
    return job.generation.generation_id, job.schedule, job.place


def _record(job: Job, until_at: datetime, lifetime: timedelta) -> GenerationRecord | None:
    if job.place is None or job.state is JobState.RENAMED:
        return None
    ended_at = min(until_at, job.updated_at) if job.is_tombstone else until_at
    spread = timedelta(seconds=job.place.spread_seconds)
    generation_id = job.generation.generation_id
    if minute_of(ended_at + COMMITTED_WITHIN + spread) < chunked_from(generation_id):
        return None  # or a job that is changed each minute would leave a record each minute
    return GenerationRecord(
        owner=job.owner,
        job_id=job.job_id,
        revision=job.revision,
        generation_id=generation_id,
        from_at=job.generation.from_at,
        until_at=ended_at,
        schedule=job.schedule,
        place=job.place,
        expires_at=ended_at + spread + COMMITTED_WITHIN + _CLAIMED_WITHIN + lifetime,
    )
