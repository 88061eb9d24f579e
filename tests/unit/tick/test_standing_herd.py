"""A minute of jobs that have stood for an hour, which takes long to read or to send.

test_slow_queue.py and test_root.py have the same with jobs made just now, which are not gathered.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from carillon.domain.chunks.message import ChunkMessage, Order
from carillon.domain.wheel.entry import Slot
from carillon.errors import QueueUnavailableError
from carillon.tick.segment_visit import Visit
from carillon.tick.sharing import Weight, Worth, shares
from tests.support.world import World
from tests.unit.tick.test_slow_queue import keeps_its_lease

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
DUE_AT = NOON + timedelta(hours=2)


def standing(count: int, *, chunked: bool, made_at: datetime = NOON) -> World:
    world = World(made_at, segments=1)
    world.tick_ports = replace(world.tick_ports, chunked=chunked)
    for number in range(count):
        world.create(f"job-{number}", "0 * * * *")
    world.leap_to(DUE_AT - timedelta(minutes=1))
    for each in world.queue.kept():
        world.queue.delete(each.receipt)
    return world


@pytest.mark.parametrize(("chunked", "count", "part"), [(False, 90, 20), (True, 180, 3)])
def test_what_takes_longer_to_send_than_a_visit_is_sent_by_several(
    monkeypatch: pytest.MonkeyPatch, chunked: bool, count: int, part: int
) -> None:
    """20 s a part, so two parts a visit. The first visit makes the plan, and what it has sent comes
    again; all others go on behind what was sent, but for a part that ended between two marks."""
    for module in ("outbox", "chunking"):
        monkeypatch.setattr(f"carillon.tick.{module}.PART", part)
    world = standing(count, chunked=chunked)
    send, taken = world.queue.send, Counter[str]()

    def slow(orders: Sequence[Order], delays: Sequence[float], until: datetime) -> None:
        if world.clock.now() + timedelta(seconds=20) > until:
            world.clock.set(max(until, world.clock.now()))
            raise QueueUnavailableError(len(orders), "the queue took too long")
        send(orders, delays)
        for order in orders:
            members = order.members if isinstance(order, ChunkMessage) else (order.key,)
            taken.update(each.job_id for each in members)
        world.clock.advance(20)

    monkeypatch.setattr(world.queue, "send", slow)
    for number in range(40):
        world.clock.set(DUE_AT + timedelta(minutes=number - 1))
        world.tick()
    assert len(taken) == count
    assert max(taken.values()) <= (3 if chunked else 1)


@pytest.mark.parametrize(
    ("minutes", "chunked"),
    [(30, False), (120, False), (120, True)],
    ids=["young", "settled", "gathered"],
)
def test_a_herd_that_is_yet_being_read_weighs_something(
    monkeypatch: pytest.MonkeyPatch, minutes: int, chunked: bool
) -> None:
    world = standing(60, chunked=chunked, made_at=DUE_AT - timedelta(minutes=minutes))
    visit = world.dispatcher().begin(0, world.clock.now() + timedelta(seconds=52))
    assert isinstance(visit, Visit)
    query, weights = world.wheel.query, list[Weight]()

    def slow(segment: int, slot: Slot, after_key: str | None = None) -> object:
        world.clock.advance(0.25 if slot.key == "h0" else 0)
        weights.append(visit.weight(len(weights) * 0.25))
        return query(segment, slot, after_key)

    monkeypatch.setattr(world.wheel, "query", slow)
    visit.run()
    weighed = next(each for each in weights if each.seconds >= 1.5)
    assert shares(weighed, 15, 16, Worth(messages=10)).of > 1, weighed


def test_the_lease_is_kept_while_a_herd_is_gathered() -> None:
    """Nothing can be sent before its plan is made."""
    keeps_its_lease(standing(200, chunked=True), 4)
