"""Changes in DynamoDB, in the runs' table, and by owner in its index of what needs attention."""

from datetime import timedelta
from functools import reduce
from operator import and_

from pydantic import TypeAdapter
from pynamodb.expressions.condition import Condition

from carillon.clock import ceil_second
from carillon.domain.changes.change import Change, Subject, newest_first
from carillon.errors import UnreadableRowError
from carillon.schedules.base import EPOCH
from carillon.stores.changes import ChangeFilter
from carillon.stores.cursors import decode_cursor, encode_cursor
from carillon.stores.dynamo.attributes import RawItem, row_as
from carillon.stores.dynamo.models import AttentionIndex, ChangeRow
from carillon.stores.dynamo.table import Partitions, Span, Table, readable
from carillon.stores.pages import Page

_CHANGE: TypeAdapter[Change] = TypeAdapter(Change)
_NOTHING = ("~", "!")
"""A span without keys."""


class DynamoChangeStore:
    """ChangeStore on table runs; rows leave by TTL, `lifetime` after their change."""

    def __init__(self, table: Table, lifetime: timedelta) -> None:
        self._table = table
        self._lifetime = lifetime
        self._by_owner = table.index(
            AttentionIndex.Meta.index_name,
            AttentionIndex.attention_owner,
            AttentionIndex.attention_key,
        )

    def put(self, change: Change) -> None:
        item = change_item_of(change, self._lifetime)
        self._table.put(item, ChangeRow.position.does_not_exist())

    def of_subject(
        self,
        owner: str,
        subject: Subject,
        key: str,
        limit: int,
        cursor: str | None = None,
        only: ChangeFilter | None = None,
    ) -> Page[Change]:
        scope = ("changes", owner, subject.value, key)
        partition = _partition(owner, subject, key)
        return _page(self._table, partition, scope, limit, cursor, only, consistent=True)

    def of_owner(
        self,
        owner: str,
        limit: int,
        cursor: str | None = None,
        only: ChangeFilter | None = None,
    ) -> Page[Change]:
        partition, scope = _of_owner(owner), ("changes", owner)
        return _page(self._by_owner, partition, scope, limit, cursor, only, consistent=False)


def change_item_of(change: Change, lifetime: timedelta) -> RawItem:
    """The item of a change."""
    return ChangeRow(
        partition=_partition(change.owner, change.subject, change.key),
        position=change.position,
        action=change.action.value,
        by_id=change.author.id,
        by_name=change.author.name or None,
        body=change_text(change),
        attention_owner=_of_owner(change.owner),
        attention_key=change.change_id,
        expires_at=ceil_second(change.at + lifetime),
    ).serialize()


def change_text(change: Change) -> str:
    """The change as JSON, without what is left to the default."""
    return _CHANGE.dump_json(change, exclude_defaults=True).decode()


def change_of_text(text: str) -> Change:
    """The change of a text that `change_text` made; raises ValueError."""
    return _CHANGE.validate_json(text)


def _page(
    partitions: Partitions,
    partition: str,
    scope: tuple[str, ...],
    limit: int,
    cursor: str | None,
    only: ChangeFilter | None,
    *,
    consistent: bool,
) -> Page[Change]:
    only = only or ChangeFilter()
    after = None if cursor is None else decode_cursor(scope, cursor)
    items, last = partitions.page(
        partition, after, limit, only=_condition(only), span=_span(only), consistent=consistent
    )
    changes, unreadable = readable(items, _change_of, lambda item: str(item["run_key"]["S"]))
    return Page(changes, None if last is None else encode_cursor(scope, last), unreadable)


def _change_of(item: RawItem) -> Change:
    try:
        return change_of_text(row_as(ChangeRow, item).body)
    except Exception as error:  # whatever a row makes of the parsers
        raise UnreadableRowError(f"change {item.get('run_key')}: {error}") from error


def _condition(only: ChangeFilter) -> Condition | None:
    wanted: list[Condition] = []
    if only.action is not None:
        wanted.append(ChangeRow.action == only.action.value)
    if only.by:
        wanted.append((ChangeRow.by_id == only.by) | (ChangeRow.by_name == only.by))
    return reduce(and_, wanted) if wanted else None


def _span(only: ChangeFilter) -> Span | None:
    """The positions of changes made in the filter's time."""
    if only.from_at is None and only.until_at is None:
        return None
    if only.until_at is not None and only.until_at < EPOCH:
        return _NOTHING
    newest = "!" if only.until_at is None else newest_first(only.until_at)
    oldest = "~" if only.from_at is None else f"{newest_first(max(only.from_at, EPOCH))}~"
    return newest, oldest


def _partition(owner: str, subject: Subject, key: str) -> str:
    return f"~changes#{owner}#{subject}#{key}"


def _of_owner(owner: str) -> str:
    return f"changes#{owner}"
