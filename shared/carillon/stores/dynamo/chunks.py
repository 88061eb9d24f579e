"""Chunks, plans and records of generations in DynamoDB."""

import json
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TypeVar

from carillon.clock import Clock, Entropy, ceil_second
from carillon.domain.chunks.chunk import REF_BYTES, Chunk, Ended, Outcome
from carillon.domain.chunks.history import GenerationRecord
from carillon.domain.chunks.message import ChunkKey
from carillon.domain.chunks.placing import Place, Plan
from carillon.domain.policies import Lane
from carillon.errors import UnreadableRowError
from carillon.stores.chunks import Minute, Read
from carillon.stores.dynamo.attributes import RawItem, instant_of, item_as, microseconds_of, row_as
from carillon.stores.dynamo.models import ChunkRow, GenerationRow, PlanRow
from carillon.stores.dynamo.table import Table
from carillon.stores.dynamo.wheel import schedule_of

_END = struct.Struct(f">{REF_BYTES}sBQIB")
"""A reference, the outcome, the start in microseconds since the epoch, the duration in
microseconds, and the place of the result in the pool."""
_OUTCOMES = tuple(Outcome)
_NO_RESULT = 255
_CHUNK, _PLAN = "chunk", "plan"
_MICROSECOND = timedelta(microseconds=1)

Key = TypeVar("Key")
Row = TypeVar("Row")


class DynamoChunkStore:
    """ChunkStore on table runs, in partitions of their own; rows leave by TTL."""

    def __init__(self, table: Table, clock: Clock, entropy: Entropy) -> None:
        self._table = table
        self._clock = clock
        self._entropy = entropy

    def get(self, key: ChunkKey) -> Chunk | None:
        item = self._table.get(_partition(key), _CHUNK)
        return None if item is None else chunk_of(key, item)

    def claim(self, chunk: Chunk) -> bool:
        return self._table.put(chunk_item_of(chunk), ChunkRow.kind.does_not_exist())

    def finish(self, chunk: Chunk) -> bool:
        return self._put_over(chunk.claim_id, chunk)

    def fence(self, chunk: Chunk, claim_id: str) -> bool:
        return self._put_over(chunk.claim_id, replace(chunk, claim_id=claim_id))

    def get_plan(self, segment: int, minute: int) -> Plan | None:
        item = self._table.get(_plan_partition(segment, minute), _PLAN)
        return None if item is None else plan_of(segment, minute, item)

    def put_plan(self, plan: Plan) -> bool:
        return self._table.put(plan_item_of(plan), PlanRow.kind.does_not_exist())

    def get_all(self, keys: Sequence[ChunkKey], *, consistent: bool) -> Read[ChunkKey, Chunk]:
        by_place = {(_partition(key), _CHUNK): key for key in keys}
        return self._read(by_place, chunk_of, consistent=consistent)

    def get_plans(self, minutes: Sequence[Minute], *, consistent: bool) -> Read[Minute, Plan]:
        by_place = {(_plan_partition(*each), _PLAN): each for each in minutes}
        return self._read(by_place, lambda each, item: plan_of(*each, item), consistent=consistent)

    def put_record(self, record: GenerationRecord) -> None:
        covers_less = GenerationRow.until_at <= record.until_at
        is_to_stand = GenerationRow.revision.does_not_exist() | covers_less
        self._table.put(record_item_of(record), is_to_stand)

    def get_records(
        self, owner: str, job_id: str, *, consistent: bool
    ) -> Read[int, GenerationRecord]:
        partition, after, items = _records_partition(owner, job_id), None, list[RawItem]()
        while True:
            found, after = self._table.query(partition, after, consistent=consistent)
            items += found
            if after is None:
                break
        by_revision = {int(item["run_key"]["S"]): item for item in items}
        return _readable(by_revision, lambda _, item: record_of(owner, job_id, item))

    def _put_over(self, claim_id: str, chunk: Chunk) -> bool:
        is_held = (ChunkRow.claim_id == claim_id) & ChunkRow.ends.does_not_exist()
        return self._table.put(chunk_item_of(chunk), is_held)

    def _read(
        self,
        by_place: dict[tuple[str, str], Key],
        read: Callable[[Key, RawItem], Row],
        *,
        consistent: bool,
    ) -> Read[Key, Row]:
        items = self._table.get_all(
            list(by_place), self._clock, self._entropy, consistent=consistent
        )
        found = {by_place[item["job_key"]["S"], item["run_key"]["S"]]: item for item in items}
        return _readable(found, read)


def _readable(items: dict[Key, RawItem], read: Callable[[Key, RawItem], Row]) -> Read[Key, Row]:
    rows, unreadable = dict[Key, Row](), dict[Key, str]()
    for key, item in items.items():
        try:
            rows[key] = read(key, item)
        except UnreadableRowError as error:
            unreadable[key] = str(error)
    return Read(rows, unreadable)


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
        places = range(0, len(listed), REF_BYTES)
        refs = tuple(listed[place : place + REF_BYTES] for place in places)
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


def record_item_of(record: GenerationRecord) -> RawItem:
    """The item of a generation's record."""
    schedule, place = record.schedule, record.place
    return item_as(
        GenerationRow,
        partition=_records_partition(record.owner, record.job_id),
        revision=f"{record.revision:010d}",
        generation_id=record.generation_id,
        from_at=record.from_at,
        until_at=record.until_at,
        schedule=schedule.text,
        timezone=schedule.timezone,
        start_at=schedule.start_at,
        end_at=schedule.end_at,
        dst=schedule.dst.text or None,
        segment=place.segment,
        lane=place.lane.value,
        spread_seconds=place.spread_seconds,
        expires_at=ceil_second(record.expires_at),
    )


def record_of(owner: str, job_id: str, item: RawItem) -> GenerationRecord:
    """The record of an item that `record_item_of` made; raises UnreadableRowError for any other."""
    try:
        row = row_as(GenerationRow, item)
        return GenerationRecord(
            owner=owner,
            job_id=job_id,
            revision=int(row.revision),
            generation_id=row.generation_id,
            from_at=row.from_at,
            until_at=row.until_at,
            schedule=schedule_of(row.schedule, item),
            place=Place(row.segment, Lane(row.lane), row.spread_seconds),
            expires_at=row.expires_at,
        )
    except Exception as error:
        where = f"{job_id}, revision {item['run_key']['S']}"
        raise UnreadableRowError(f"generation record of job {where}: {error}") from error


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


def _records_partition(owner: str, job_id: str) -> str:
    return f"~generations#{owner}#{job_id}"
