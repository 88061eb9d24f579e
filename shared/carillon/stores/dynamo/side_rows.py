"""Calendars, gates and operations in DynamoDB, in the partitions of their owners' jobs."""

import hashlib
from datetime import date, timedelta

from carillon.domain.admission.state import Gate, Holder, Line, Starts, Turn
from carillon.domain.calendar import Calendar
from carillon.domain.operation import Operation, OperationKind, OperationState
from carillon.errors import UnreadableRowError
from carillon.stores.cursors import decode_cursor, encode_cursor, whole_seconds
from carillon.stores.dynamo.models import (
    CalendarRow,
    GateRow,
    HolderMap,
    LineMap,
    OperationRow,
    StartsMap,
    TurnMap,
)
from carillon.stores.dynamo.table import RawItem, Table, readable
from carillon.stores.ports import Page

_OPERATION = "~operation/"
_OPERATIONS = (_OPERATION, "~operation0")
"""From the prefix to the text that follows everything with the prefix."""


class DynamoOperationStore:
    """OperationStore on table jobs; rows leave by TTL."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def get(self, owner: str, operation_id: str) -> Operation | None:
        item = self._table.get(owner, _operation_key(operation_id))
        return None if item is None else operation_of(item)

    def put(self, operation: Operation, over_revision: int | None) -> bool:
        if over_revision is None:
            return self._table.put(
                operation_item(operation), OperationRow.operation_key.does_not_exist()
            )
        return self._table.put(operation_item(operation), OperationRow.revision == over_revision)

    def list(self, owner: str, limit: int, cursor: str | None = None) -> Page[Operation]:
        scope = ("operations", owner)
        before = None if cursor is None else _operation_key(decode_cursor(scope, cursor))
        items, last = self._table.page(owner, before, limit, span=_OPERATIONS, backwards=True)
        operations, unreadable = readable(items, operation_of, _operation_id)
        next_cursor = None if last is None else encode_cursor(scope, last.removeprefix(_OPERATION))
        return Page(operations, next_cursor, unreadable)


def _operation_id(item: RawItem) -> str:
    key: str = item["job_id"]["S"]
    return key.removeprefix(_OPERATION)


def operation_item(operation: Operation) -> RawItem:
    """The item of an operation."""
    return OperationRow(
        owner=operation.owner,
        operation_key=_operation_key(operation.operation_id),
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
            operation_id=row.operation_key.removeprefix(_OPERATION),
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


def _operation_key(operation_id: str) -> str:
    return _OPERATION + operation_id


_CALENDAR = "~calendar/"
_CALENDARS = (_CALENDAR, "~calendar0")
"""From the prefix to the text that follows everything with the prefix."""
_WEEKDAYS = {str(number): number for number in range(7)}


class DynamoCalendarStore:
    """CalendarStore on table jobs."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def get(self, owner: str, name: str) -> Calendar | None:
        item = self._table.get(owner, _calendar_key(name))
        return None if item is None else calendar_of(item)

    def put(self, calendar: Calendar, over_revision: int | None) -> bool:
        if over_revision is None:
            return self._table.put(
                calendar_item(calendar), CalendarRow.calendar_key.does_not_exist()
            )
        return self._table.put(calendar_item(calendar), CalendarRow.revision == over_revision)

    def delete(self, owner: str, name: str, revision: int) -> bool:
        gone_or_seen = CalendarRow.calendar_key.does_not_exist() | (
            CalendarRow.revision == revision
        )
        return self._table.delete(owner, _calendar_key(name), gone_or_seen)

    def list(self, owner: str, limit: int, cursor: str | None = None) -> Page[Calendar]:
        scope = ("calendars", owner)
        after = None if cursor is None else _calendar_key(decode_cursor(scope, cursor))
        items, last = self._table.page(owner, after, limit, span=_CALENDARS)
        calendars, unreadable = readable(items, calendar_of, _calendar_name)
        next_cursor = None if last is None else encode_cursor(scope, last.removeprefix(_CALENDAR))
        return Page(calendars, next_cursor, unreadable)


def _calendar_name(item: RawItem) -> str:
    key: str = item["job_id"]["S"]
    return key.removeprefix(_CALENDAR)


def calendar_item(calendar: Calendar) -> RawItem:
    """The item of a calendar: its ranges in text, 9 to 13 bytes each."""
    return CalendarRow(
        owner=calendar.owner,
        calendar_key=_calendar_key(calendar.name),
        revision=calendar.revision,
        weekdays="".join(str(weekday) for weekday in sorted(calendar.weekdays)) or None,
        ranges=" ".join(_range_text(*ends) for ends in calendar.ranges) or None,
        description=calendar.description or None,
        created_at=calendar.created_at,
        updated_at=calendar.updated_at,
    ).serialize()


