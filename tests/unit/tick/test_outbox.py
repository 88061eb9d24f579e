"""In what order a tick sends what is due."""

from datetime import UTC, datetime, timedelta

from carillon.domain.message import Message
from tests.support.jobs import job_with
from tests.support.world import OWNER, World

START = datetime(2026, 12, 1, 12, tzinfo=UTC)
OTHER = "user/other"


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
