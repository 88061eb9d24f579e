"""Runs in a dict."""

from collections.abc import Callable, Collection, Hashable
from dataclasses import replace
from datetime import datetime
from itertools import islice
from threading import Lock
from typing import TypeVar

from carillon.clock import ceil_second
from carillon.domain.run import Attention, Run, RunKey, RunStatus, cut
from carillon.errors import UnreadableRowError
from carillon.stores.cursors import decode_cursor, encode_cursor, runs_of
from carillon.stores.memory.rows import Expiry, KeyOrder
from carillon.stores.ports import DeadLetterFilter, Page

Name = TypeVar("Name", bound=Hashable)


class MemoryRunStore:
    """RunStore in memory.

    Nothing expires by itself; `expire` does what DynamoDB's TTL would have done.
    """

    def __init__(self) -> None:
        self._rows: dict[RunKey, Run] = {}
        self._results: dict[tuple[RunKey, str], str] = {}
        self._of_jobs: dict[tuple[str, str], KeyOrder[RunKey]] = {}
        self._dead: dict[RunKey, None] = {}
        self._dead_of_owners: dict[str, KeyOrder[RunKey]] = {}
        self._expiry: Expiry[RunKey] = Expiry()
        self._spoilt: set[RunKey] = set()
        self._lock = Lock()

    def get(self, key: RunKey) -> Run | None:
        with self._lock:
            if key in self._spoilt:
                raise UnreadableRowError(f"run {key.run_id}: spoilt")
            return self._rows.get(key)

    def claim(self, run: Run, over: Run | None) -> bool:
        with self._lock:
            stored = self._rows.get(run.key)
            if over is None or stored is None:
                return self._put(run, stored, allowed=stored is None and over is None)
            return self._put(run, stored, _claim_of(stored) == _claim_of(over))

    def finish(self, run: Run) -> bool:
        with self._lock:
            stored = self._rows.get(run.key)
            is_held = stored is not None and stored.is_held_by(run)
            return self._put(run, stored, allowed=is_held)

    def replace_unreadable(self, run: Run) -> bool:
        with self._lock:
            stored = self._rows.get(run.key)
            if stored is None or stored.is_final or run.key not in self._spoilt:
                return stored == run
            self._spoilt.discard(run.key)
            return self._put(run, stored, allowed=True)

    def spoil(self, key: RunKey) -> None:
        """Make the row unreadable, as a bug, a later version or a manual edit could."""
        with self._lock:
            self._spoilt.add(key)

    def discard_claim(self, run: Run) -> bool:
        with self._lock:
            stored = self._rows.get(run.key)
            if stored is None or not stored.is_held_by(run):
                return False
            self._remove(run.key)
            return True

    def put_result(self, run: Run, text: str) -> None:
        with self._lock:
            self._results[run.key, run.claim_id] = text

    def get_result(self, run: Run) -> str | None:
        with self._lock:
            return self._results.get((run.key, run.claim_id))

    def expire(self, now: datetime) -> list[Run]:
        """Remove the rows with an `expires_at` up to `now`; answers them, by `expires_at`.

        Rows may live longer in DynamoDB; a test may call this as late as it likes.
        """
        expired: list[Run] = []
        with self._lock:
            for key in self._expiry.due(now):
                row = self._rows.get(key)
                if row is not None and row.expires_at <= now:
                    self._remove(key)
                    expired.append(row)
                elif row is not None:  # it was written since, and lives longer
                    self._expiry.note(key, row.expires_at)
        return sorted(expired, key=lambda row: row.expires_at)

    def list(
        self,
        owner: str,
        job_id: str,
        limit: int,
        cursor: str | None = None,
        *,
        from_at: datetime | None = None,
        until_at: datetime | None = None,
        consistent: bool = False,
    ) -> Page[Run]:
        scope = runs_of(owner, job_id)
        after = None if cursor is None else decode_cursor(scope, cursor)
        with self._lock:
            order = self._of_jobs.get((owner, job_id))
            keys = () if order is None else order.after(after)
            runs = (self._rows[key] for key in keys)
            found = tuple(
                islice((run for run in runs if _is_within(run, from_at, until_at)), limit + 1)
            )
        return _page(found, limit, scope, _sort_key)

    def newest(self, owner: str, job_id: str, count: int) -> tuple[Run, ...]:
        return self.list(owner, job_id, count).items

    def count(self, owner: str, attention: Attention, most: int) -> int:
        with self._lock:
            rows = (row for row in self._rows.values() if row.key.owner == owner)
            return sum(1 for _ in islice((r for r in rows if r.attention is attention), most))

    def dead_letters(
        self,
        owner: str,
        limit: int,
        cursor: str | None = None,
        only: DeadLetterFilter | None = None,
    ) -> Page[Run]:
        scope = ("dead_letters", owner)
        after = None if cursor is None else decode_cursor(scope, cursor)
        with self._lock:
            order = self._dead_of_owners.get(owner)
            keys = () if order is None else order.after(after)
            runs = (self._rows[key] for key in keys)
            found = tuple(
                islice((run for run in runs if only is None or _matches(run, only)), limit + 1)
            )
        return _page(found, limit, scope, _dead_key)

    def _put(self, run: Run, stored: Run | None, allowed: bool) -> bool:
        row = _as_stored(run)
        if allowed:
            self._rows[row.key] = row
            if stored is None:
                job = (row.key.owner, row.key.job_id)
                _order_in(self._of_jobs, job, self._rows, _sort_key).add(row.key)
            # A row that only lives longer than noted is found again when its former time has come.
            if stored is None or row.expires_at < stored.expires_at:
                self._expiry.note(row.key, row.expires_at)
            if row.is_dead_letter or (stored is not None and stored.is_dead_letter):
                self._list_if_dead(row)
        return allowed or stored == row

    def _remove(self, key: RunKey) -> None:
        del self._rows[key]
        self._of_jobs[key.owner, key.job_id].row_gone()
        self._unlist(key)

    def _list_if_dead(self, row: Run) -> None:
        """Have the row on the list of dead letters just if it is one."""
        if not row.is_dead_letter:
            self._unlist(row.key)
        elif row.key not in self._dead:
            self._dead[row.key] = None
            _order_in(self._dead_of_owners, row.key.owner, self._dead, _dead_key).add(row.key)

    def _unlist(self, key: RunKey) -> None:
        if key in self._dead:
            del self._dead[key]
            self._dead_of_owners[key.owner].row_gone()


