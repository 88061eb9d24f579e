"""A minute of a backlog goes in chunks only by a plan that was made when it was live."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from carillon.domain.chunks.message import ChunkMessage
from carillon.domain.chunks.placing import Plan
from carillon.domain.wheel.entry import minute_of
from carillon.errors import StoreUnavailableError, UnreadableRowError
from tests.support.world import World

START = datetime(2026, 12, 1, 12, tzinfo=UTC)
FIRE_AT = START + timedelta(hours=3)


def test_without_a_plan_it_goes_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(START, segments=1)
    world.tick_ports = replace(world.tick_ports, chunked=True)
    for number in range(4):
        world.create(f"job-{number}", "0 * * * *")
    world.clock.advance((FIRE_AT - START).total_seconds() - 60)
    with monkeypatch.context() as broken:
        broken.setattr(world.wheel, "query", _unavailable)
        world.tick()  # announces the minute, and plans nothing
    world.clock.advance(360)
    world.tick()
    orders = [received.message for received in world.queue.kept()]
    assert not any(isinstance(order, ChunkMessage) for order in orders)
    assert sum(order.key.fire_at == FIRE_AT for order in orders) == 4


def test_a_plan_that_cannot_be_read_stops_nothing_for_good(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In time its segment's visits fail; the backlog goes alone, and waits for the plan, which
    alone says what has run."""
    world = World(START, segments=1)
    world.tick_ports = replace(world.tick_ports, chunked=True)
    jobs = [world.create(f"job-{number}", "0 * * * *") for number in range(4)]
    world.leap_to(FIRE_AT - timedelta(minutes=1))
    before = [len(world.fired(job)) for job in jobs]
    get_plan, put_plan, spoilt = world.chunks.get_plan, world.chunks.put_plan, minute_of(FIRE_AT)

    def get(segment: int, minute: int) -> Plan | None:
        if minute == spoilt:
            raise UnreadableRowError("its plan")
        return get_plan(segment, minute)

    monkeypatch.setattr(world.chunks, "get_plan", get)
    monkeypatch.setattr(
        world.chunks, "put_plan", lambda plan: plan.minute != spoilt and put_plan(plan)
    )
    world.run_until(FIRE_AT + timedelta(minutes=10))
    assert [len(world.fired(job)) for job in jobs] == before
    assert not world.indexer.control(0).backlog


def _unavailable(*_: object) -> object:
    raise StoreUnavailableError("the wheel")
