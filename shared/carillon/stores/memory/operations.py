"""Operations in a dict."""

from dataclasses import replace
from threading import Lock

from carillon.domain.operation import Operation
from carillon.stores.cursors import decode_cursor, encode_cursor, whole_seconds
from carillon.stores.ports import Page


class MemoryOperationStore:
    """OperationStore in memory; nothing expires by itself."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str], Operation] = {}
        self._lock = Lock()

    def get(self, owner: str, operation_id: str) -> Operation | None:
        with self._lock:
            return self._rows.get((owner, operation_id))

    def put(self, operation: Operation, over_revision: int | None) -> bool:
        key = (operation.owner, operation.operation_id)
        row = replace(operation, expires_at=whole_seconds(operation.expires_at))
        with self._lock:
            stored = self._rows.get(key)
            if (None if stored is None else stored.revision) == over_revision:
                self._rows[key] = row
                return True
            return stored == row

    def list(self, owner: str, limit: int, cursor: str | None = None) -> Page[Operation]:
        scope = ("operations", owner)
        before = None if cursor is None else decode_cursor(scope, cursor)
        with self._lock:
            operations = sorted(
                (
                    row
                    for row in self._rows.values()
                    if row.owner == owner and (before is None or row.operation_id < before)
                ),
                key=lambda row: row.operation_id,
                reverse=True,
            )
        page = tuple(operations[:limit])
        more = len(operations) > limit
        return Page(page, encode_cursor(scope, page[-1].operation_id) if more else None)
