"""The small rows that owners have beside jobs, in DynamoDB, in the jobs' table."""

import hashlib
import json
from datetime import datetime
from functools import cache
from typing import Any, Generic

from pydantic import TypeAdapter

from carillon.clock import ceil_second
from carillon.errors import UnreadableRowError
from carillon.stores.cursors import decode_cursor, encode_cursor
from carillon.stores.dynamo.attributes import RawItem, row_as
from carillon.stores.dynamo.models import SideRow
from carillon.stores.dynamo.table import Keys, Table, readable
from carillon.stores.ports import Page, Row, RowKind


class DynamoVersionedRows(Generic[Row]):
    """VersionedRows on table jobs; rows that expire leave by TTL."""

    def __init__(self, table: Table, kind: RowKind[Row]) -> None:
        self._table = table
        self._kind = kind

    def get(self, owner: str, key: str) -> Row | None:
        item = self._table.get(*keys_of(self._kind, owner, key))
        return None if item is None else row_of(self._kind, item, key)

    def put(self, row: Row, over_revision: int | None) -> bool:
        item = item_of(self._kind, row)
        if over_revision is None:
            return self._table.put(item, SideRow.sort_key.does_not_exist())
        return self._table.put(item, SideRow.revision == over_revision)

    def delete(self, owner: str, key: str, revision: int) -> bool:
        gone_or_seen = SideRow.sort_key.does_not_exist() | (SideRow.revision == revision)
        return self._table.delete(*keys_of(self._kind, owner, key), gone_or_seen)

    def list(self, owner: str, limit: int, cursor: str | None = None) -> Page[Row]:
        kind, scope = self._kind, (f"{self._kind.name}s", owner)
        partition, prefix = keys_of(kind, owner, "")
        behind = None if cursor is None else prefix + decode_cursor(scope, cursor)
        # From the prefix to the text that follows everything with the prefix.
        span = (prefix, f"{kind.name}0")
        items, last = self._table.page(
            partition, behind, limit, span=span, backwards=kind.newest_first
        )
        rows, unreadable = readable(
            items, lambda item: row_of(kind, item), lambda item: _key_of(kind, item)
        )
        if last is None:
            return Page(rows, None, unreadable)
        return Page(rows, encode_cursor(scope, last.removeprefix(prefix)), unreadable)


def keys_of(kind: RowKind[Any], owner: str, key: str) -> Keys:
    """The keys of a row's item: no two rows have the same."""
    if not kind.any_text:
        return f"~owner/{owner}", f"{kind.name}/{key}"
    # A lone surrogate has no UTF-8.
    data = f"{owner}\0{key}".encode("utf-8", "surrogatepass")
    return f"~{kind.name}/{hashlib.sha256(data).hexdigest()}", kind.name


def item_of(kind: RowKind[Row], row: Row) -> RawItem:
    """The item of a row: members without a value of their own take no space."""
    apart = {"owner", "revision", "expires_at", kind.key}
    expires_at: datetime | None = getattr(row, "expires_at", None)
    partition, sort_key = keys_of(kind, row.owner, kind.key_of(row))
    return SideRow(
        partition=partition,
        sort_key=sort_key,
        owner=row.owner,
        revision=row.revision,
        body=_adapter(kind).dump_json(row, exclude_defaults=True, exclude=apart).decode(),
        expires_at=None if expires_at is None else ceil_second(expires_at),
    ).serialize()


def row_of(kind: RowKind[Row], item: RawItem, key: str | None = None) -> Row:
    """The row of an item that `item_of` made; raises UnreadableRowError for any other.

    `key` is needed where the kind allows any text: the item's keys have its digest.
    """
    try:
        stored = row_as(SideRow, item)
        members = {**json.loads(stored.body), "owner": stored.owner, "revision": stored.revision}
        members[kind.key] = _key_of(kind, item) if key is None else key
        if stored.expires_at is not None:
            members["expires_at"] = stored.expires_at
        row: Row = _adapter(kind).validate_python(members)
        return row
    except Exception as error:
        raise UnreadableRowError(f"{kind.name} {item.get('sk')}: {error}") from error


@cache
def _adapter(kind: RowKind[Any]) -> TypeAdapter[Any]:
    return TypeAdapter(kind.type)


def _key_of(kind: RowKind[Any], item: RawItem) -> str:
    key: str = item["sk"]["S"]
    return key.removeprefix(f"{kind.name}/")
