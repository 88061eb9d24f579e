"""`carillon admin reindex --since` where occurrences have gone in chunks, with and without rows."""

from dataclasses import replace
from datetime import timedelta

import pytest

from carillon.domain.run import RunKind
from tests.simulation.stories.operators.test_reindexing import reindex, twice
from tests.simulation.stories.story import MINUTE, NOON
from tests.support.world import World


@pytest.fixture
def world() -> World:
    """One that sends chunks."""
    made = World(NOON, segments=1)
    made.tick_ports = replace(made.tick_ports, chunked=True)
    return made


def test_what_has_just_succeeded_is_not_run_again(world: World) -> None:
    """A tick that follows at once sends what was due in the minute before, which is hardly late."""
    now = NOON + timedelta(hours=2, seconds=5)
    for number in range(4):
        world.create(f"job-{number}", "every 20s")
    world.run_until(now)
    reindex(world, since=now - 30 * MINUTE)
    world.tick()
    world.run_until(now + 2 * MINUTE)
    assert twice(world) == []


def test_what_an_outage_left_out_is_recorded_though_the_last_one_has_succeeded(
    world: World,
) -> None:
    """Control items are lost once ticks are back: what stands for the occurrences that were missed
    is one that has run in a chunk since."""
    jobs = [world.create(f"job-{number}", "*/10 * * * *") for number in range(4)]
    world.run_until(NOON + 85 * MINUTE)
    world.run_until(NOON + 115 * MINUTE, ticking=False)
    world.wheel._controls.clear()
    world.run_until(NOON + timedelta(minutes=145, seconds=5))
    reindex(world, since=NOON + 85 * MINUTE)
    world.run_until(NOON + 148 * MINUTE)
    assert twice(world) == []
    for job in jobs:
        missed = [row for row in world.history(job) if row.key.kind is RunKind.MISSED]
        spans = [(row.covers_from, row.key.fire_at) for row in missed]
        assert spans == [(NOON + 90 * MINUTE, NOON + 130 * MINUTE)]
