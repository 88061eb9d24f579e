"""Operations in DynamoDB, in the partitions of their owners' jobs."""

from carillon.domain.operation import Operation, OperationKind, OperationState
from carillon.errors import UnreadableRowError
from carillon.stores.cursors import decode_cursor, encode_cursor, whole_seconds
from carillon.stores.dynamo.models import OperationRow
from carillon.stores.dynamo.table import RawItem, Table, readable
from carillon.stores.ports import Page

_PREFIX = "~operation/"
_OPERATIONS = (_PREFIX, "~operation0")
"""From the prefix to the text that follows everything with the prefix."""


class DynamoOperationStore:
    """OperationStore on table jobs; rows leave by TTL."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def get(self, owner: str, operation_id: str) -> Operation | None:
        item = self._table.get(owner, _key(operation_id))
        return None if item is None else operation_of(item)

    def put(self, operation: Operation, over_revision: int | None) -> bool:
        if over_revision is None:
            return self._table.put(item_of(operation), OperationRow.operation_key.does_not_exist())
        return self._table.put(item_of(operation), OperationRow.revision == over_revision)

    def list(self, owner: str, limit: int, cursor: str | None = None) -> Page[Operation]:
        scope = ("operations", owner)
        before = None if cursor is None else _key(decode_cursor(scope, cursor))
        items, last = self._table.page(owner, before, limit, span=_OPERATIONS, backwards=True)
        operations, unreadable = readable(items, operation_of, _id_of)
        next_cursor = None if last is None else encode_cursor(scope, last.removeprefix(_PREFIX))
        return Page(operations, next_cursor, unreadable)


def _id_of(item: RawItem) -> str:
    key: str = item["job_id"]["S"]
    return key.removeprefix(_PREFIX)


def item_of(operation: Operation) -> RawItem:
    """The item of an operation."""
    return OperationRow(
        owner=operation.owner,
        operation_key=_key(operation.operation_id),
        kind=operation.kind.value,
        created_at=operation.created_at,
        updated_at=operation.updated_at,
        per_minute=operation.per_minute,
        of_job=operation.job_id or None,
        from_at=operation.from_at,
        until_at=operation.until_at,
        only_missed=operation.only_missed or None,
        reason=operation.reason or None,
        error=operation.error or None,
        state=operation.state.value,
        revision=operation.revision,
        step=operation.step,
        cursor=operation.cursor or None,
        done=operation.done,
        passed_over=operation.passed_over,
        note=operation.note or None,
        busy_until=operation.busy_until,
        tries=operation.tries or None,
        expires_at=whole_seconds(operation.expires_at),
    ).serialize()


def operation_of(item: RawItem) -> Operation:
    """The operation of an item that `item_of` made; raises UnreadableRowError for any other."""
    try:
        row = OperationRow.from_raw_data(item)
        return Operation(
            owner=row.owner,
            operation_id=row.operation_key.removeprefix(_PREFIX),
            kind=OperationKind(row.kind),
            created_at=row.created_at,
            updated_at=row.updated_at,
            expires_at=row.expires_at,
            per_minute=row.per_minute,
            job_id=row.of_job or "",
            from_at=row.from_at,
            until_at=row.until_at,
            only_missed=bool(row.only_missed),
            reason=row.reason or "",
            error=row.error or "",
            state=OperationState(row.state),
            revision=row.revision,
            step=row.step,
            cursor=row.cursor or "",
            done=row.done,
            passed_over=row.passed_over,
            note=row.note or "",
            busy_until=row.busy_until,
            tries=row.tries or 0,
        )
    except Exception as error:
        raise UnreadableRowError(f"operation {item.get('job_id')}: {error}") from error


def _key(operation_id: str) -> str:
    return _PREFIX + operation_id
