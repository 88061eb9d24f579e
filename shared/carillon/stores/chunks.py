"""The port of chunks and plans."""

from typing import Protocol

from carillon.domain.chunks.chunk import Chunk
from carillon.domain.chunks.message import ChunkKey
from carillon.domain.chunks.placing import Plan


class ChunkStore(Protocol):
    """Chunks by key, and plans by segment and minute."""

    def get(self, key: ChunkKey) -> Chunk | None:
        """The row, strongly consistent. Raises UnreadableRowError."""
        ...

    def claim(self, chunk: Chunk) -> bool:
        """Put the row if there is none."""
        ...

    def finish(self, chunk: Chunk) -> bool:
        """Put the final row if the stored one is claimed under `chunk.claim_id`."""
        ...

    def get_plan(self, segment: int, minute: int) -> Plan | None:
        """The plan, strongly consistent. Raises UnreadableRowError."""
        ...

    def put_plan(self, plan: Plan) -> bool:
        """Put the plan if its minute has none."""
        ...
