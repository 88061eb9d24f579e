"""The messages of a planned minute."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from carillon.clock import SeededEntropy
from carillon.domain.chunks.looking import CLAIMED_WITHIN
from carillon.domain.chunks.message import ChunkMessage
from carillon.domain.chunks.placing import Plan
from carillon.domain.policies import Lane
from carillon.domain.wheel.entry import Entry, Slot, minute_of
from carillon.domain.wheel.segment import Backlog, Control
from carillon.domain.wheel.zone_upgrade import marked, owed_messages
from carillon.errors import UnreadableRowError
from carillon.schedules import SlotKind, parse_schedule
from carillon.stores.memory.chunks import MemoryChunkStore
from carillon.tick.chunking import MOST_MEMBERS, Gathered, Planned, may_be_chunked
from carillon.tick.outbox import PART
from tests.support.world import World
from tests.unit.faults import failing

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
MINUTE = minute_of(NOON)
GENERATION = "01KBCCS1P0N0T0F1X1NGAT0NCE"
YOUNG = SeededEntropy(0).new_id(NOON - timedelta(minutes=59))
HOURLY, DAILY = Slot(SlotKind.HOURLY, 0), Slot(SlotKind.DAILY, 720)


def entry_of(job_id: str, slot: Slot = HOURLY) -> Entry:
    schedule = parse_schedule("0 * * * *")
    return Entry(0, slot, "owner", job_id, GENERATION, NOON, schedule=schedule, chunked_from=1)


def chunks_of(*entries: Entry, store: MemoryChunkStore) -> list[ChunkMessage]:
    world = World(NOON - timedelta(minutes=1))
    ports = replace(world.tick_ports, chunks=store, chunked=True)
    gathered = Gathered(ports, 0, MINUTE, "salt", is_late=False)
    for entry in entries:
        gathered.add(entry, replace(entry.message_at(NOON), lane=Lane.NORMAL))
    return [order for order in gathered.taken() if isinstance(order, ChunkMessage)]


CONTROL = Control(0, MINUTE + 1, MINUTE - 1)
PLAN = Plan(0, MINUTE, "salt", NOON, {(0, Lane.NORMAL): 1})


def backlog(announced: int, until: int) -> Control:
    return replace(CONTROL, backlog=(Backlog(announced, MINUTE - 9, until, NOON),))


@pytest.mark.parametrize(
    ("changes", "control", "may_be"),
    [
        ({"chunked_from": MINUTE}, CONTROL, True),
        ({"chunked_from": MINUTE + 1}, CONTROL, False),
        ({"chunked_from": 0}, CONTROL, False),
        ({"slot": Slot(SlotKind.DATED, MINUTE)}, CONTROL, False),
        ({}, backlog(MINUTE, MINUTE + 5), True),
        ({}, backlog(MINUTE - 1, MINUTE), False),
        ({}, backlog(MINUTE - 5, MINUTE - 1), True),
    ],
    ids=[
        *("settled", "not yet settled", "of no plain job", "dated"),
        *("announced", "not announced", "live"),
    ],
)
def test_the_plan_decides_about_these(
    changes: dict[str, Any], control: Control, may_be: bool
) -> None:
    entry = replace(entry_of("job"), **changes)
    assert may_be_chunked(entry, entry.message_at(NOON), control) is may_be


@pytest.mark.parametrize(
    "changes",
    [{"zone_digest": "other rules"}, {"chunked_from": MINUTE + 1}],
    ids=["to be brought to new rules", "brought there"],
)
def test_what_a_chunk_may_have_by_former_rules_goes_alone_once_the_plan_stands(
    changes: dict[str, Any],
) -> None:
    world = World(NOON - timedelta(minutes=1))
    gathered = Gathered(replace(world.tick_ports, chunked=True), 0, MINUTE, "salt", is_late=False)
    for number in range(3):
        entry = replace(entry_of(f"job-{number}"), **(changes if number else {}))
        message = marked(entry, replace(entry.message_at(NOON), lane=Lane.NORMAL))
        assert message.is_second is bool(number)
        assert may_be_chunked(entry, message, CONTROL)
        assert Planned(world.tick_ports, 0).alone(entry, [message], CONTROL) == [message]
        gathered.add(entry, message)
    assert [getattr(order, "is_second", None) for order in gathered.taken()] == [False, True, True]
    plan = world.chunks.get_plan(0, MINUTE)
    assert plan is not None
    assert plan.chunks == {}, "two of three cannot go in a chunk"


@pytest.mark.parametrize(
    "changes",
    [{}, {"chunked_from": 0}, {"slot": Slot(SlotKind.DATED, MINUTE)}, {"generation_id": YOUNG}],
    ids=["in chunks", "of no plain job", "dated", "just made"],
)
def test_no_other_message_is_marked(changes: dict[str, Any]) -> None:
    rules = "other rules" if changes else ""
    entry = replace(entry_of("job"), zone_digest=rules, **changes)
    assert not marked(entry, entry.message_at(NOON)).is_second


def test_what_new_rules_owe_waits_for_a_chunk_that_may_come_though_no_plan_stands() -> None:
    schedule = parse_schedule("0,30 * * * *")
    entry = replace(
        entry_of("job"), schedule=schedule, zone_digest="other rules", from_at=NOON - HOUR
    )
    control = replace(CONTROL, tzdata_from=MINUTE - 100)
    late, due = owed_messages(entry, MINUTE, control, MINUTE)
    assert (late.is_second, late.wait_until) == (True, None)
    assert (due.is_second, due.wait_until) == (True, NOON + CLAIMED_WITHIN)


class TestPlanned:
    """While a backlog is counted: what goes in no chunk waits for a start."""

    @pytest.mark.parametrize(
        ("plan", "chunked_from", "number"),
        [(PLAN, 1, 0), (PLAN, 0, 1), (replace(PLAN, chunks={}), 1, 1), (None, 1, 1)],
        ids=["in a chunk", "of no plain job", "all go alone", "no plan"],
    )
    def test_what_goes_alone_waits(self, plan: Plan | None, chunked_from: int, number: int) -> None:
        world = World(NOON)
        if plan is not None:
            assert world.chunks.put_plan(plan)
        entry = replace(entry_of("job"), chunked_from=chunked_from)
        late = [replace(entry.message_at(NOON), lane=Lane.NORMAL)]
        found = Planned(world.tick_ports, 0).alone(entry, late, CONTROL)
        assert found == late[:number]

    def test_each_minute_s_plan_is_read_once(self) -> None:
        world = World(NOON)
        assert world.chunks.put_plan(replace(PLAN, minute=MINUTE + 60))
        entry = entry_of("job")
        late = [
            replace(entry.message_at(fire_at), lane=Lane.NORMAL)
            for fire_at in (NOON, NOON, NOON + timedelta(hours=1), NOON + timedelta(hours=1))
        ]
        with failing(world.chunks, "get_plan", after=2):
            assert Planned(world.tick_ports, 0).alone(entry, late, CONTROL) == late[:2]

    def test_where_it_cannot_be_read_all_wait(self) -> None:
        world, entry = World(NOON), entry_of("job")
        with failing(world.chunks, "get_plan", UnreadableRowError("spoilt")):
            found = Planned(world.tick_ports, 0).alone(entry, [entry.message_at(NOON)], CONTROL)
        assert len(found) == 1


class TestReadsAndWrites:
    @pytest.mark.parametrize(
        ("is_late", "ahead", "asked"),
        [(False, 1, ["put"]), (False, 0, ["get", "put"]), (True, 0, ["put"])],
        ids=["ahead", "begun", "a backlog"],
    )
    def test_of_a_new_plan(
        self, monkeypatch: pytest.MonkeyPatch, is_late: bool, ahead: int, asked: list[str]
    ) -> None:
        """However many go by it."""
        world, seen = World(NOON - timedelta(minutes=ahead)), list[str]()
        for name in ("get", "put"):
            method = getattr(world.chunks, f"{name}_plan")

            def noted(*more: Any, name: str = name, method: Any = method) -> Any:
                seen.append(name)
                return method(*more)

            monkeypatch.setattr(world.chunks, f"{name}_plan", noted)
        ports = replace(world.tick_ports, chunked=True)
        gathered = Gathered(ports, 0, MINUTE, "salt", is_late=is_late)
        sent = 0
        for number in range(2 * PART + 1):
            entry = entry_of(f"job-{number}")
            gathered.add(entry, replace(entry.message_at(NOON), lane=Lane.NORMAL))
            if gathered.is_ready:
                sent += len(gathered.taken())
        assert sent == (2 * PART + 1 if is_late else 0), "what goes alone need not wait"
        gathered.taken()
        assert seen == asked


def test_a_chunk_is_of_the_second_at_which_its_runs_are_due() -> None:
    entries = [
        replace(entry_of(f"job-{number}"), from_at=NOON - timedelta(hours=2), spread_seconds=30)
        for number in range(3)
    ]
    world = World(NOON - timedelta(minutes=1))
    gathered = Gathered(replace(world.tick_ports, chunked=True), 0, MINUTE, "salt", is_late=False)
    for entry in entries:
        gathered.add(entry, replace(entry.message_at(NOON), lane=Lane.NORMAL))
    (order,) = gathered.taken()
    assert isinstance(order, ChunkMessage)
    assert order.key.second == 30
    assert {each.spread_seconds for each in order.members} == {30}


def test_two_entries_of_one_generation_are_one_member() -> None:
    """A zone that gives up its clock changes may move a schedule from hourly slots to daily ones:
    the old entry stays, and yields the same instants."""
    entries = [entry_of(f"job-{number}", slot) for number in range(3) for slot in (HOURLY, DAILY)]
    (message,) = chunks_of(*entries, store=MemoryChunkStore())
    assert [member.job_id for member in message.members] == ["job-0", "job-1", "job-2"]


def test_a_chunk_that_grew_beyond_its_plan_goes_in_parts() -> None:
    """Or no queue would take its message, and the tick would never get past the minute."""
    store = MemoryChunkStore()
    store.put_plan(Plan(0, MINUTE, "salt", NOON, {(0, Lane.NORMAL): 1}))
    entries = [entry_of(f"job-{number}") for number in range(2 * MOST_MEMBERS + 1)]
    messages = chunks_of(*entries, store=store)
    assert [len(message.members) for message in messages] == [MOST_MEMBERS, MOST_MEMBERS, 1]
    assert len({message.key for message in messages}) == 1
