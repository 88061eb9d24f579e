"""Chunks as they are seen, told as writes of run rows: for the checker a run in a chunk is one that
was claimed and finished by whoever held the chunk."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime

from carillon.domain.chunks.chunk import Chunk, Outcome, ref_of, run_under, success_of
from carillon.domain.chunks.message import ChunkKey, ChunkMessage, Order
from carillon.domain.message import Message
from carillon.domain.run import Run, RunKey
from tests.simulation.judging.evidence import BY_CHUNK, RunWrite

_CHUNK = "chunk "
"""The names of tasks that handle chunks begin so; those of their runs have more behind a slash."""


def handler_of(name: str) -> str:
    """The name of the task that handles a message: the runs of a chunk are tasks of their own."""
    if not name.startswith(_CHUNK):
        return name
    return name.partition("/")[0].partition(" meanwhile")[0]


class SeenChunks:
    """`by_chunk` has the rows of the runs that have succeeded in one, `claimed_at` when a process
    had claimed one."""

    def __init__(self) -> None:
        self.by_chunk: dict[RunKey, Run] = {}
        self.claimed_at: dict[str, datetime] = {}
        self._members: defaultdict[ChunkKey, dict[bytes, Message]] = defaultdict(dict)
        self._held: dict[str, Chunk] = {}
        self._claimed: set[ChunkKey] = set()
        self._final: dict[ChunkKey, Chunk] = {}

    def seen(self, orders: Iterable[Order]) -> None:
        """Learn from messages what references stand for."""
        for order in orders:
            if isinstance(order, ChunkMessage):
                for member in order.members:
                    ref = ref_of(member.job_id, member.generation_id, member.spread_seconds)
                    self._members[order.key][ref] = order.alone(member)

    def claimed(self, process: str, chunk: Chunk | None, at: datetime) -> Iterator[str]:
        """Note the claim of a chunk by this process; the ids of its runs."""
        if chunk is None or chunk.is_final or chunk.key in self._claimed:
            return
        self._claimed.add(chunk.key)
        self._held[process] = chunk
        self.claimed_at[process] = at
        for ref in chunk.refs:
            yield self._members[chunk.key][ref].key.run_id

    def held_by(self, process: str) -> ChunkKey | None:
        """The key of the chunk that this process has claimed."""
        chunk = self._held.get(process)
        return None if chunk is None else chunk.key

    def claims(
        self, process: str, stored: Chunk | None, run_id: str, at: datetime
    ) -> Iterator[RunWrite]:
        """The claim of a run that is called under its chunk's: what the chunk's claim stands for,
        if it still does."""
        held = self._held.get(process)
        if held is None or stored is None or stored.is_final or stored.claim_id != held.claim_id:
            return
        for ref in held.refs:
            message = self._members[held.key][ref]
            if message.key.run_id == run_id:
                yield RunWrite(at, process, BY_CHUNK[0], None, run_under(held, message))

    def finishes(
        self,
        process: str,
        chunk: Chunk | None,
        at: datetime,
        row_counts: Callable[[RunKey], bool],
    ) -> Iterator[RunWrite]:
        """The finishes that a chunk's finish stands for: those of its successes, where no row
        counts more."""
        if chunk is None or chunk.ends is None or self._final.get(chunk.key) == chunk:
            return
        is_holders = chunk.key not in self._final and self.held_by(process) == chunk.key
        method = BY_CHUNK[1] if is_holders else "finish"  # which is one of a stranger
        self._final[chunk.key] = chunk
        for ref, end in chunk.ends.items():
            if end.outcome is Outcome.OK:
                message = self._members[chunk.key][ref]
                if row_counts(message.key):
                    continue
                claimed, done = run_under(chunk, message), success_of(chunk, message, end)
                self.by_chunk[message.key] = done
                yield RunWrite(at, process, method, claimed, done)
