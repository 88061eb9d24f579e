"""Runs in a dict."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from threading import Lock

from shared.domain.run import Run, RunKey, RunStatus, cut
from shared.stores.cursors import decode_cursor, encode_cursor, whole_seconds
from shared.stores.ports import DeadLetterFilter, Page


class MemoryRunStore:
    """RunStore in memory; nothing expires by itself."""

    def __init__(self) -> None:
        self._rows: dict[RunKey, Run] = {}
        self._lock = Lock()

    def get(self, key: RunKey) -> Run | None:
        with self._lock:
            return self._rows.get(key)

    def claim(self, run: Run, over: Run | None) -> bool:
        with self._lock:
            stored = self._rows.get(run.key)
            if over is None or stored is None:
                return self._put(run, stored, allowed=stored is None and over is None)
            seen = (over.token, over.claim_id, over.status)
            return self._put(run, stored, (stored.token, stored.claim_id, stored.status) == seen)

    def finish(self, run: Run) -> bool:
        with self._lock:
            stored = self._rows.get(run.key)
            return self._put(run, stored, allowed=_is_held(stored, run))

    def withdraw(self, run: Run) -> bool:
        with self._lock:
            if not _is_held(self._rows.get(run.key), run):
                return False
            del self._rows[run.key]
            return True

    def list(
        self,
        owner: str,
        job_id: str,
        limit: int,
        cursor: str | None = None,
        *,
        from_at: datetime | None = None,
        until_at: datetime | None = None,
    ) -> Page[Run]:
        after = "" if cursor is None else decode_cursor(("runs", owner, job_id), cursor)
        with self._lock:
            runs = [
                run
                for key, run in self._rows.items()
                if (key.owner, key.job_id) == (owner, job_id) and key.sort_key > after
                if _is_within(run, from_at, until_at)
            ]
        page = sorted(runs, key=lambda run: run.key.sort_key)
        return _page(page, limit, ("runs", owner, job_id), lambda run: run.key.sort_key)

    def dead_letters(
        self,
        owner: str,
        limit: int,
        cursor: str | None = None,
        only: DeadLetterFilter | None = None,
    ) -> Page[Run]:
        after = "" if cursor is None else decode_cursor(("dead_letters", owner), cursor)
        with self._lock:
            runs = [
                run
                for key, run in self._rows.items()
                if key.owner == owner and run.is_dead_letter and _dead_key(run) > after
                if only is None or _matches(run, only)
            ]
        return _page(sorted(runs, key=_dead_key), limit, ("dead_letters", owner), _dead_key)

    def _put(self, run: Run, stored: Run | None, allowed: bool) -> bool:
        note = None if run.note is None else cut(run.note)
        row = replace(run, expires_at=whole_seconds(run.expires_at), note=note)
        if allowed:
            self._rows[run.key] = row
        return allowed or stored == row


def _is_held(stored: Run | None, run: Run) -> bool:
    """Whether the row is RUNNING under the claim that `run` was made from."""
    return (
        stored is not None
        and stored.status is RunStatus.RUNNING
        and (stored.token, stored.claim_id) == (run.token, run.claim_id)
    )


def _page(
    runs: list[Run], limit: int, scope: tuple[str, ...], key_of: Callable[[Run], str]
) -> Page[Run]:
    page = tuple(runs[:limit])
    return Page(page, encode_cursor(scope, key_of(page[-1])) if len(runs) > limit else None)


def _dead_key(run: Run) -> str:
    return f"{run.key.sort_key}#{run.key.job_id}"


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
