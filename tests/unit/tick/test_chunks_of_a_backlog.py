"""A minute of a backlog goes in chunks only by a plan that was made when it was live."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from carillon.domain.chunks.message import ChunkMessage
from carillon.errors import StoreUnavailableError
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


def _unavailable(*_: object) -> object:
    raise StoreUnavailableError("the wheel")
