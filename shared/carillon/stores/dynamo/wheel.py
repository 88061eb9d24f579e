"""The wheel and the control items in DynamoDB."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, TypeVar

from pynamodb.attributes import Attribute
from pynamodb.expressions.condition import Condition

from carillon.clock import Clock, Entropy
from carillon.domain.calendar import CalendarUse
from carillon.domain.job import Lane
from carillon.domain.message import decode, encode
from carillon.domain.policies import CatchUp
from carillon.domain.wheel.entry import LAST_MINUTE, Entry, EntryKey, Slot, slots_of_minute
from carillon.domain.wheel.pace import BUCKETS, Shares
from carillon.domain.wheel.segment import Backlog, Control, Cursor, Remains
from carillon.errors import UnreadableRowError, reason_of
from carillon.schedules import DEFAULT_DST, CalendarRule, DstRule, Schedule, parse_schedule
from carillon.schedules.parsing import is_combination
from carillon.stores.dynamo.attributes import RawItem, instant_of
from carillon.stores.dynamo.models import BacklogMap, ControlRow, CursorMap, SharesMap, WheelRow
from carillon.stores.dynamo.table import Table, unchanged
from carillon.stores.ports import Page

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
        throttled_until=control.throttled_until,
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
    """The readable part of a control item. Members of other versions are ignored."""
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
    "throttled_until": _instant,
    "shares": _shares,
    "idle": _flag,
    "tzdata": _text,
    "tzdata_from": _minute,
}
_REQUIRED = ("horizon", "watermark", "token")


_UTC = "UTC"
_LETTERS = {
    CalendarRule.SKIP: "s",
    CalendarRule.NEXT_BUSINESS_DAY: "n",
    CalendarRule.PREVIOUS_BUSINESS_DAY: "p",
}
_RULES = {letter: rule for rule, letter in _LETTERS.items()}


class DynamoWheelStore:
    """WheelStore on table wheel. `page_size` bounds a page besides DynamoDB's own megabyte."""

    def __init__(
        self, table: Table, clock: Clock, entropy: Entropy, page_size: int | None = None
    ) -> None:
        self._table = table
        self._clock = clock
        self._entropy = entropy
        self._page_size = page_size

    def put_entries(self, entries: Sequence[Entry]) -> None:
        # A batch refuses two items of one key; they are the same entry.
        items = list({(e.segment, e.slot, e.key): item_of(e) for e in entries}.values())
        if len(items) == 1:
            self._table.put(items[0])
        else:
            self._table.put_all(items, self._clock, self._entropy)

    def query(self, segment: int, slot: Slot, after_key: str | None = None) -> Page[Entry]:
        partition = _partition(segment, slot)
        items, last_key = self._table.query(
            partition, after_key, limit=self._page_size, consistent=True
        )
        return _page(segment, slot, items, last_key)

    def holds(self, segment: int, slot: Slot, entry_key: str) -> bool:
        return self._table.get(_partition(segment, slot), entry_key) is not None

    def remove_entries(self, segment: int, keys: Sequence[EntryKey]) -> None:
        items = [(_partition(segment, slot), key) for slot, key in dict.fromkeys(keys)]
        if len(items) == 1:
            self._table.delete(*items[0])
        else:
            self._table.delete_all(items, self._clock, self._entropy)

    def get_control(self, segment: int) -> Control | None:
        item = self._table.get(control_partition(segment), CONTROL_KEY)
        return None if item is None else control_of(segment, item)

    def put_control(self, control: Control, over: Control | None) -> bool:
        if over is None:
            return self._table.put(control_item_of(control), ControlRow.entry_key.does_not_exist())
        return self._table.put(control_item_of(control), lease_of(over))

    def examine_control(self, segment: int) -> Remains | None:
        item = self._table.get(control_partition(segment), CONTROL_KEY)
        return None if item is None else remains_of(segment, item)

    def mend_control(self, control: Control, over: Remains) -> bool:
        return self._table.put(control_item_of(control), unchanged(over.stored))


