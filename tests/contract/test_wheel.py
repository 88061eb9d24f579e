"""WheelStore."""

import dataclasses
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from carillon.domain.calendar import CalendarUse
from carillon.domain.job import Lane
from carillon.domain.message import Missed, RateSlot
from carillon.domain.policies import CatchUp, Rate
from carillon.domain.wheel.entry import Entry, Slot, entry_of_message
from carillon.domain.wheel.pace import BUCKETS, Shares
from carillon.domain.wheel.segment import Backlog, Control, Cursor
from carillon.schedules import CalendarRule, Schedule, SlotKind, parse_schedule
from carillon.schedules.insight.cost import write_units
from carillon.stores.dynamo.attributes import item_size
from carillon.stores.dynamo.wheel import control_item_of
from tests.contract.kit import CONTENDERS, Kit, contend
from tests.contract.samples import (
    FIRE_AT,
    NOW,
    a_bounded_schedule,
    a_combined_schedule,
    a_control,
    a_message,
    an_entry,
)

HOURLY_17 = Slot(SlotKind.HOURLY, 17)
LEASE_UNTIL = NOW + timedelta(seconds=45)


def _all_entries(kit: Kit, segment: int, slot: Slot = HOURLY_17) -> list[Entry]:
    page = kit.wheel.query(segment, slot)
    entries = list(page.items)
    while page.next_cursor is not None:
        page = kit.wheel.query(segment, slot, page.next_cursor)
        entries += page.items
    return entries


def test_an_empty_slot_has_an_empty_page(kit: Kit) -> None:
    page = kit.wheel.query(kit.new_segment(), HOURLY_17)
    assert (page.items, page.next_cursor) == ((), None)


def test_nothing_to_put_is_nothing_done(kit: Kit) -> None:
    kit.wheel.put_entries([])


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"lane": Lane.LOW, "catch_up": CatchUp.SKIP},
        {
            "slot": Slot(SlotKind.DAILY, 1439),
            "schedule": parse_schedule("5 4 * * 1-5", "Asia/Tokyo"),
        },
        {"schedule": parse_schedule("every 25m offset 2m", start_at=FIRE_AT)},
        {"slot": Slot(SlotKind.DATED, 29_700_000), "from_at": FIRE_AT},
        {"spread_seconds": 299, "zone_digest": "Kd8a0Q"},
        {"catch_up": CatchUp.SKIP, "grace_seconds": 90},
        {"within_seconds": 604_800, "spread_seconds": 604_830},
        *({"calendar": CalendarUse("Feiertage/ü", rule)} for rule in CalendarRule),
    ],
)
def test_an_entry_comes_back_whole(kit: Kit, changes: dict[str, Any]) -> None:
    entry = an_entry(kit.new_owner(), kit.new_segment(), **changes)
    kit.wheel.put_entries([entry])
    assert _all_entries(kit, entry.segment, entry.slot) == [entry]


@pytest.mark.parametrize("schedule", [a_bounded_schedule, a_combined_schedule])
def test_an_entrys_schedule_comes_back_whole(kit: Kit, schedule: Callable[[], Schedule]) -> None:
    entry = an_entry(kit.new_owner(), kit.new_segment(), schedule=schedule())
    plain = an_entry(entry.owner, entry.segment, 1)
    kit.wheel.put_entries([entry, plain])
    stored = _all_entries(kit, entry.segment)
    assert stored == sorted([entry, plain], key=lambda one: one.key)


def test_an_entry_with_a_message_comes_back_whole(kit: Kit) -> None:
    message = a_message(
        kit.new_owner(),
        Lane.HIGH,
        segment=kit.new_segment(),
        attempt=2,
        wait_until=FIRE_AT + timedelta(hours=1),
        waits=3,
        rate_slot=RateSlot(FIRE_AT + timedelta(hours=3), Rate(5, 60, "ü"), "line", 2),
        in_time=True,
        returns=2,
        missed=Missed(FIRE_AT - timedelta(hours=1), CatchUp.SKIP, a_combined_schedule()),
    )
    entry = entry_of_message(message)
    kit.wheel.put_entries([entry])
    assert _all_entries(kit, entry.segment, entry.slot) == [entry]


def test_messages_of_one_generation_have_entries_of_their_own(kit: Kit) -> None:
    owner, segment = kit.new_owner(), kit.new_segment()
    entries = [
        entry_of_message(a_message(owner, segment=segment, attempt=attempt)) for attempt in (2, 3)
    ]
    kit.wheel.put_entries(entries)
    assert _all_entries(kit, segment, entries[0].slot) == entries


