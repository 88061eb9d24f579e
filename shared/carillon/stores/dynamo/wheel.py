"""The wheel and the control items in DynamoDB."""

from collections.abc import Sequence
from functools import lru_cache

from carillon.clock import Clock, Entropy
from carillon.domain.calendar import CalendarUse
from carillon.domain.job import Lane
from carillon.domain.message import decode, encode
from carillon.domain.policies import CatchUp
from carillon.domain.wheel.entry import Entry, EntryKey, Slot
from carillon.domain.wheel.segment import Control, Remains
from carillon.errors import reason_of
from carillon.schedules import DEFAULT_DST, CalendarRule, DstRule, Schedule, parse_schedule
from carillon.stores.dynamo.attributes import instant_of
from carillon.stores.dynamo.controls import (
    CONTROL_KEY,
    control_item_of,
    control_of,
    control_partition,
    lease_of,
    remains_of,
)
from carillon.stores.dynamo.models import ControlRow, WheelRow
from carillon.stores.dynamo.table import RawItem, Table, unchanged
from carillon.stores.ports import EntryPage

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

    def query(self, segment: int, slot: Slot, after_key: str | None = None) -> EntryPage:
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
        within_seconds=entry.within_seconds or None,
        message=message and encode(message),
        expires_at=entry.expires_at,
    ).serialize()


def entry_of(segment: int, slot: Slot, item: RawItem) -> Entry:
    """The entry of an item that `item_of` made.

    Read by hand and not by the model: a page of a megabyte holds thousands of them.
    """
    job_id, filing_id, *_ = item["entry_key"]["S"].split("#", 2)
    text, body, grace, within = item.get("s"), item.get("m"), item.get("r"), item.get("x")
    lane, catch_up = item.get("l"), item.get("c")
    spread, calendar, digest = item.get("w"), item.get("k"), item.get("g")
    return Entry(
        segment=segment,
        slot=slot,
        owner=item["o"]["S"],
        job_id=job_id,
        filing_id=filing_id,
        from_at=instant_of(int(item["f"]["N"])),
        lane=Lane(lane["S"]) if lane else Lane.NORMAL,
        catch_up=CatchUp(catch_up["S"]) if catch_up else CatchUp.LATEST,
        schedule=_schedule_of(text["S"], item) if text else None,
        message=decode(body["S"]) if body else None,
        spread_seconds=int(spread["N"]) if spread else 0,
        calendar=_calendar_use(calendar["S"]) if calendar else None,
        zone_digest=digest["S"] if digest else "",
        grace_seconds=int(grace["N"]) if grace else 0,
        within_seconds=int(within["N"]) if within else 0,
    )


def _schedule_of(text: str, item: RawItem) -> Schedule:
    zone, start, end, dst = item.get("z"), item.get("a"), item.get("e"), item.get("d")
    return _schedule(
        text,
        zone["S"] if zone else _UTC,
        start["N"] if start else None,
        end["N"] if end else None,
        dst["S"] if dst else "",
    )


def _page(segment: int, slot: Slot, items: Sequence[RawItem], last_key: str | None) -> EntryPage:
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
    return EntryPage(tuple(entries), last_key, unreadable)


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
