"""Jobs, and the rows that owners have beside them, in dicts."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from heapq import heappop, heappush
from itertools import islice
from threading import Lock
from typing import Any, Generic, TypeVar, cast

from carillon.clock import ceil_second
from carillon.domain.job import Job, JobState, Successor
from carillon.domain.spec.job_summary import JobSummary
from carillon.domain.spec.names import list_name
from carillon.errors import UnreadableRowError
from carillon.stores.cursors import decode_cursor, encode_cursor
from carillon.stores.ports import JobFilter, Page, Row, RowKind, Tally

Key = TypeVar("Key")
Stored = TypeVar("Stored")

_FEW = 16
"""This many keys of rows that are gone are never worth a sweep."""


class KeyOrder(Generic[Key]):
    """Keys of `rows` by a text of each, which is unique; sorted when somebody looks.

    The key of a row that is gone is left out, and swept when half of them are gone.
    """

    def __init__(self, rows: Collection[Key], text_of: Callable[[Key], str]) -> None:
        self._rows = rows
        self._text_of = text_of
        self._keys: list[Key] = []
        self._is_sorted = True
        self._gone = 0

    def add(self, key: Key) -> None:
        """Take in the key of a row that was not there before."""
        self._keys.append(key)
        self._is_sorted = False

    def row_gone(self) -> None:
        """To be told for each row that is gone."""
        self._gone += 1
        if self._gone > _FEW and 2 * self._gone > len(self._keys):
            self._keys = list(dict.fromkeys(key for key in self._keys if key in self._rows))
            self._gone = 0

    def after(self, text: str | None = None) -> Iterator[Key]:
        """The keys with a text greater than this; all for None. `rows` may not change meanwhile."""
        if not self._is_sorted:
            self._keys.sort(key=self._text_of)
            self._is_sorted = True
        first = 0 if text is None else bisect_right(self._keys, text, key=self._text_of)
        last: Key | None = None
        for place in range(first, len(self._keys)):
            key = self._keys[place]
            # A row that went and came again has its key here twice.
            if key != last and key in self._rows:
                yield key
            last = key


class Expiry(Generic[Key]):
    """Keys by the instant from which their rows may go."""

    def __init__(self) -> None:
        self._instants: list[datetime] = []
        self._keys: dict[datetime, list[Key]] = {}

    def note(self, key: Key, expires_at: datetime) -> None:
        """Have `due` answer the key once, from this instant on."""
        keys = self._keys.get(expires_at)
        if keys is None:
            keys = self._keys[expires_at] = []
            heappush(self._instants, expires_at)
        keys.append(key)

    def due(self, now: datetime) -> list[Key]:
        """The keys noted for instants up to `now`, by instant, then as noted; they are forgotten.

        The caller checks what has become of their rows since.
        """
        keys: list[Key] = []
        while self._instants and self._instants[0] <= now:
            keys += self._keys.pop(heappop(self._instants))
        return keys


_SCAN = ("all jobs",)


class MemoryJobStore:
    """JobStore in memory."""

    def __init__(self) -> None:
        self._rows: dict[str, Job] = {}
        self._listed: dict[str, _Listed] = {}
        self._spoilt: set[str] = set()
        self._lock = Lock()

    def get(self, owner: str, job_id: str) -> Job | None:
        with self._lock:
            row = self._rows.get(job_id)
            if row is None or row.owner != owner:
                return None
            if job_id in self._spoilt:
                raise UnreadableRowError(f"job {job_id}: spoilt")
            return row

    def get_all(self, keys: Sequence[tuple[str, str]]) -> dict[str, Job]:
        with self._lock:
            rows = {job_id: self._rows.get(job_id) for _, job_id in keys}
            return {
                job_id: row
                for job_id, row in rows.items()
                if row is not None and (row.owner, job_id) in keys and job_id not in self._spoilt
            }

    def create(self, job: Job) -> bool:
        row = _as_stored(job)
        with self._lock:
            stored = self._rows.get(job.job_id)
            if stored is None:
                self._put(row, stored)
            return stored is None or stored == row

    def replace(self, job: Job, revision: int) -> bool:
        return self._replace(job, revision, job.successors)

    def relink(self, job: Job, over: tuple[Successor, ...]) -> bool:
        return self._replace(job, job.revision, over)

    def _replace(self, job: Job, revision: int, successors: tuple[Successor, ...]) -> bool:
        row, seen = _as_stored(job), (job.owner, revision, successors)
        with self._lock:
            stored = self._rows.get(job.job_id)
            if stored and (stored.owner, stored.revision, stored.successors) == seen:
                self._put(row, stored)
                return True
            return stored == row

    def list(
        self, owner: str, limit: int, cursor: str | None = None, only: JobFilter | None = None
    ) -> Page[Job]:
        scope, only = ("jobs", owner), only or JobFilter()
        after = "" if cursor is None else decode_cursor(scope, cursor)
        with self._lock:
            listed = self._listed.get(owner, _Listed())
            keys = listed.order.after(max(after, list_name(only.name)))
            jobs = (self._rows[listed.ids[key]] for key in keys)
            page = tuple(islice(filter(only.chooses, jobs), limit + 1))
            spoilt = {job.job_id for job in page if job.job_id in self._spoilt}
        last = None if len(page) <= limit else encode_cursor(scope, page[limit - 1].list_key)
        page = page[:limit]
        unreadable = {j.job_id: f"job {j.job_id}: spoilt" for j in page if j.job_id in spoilt}
        return Page(tuple(j for j in page if j.job_id not in spoilt), last, unreadable)

    def summaries(
        self, owner: str, limit: int, cursor: str | None = None, only: JobFilter | None = None
    ) -> Page[JobSummary]:
        page = self.list(owner, limit, cursor, only)
        return Page(tuple(map(JobSummary.of, page.items)), page.next_cursor, page.unreadable)

    def tally(self, owner: str, cursor: str | None = None) -> Tally:
        page = self.list(owner, len(self._rows) + 1, cursor)
        ending = [job for job in page.items if job.ends and job.state is JobState.ACTIVE]
        counts = Counter(job.state for job in page.items if job not in ending)
        return Tally(counts, [*map(JobSummary.of, ending)], len(page.unreadable))

    def remove_unreadable(self, owner: str, job_id: str) -> bool:
        with self._lock:
            row = self._rows.get(job_id)
            if row is None or row.owner != owner or job_id not in self._spoilt:
                return False
            self._spoilt.discard(job_id)
            del self._rows[job_id]
            self._unlist(row)
            return True

    def spoil(self, job_id: str) -> None:
        """Make the row unreadable, as a bug, a later version or a manual edit could."""
        with self._lock:
            self._spoilt.add(job_id)

    def scan(self, limit: int, cursor: str | None = None) -> Page[Job]:
        done = 0 if cursor is None else int(decode_cursor(_SCAN, cursor))
        with self._lock:
            rows = tuple(islice(self._rows.values(), done, done + limit + 1))
        if len(rows) <= limit:
            return Page(rows)
        return Page(rows[:limit], encode_cursor(_SCAN, str(done + limit)))

    def _put(self, row: Job, over: Job | None) -> None:
        if over is not None:
            self._unlist(over)
        self._rows[row.job_id] = row
        if not row.is_tombstone:
            listed = self._listed.setdefault(row.owner, _Listed())
            listed.ids[row.list_key] = row.job_id
            listed.order.add(row.list_key)

    def _unlist(self, row: Job) -> None:
        if not row.is_tombstone:
            listed = self._listed[row.owner]
            del listed.ids[row.list_key]
            listed.order.row_gone()


class _Listed:
    """The jobs of one owner by their list keys."""

    def __init__(self) -> None:
        self.ids: dict[str, str] = {}
        self.order = KeyOrder(self.ids, str)


def _as_stored(row: Stored) -> Stored:
    expires_at = getattr(row, "expires_at", None)
    if expires_at is None:
        return row
    stored: Stored = replace(cast(Any, row), expires_at=ceil_second(expires_at))
    return stored


class MemoryVersionedRows(Generic[Row]):
    """VersionedRows in memory; nothing expires by itself."""

    def __init__(self, kind: RowKind[Row]) -> None:
        self._kind = kind
        self._rows: dict[tuple[str, str], Row] = {}
        self._lock = Lock()

    def get(self, owner: str, key: str) -> Row | None:
        with self._lock:
            return self._rows.get((owner, key))

    def put(self, row: Row, over_revision: int | None) -> bool:
        key, row = (row.owner, self._kind.key_of(row)), _as_stored(row)
        with self._lock:
            stored = self._rows.get(key)
            if (None if stored is None else stored.revision) == over_revision:
                self._rows[key] = row
                return True
            return stored == row

    def delete(self, owner: str, key: str, revision: int) -> bool:
        with self._lock:
            stored = self._rows.get((owner, key))
            if stored is not None and stored.revision != revision:
                return False
            self._rows.pop((owner, key), None)
            return True

    def list(self, owner: str, limit: int, cursor: str | None = None) -> Page[Row]:
        scope, backwards = (f"{self._kind.name}s", owner), self._kind.newest_first
        with self._lock:
            keys = sorted((key for of, key in self._rows if of == owner), reverse=backwards)
            if cursor is not None:
                behind = decode_cursor(scope, cursor)
                keys = [key for key in keys if (key < behind if backwards else key > behind)]
            rows = tuple(self._rows[owner, key] for key in keys[:limit])
        more = len(keys) > limit
        return Page(rows, encode_cursor(scope, keys[limit - 1]) if more else None)
