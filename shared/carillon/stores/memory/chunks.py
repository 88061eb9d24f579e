"""Chunks, plans and records in dicts."""

from collections.abc import Sequence
from dataclasses import replace
from threading import Lock

from carillon.clock import ceil_second
from carillon.domain.chunks.chunk import Chunk
from carillon.domain.chunks.history import GenerationRecord
from carillon.domain.chunks.message import ChunkKey
from carillon.domain.chunks.placing import Plan
from carillon.stores.chunks import Minute, Read


class MemoryChunkStore:
    """ChunkStore in memory; nothing expires by itself."""

    def __init__(self) -> None:
        self.chunks: dict[ChunkKey, Chunk] = {}
        self._plans: dict[Minute, Plan] = {}
        self._records: dict[tuple[str, str], dict[int, GenerationRecord]] = {}
        self._lock = Lock()

    def get(self, key: ChunkKey) -> Chunk | None:
        with self._lock:
            return self.chunks.get(key)

    def claim(self, chunk: Chunk) -> bool:
        row = _as_stored(chunk)
        with self._lock:
            return self.chunks.setdefault(chunk.key, row) == row

    def finish(self, chunk: Chunk) -> bool:
        return self._put_over(chunk.claim_id, chunk)

    def fence(self, chunk: Chunk, claim_id: str) -> bool:
        return self._put_over(chunk.claim_id, replace(chunk, claim_id=claim_id))

    def get_plan(self, segment: int, minute: int) -> Plan | None:
        with self._lock:
            return self._plans.get((segment, minute))

    def put_plan(self, plan: Plan) -> bool:
        row = replace(plan, expires_at=ceil_second(plan.expires_at))
        with self._lock:
            return self._plans.setdefault((plan.segment, plan.minute), row) is row

    def get_all(self, keys: Sequence[ChunkKey], *, consistent: bool) -> Read[ChunkKey, Chunk]:
        with self._lock:
            return Read({key: self.chunks[key] for key in keys if key in self.chunks}, {})

    def get_plans(self, minutes: Sequence[Minute], *, consistent: bool) -> Read[Minute, Plan]:
        with self._lock:
            return Read({each: self._plans[each] for each in minutes if each in self._plans}, {})

    def put_record(self, record: GenerationRecord) -> None:
        row = replace(record, expires_at=ceil_second(record.expires_at))
        with self._lock:
            of_job = self._records.setdefault((row.owner, row.job_id), {})
            if of_job.setdefault(row.revision, row).until_at <= row.until_at:
                of_job[row.revision] = row

    def get_records(
        self, owner: str, job_id: str, *, consistent: bool
    ) -> Read[int, GenerationRecord]:
        with self._lock:
            return Read(dict(self._records.get((owner, job_id), {})), {})

    def _put_over(self, claim_id: str, chunk: Chunk) -> bool:
        row = _as_stored(chunk)
        with self._lock:
            stored = self.chunks.get(chunk.key)
            if stored is None:
                return False
            if not stored.is_final and stored.claim_id == claim_id:
                self.chunks[chunk.key] = stored = row
            return stored == row


def _as_stored(chunk: Chunk) -> Chunk:
    refs = chunk.refs if chunk.ends is None else tuple(chunk.ends)
    return replace(chunk, refs=refs, expires_at=ceil_second(chunk.expires_at))
