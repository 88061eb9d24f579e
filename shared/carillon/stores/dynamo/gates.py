"""Gates in DynamoDB, in the partitions of their owners' jobs."""

import hashlib

from carillon.domain.admission.state import Gate, Holder, Line, Starts, Turn
from carillon.errors import UnreadableRowError
from carillon.stores.cursors import whole_seconds
from carillon.stores.dynamo.models import GateRow, HolderMap, LineMap, StartsMap, TurnMap
from carillon.stores.dynamo.table import RawItem, Table

_PREFIX = "~gate/"
_DIGEST = "~"
"""Begins the digest that stands in a key for a name."""
_NAME_LIMIT_BYTES = 512
"""Of a name that stands in a key as it is; a sort key may have 1,024 bytes."""


class DynamoGateStore:
    """GateStore on table jobs; rows leave by TTL."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def get(self, owner: str, name: str) -> Gate | None:
        item = self._table.get(owner, key_of(name))
        return None if item is None else gate_of(name, item)

    def put(self, gate: Gate, over_revision: int | None) -> bool:
        if over_revision is None:
            return self._table.put(item_of(gate), GateRow.gate_key.does_not_exist())
        return self._table.put(item_of(gate), GateRow.revision == over_revision)


def key_of(name: str) -> str:
    """The sort key of a gate: no two names have the same."""
    data = name.encode("utf-8", "surrogatepass")
    if len(data) <= _NAME_LIMIT_BYTES and not name.startswith(_DIGEST) and _is_storable(name):
        return _PREFIX + name
    return f"{_PREFIX}{_DIGEST}{hashlib.sha256(data).hexdigest()}"


def item_of(gate: Gate) -> RawItem:
    """The item of a gate."""
    return GateRow(
        owner=gate.owner,
        gate_key=key_of(gate.name),
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
