"""In what order a tick sends what is due."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from carillon.domain.chunks.message import ChunkKey, ChunkMessage, Member, Order
from carillon.domain.job import Lane
from carillon.domain.message import Message
from carillon.domain.spec.owners import SYSTEM_PREFIX
from carillon.domain.wheel.entry import minute_of
from carillon.domain.wheel.segment import Control, Cursor
from carillon.errors import QueueUnavailableError
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


def test_work_that_has_come_is_not_forgotten_for_the_deployment_s_own_job() -> None:
    outbox = Outbox(World(START).indexer, (CONTROL, None))
    outbox.add(a_chunk(OWNER))
    outbox.add(a_chunk(SYSTEM))
    assert outbox.is_busy


def test_an_earlier_second_comes_before_a_turn() -> None:
    first, second = a_chunk(OWNER, bucket=0), a_chunk(OWNER, bucket=1)
    other = a_chunk(OTHER)
    later = replace(other, key=replace(other.key, second=1))
    assert fair_order([later, first, second]) == [first, second, later]


CONTROL = Control(0, minute_of(START), minute_of(START) - 1)


class Indexer:
    """Takes what it is given, unless it is `down`."""

    def __init__(self) -> None:
        self.taken: list[list[Order]] = []
        self.down = False

    def schedule_messages(self, orders: Sequence[Order], until: datetime) -> None:
        if self.down:
            raise QueueUnavailableError(len(orders), "down")
        self.taken.append([*orders])


class TestProgress:
    @pytest.fixture
    def indexer(self, monkeypatch: pytest.MonkeyPatch) -> Indexer:
        monkeypatch.setattr("carillon.tick.outbox.PART", 2)
        return Indexer()

    @pytest.fixture
    def outbox(self, indexer: Indexer) -> Outbox:
        """Five orders, each of which has a mark behind it but the second one. The first is due
        last."""
        box: Any = indexer
        outbox = Outbox(box, (CONTROL, None))
        for number in range(5):
            order = a_chunk(OWNER, OTHER, bucket=number)
            outbox.add(replace(order, key=replace(order.key, second=0 if number else 1)))
            if number != 1:
                outbox.mark(mark(number))
        return outbox

    def test_it_reaches_the_last_mark_before_which_everything_is_sent(
        self, outbox: Outbox, indexer: Indexer
    ) -> None:
        reached = [outbox.reached]
        while outbox.held:
            outbox.send_part(START)
            reached.append(outbox.reached)
        assert reached == [(CONTROL, None), mark(0), mark(3), mark(4)]
        assert [[each.key.bucket for each in part] for part in chunks_in(indexer.taken)] == [
            [1, 0],
            [2, 3],
            [4],
        ], "in fair order, part by part"
        assert (outbox.sent, outbox.occurrences) == (5, 10)

    def test_of_marks_at_one_place_the_last_counts(self, outbox: Outbox) -> None:
        outbox.mark(mark(7))
        for _ in range(3):
            outbox.send_part(START)
        assert outbox.reached == mark(7)
        outbox.mark(mark(8))
        assert outbox.reached == mark(8), "nothing is held"

    def test_a_mark_counts_what_was_sent_before(self, outbox: Outbox) -> None:
        for _ in range(3):
            outbox.send_part(START)
        for number in range(3):
            outbox.add(a_chunk(OWNER, bucket=number))
        outbox.mark(mark(9))
        outbox.send_part(START)
        assert outbox.reached == mark(4)

    def test_what_the_queue_does_not_take_is_held_still(
        self, outbox: Outbox, indexer: Indexer
    ) -> None:
        outbox.send_part(START)
        indexer.down = True
        with pytest.raises(QueueUnavailableError):
            outbox.send_part(START)
        assert (len(outbox.held), outbox.sent, outbox.reached) == (3, 2, mark(0))


def mark(number: int) -> tuple[Control, Cursor | None]:
    return CONTROL, Cursor(CONTROL.watermark + 1, "h0", str(number))


def chunks_in(parts: Sequence[Sequence[Order]]) -> list[list[ChunkMessage]]:
    return [[each for each in part if isinstance(each, ChunkMessage)] for part in parts]
