"""The consumer's side of MemoryQueue, on which whole systems run in tests and simulation."""

from datetime import timedelta

from carillon.clock import ManualClock
from carillon.domain.job import Lane
from carillon.stores.memory import MemoryQueue
from tests.contract.samples import NOW, a_key, a_message


def _sent(delays: list[int], lane: Lane = Lane.NORMAL) -> tuple[MemoryQueue, ManualClock]:
    clock = ManualClock(NOW)
    queue = MemoryQueue(clock, visibility_timeout_seconds=30)
    messages = [a_message("owner", lane, key=a_key("owner", redrive=n)) for n in range(len(delays))]
    queue.send(messages, delays)
    return queue, clock


def test_messages_come_when_visible_longest_first_within_the_limit() -> None:
    queue, _ = _sent([5, 0, 3])
    assert queue.receive(NOW - timedelta(seconds=1), limit=10) == []
    at = NOW + timedelta(seconds=4)
    (first,) = queue.receive(at, limit=1)
    (second,) = queue.receive(at, limit=10)
    assert [first.message.key.redrive, second.message.key.redrive] == [1, 2]
    assert second.visible_at == NOW + timedelta(seconds=3)


def test_a_received_message_is_hidden_and_comes_again_unless_deleted() -> None:
    queue, _ = _sent([0, 0])
    first, second = queue.receive(NOW, limit=10)
    queue.delete(first.receipt)
    assert queue.receive(NOW + timedelta(seconds=29), limit=10) == []
    (again,) = queue.receive(NOW + timedelta(seconds=30), limit=10)
    assert (again.receipt, again.receive_count) == (second.receipt, 2)
    queue.delete(again.receipt)
    queue.delete(again.receipt)
    assert queue.kept() == []


def test_a_lane_can_be_received_alone() -> None:
    queue, _ = _sent([0], Lane.HIGH)
    assert queue.receive(NOW, limit=10, lane=Lane.LOW) == []
    assert [kept.lane for kept in queue.kept()] == [Lane.HIGH]
    assert len(queue.receive(NOW, limit=10, lane=Lane.HIGH)) == 1


def test_kept_is_in_the_order_of_visibility() -> None:
    queue, _ = _sent([9, 1])
    assert [kept.visible_at - NOW for kept in queue.kept()] == [
        timedelta(seconds=1),
        timedelta(seconds=9),
    ]