def item_of(entry: Entry) -> RawItem:
    """The item of an entry."""
    schedule, message = entry.schedule, entry.message
    return WheelRow(
        segment_slot=_partition(entry.segment, entry.slot),
        entry_key=entry.key,
        owner=entry.owner,
        from_at=entry.from_at,
        schedule=schedule and schedule.text,
        timezone=schedule.timezone if schedule and schedule.timezone != _UTC else None,
        start_at=schedule and schedule.start_at,
        end_at=schedule and schedule.end_at,
        dst=schedule.dst.text or None if schedule else None,
        spread_seconds=entry.spread_seconds or None,
        calendar=entry.calendar and f"{_LETTERS[entry.calendar.rule]}/{entry.calendar.name}",
        zone_digest=entry.zone_digest or None,
        lane=entry.lane.value if entry.lane is not Lane.NORMAL else None,
        catch_up=entry.catch_up.value if entry.catch_up is not CatchUp.LATEST else None,
        grace_seconds=entry.grace_seconds or None,
        chunked_from=entry.chunked_from or None,
        within_seconds=entry.within_seconds or None,
        message=message and encode(message),
        expires_at=entry.expires_at,
    ).serialize()


def entry_of(segment: int, slot: Slot, item: RawItem) -> Entry:
    """The entry of an item that `item_of` made.

    Parsed here and not by the model: a page of a megabyte holds thousands of them.
    """
    job_id, generation_id, *_ = item["entry_key"]["S"].split("#", 2)
    text, body, grace, within = item.get("s"), item.get("m"), item.get("r"), item.get("x")
    lane, catch_up = item.get("l"), item.get("c")
    spread, calendar, digest = item.get("w"), item.get("k"), item.get("g")
    chunked = item.get("q")
    return Entry(
        segment=segment,
        slot=slot,
        owner=item["o"]["S"],
        job_id=job_id,
        generation_id=generation_id,
        from_at=instant_of(int(item["f"]["N"])),
        lane=Lane(lane["S"]) if lane else Lane.NORMAL,
        catch_up=CatchUp(catch_up["S"]) if catch_up else CatchUp.LATEST,
        schedule=schedule_of(text["S"], item) if text else None,
        message=decode(body["S"]) if body else None,
        spread_seconds=int(spread["N"]) if spread else 0,
        calendar=_calendar_use(calendar["S"]) if calendar else None,
        zone_digest=digest["S"] if digest else "",
        grace_seconds=int(grace["N"]) if grace else 0,
        within_seconds=int(within["N"]) if within else 0,
        chunked_from=int(chunked["N"]) if chunked else 0,
    )


def schedule_of(text: str, item: RawItem) -> Schedule:
    """The schedule of an item that has its zone and bounds beside its text, as an entry has."""
    zone, start, end, dst = item.get("z"), item.get("a"), item.get("e"), item.get("d")
    # The parser keeps combinations itself: only few, since they are large.
    parsed = _schedule.__wrapped__ if is_combination(text) else _schedule
    return parsed(
        text,
        zone["S"] if zone else _UTC,
        start["N"] if start else None,
        end["N"] if end else None,
        dst["S"] if dst else "",
    )


def _page(segment: int, slot: Slot, items: Sequence[RawItem], last_key: str | None) -> Page[Entry]:
    """The entries of a page; one that cannot be read must not stop the others' minute.

    Whatever a row of a bug or of a later version makes of the parsers, it is that row's alone.
    """
    entries: list[Entry] = []
    unreadable: dict[str, str] = {}
    for item in items:
        try:
            entries.append(entry_of(segment, slot, item))
        except Exception as error:
            unreadable[item["entry_key"]["S"]] = reason_of(error)
    return Page(tuple(entries), last_key, unreadable)


@lru_cache(maxsize=16_384)
def _schedule(text: str, timezone: str, start: str | None, end: str | None, dst: str) -> Schedule:
    """The schedule of an entry, from its raw attributes; many jobs share one."""
    return parse_schedule(
        text,
        timezone,
        None if start is None else instant_of(int(start)),
        None if end is None else instant_of(int(end)),
        DstRule.from_text(dst) if dst else DEFAULT_DST,
    )


@lru_cache(maxsize=16_384)
def _calendar_use(text: str) -> CalendarUse:
    letter, _, name = text.partition("/")
    return CalendarUse(name, _RULES[letter])


def _partition(segment: int, slot: Slot) -> str:
    return f"{segment}#{slot.key}"