def test_entries_come_in_the_order_of_their_keys_page_by_page(kit: Kit) -> None:
    owner, segment = kit.new_owner(), kit.new_segment()
    entries = [an_entry(owner, segment, number) for number in range(60)]
    kit.wheel.put_entries(entries)
    assert _all_entries(kit, segment) == sorted(entries, key=lambda entry: entry.key)


def test_a_query_goes_on_behind_any_key(kit: Kit) -> None:
    owner, segment = kit.new_owner(), kit.new_segment()
    entries = sorted((an_entry(owner, segment, n) for n in range(5)), key=lambda entry: entry.key)
    kit.wheel.put_entries(entries)
    assert list(kit.wheel.query(segment, HOURLY_17, entries[2].key).items) == entries[3:]
    between = entries[2].key + "!"
    assert list(kit.wheel.query(segment, HOURLY_17, between).items) == entries[3:]
    behind = kit.wheel.query(segment, HOURLY_17, entries[4].key)
    assert (behind.items, behind.next_cursor) == ((), None)


def test_segments_and_slots_are_apart(kit: Kit) -> None:
    owner, segment, other = kit.new_owner(), kit.new_segment(), kit.new_segment()
    here = an_entry(owner, segment)
    elsewhere = [
        an_entry(owner, other),
        an_entry(owner, segment, slot=Slot(SlotKind.HOURLY, 1)),
        an_entry(owner, segment, slot=Slot(SlotKind.DAILY, 17)),
        an_entry(owner, segment, slot=Slot(SlotKind.DATED, 17)),
    ]
    kit.wheel.put_entries([here, *elsewhere])
    assert _all_entries(kit, segment) == [here]


def test_an_entry_put_twice_is_one(kit: Kit) -> None:
    entries = [an_entry(kit.new_owner(), kit.new_segment(), number) for number in range(2)]
    entries[1] = dataclasses.replace(entries[1], segment=entries[0].segment)
    kit.wheel.put_entries([*entries, *entries])
    kit.wheel.put_entries(entries)
    stored = _all_entries(kit, entries[0].segment)
    assert stored == sorted(entries, key=lambda entry: entry.key)


def test_remove_takes_exactly_one_key(kit: Kit) -> None:
    owner, segment = kit.new_owner(), kit.new_segment()
    gone, kept = an_entry(owner, segment), an_entry(owner, segment, generation_id="01KAGZ7T2M")
    in_other_slot = an_entry(owner, segment, slot=Slot(SlotKind.HOURLY, 1))
    kit.wheel.put_entries([gone, kept, in_other_slot])
    kit.wheel.remove_entries(segment, [(HOURLY_17, gone.key)])
    assert _all_entries(kit, segment) == [kept]
    assert _all_entries(kit, segment, in_other_slot.slot) == [in_other_slot]
    kit.wheel.remove_entries(segment, [(HOURLY_17, gone.key)])
    kit.wheel.remove_entries(kit.new_segment(), [(HOURLY_17, kept.key)])
    kit.wheel.remove_entries(segment, [])
    assert _all_entries(kit, segment) == [kept]


def test_remove_takes_all_entries_of_a_generation(kit: Kit) -> None:
    """Sixty, in more than one request; some are gone already, some are named twice."""
    owner, segment = kit.new_owner(), kit.new_segment()
    slots = [Slot(SlotKind.HOURLY, number) for number in range(60)]
    entries = [an_entry(owner, segment, slot=slot) for slot in slots]
    others = [dataclasses.replace(entry, generation_id="01KAGZ7T2M") for entry in entries]
    kit.wheel.put_entries([*entries[10:], *others])
    keys = [(entry.slot, entry.key) for entry in entries]
    kit.wheel.remove_entries(segment, [*keys, *keys[:30]])
    assert [_all_entries(kit, segment, slot) for slot in slots] == [[other] for other in others]


def test_a_watch_has_entries_beside_the_jobs_own(kit: Kit) -> None:
    owner, segment = kit.new_owner(), kit.new_segment()
    entry = an_entry(owner, segment)
    watch = dataclasses.replace(entry, within_seconds=600, spread_seconds=600)
    kit.wheel.put_entries([entry, watch])
    page = kit.wheel.query(segment, entry.slot)
    assert page.items == (entry, watch)
    kit.wheel.remove_entries(segment, [(entry.slot, watch.key)])
    assert kit.wheel.query(segment, entry.slot).items == (entry,)


def test_an_unknown_segment_has_no_control(kit: Kit) -> None:
    assert kit.wheel.get_control(kit.new_segment()) is None


