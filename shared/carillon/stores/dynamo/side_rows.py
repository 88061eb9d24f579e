"""Calendars, gates and operations in DynamoDB, in the partitions of their owners' jobs."""

import hashlib
import json
from datetime import datetime
from functools import cache
from typing import Any, Generic

from pydantic import TypeAdapter

from carillon.clock import ceil_second
from carillon.errors import UnreadableRowError
from carillon.stores.cursors import decode_cursor, encode_cursor
from carillon.stores.dynamo.models import SideRow
from carillon.stores.dynamo.table import RawItem, Table, readable
from carillon.stores.ports import Page, Row, RowKind

_DIGEST = "~"
"""Begins the digest that replaces a key."""
_KEY_LIMIT_BYTES = 512
"""Of a key that is stored as it is; a sort key may have 1,024 bytes."""


class DynamoVersionedRows(Generic[Row]):
    """VersionedRows on table jobs; rows that expire leave by TTL."""

    def __init__(self, table: Table, kind: RowKind[Row]) -> None:
        self._table = table
        self._kind = kind

    def get(self, owner: str, key: str) -> Row | None:
        item = self._table.get(owner, sort_key(self._kind, key))
        return None if item is None else row_of(self._kind, item, key)

    def put(self, row: Row, over_revision: int | None) -> bool:
        item = item_of(self._kind, row)
        if over_revision is None:
            return self._table.put(item, SideRow.sort_key.does_not_exist())
        return self._table.put(item, SideRow.revision == over_revision)

    def delete(self, owner: str, key: str, revision: int) -> bool:
        gone_or_seen = SideRow.sort_key.does_not_exist() | (SideRow.revision == revision)
        return self._table.delete(owner, sort_key(self._kind, key), gone_or_seen)

    def list(self, owner: str, limit: int, cursor: str | None = None) -> Page[Row]:
        kind, scope = self._kind, (f"{self._kind.name}s", owner)
        behind = None if cursor is None else _prefix(kind) + decode_cursor(scope, cursor)
        # From the prefix to the text that follows everything with the prefix.
        span = (_prefix(kind), f"~{kind.name}0")
        items, last = self._table.page(owner, behind, limit, span=span, backwards=kind.newest_first)
        rows, unreadable = readable(
            items, lambda item: row_of(kind, item), lambda item: _key_of(kind, item)
        )
        if last is None:
            return Page(rows, None, unreadable)
        return Page(rows, encode_cursor(scope, last.removeprefix(_prefix(kind))), unreadable)


def sort_key(kind: RowKind[Row], key: str) -> str:
    """The sort key of a row: no two keys have the same."""
    data = key.encode("utf-8", "surrogatepass")
    # A lone surrogate has no UTF-8.
    is_text = key.encode("utf-8", "ignore").decode() == key
    if kind.any_text and (len(data) > _KEY_LIMIT_BYTES or key.startswith(_DIGEST) or not is_text):
        return f"{_prefix(kind)}{_DIGEST}{hashlib.sha256(data).hexdigest()}"
    return _prefix(kind) + key


def item_of(kind: RowKind[Row], row: Row) -> RawItem:
    """The item of a row: members without a value of their own take no space."""
    apart = {"owner", "revision", "expires_at", kind.key}
    expires_at: datetime | None = getattr(row, "expires_at", None)
    return SideRow(
        owner=row.owner,
        sort_key=sort_key(kind, kind.key_of(row)),
        revision=row.revision,
        body=_adapter(kind).dump_json(row, exclude_defaults=True, exclude=apart).decode(),
        expires_at=None if expires_at is None else ceil_second(expires_at),
    ).serialize()


def row_of(kind: RowKind[Row], item: RawItem, key: str | None = None) -> Row:
    """The row of an item that `item_of` made; raises UnreadableRowError for any other.

    `key` is needed where the kind allows any text: the sort key may hold its digest.
    """
    try:
        stored = SideRow.from_raw_data(item)
        members = {**json.loads(stored.body), "owner": stored.owner, "revision": stored.revision}
        members[kind.key] = _key_of(kind, item) if key is None else key
        if stored.expires_at is not None:
            members["expires_at"] = stored.expires_at
        row: Row = _adapter(kind).validate_python(members)
        return row
    except Exception as error:
        raise UnreadableRowError(f"{kind.name} {item.get('job_id')}: {error}") from error


@cache
def _adapter(kind: RowKind[Any]) -> TypeAdapter[Any]:
    return TypeAdapter(kind.type)


def _prefix(kind: RowKind[Row]) -> str:
    return f"~{kind.name}/"


def _key_of(kind: RowKind[Row], item: RawItem) -> str:
    key: str = item["job_id"]["S"]
    return key.removeprefix(_prefix(kind))
