"""Runs in a dict."""

from dataclasses import replace
from threading import Lock

from shared.domain.run import Run, RunKey, RunStatus, cut
from shared.stores.cursors import decode_cursor, encode_cursor, whole_seconds
from shared.stores.ports import Page


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

    def list(self, owner: str, job_id: str, limit: int, cursor: str | None = None) -> Page[Run]:
        scope = ("runs", owner, job_id)
        after = "" if cursor is None else decode_cursor(scope, cursor)
        with self._lock:
            runs = sorted(
                (
                    run
                    for key, run in self._rows.items()
                    if (key.owner, key.job_id) == (owner, job_id) and key.sort_key > after
                ),
                key=lambda run: run.key.sort_key,
            )
        page = tuple(runs[:limit])
        more = len(runs) > limit
        return Page(page, encode_cursor(scope, page[-1].key.sort_key) if more else None)

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
