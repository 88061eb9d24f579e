"""Rows tell a reindexing less than what stood on the wheel knew."""

from datetime import timedelta

import pytest

from carillon.domain.events import EventType
from carillon.domain.policies import Backoff, BackoffType, CatchUp, Rate, RetryPolicy
from carillon.domain.run import RunError, RunStatus
from carillon.executor.targets import Failure, Success
from tests.simulation.stories.operators.test_reindexing import (
    lose_wheel,
    minutes,
    reindex,
)
from tests.simulation.stories.story import MINUTE, NOON, REFUSED
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


class TestWhereNothingIsAmiss:
    """What a run waits for stands on the wheel, and is not to be replaced."""

    @pytest.mark.parametrize("at", [3, 25])
    def test_runs_keep_the_starts_that_their_rate_has_granted(self, world: World, at: int) -> None:
        job = world.create("rate", "1,2,3 12 * * *", rate=Rate(1, 1800))
        world.run_until(NOON + at * MINUTE)
        reindex(world)
        world.run_until(NOON + timedelta(hours=2))
        assert minutes(job, world) == [1, 2, 3]
        began = [row.started_at for row in world.history(job)]
        assert began == [NOON + minute * MINUTE for minute in (1, 31, 61)]

    def test_so_do_retries(self, world: World) -> None:
        down = Failure(RunError("http_503", "down"))
        world.targets.behave = lambda call: down if call.attempt == 1 else Success("done")
        retry = RetryPolicy(2, Backoff(60, type=BackoffType.FIXED))
        job = world.create("rate", "at 2026-12-01T12:01:00Z", rate=Rate(1, 1800), retry=retry)
        world.run_until(NOON + 5 * MINUTE)
        reindex(world)
        world.run_until(NOON + timedelta(hours=2))
        (run,) = world.history(job)
        assert (run.attempt, run.attempt_started_at) == (2, NOON + 31 * MINUTE)

    def test_what_a_tick_caught_up_on_in_time_is_not_too_late(self, world: World) -> None:
        rate = Rate(1, 1800, "shared")
        world.create("other", "at 2026-12-01T12:01:00Z", rate=rate)
        job = world.create("job", "8 12 * * *", rate=rate, catch_up=CatchUp.SKIP, grace=900)
        world.run_until(NOON + 3 * MINUTE)
        world.run_until(NOON + 10 * MINUTE, ticking=False)
        world.run_until(NOON + 12 * MINUTE)
        reindex(world)
        world.run_until(NOON + 40 * MINUTE)
        (run,) = world.history(job)
        assert (run.status, run.started_at) == (RunStatus.SUCCEEDED, NOON + 31 * MINUTE)

    @pytest.mark.parametrize("window", ["", "30m"])
    def test_no_missed_run_is_told_of_again(self, world: World, window: str) -> None:
        world.targets.behave = lambda call: REFUSED
        watched = {"expect_within": 120, "events": (EventType.RUN_MISSED,)}
        world.create("job", "5 12 * * *", window=window, fraction=0.5, **watched)
        world.run_until(NOON + 70 * MINUTE)
        assert len(world.events.emitted) == 1
        reindex(world)
        world.run_until(NOON + 80 * MINUTE)
        assert len(world.events.emitted) == 1


def test_nor_where_another_was_missed_since(world: World) -> None:
    world.targets.behave = lambda call: REFUSED
    world.create("job", "5,35 12 * * *", expect_within=120, events=(EventType.RUN_MISSED,))
    world.run_until(NOON + 20 * MINUTE)
    lose_wheel(world)
    world.run_until(NOON + 40 * MINUTE)
    reindex(world)
    world.run_until(NOON + 50 * MINUTE)
    assert [event.data["fire_at"][11:16] for event in world.events.emitted] == ["12:05", "12:35"]
