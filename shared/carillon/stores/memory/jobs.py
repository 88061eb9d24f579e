"""Jobs in a dict."""

from dataclasses import replace
from itertools import islice
from threading import Lock

from carillon.domain.job import Job
from carillon.errors import UnreadableRowError
from carillon.stores.cursors import decode_cursor, encode_cursor, whole_seconds
from carillon.stores.memory.rows import KeyOrder
from carillon.stores.ports import JobFilter, Page

_SCAN = ("all jobs",)


class MemoryJobStore:
    """JobStore in memory."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str], Job] = {}
        self._owned: dict[str, KeyOrder[tuple[str, str]]] = {}
        self._spoilt: set[tuple[str, str]] = set()
        self._lock = Lock()

    def get(self, owner: str, job_id: str) -> Job | None:
        with self._lock:
            if (owner, job_id) in self._spoilt:
                raise UnreadableRowError(f"job {job_id}: spoilt")
            return self._rows.get((owner, job_id))

    def create(self, job: Job) -> bool:
        row = _as_stored(job)
        key = (job.owner, job.job_id)
        with self._lock:
            stored = self._rows.get(key)
            if stored is None:
                self._rows[key] = row
                self._order_of(job.owner).add(key)
            return stored is None or stored == row

    def replace(self, job: Job, revision: int) -> bool:
        row = _as_stored(job)
        key = (job.owner, job.job_id)
        with self._lock:
            stored = self._rows.get(key)
            if stored is not None and stored.revision == revision:
                self._rows[key] = row
                return True
            return stored == row

    def list(
        self, owner: str, limit: int, cursor: str | None = None, only: JobFilter | None = None
    ) -> Page[Job]:
        scope = ("jobs", owner)
        after = "" if cursor is None else decode_cursor(scope, cursor)
        with self._lock:
            listed = (self._rows[key] for key in self._order_of(owner).after(after))
            jobs = (
                job
                for job in listed
                if not job.is_tombstone and (only is None or _matches(job, only))
            )
            page = tuple(islice(jobs, limit + 1))
            spoilt = {key[1] for key in self._spoilt}
        last = None if len(page) <= limit else encode_cursor(scope, page[limit - 1].job_id)
        page = page[:limit]
        unreadable = {j.job_id: f"job {j.job_id}: spoilt" for j in page if j.job_id in spoilt}
        return Page(tuple(j for j in page if j.job_id not in spoilt), last, unreadable)

    def remove_unreadable(self, owner: str, job_id: str) -> bool:
        with self._lock:
            if (owner, job_id) not in self._spoilt:
                return False
            self._spoilt.discard((owner, job_id))
            del self._rows[owner, job_id]
            self._order_of(owner).row_gone()
            return True

    def spoil(self, owner: str, job_id: str) -> None:
        """What a bug, a later version or a hand does: the row cannot be read any more."""
        with self._lock:
            self._spoilt.add((owner, job_id))

    def scan(self, limit: int, cursor: str | None = None) -> Page[Job]:
        done = 0 if cursor is None else int(decode_cursor(_SCAN, cursor))
        with self._lock:
            rows = tuple(islice(self._rows.values(), done, done + limit + 1))
        if len(rows) <= limit:
            return Page(rows)
        return Page(rows[:limit], encode_cursor(_SCAN, str(done + limit)))

    def _order_of(self, owner: str) -> KeyOrder[tuple[str, str]]:
        """The owner's jobs by job id."""
        order = self._owned.get(owner)
        if order is None:
            order = self._owned[owner] = KeyOrder(self._rows, lambda key: key[1])
        return order


def _matches(job: Job, only: JobFilter) -> bool:
    return only.parent in ("", job.parent) and set(only.tags) <= set(job.tags)


def _as_stored(job: Job) -> Job:
    if job.expires_at is None:
        return job
    return replace(job, expires_at=whole_seconds(job.expires_at))
