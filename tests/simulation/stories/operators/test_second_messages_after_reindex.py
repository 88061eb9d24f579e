"""Second messages that nothing stops."""

from collections import Counter
from dataclasses import replace
from datetime import timedelta

from carillon.errors import StoreUnavailableError
from tests.simulation.stories.operators.test_reindexing import reindex
from tests.simulation.stories.story import NOON
from tests.support.world import World
from tests.unit.faults import failing

NOW = NOON + timedelta(hours=2, seconds=5)
"""Of occurrences every 20 s: the last one is 5 s ago, the one before 25 s."""
DOWN = StoreUnavailableError("down")


def made() -> World:
    world = World(NOON, segments=1)
    world.tick_ports = replace(world.tick_ports, chunked=True)
    for number in range(4):
        world.create(f"job-{number}", "every 20s")
    world.leap_to(NOON + timedelta(minutes=110))
    for each in world.queue.kept():
        world.queue.delete(each.receipt)
    return world


def called_twice(world: World) -> list[str]:
    made = Counter((call.run_id, call.attempt) for call in world.targets.calls)
    return sorted(run_id for (run_id, _), count in made.items() if count > 1)


def test_what_has_succeeded_in_a_chunk_is_not_run_again() -> None:
    world = made()
    world.run_until(NOW)
    reindex(world, since=NOW - timedelta(minutes=2))
    world.tick()
    world.run_until(NOW + timedelta(minutes=2))
    assert called_twice(world) == []


def test_a_chunk_does_not_run_what_has_run_alone_before_it_came() -> None:
    """No chunk can be claimed for 26 s, with an occurrence in them."""
    world = made()
    world.run_until(NOW - timedelta(seconds=26))
    with failing(world.chunks, "claim", DOWN):
        world.run_until(NOW)
    reindex(world, since=NOW - timedelta(minutes=2))
    world.tick()
    world.run_until(NOW + timedelta(minutes=2))
    assert called_twice(world) == []
