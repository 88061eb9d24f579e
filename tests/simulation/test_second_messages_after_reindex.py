"""Second messages that nothing stops."""

from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest

from carillon.errors import StoreUnavailableError
from carillon.executor.router import Router
from tests.simulation.story import NOON
from tests.simulation.test_reindexing import reindex
from tests.support.world import World
from tests.unit.faults import failing

NOW = NOON + timedelta(hours=2, seconds=5)
"""Of occurrences every 20 s: the last one is 5 s ago, the one before 25 s."""
DOWN = StoreUnavailableError("down")


def packed(world: World, *, on: bool) -> None:
    world.executor_ports = replace(world.executor_ports, packed_history=on)
    world.executor = Router(world.executor_ports)


def made() -> World:
    world = World(NOON, segments=1)
    world.tick_ports = replace(world.tick_ports, chunked=True)
    for number in range(4):
        world.create(f"job-{number}", "every 20s")
    world.leap_to(NOON + timedelta(minutes=110))
    for each in world.queue.kept():
        world.queue.delete(each.receipt)
    return world


def reindex_after_failures(world: World, store: object, method: str) -> None:
    """The method fails for 26 s, with an occurrence in them."""
    world.run_until(NOW - timedelta(seconds=26))
    with failing(store, method, DOWN):
        world.run_until(NOW)
    reindex(world, since=NOW - timedelta(minutes=2))
    world.tick()
    world.run_until(NOW + timedelta(minutes=2))


def called_twice(world: World) -> list[str]:
    made = Counter((call.run_id, call.attempt) for call in world.targets.calls)
    return sorted(run_id for (run_id, _), count in made.items() if count > 1)


def test_what_was_packed_is_not_run_again_once_packed_history_is_off() -> None:
    world = made()
    packed(world, on=True)
    world.run_until(NOW)
    packed(world, on=False)
    reindex(world, since=NOW - timedelta(minutes=2))
    world.tick()
    world.run_until(NOW + timedelta(minutes=2))
    assert called_twice(world) == []


def test_with_rows_what_has_succeeded_is_not_run_again_before_its_copy_is_there() -> None:
    world = made()
    reindex_after_failures(world, world.runs, "put_copies")
    assert called_twice(world) == []


@pytest.mark.parametrize("on", [False, True])
def test_a_chunk_does_not_run_what_has_run_alone_before_it_came(on: bool) -> None:
    world = made()
    packed(world, on=on)
    reindex_after_failures(world, world.chunks, "claim")
    assert called_twice(world) == []
