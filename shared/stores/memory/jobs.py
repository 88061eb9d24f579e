"""Jobs in a dict."""

from dataclasses import replace
from threading import Lock

from shared.domain.job import Job
from shared.stores.cursors import decode_cursor, encode_cursor, whole_seconds
from shared.stores.ports import JobFilter, Page


class MemoryJobStore:
    """JobStore in memory."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str], Job] = {}
        self._lock = Lock()

    def get(self, owner: str, job_id: str) -> Job | None:
        with self._lock:
            return self._rows.get((owner, job_id))

    def create(self, job: Job) -> bool:
        row = _as_stored(job)
        with self._lock:
            return self._rows.setdefault((job.owner, job.job_id), row) == row

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
            jobs = sorted(
                (
                    job
                    for job in self._rows.values()
                    if job.owner == owner and job.job_id > after and not job.is_tombstone
                    if only is None or _matches(job, only)
                ),
                key=lambda job: job.job_id,
            )
        page = tuple(jobs[:limit])
        more = len(jobs) > limit
        return Page(page, encode_cursor(scope, page[-1].job_id) if more else None)


def _matches(job: Job, only: JobFilter) -> bool:
    return only.parent in ("", job.parent) and set(only.tags) <= set(job.tags)


def _as_stored(job: Job) -> Job:
    if job.expires_at is None:
        return job
    return replace(job, expires_at=whole_seconds(job.expires_at))
