"""Control items in DynamoDB, read member by member: what one of them has wrong can be told."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, TypeVar

from pynamodb.attributes import Attribute
from pynamodb.expressions.condition import Condition

from carillon.domain.wheel.entry import LAST_MINUTE, slots_of_minute
from carillon.domain.wheel.pace import BUCKETS, Shares
from carillon.domain.wheel.segment import Backlog, Control, Cursor, Remains
from carillon.errors import UnreadableRowError
from carillon.stores.dynamo.attributes import instant_of
from carillon.stores.dynamo.models import BacklogMap, ControlRow, CursorMap, SharesMap
from carillon.stores.dynamo.table import RawItem

CONTROL_KEY = "control"

Value = TypeVar("Value")
Typed = Mapping[str, Any]
"""A value as DynamoDB writes it: {type: value}."""


def control_partition(segment: int) -> str:
    return f"{segment}#control"


def control_item_of(control: Control) -> RawItem:
    """The item of a control item."""
    return ControlRow(
        segment_slot=control_partition(control.segment),
        entry_key=CONTROL_KEY,
        horizon=control.horizon,
        watermark=control.watermark,
        token=control.token,
        lease_owner=control.lease_owner or None,
        lease_until=control.lease_until,
        backlog=[
            BacklogMap(announced=b.announced, done=b.done, until=b.until, taken_up_at=b.taken_up_at)
            for b in control.backlog
        ]
        or None,
        cursor=control.cursor and _cursor_map(control.cursor),
        backlog_cursor=control.backlog_cursor and _cursor_map(control.backlog_cursor),
        paced_until=control.paced_until,
        shares=control.shares and _shares_map(control.shares),
        idle=control.idle or None,
        tzdata=control.tzdata or None,
        tzdata_from=control.tzdata_from or None,
    ).serialize()


def control_of(segment: int, item: RawItem) -> Control:
    """The control item of an item that `control_item_of` made; raises UnreadableRowError for any
    other."""
    remains = remains_of(segment, item)
    if remains.unreadable:
        wrong = ", ".join(f"{name} ({reason})" for name, reason in remains.unreadable.items())
        raise UnreadableRowError(
            f"the control item of segment {segment} cannot be read: {wrong}; an operator mends it "
            f"with `carillon admin mend-segment {segment}`"
        )
    return Control(segment, **remains.members)


def remains_of(segment: int, item: RawItem) -> Remains:
    """What can be read of a control item. What other versions keep beside it is not looked at."""
    members: dict[str, Any] = {}
    unreadable: dict[str, str] = {}
    for name, read in _MEMBERS.items():
        try:
            if name in item:
                members[name] = read(item[name])
            elif name in _REQUIRED:
                unreadable[name] = "is missing"
        except Exception as error:  # whatever a member makes of its reader, it is unreadable
            unreadable[name] = f"{type(error).__name__}: {error}"[:200]
    return Remains(segment, members, unreadable, stored=item)


def lease_of(control: Control) -> Condition:
    """The stored item has the token and the lease of `control`."""
    condition: Condition = (
        (ControlRow.token == control.token)
        & _same(ControlRow.lease_owner, control.lease_owner or None)
        & _same(ControlRow.lease_until, control.lease_until)
    )
    return condition


def _same(attribute: Attribute[Value], value: Value | None) -> Condition:
    return attribute.does_not_exist() if value is None else attribute == value


def _cursor_map(cursor: Cursor) -> CursorMap:
    return CursorMap(minute=cursor.minute, slot_key=cursor.slot_key, entry_key=cursor.entry_key)


def _shares_map(shares: Shares) -> SharesMap:
    return SharesMap(
        until=shares.until,
        begins_at=shares.begins_at,
        counts=list(shares.counts),
        placed=list(shares.placed),
    )


def _number(typed: Typed) -> int:
    return int(typed["N"])


def _minute(typed: Typed) -> int:
    minute = _number(typed)
    if not 0 <= minute <= LAST_MINUTE:
        raise ValueError(f"{minute} is no epoch minute")
    return minute


def _instant(typed: Typed) -> datetime:
    return instant_of(_number(typed))


def _text(typed: Typed) -> str:
    text: str = typed["S"]
    return text


def _flag(typed: Typed) -> bool:
    return bool(typed["BOOL"])


def _cursor(typed: Typed) -> Cursor:
    stored = typed["M"]
    minute, slot_key = _minute(stored["minute"]), _text(stored["slot_key"])
    if slot_key not in [slot.key for slot in slots_of_minute(minute)]:
        raise ValueError(f"minute {minute} has no slot {slot_key}")
    return Cursor(minute, slot_key, _text(stored["entry_key"]))


def _backlog(typed: Typed) -> tuple[Backlog, ...]:
    kept = tuple(_one_backlog(each["M"]) for each in typed["L"])
    if any(each.done >= each.until for each in kept):
        raise ValueError("a backlog of no minutes")
    return kept


def _one_backlog(stored: Mapping[str, Typed]) -> Backlog:
    return Backlog(
        announced=_minute(stored["announced"]),
        done=_minute(stored["done"]),
        until=_minute(stored["until"]),
        taken_up_at=_instant(stored["taken_up_at"]),
    )


def _shares(typed: Typed) -> Shares:
    stored = typed["M"]
    counts, placed = (tuple(map(_number, stored[name]["L"])) for name in ("counts", "placed"))
    if not len(counts) == len(placed) == BUCKETS:
        raise ValueError(f"shares of {len(counts)} and {len(placed)} buckets, not {BUCKETS}")
    return Shares(_minute(stored["until"]), _instant(stored["begins_at"]), counts, placed)


_MEMBERS: dict[str, Callable[[Typed], Any]] = {
    "horizon": _minute,
    "watermark": _minute,
    "token": _number,
    "lease_owner": _text,
    "lease_until": _instant,
    "backlog": _backlog,
    "cursor": _cursor,
    "backlog_cursor": _cursor,
    "paced_until": _instant,
    "shares": _shares,
    "idle": _flag,
    "tzdata": _text,
    "tzdata_from": _minute,
}
_REQUIRED = ("horizon", "watermark", "token")
