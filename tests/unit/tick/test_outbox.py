"""In what order a tick sends what is due."""

from datetime import UTC, datetime, timedelta

import pytest

from carillon.domain.chunks.message import ChunkKey, ChunkMessage, Member, Order
from carillon.domain.job import Lane
from carillon.domain.message import Message
from carillon.domain.spec.owners import SYSTEM_PREFIX
from carillon.domain.wheel.entry import minute_of
from carillon.schedules import SlotKind
from carillon.tick.outbox import Outbox, fair_order
from tests.support.jobs import job_with
from tests.support.world import OWNER, World

START = datetime(2026, 12, 1, 12, tzinfo=UTC)
OTHER = "user/other"
SYSTEM = f"{SYSTEM_PREFIX}deployment"


def test_one_owner_s_many_messages_of_a_second_do_not_come_before_another_s_few() -> None:
    world = World(START, segments=1)
    for number in range(9):
        world.create(f"many-{number}", "*/30 * * * * *")
    for number in range(3):
        few = world.new_job(f"few-{number}", "30 * * * * *")
        assert world.indexer.index_job(job_with(few, owner=OTHER), None)
    world.clock.set(START + timedelta(minutes=1))
    already = len(world.queue.kept())

    world.tick()

    by_receipt = sorted(world.queue.kept(), key=lambda received: received.receipt)[already:]
    sent = [each.message for each in by_receipt if isinstance(each.message, Message)]
    second = START + timedelta(minutes=1, seconds=30)
    owners = [message.key.owner for message in sent if message.due_at == second]
    assert owners == [*owners[:2] * 3, *[OWNER] * 6]
    assert sorted(owners[:2]) == sorted([OWNER, OTHER])


def a_chunk(*owners: str, bucket: int = 0) -> ChunkMessage:
    members = [Member(owner, "job", "generation", SlotKind.HOURLY) for owner in owners]
    return ChunkMessage(ChunkKey(0, minute_of(START), 0, Lane.NORMAL, bucket), tuple(members))


def test_chunks_of_several_owners_come_before_none_of_one_of_them() -> None:
    mixed = [a_chunk(OWNER, OTHER, bucket=bucket) for bucket in (0, 1)]
    own: list[Order] = [a_chunk(OWNER, OWNER, bucket=bucket) for bucket in (2, 3)]
    assert fair_order([*mixed, *own]) == [mixed[0], own[0], mixed[1], own[1]]


@pytest.mark.parametrize(
    ("owners", "is_busy"),
    [((SYSTEM, SYSTEM), False), ((SYSTEM, OWNER), True), ((OWNER,), True)],
)
def test_a_chunk_is_work_if_any_owner_s_run_is_in_it(
    owners: tuple[str, ...], is_busy: bool
) -> None:
    world = World(START, segments=1)
    outbox = Outbox(world.indexer, (world.indexer.control(0), None))
    outbox.add(a_chunk(*owners))
    assert outbox.is_busy is is_busy
