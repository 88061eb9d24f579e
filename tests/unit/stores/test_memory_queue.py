"""MemoryQueue beyond the port: order at any size, dead letters, telling when messages appear."""

from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carillon.clock import ManualClock
from carillon.domain.job import Lane
from carillon.errors import MalformedMessageError
from carillon.stores.memory import MemoryQueue, Received
from tests.contract.samples import NOW, a_key, a_message

VISIBILITY = timedelta(seconds=30)
LANES = list(Lane)


def at(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def a_queue(**options: object) -> MemoryQueue:
    return MemoryQueue(ManualClock(NOW), 30, **options)  # type: ignore[arg-type]


class Plain:
    """What MemoryQueue should do, by sorting everything at each reception."""

    def __init__(self) -> None:
        self.kept: dict[int, Received] = {}

    def put(self, receipt: int, lane: Lane, visible_at: datetime) -> None:
        self.kept[receipt] = Received(receipt, lane, "", visible_at)

    def receive(self, now: datetime, limit: int, lane: Lane | None) -> list[tuple[int, int]]:
        """The (receipt, receive count) of each."""
        order = sorted(self.kept.values(), key=lambda kept: (kept.visible_at, kept.receipt))
        visible = [kept for kept in order if kept.visible_at <= now and lane in (None, kept.lane)]
        for kept in visible[:limit]:
            count = kept.receive_count + 1
            hidden = Received(kept.receipt, kept.lane, "", now + VISIBILITY, count)
            self.kept[kept.receipt] = hidden
        return [(kept.receipt, kept.receive_count + 1) for kept in visible[:limit]]


PUT = st.tuples(st.just("put"), st.integers(0, 50), st.sampled_from(LANES))
DELETE = st.tuples(st.just("delete"), st.integers(1, 40), st.none())
RECEIVE = st.tuples(st.just("receive"), st.integers(0, 8), st.sampled_from([None, *LANES]))
ADVANCE = st.tuples(st.just("advance"), st.integers(0, 40), st.none())


@given(st.lists(st.one_of(PUT, PUT, DELETE, RECEIVE, ADVANCE), max_size=80))
@settings(deadline=None)  # other work on the machine must not fail it
def test_it_gives_what_sorting_everything_would(steps: list[tuple[str, int, Lane | None]]) -> None:
    queue, plain, now = a_queue(), Plain(), NOW
    for step, number, lane in steps:
        match step:
            case "put":
                assert lane is not None
                visible_at = now + timedelta(seconds=number)
                plain.put(queue.put(a_message("owner", lane), visible_at), lane, visible_at)
            case "delete":
                queue.delete(number)
                plain.kept.pop(number, None)
            case "receive":
                given_out = queue.receive(now, number, lane)
                found = [(one.receipt, one.receive_count) for one in given_out]
                assert found == plain.receive(now, number, lane)
            case "advance":
                now += timedelta(seconds=number)
    places = {one.receipt: (one.visible_at, one.receive_count) for one in queue.kept()}
    expected = {one.receipt: (one.visible_at, one.receive_count) for one in plain.kept.values()}
    assert places == expected
    assert list(places.values()) == sorted(places.values(), key=lambda place: place[0])


def test_a_message_is_deleted_by_its_receipt_before_it_is_ever_visible() -> None:
    queue = a_queue()
    receipt = queue.put(a_message("owner"), at(10))
    queue.delete(receipt)
    assert queue.kept() == []
    assert queue.receive(at(60), 10) == []


class TestTelling:
    def test_each_instant_at_which_a_message_appears_is_told(self) -> None:
        told: list[tuple[Lane, datetime]] = []
        queue = a_queue(on_visible=lambda lane, instant: told.append((lane, instant)))
        queue.send([a_message("owner", Lane.HIGH), a_message("owner", Lane.LOW)], [0, 7])
        assert told == [(Lane.HIGH, NOW), (Lane.LOW, at(7))]
        told.clear()
        queue.receive(at(8), 10)
        assert told == [(Lane.HIGH, at(38)), (Lane.LOW, at(38))]
        told.clear()
        assert queue.receive(at(9), 10) == []
        assert told == []

    def test_who_is_told_may_call_the_queue(self) -> None:
        seen: list[int] = []

        def on_visible(lane: Lane, instant: datetime) -> None:
            seen.append(len(queue.kept()))

        queue: MemoryQueue = a_queue(on_visible=on_visible)
        queue.put(a_message("owner"), NOW)
        queue.receive(NOW, 1)
        assert seen == [1, 1]

    def test_whoever_waits_for_what_is_told_sleeps_through_no_message(self) -> None:
        """Asked at no other instants than those told, the queue gives what it has in time."""
        told: list[datetime] = []
        queue = a_queue(on_visible=lambda lane, instant: told.append(instant))
        queue.send([a_message("owner", LANES[n % 3]) for n in range(6)], [3, 1, 4, 1, 5, 9])
        received: list[tuple[int, timedelta]] = []
        for _ in range(12):
            now = min(told)
            told.remove(now)
            received += [(one.receipt, one.visible_at - now) for one in queue.receive(now, 1)]
        assert [late for _, late in received] == [timedelta()] * 12
        assert sorted(receipt for receipt, _ in received) == sorted([1, 2, 3, 4, 5, 6] * 2)


class TestDeadLetters:
    def test_a_message_received_too_often_moves_instead_of_being_given(self) -> None:
        told: list[tuple[Lane, datetime]] = []
        dead = a_queue(on_visible=lambda lane, instant: told.append((lane, instant)))
        queue = a_queue(max_receives=2, dead=dead)
        queue.put(a_message("owner", Lane.HIGH), NOW)
        assert [queue.receive(at(30 * n), 10)[0].receive_count for n in range(2)] == [1, 2]
        assert (dead.kept(), len(queue.kept())) == ([], 1)
        assert queue.receive(at(60), 10) == []
        assert queue.kept() == []
        (kept,) = dead.kept()
        assert (kept.lane, kept.visible_at, kept.receive_count) == (Lane.HIGH, at(60), 0)
        assert kept.message == a_message("owner", Lane.HIGH)
        assert told == [(Lane.HIGH, at(60))]

    def test_what_moves_takes_no_place_of_what_is_given(self) -> None:
        dead = a_queue()
        queue = a_queue(max_receives=1, dead=dead)
        for redrive, seconds in enumerate([0, 1, 40, 41]):
            queue.put(a_message("owner", key=a_key("owner", redrive=redrive)), at(seconds))
        assert len(queue.receive(at(1), 10)) == 2
        given_out = queue.receive(at(50), 2)
        assert [one.message.key.redrive for one in given_out] == [2, 3]
        assert [one.message.key.redrive for one in dead.kept()] == [0, 1]

    def test_a_dead_letter_comes_again_until_it_is_deleted(self) -> None:
        dead = a_queue()
        queue = a_queue(max_receives=1, dead=dead)
        queue.put(a_message("owner"), NOW)
        queue.receive(NOW, 1)
        queue.receive(at(30), 1)
        counts = [dead.receive(at(30 + 30 * n), 1)[0].receive_count for n in range(9)]
        assert counts == list(range(1, 10))

    def test_a_body_that_nobody_can_read_moves_as_it_stands(self) -> None:
        dead = a_queue()
        queue = a_queue(max_receives=1, dead=dead)
        queue.put_body(Lane.LOW, "{", NOW)
        queue.receive(NOW, 1)
        queue.receive(at(30), 1)
        (kept,) = dead.kept()
        assert (kept.lane, kept.body) == (Lane.LOW, "{")
        with pytest.raises(MalformedMessageError):
            _ = kept.message

    @pytest.mark.parametrize("options", [{"max_receives": 2}, {"dead": a_queue()}])
    def test_a_limit_and_a_place_for_what_exceeds_it_go_together(
        self, options: dict[str, object]
    ) -> None:
        with pytest.raises(ValueError, match="go together"):
            a_queue(**options)
