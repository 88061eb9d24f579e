"""Runs that wait for their turn behind the active one: all of them get it, and soon."""

from dataclasses import replace

import pytest

from carillon.domain.policies import Overlap
from carillon.domain.run import RunKind, RunStatus
from carillon.executor.targets import Call, Outcome, Success
from tests.simulation.story import MINUTE, NOON, SECOND, run_of
from tests.simulation.test_policies import Slow
from tests.support.world import World

IN_THE_EVENING = "at 2026-12-01T18:00:00Z"
SKIP_AND_QUEUE = pytest.mark.parametrize("overlap", [Overlap.SKIP, Overlap.QUEUE_ONE])


@pytest.fixture
def world() -> World:
    return World(NOON, segments=1)


@SKIP_AND_QUEUE
def test_many_take_about_the_time_that_their_work_takes(world: World, overlap: Overlap) -> None:
    slow = Slow(world, 2)  # a second more, and lane slow would have them
    job = world.create("job", IN_THE_EVENING, overlap=overlap)
    keys = [world.ask(job) for _ in range(40)]
    world.run_until(NOON + 5 * MINUTE)
    done = [key for key in keys if run_of(world, key).status is RunStatus.SUCCEEDED]
    assert len(done) == 40, "80 seconds of work"
    assert slow.most_active == 1


@SKIP_AND_QUEUE
@pytest.mark.parametrize("seed", range(3))
def test_occurrences_take_nobodys_turn(overlap: Overlap, seed: int) -> None:
    """They are due every 10 s, and one takes somewhat longer: ends fall on no second of theirs."""
    world = World(NOON, segments=1, seed=seed)

    def last(call: Call) -> Outcome:
        world.run_until(world.clock.now() + 10 * SECOND)
        world.clock.advance(0.37)
        return Success(None)

    world.targets.behave = last
    job = world.create("job", "every 10s", overlap=overlap, timeout_seconds=20)
    world.run_until(NOON + 30 * SECOND)
    keys = [world.ask(job) for _ in range(3)]
    world.run_until(NOON + 8 * MINUTE)
    assert {run_of(world, key).status for key in keys} == {RunStatus.SUCCEEDED}
    kinds = [run.key.kind for run in world.history(job) if run.status is RunStatus.SUCCEEDED]
    assert kinds.count(RunKind.SCHEDULED) > 20, "occurrences run between them"


def test_the_place_of_one_that_was_cancelled_is_free(world: World) -> None:
    Slow(world, 50)
    job = world.create("job", IN_THE_EVENING, overlap=Overlap.QUEUE_ONE, timeout_seconds=55)
    keys = [world.ask(job) for _ in range(3)]

    world.run_until(NOON + 20 * SECOND)
    waiting = run_of(world, keys[1])
    changes = {"status": RunStatus.CANCELLED, "finished_at": world.clock.now()}
    assert world.runs.claim(replace(waiting, **changes), waiting)  # type: ignore[arg-type]
    world.run_until(NOON + 4 * MINUTE)
    assert [run_of(world, key).status for key in keys] == [
        RunStatus.SUCCEEDED,
        RunStatus.CANCELLED,
        RunStatus.SUCCEEDED,
    ]
