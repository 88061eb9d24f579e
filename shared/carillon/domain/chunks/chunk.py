"""A chunk from its claim to its end, as values: what a run's row is for many runs at once.

The chunk's claim stands for the claims of all its occurrences. One that is no quick success gets a
row of its own, under the same claim, before the chunk is finished; so the finish records the
successes alone, all at once. Whoever meets a finished chunk sends the others alone again: rows
absorb what is done.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from carillon.domain.chunks.message import ChunkKey, ChunkMessage, Member
from carillon.domain.decisions import Claim, Defer, Drop, Leave
from carillon.domain.execution.transitions import ClaimTerms
from carillon.domain.message import Message
from carillon.domain.run import Run, RunStatus

REF_BYTES = 13
"""Of a hash: two occurrences of one chunk share it with a probability below 1e-28."""


class Outcome(StrEnum):
    """The end of an occurrence as far as its chunk knows."""

    OK = "ok"
    """It has succeeded; the chunk is all that says so."""
    ALONE = "alone"
    """It has a row of its own, or is to get one by its own message."""
    DIED = "died"
    """Its executor has died: the attempt counts as one that failed."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of an occurrence; a success has its start and end, and its result."""

    outcome: Outcome
    started_at: datetime | None = None
    finished_at: datetime | None = None
    result: str | None = None


@dataclass(frozen=True, slots=True)
class Chunk:
    """A chunk's row, whole. Claimed until it is final; then `ends` has the end of each occurrence,
    by reference.

    `claim_id` is unique to its one claim, which nobody takes over: where its lease lapses, the
    chunk ends with all of its occurrences `died`. `refs` are those of the message that claimed it.
    """

    key: ChunkKey
    claim_id: str
    claimed_at: datetime
    lease_until: datetime
    expires_at: datetime
    refs: tuple[bytes, ...]
    ends: Mapping[bytes, Ended] | None = field(default=None, hash=False)

    @property
    def is_final(self) -> bool:
        return self.ends is not None

    def end_of(self, member: Member) -> Ended | None:
        """The end of an occurrence; None while the chunk is claimed, or if it is not listed."""
        ref = ref_of_member(member)
        return None if self.ends is None else self.ends.get(ref)


@dataclass(frozen=True, slots=True)
class ClaimChunk:
    """Put `chunk` if there is none, then run its occurrences under it."""

    chunk: Chunk


@dataclass(frozen=True, slots=True)
class Disband:
    """Put the final `chunk` over the one whose lease has lapsed."""

    chunk: Chunk


@dataclass(frozen=True, slots=True)
class Follow:
    """The chunk has ended, or has none of the message's occurrences: see that each of those has its
    row or its own message."""

    chunk: Chunk


def ref_of(job_id: str, generation_id: str, spread_seconds: int = 0) -> bytes:
    """The reference to an occurrence in its chunk. A job that is paused may get another offset in
    its window, and keeps its generation: one instant is of two nominal times then."""
    name = f"{job_id}#{generation_id}#{spread_seconds}"
    return hashlib.sha256(name.encode()).digest()[:REF_BYTES]


def decide_chunk(
    seen: Chunk | None, message: ChunkMessage, now: datetime, terms: ClaimTerms
) -> ClaimChunk | Disband | Follow | Leave | Defer:
    """The decision about a chunk's message, by the row that was read.

    A process that is past its own end claims and disbands nothing: its lease would have lapsed
    already.
    """
    chunk = _claimed(message, now, terms)
    # A message that has none of the claimed ones is another part of what had too many for one.
    if seen is not None and (seen.is_final or set(seen.refs).isdisjoint(chunk.refs)):
        return Follow(seen)
    if seen is not None and now < seen.lease_until:
        return Leave("another executor holds the lease")
    if terms.lease_until <= now:
        return Defer(now, "this process is past its end")
    if seen is not None:
        return Disband(finished(seen, dict.fromkeys(seen.refs, Ended(Outcome.DIED))))
    return ClaimChunk(chunk)


def finished(chunk: Chunk, ends: Mapping[bytes, Ended]) -> Chunk:
    return replace(chunk, ends=ends)


def never_begun(message: ChunkMessage, now: datetime, terms: ClaimTerms) -> Chunk:
    """The chunk of a dead letter that nobody has claimed: each of its occurrences goes alone."""
    chunk = _claimed(message, now, terms)
    return finished(chunk, dict.fromkeys(chunk.refs, Ended(Outcome.ALONE)))


def _claimed(message: ChunkMessage, now: datetime, terms: ClaimTerms) -> Chunk:
    refs = tuple(dict.fromkeys(map(ref_of_member, message.members)))
    return Chunk(message.key, terms.claim_id, now, terms.lease_until, terms.expires_at, refs)


def ref_of_member(member: Member) -> bytes:
    """The reference to an occurrence as messages name it."""
    return ref_of(member.job_id, member.generation_id, member.spread_seconds)


def run_under(chunk: Chunk, message: Message) -> Run:
    """The first attempt of an occurrence under its chunk's claim."""
    fire_at = message.key.fire_at
    return Run(
        key=message.key,
        status=RunStatus.RUNNING,
        attempt=1,
        token=1,
        claim_id=chunk.claim_id,
        generation_id=message.generation_id,
        updated_at=chunk.claimed_at,
        expires_at=chunk.expires_at,
        lease_until=chunk.lease_until,
        started_at=chunk.claimed_at,
        attempt_started_at=chunk.claimed_at,
        effective_at=None if message.due_at == fire_at else message.due_at,
    )


def success_of(chunk: Chunk, message: Message, end: Ended) -> Run:
    """The row of an occurrence that has succeeded in its chunk: a copy of what the chunk says."""
    finished_at = end.finished_at or chunk.claimed_at
    return replace(
        run_under(chunk, message),
        status=RunStatus.SUCCEEDED,
        lease_until=None,
        started_at=end.started_at,
        attempt_started_at=end.started_at,
        updated_at=finished_at,
        finished_at=finished_at,
        result=end.result,
    )


def dead_attempt(chunk: Chunk, message: Message, now: datetime) -> Run:
    """The row of an occurrence whose executor has died in its chunk, as that would have left it:
    whoever handles its message takes over, and counts the attempt."""
    return replace(run_under(chunk, message), lease_until=min(now, chunk.lease_until))


def decide_death(seen: Run | None, died: Run, now: datetime) -> Claim | Leave | Drop:
    """The decision about the row `died` of a dead attempt, by the row that stands in its place.

    A claim for other generations may be withdrawn and leave nothing, so it is waited for. Where its
    holder has died too, both deaths are one attempt: such a claim calls nobody. Any other row
    counts the attempt, or knows how the run ended.
    """
    if seen is None:
        return Claim(died, None)
    is_open = seen.status in (RunStatus.RUNNING, RunStatus.SCHEDULED)
    if not is_open or seen.was_claimed_for(died.generation_id):
        return Drop("the run goes on by its row")
    if seen.lease_until is not None and now < seen.lease_until:
        return Leave("a claim for another generation stands in the row")
    others = {seen.generation_id, *seen.other_generations}
    row = replace(
        seen if seen.status is RunStatus.RUNNING else died,
        token=seen.token + 1,
        generation_id=died.generation_id,
        other_generations=tuple(sorted(others)),
        waits=seen.waits,
    )
    return Claim(row, seen)
