"""Jobs whose rows tell a reindexing less than the wheel knew."""

from datetime import timedelta

import pytest

from tests.simulation.stories.operators.test_reindexing import reindex
from tests.simulation.stories.story import MINUTE, NOON
from tests.support.world import World

DELAY = timedelta(days=60)


@pytest.fixture
def world() -> World:
    return World(NOON, segments=2)


def test_a_fixed_delay_that_outlasts_its_rows_is_named_and_begins_no_second_sequence(
    world: World,
) -> None:
    job = world.create("chain", "every 60d after finish")
    world.leap_to(NOON + DELAY - MINUTE)
    world.run_until(NOON + DELAY)
    world.leap_to(NOON + DELAY + timedelta(days=40))
    world.runs.expire(world.clock.now())
    assert (world.fired(job), world.history(job)) == ([NOON + DELAY], [])

    done = reindex(world)
    world.run_until(world.clock.now() + 5 * MINUTE)

    assert len(world.fired(job)) == 1
    (reason,) = done.left
    assert job.job_id in reason
    world.leap_to(NOON + 2 * DELAY - MINUTE)
    world.run_until(NOON + 2 * DELAY + MINUTE)
    assert len(world.fired(job)) == 2
