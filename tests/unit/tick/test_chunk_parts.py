"""The messages of a planned minute."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from carillon.domain.chunks.message import ChunkMessage
from carillon.domain.chunks.placing import Plan
from carillon.domain.policies import Lane
from carillon.domain.wheel.entry import Entry, Slot, minute_of
from carillon.schedules import SlotKind, parse_schedule
from carillon.stores.memory.chunks import MemoryChunkStore
from carillon.tick.chunking import MOST_MEMBERS, Gathered
from tests.support.world import World

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
MINUTE = minute_of(NOON)
GENERATION = "01KBCCS1P0N0T0F1X1NGAT0NCE"
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