def _order_in(
    orders: dict[Name, KeyOrder[RunKey]],
    name: Name,
    rows: Collection[RunKey],
    text_of: Callable[[RunKey], str],
) -> KeyOrder[RunKey]:
    """The order under this name, new if there was none."""
    order = orders.get(name)
    if order is None:
        order = orders[name] = KeyOrder(rows, text_of)
    return order


def _claim_of(run: Run) -> tuple[int, str, RunStatus, int]:
    """The fields that tell a claim from the row as it was before, and from those after it."""
    return (run.token, run.claim_id, run.status, run.attempt)


def _as_stored(run: Run) -> Run:
    note = None if run.note is None else cut(run.note)
    expires_at = ceil_second(run.expires_at)
    if (note, expires_at) == (run.note, run.expires_at):
        return run
    return replace(run, expires_at=expires_at, note=note)


def _page(
    found: tuple[Run, ...], limit: int, scope: tuple[str, ...], text_of: Callable[[RunKey], str]
) -> Page[Run]:
    """The page of the first `limit`; one more was read."""
    if len(found) <= limit:
        return Page(found)
    return Page(found[:limit], encode_cursor(scope, text_of(found[limit - 1].key)))


def _sort_key(key: RunKey) -> str:
    return key.sort_key


def _dead_key(key: RunKey) -> str:
    return f"{key.sort_key}#{key.job_id}"


def _matches(run: Run, only: DeadLetterFilter) -> bool:
    return (
        only.job_id in ("", run.key.job_id)
        and only.reason in ("", run.reason)
        and only.error in ("", run.error.kind if run.error else "")
        and _is_within(run, only.from_at, only.until_at)
    )


def _is_within(run: Run, from_at: datetime | None, until_at: datetime | None) -> bool:
    fire_at = run.key.fire_at
    return (from_at is None or from_at <= fire_at) and (until_at is None or fire_at <= until_at)
