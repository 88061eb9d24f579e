"""The port of chunks, their plans, and the records of generations by which they are found."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from carillon.domain.chunks.chunk import Chunk
from carillon.domain.chunks.history import GenerationRecord
from carillon.domain.chunks.message import ChunkKey
from carillon.domain.chunks.placing import Plan

Key = TypeVar("Key")
Row = TypeVar("Row")
Minute = tuple[int, int]
"""A segment, and an epoch minute of it."""


@dataclass(frozen=True, slots=True)
class Read(Generic[Key, Row]):
    """The rows that there are, by key; `unreadable` has the reasons of those that cannot be
    read."""

    rows: Mapping[Key, Row] = field(hash=False)
    unreadable: Mapping[Key, str] = field(hash=False)


class ChunkStore(Protocol):
    """Chunks by key, plans by segment and minute, records by job and revision."""

    def get(self, key: ChunkKey) -> Chunk | None:
        """The row, strongly consistent. Raises UnreadableRowError."""
        ...

    def claim(self, chunk: Chunk) -> bool:
        """Put the row if there is none."""
        ...

    def finish(self, chunk: Chunk) -> bool:
        """Put the final row if the stored one is claimed under `chunk.claim_id`."""
        ...

    def fence(self, chunk: Chunk, claim_id: str) -> bool:
        """Put the claimed row again, under this claim, if the stored one is claimed under
        `chunk.claim_id`: nobody can finish it under that any more."""
        ...

    def get_plan(self, segment: int, minute: int) -> Plan | None:
        """The plan, strongly consistent. Raises UnreadableRowError."""
        ...

    def put_plan(self, plan: Plan) -> bool:
        """Put the plan if its minute has none."""
        ...

    def get_all(self, keys: Sequence[ChunkKey], *, consistent: bool) -> Read[ChunkKey, Chunk]:
        """The rows of these keys; may be behind unless it is to be `consistent`."""
        ...

    def get_plans(self, minutes: Sequence[Minute], *, consistent: bool) -> Read[Minute, Plan]:
        """The plans of these minutes, as `get_all`."""
        ...

    def put_record(self, record: GenerationRecord) -> None:
        """Put the record, unless the one that is stored for its job and revision lasts longer:
        which of several commits has won its writer does not know yet."""
        ...

    def get_records(
        self, owner: str, job_id: str, *, consistent: bool
    ) -> Read[int, GenerationRecord]:
        """A job's records by revision; may be behind unless it is to be `consistent`, and those
        past their `expires_at` may still be answered."""
        ...
