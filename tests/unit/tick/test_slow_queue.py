"""A queue or a wheel that is slow: the visit ends in time, and records what was sent."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from carillon.domain.message import Message
from carillon.domain.wheel.entry import Slot, minute_of
from carillon.domain.wheel.segment import LEASE
from carillon.errors import QueueUnavailableError
from carillon.tick.counting import SegmentOutcome
from carillon.tick.outbox import PART
from tests.support.world import World

START = datetime(2026, 12, 1, 12, tzinfo=UTC)
JOBS = 9 * PART // 2
"""Four and a half parts in one minute."""


@pytest.fixture
def world() -> World:
    world = World(START, segments=1)
    for number in range(JOBS):
        world.create(f"job-{number}", "5 * * * *")
    world.clock.set(START + timedelta(minutes=2, seconds=30))
    world.tick()
    world.clock.set(START + timedelta(minutes=3))
    return world


def slowed(world: World, monkeypatch: pytest.MonkeyPatch, seconds: float) -> list[int]:
    """Each call of the queue takes so long, but not beyond what it is given; how many messages each
    was for."""
    send, calls = world.queue.send, []

    def slow(messages: Sequence[Message], delays: Sequence[float], until: datetime) -> None:
        calls.append(len(messages))
        if world.clock.now() + timedelta(seconds=seconds) > until:
            world.clock.set(max(until, world.clock.now()))
            raise QueueUnavailableError(len(messages), "the queue took too long")
        send(messages, delays)
        world.clock.advance(seconds)

    monkeypatch.setattr(world.queue, "send", slow)
    return calls


def sent(world: World) -> list[str]:
    return sorted(received.message.key.job_id for received in world.queue.kept())


@pytest.mark.parametrize("seconds", [20, 25])
def test_a_visit_ends_in_time_and_the_next_goes_on_behind_what_was_sent(
    world: World, monkeypatch: pytest.MonkeyPatch, seconds: int
) -> None:
    """The last part but one is under way when time is over, or has just ended."""
    deadline = world.clock.now() + timedelta(seconds=52)
    with monkeypatch.context() as patch:
        calls = slowed(world, patch, seconds)
        (report,) = world.dispatcher().tick([0], (), deadline)
    assert world.clock.now() <= deadline + timedelta(seconds=3), "time is left to record it"
    assert report.outcome is SegmentOutcome.OUT_OF_TIME
    done = len(sent(world))
    assert (report.messages, done) == (2 * PART, 2 * PART)
    assert max(calls) <= PART
    control = world.wheel.get_control(0)
    assert control is not None
    assert control.lease_until is None, "the lease is free"
    assert control.cursor is not None
    assert control.watermark == minute_of(START) + 4

    world.tick()
    assert sent(world) == sorted(set(sent(world))), "nothing is sent again"
    assert len(sent(world)) == JOBS, "nor forgotten"


def test_the_lease_is_kept_while_a_slow_queue_takes_its_time(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    leases: list[Any] = []
    put = world.wheel.put_control

    def noted(control: Any, over: Any) -> bool:
        leases.append(control.lease_until and control.lease_until - world.clock.now())
        return put(control, over)

    monkeypatch.setattr(world.wheel, "put_control", noted)
    slowed(world, monkeypatch, 18)
    deadline = world.clock.now() + timedelta(minutes=10)
    (report,) = world.dispatcher().tick([0], (), deadline)
    assert report.outcome is SegmentOutcome.DISPATCHED
    assert leases == [LEASE, *[LEASE] * 5, None], "taken, renewed after each part, given back"
    assert sorted(set(sent(world))) == sent(world)


def test_the_lease_is_kept_while_a_slow_wheel_is_read(world: World) -> None:
    """Nothing is sent meanwhile: the outbox is not yet full."""
    keeps_its_lease(world, 1)


def keeps_its_lease(world: World, seconds: float) -> None:
    """A visit whose queries take so long each holds its segment at all of them."""
    query, held = world.wheel.query, list[bool]()

    def slow(segment: int, slot: Slot, after_key: str | None = None) -> object:
        world.clock.advance(seconds)
        control = world.wheel.get_control(segment)
        held.append(control is not None and control.held_at(world.clock.now()))
        return query(segment, slot, after_key)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(world.wheel, "query", slow)
        deadline = world.clock.now() + timedelta(minutes=10)
        (report,) = world.dispatcher().tick([0], (), deadline)
    assert report.outcome is SegmentOutcome.DISPATCHED
    assert len(held) * seconds > 2 * LEASE.total_seconds()
    assert all(held)
