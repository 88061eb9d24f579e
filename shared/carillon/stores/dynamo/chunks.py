"""Chunks and plans in DynamoDB."""

import json
import struct
from collections.abc import Iterator
from datetime import timedelta

from carillon.clock import ceil_second
from carillon.domain.chunks.chunk import Chunk, Ended, Outcome
from carillon.domain.chunks.message import ChunkKey
from carillon.domain.chunks.placing import Plan
from carillon.domain.policies import Lane
from carillon.errors import UnreadableRowError
from carillon.stores.dynamo.attributes import RawItem, instant_of, item_as, microseconds_of, row_as
from carillon.stores.dynamo.models import ChunkRow, PlanRow
from carillon.stores.dynamo.table import Table

_REF_BYTES = 13
_END = struct.Struct(f">{_REF_BYTES}sBQIB")
"""A reference, the outcome, the start in microseconds since the epoch, the duration in
microseconds, and the place of the result in the pool."""
_OUTCOMES = tuple(Outcome)
_NO_RESULT = 255
_CHUNK, _PLAN = "chunk", "plan"
_MICROSECOND = timedelta(microseconds=1)


class DynamoChunkStore:
    """ChunkStore on table runs, in partitions of their own; rows leave by TTL."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def get(self, key: ChunkKey) -> Chunk | None:
        item = self._table.get(_partition(key), _CHUNK)
        return None if item is None else chunk_of(key, item)

    def claim(self, chunk: Chunk) -> bool:
        return self._table.put(chunk_item_of(chunk), ChunkRow.kind.does_not_exist())

    def finish(self, chunk: Chunk) -> bool:
        is_held = (ChunkRow.claim_id == chunk.claim_id) & ChunkRow.ends.does_not_exist()
        return self._table.put(chunk_item_of(chunk), is_held)

    def get_plan(self, segment: int, minute: int) -> Plan | None:
        item = self._table.get(_plan_partition(segment, minute), _PLAN)
        return None if item is None else plan_of(segment, minute, item)

    def put_plan(self, plan: Plan) -> bool:
        return self._table.put(plan_item_of(plan), PlanRow.kind.does_not_exist())


def chunk_item_of(chunk: Chunk) -> RawItem:
    """The item of a chunk."""
    ends = chunk.ends or {}
    pool = list(dict.fromkeys(end.result for end in ends.values() if end.result is not None))
    packed = b"".join(_packed(ref, end, pool) for ref, end in ends.items())
    return item_as(
        ChunkRow,
        partition=_partition(chunk.key),
        kind=_CHUNK,
        claim_id=chunk.claim_id,
        claimed_at=chunk.claimed_at,
        lease_until=chunk.lease_until,
        refs=None if chunk.is_final else b"".join(chunk.refs),
        ends=packed if chunk.is_final else None,
        results=pool or None,
        expires_at=ceil_second(chunk.expires_at),
    )


def chunk_of(key: ChunkKey, item: RawItem) -> Chunk:
    """The chunk of an item that `chunk_item_of` made; raises UnreadableRowError for any other."""
    try:
        row = row_as(ChunkRow, item)
        pool = [str(each) for each in row.results or ()]
        ends = None if row.ends is None else dict(_unpacked(row.ends, pool))
        listed = row.refs or b""
        places = range(0, len(listed), _REF_BYTES)
        refs = tuple(listed[place : place + _REF_BYTES] for place in places)
        return Chunk(
            key=key,
            claim_id=row.claim_id,
            claimed_at=row.claimed_at,
            lease_until=row.lease_until,
            expires_at=row.expires_at,
            refs=refs if ends is None else tuple(ends),
            ends=ends,
        )
    except Exception as error:
        raise UnreadableRowError(f"chunk {key.name}: {error}") from error


def plan_item_of(plan: Plan) -> RawItem:
    """The item of a plan."""
    counts = [[second, lane.value, count] for (second, lane), count in plan.chunks.items()]
    return item_as(
        PlanRow,
        partition=_plan_partition(plan.segment, plan.minute),
        kind=_PLAN,
        salt=plan.salt,
        chunks=json.dumps(counts, separators=(",", ":")) if counts else None,
        expires_at=ceil_second(plan.expires_at),
    )


def plan_of(segment: int, minute: int, item: RawItem) -> Plan:
    """The plan of an item that `plan_item_of` made; raises UnreadableRowError for any other."""
    try:
        row = row_as(PlanRow, item)
        counts = json.loads(row.chunks or "[]")
        chunks = {(int(second), Lane(lane)): int(count) for second, lane, count in counts}
        return Plan(segment, minute, row.salt, row.expires_at, chunks)
    except Exception as error:
        raise UnreadableRowError(f"plan of segment {segment}, minute {minute}: {error}") from error


def _packed(ref: bytes, end: Ended, pool: list[str]) -> bytes:
    place = _NO_RESULT if end.result is None else pool.index(end.result)
    started = 0 if end.started_at is None else microseconds_of(end.started_at)
    lasted = 0
    if end.started_at is not None and end.finished_at is not None:
        # The clock may have been set back meanwhile.
        lasted = max(0, (end.finished_at - end.started_at) // _MICROSECOND)
    return _END.pack(ref, _OUTCOMES.index(end.outcome), started, lasted, place)


def _unpacked(packed: bytes, pool: list[str]) -> Iterator[tuple[bytes, Ended]]:
    for ref, outcome, started, lasted, place in _END.iter_unpack(packed):
        result = None if place == _NO_RESULT else pool[place]
        began_at = instant_of(started) if started else None
        ended_at = instant_of(started + lasted) if started else None
        yield ref, Ended(_OUTCOMES[outcome], began_at, ended_at, result)


def _partition(key: ChunkKey) -> str:
    return f"~chunk#{key.name}"


def _plan_partition(segment: int, minute: int) -> str:
    return f"~plan#{segment}#{minute}"