def _full(segment: int) -> Control:
    return a_control(
        segment,
        token=7,
        lease_owner="tick-1",
        lease_until=LEASE_UNTIL,
        backlog=(Backlog(10, 12, 20, NOW), Backlog(30, 30, 31, NOW + timedelta(microseconds=1))),
        cursor=Cursor(29_700_000, "h0", "job#generation"),
        tzdata="2026.6",
        tzdata_from=29_699_000,
        backlog_cursor=Cursor(15, "d15", "job#generation#watch"),
        throttled_until=NOW + timedelta(microseconds=1),
        shares=Shares(20, NOW, counts=tuple(range(BUCKETS)), placed=(0,) * BUCKETS),
        idle=True,
    )


def test_a_control_comes_back_whole(kit: Kit) -> None:
    segment = kit.new_segment()
    assert kit.wheel.put_control(_full(segment), over=None)
    assert kit.wheel.get_control(segment) == _full(segment)
    assert kit.wheel.put_control(a_control(segment), over=_full(segment))
    assert kit.wheel.get_control(segment) == a_control(segment)


def test_a_control_with_the_shares_of_all_buckets_is_one_write_unit() -> None:
    busy = Shares(29_700_000, NOW, counts=(99_999,) * BUCKETS, placed=(99_999,) * BUCKETS)
    item = control_item_of(dataclasses.replace(_full(123), shares=busy))
    assert write_units(item_size(item)) == 1


def test_a_control_is_no_entry_and_of_one_segment(kit: Kit) -> None:
    segment, other = kit.new_segment(), kit.new_segment()
    assert kit.wheel.put_control(a_control(segment), over=None)
    assert kit.wheel.get_control(other) is None
    assert _all_entries(kit, segment) == []


def test_a_first_control_needs_none_before_it(kit: Kit) -> None:
    segment = kit.new_segment()
    first = a_control(segment)
    assert kit.wheel.put_control(first, over=None)
    assert not kit.wheel.put_control(_full(segment), over=None)
    assert kit.wheel.get_control(segment) == first
    assert kit.wheel.put_control(first, over=None), "its own"


def test_nothing_can_be_put_over_a_control_that_is_not_there(kit: Kit) -> None:
    segment = kit.new_segment()
    assert not kit.wheel.put_control(_full(segment), over=a_control(segment))
    assert kit.wheel.get_control(segment) is None


@pytest.mark.parametrize(
    "difference",
    [
        {"token": 6},
        {"lease_owner": "tick-2"},
        {"lease_owner": ""},
        {"lease_until": LEASE_UNTIL + timedelta(microseconds=1)},
        {"lease_until": None},
    ],
)
def test_a_control_is_put_over_exactly_the_token_and_lease_seen(
    kit: Kit, difference: dict[str, object]
) -> None:
    segment = kit.new_segment()
    held = _full(segment)
    following = dataclasses.replace(held, horizon=held.horizon + 1, lease_until=NOW)
    assert kit.wheel.put_control(held, over=None)
    unlike = dataclasses.replace(held, **difference)  # type: ignore[arg-type]
    assert not kit.wheel.put_control(following, over=unlike)
    assert kit.wheel.get_control(segment) == held
    assert kit.wheel.put_control(following, over=held)
    assert kit.wheel.put_control(following, over=held), "its own"


def test_a_free_control_is_not_put_over_as_a_held_one(kit: Kit) -> None:
    segment = kit.new_segment()
    free = a_control(segment, token=7)
    assert kit.wheel.put_control(free, over=None)
    assert not kit.wheel.put_control(a_control(segment, token=8), over=_full(segment))
    assert kit.wheel.put_control(a_control(segment, token=8), over=free)


def test_the_rest_of_a_control_is_not_compared(kit: Kit) -> None:
    segment = kit.new_segment()
    assert kit.wheel.put_control(_full(segment), over=None)
    seen = dataclasses.replace(_full(segment), horizon=1, watermark=1, backlog=(), cursor=None)
    assert kit.wheel.put_control(a_control(segment), over=seen)


def test_many_put_entries_into_one_slot(threaded_kit: Kit) -> None:
    owner, segment = threaded_kit.new_owner(), threaded_kit.new_segment()
    entries = [an_entry(owner, segment, number) for number in range(CONTENDERS * 3)]
    contend(lambda n: threaded_kit.wheel.put_entries(entries[n * 3 : n * 3 + 3]))
    stored = _all_entries(threaded_kit, segment)
    assert stored == sorted(entries, key=lambda entry: entry.key)


def test_an_entry_is_held_under_its_exact_key(kit: Kit) -> None:
    entry = an_entry(kit.new_owner(), kit.new_segment())
    assert not kit.wheel.holds(entry.segment, entry.slot, entry.key)
    kit.wheel.put_entries([entry])
    assert kit.wheel.holds(entry.segment, entry.slot, entry.key)
    assert not kit.wheel.holds(entry.segment, entry.slot, entry.key[:-1])
    assert not kit.wheel.holds(entry.segment, Slot(SlotKind.DAILY, 17), entry.key)