def calendar_of(item: RawItem) -> Calendar:
    """The calendar of an item that `item_of` made; raises UnreadableRowError for any other."""
    try:
        row = CalendarRow.from_raw_data(item)
        return Calendar(
            owner=row.owner,
            name=row.calendar_key.removeprefix(_CALENDAR),
            revision=row.revision,
            weekdays=frozenset(_WEEKDAYS[digit] for digit in row.weekdays or ""),
            ranges=tuple(_range_of(text) for text in (row.ranges or "").split()),
            created_at=row.created_at,
            updated_at=row.updated_at,
            description=row.description or "",
        )
    except Exception as error:
        raise UnreadableRowError(f"calendar {item.get('job_id')}: {error}") from error


def _calendar_key(name: str) -> str:
    return _CALENDAR + name


def _range_text(first: date, last: date) -> str:
    days = (last - first).days
    text = first.isoformat().replace("-", "")
    return f"{text}+{days}" if days else text


def _range_of(text: str) -> tuple[date, date]:
    first_text, _, days = text.partition("+")
    first = date.fromisoformat(first_text)
    return first, first + timedelta(days=int(days or "0"))


_GATE = "~gate/"
_DIGEST = "~"
"""Begins the digest that stands in a key for a name."""
_NAME_LIMIT_BYTES = 512
"""Of a name that stands in a key as it is; a sort key may have 1,024 bytes."""


class DynamoGateStore:
    """GateStore on table jobs; rows leave by TTL."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def get(self, owner: str, name: str) -> Gate | None:
        item = self._table.get(owner, gate_key(name))
        return None if item is None else gate_of(name, item)

    def put(self, gate: Gate, over_revision: int | None) -> bool:
        if over_revision is None:
            return self._table.put(gate_item(gate), GateRow.gate_key.does_not_exist())
        return self._table.put(gate_item(gate), GateRow.revision == over_revision)


def gate_key(name: str) -> str:
    """The sort key of a gate: no two names have the same."""
    data = name.encode("utf-8", "surrogatepass")
    if len(data) <= _NAME_LIMIT_BYTES and not name.startswith(_DIGEST) and _is_storable(name):
        return _GATE + name
    return f"{_GATE}{_DIGEST}{hashlib.sha256(data).hexdigest()}"


def gate_item(gate: Gate) -> RawItem:
    """The item of a gate."""
    return GateRow(
        owner=gate.owner,
        gate_key=gate_key(gate.name),
        revision=gate.revision,
        active=gate.active or None,
        waiting=gate.waiting or None,
        waiting_filing=gate.waiting_filing or None,
        started=gate.started or None,
        started_at=gate.started_at,
        failed=gate.failed or None,
        failed_filing=gate.failed_filing or None,
        slow_at=gate.slow_at or None,
        holders=[_holder_map(holder) for holder in gate.holders] or None,
        turns=[_turn_map(turn) for turn in gate.turns] or None,
        lines=[_line_map(line) for line in gate.lines] or None,
        expires_at=whole_seconds(gate.expires_at),
    ).serialize()


def gate_of(name: str, item: RawItem) -> Gate:
    """The gate of an item that `item_of` made; raises UnreadableRowError for any other."""
    try:
        row = GateRow.from_raw_data(item)
        return Gate(
            owner=row.owner,
            name=name,
            revision=row.revision,
            expires_at=row.expires_at,
            active=row.active or "",
            waiting=row.waiting or "",
            waiting_filing=row.waiting_filing or "",
            started=row.started or "",
            started_at=row.started_at,
            failed=row.failed or (),
            failed_filing=row.failed_filing or "",
            slow_at=row.slow_at or (),
            holders=tuple(Holder(h.claim_id, h.until) for h in row.holders or ()),
            turns=tuple(Turn(t.run_id, t.due_at, t.until) for t in row.turns or ()),
            lines=tuple(_line(line) for line in row.lines or ()),
        )
    except Exception as error:
        raise UnreadableRowError(f"gate {item.get('job_id')}: {error}") from error


def _holder_map(holder: Holder) -> HolderMap:
    return HolderMap(claim_id=holder.claim_id, until=holder.until)


def _turn_map(turn: Turn) -> TurnMap:
    return TurnMap(run_id=turn.run_id, due_at=turn.due_at, until=turn.until)


def _line_map(line: Line) -> LineMap:
    return LineMap(
        limit=line.limit,
        per_seconds=line.per_seconds,
        line_id=line.line_id,
        last_at=line.last_at,
        starts=[StartsMap(count=each.count, until=each.until) for each in line.starts],
    )


def _line(line: LineMap) -> Line:
    starts = tuple(Starts(each.count, each.until) for each in line.starts)
    return Line(line.limit, line.per_seconds, line.line_id, line.last_at, starts)


def _is_storable(name: str) -> bool:
    """Whether it is proper text: a lone surrogate has no UTF-8."""
    return name.encode("utf-8", "ignore").decode() == name
