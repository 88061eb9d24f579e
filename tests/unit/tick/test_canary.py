"""The canary: indexed by ticks, once, anew where it differs; and no work of an owner's."""

from datetime import UTC, datetime, timedelta

import pytest

from carillon.domain.canary import CANARY_EXPECT_WITHIN, CANARY_JOB_ID, CANARY_OWNER, CANARY_TASK
from carillon.domain.job import Job, JobState
from carillon.domain.run import RunError, RunStatus
from carillon.domain.targets import TaskTarget
from carillon.errors import StoreUnavailableError
from carillon.executor.targets import Failure
from carillon.schedules import parse_schedule
from carillon.tick.canary import CanaryKeeper
from carillon.tick.counting import change_of
from tests.support.jobs import job_with
from tests.support.world import World
from tests.unit.faults import failing

NOON = datetime(2026, 12, 1, 12, 1, tzinfo=UTC)


@pytest.fixture
def world() -> World:
    return World(NOON)


def keeper(world: World) -> CanaryKeeper:
    """As a new process makes it."""
    return CanaryKeeper(world.jobs, world.indexer, world.clock, world.entropy, world.segments)


def canary(world: World) -> Job:
    job = world.jobs.get(CANARY_OWNER, CANARY_JOB_ID)
    assert job is not None
    return job


def test_it_is_filed_by_the_first_tick_and_by_no_other(world: World) -> None:
    one, other = keeper(world), keeper(world)
    assert one.keep()
    assert not one.keep()
    assert not other.keep()
    job = canary(world)
    assert (job.revision, job.spec.target) == (1, TaskTarget(name=CANARY_TASK))


def test_it_runs_every_five_minutes_and_its_watch_finds_nothing_amiss(world: World) -> None:
    keeper(world).keep()
    world.run_until(NOON + timedelta(minutes=13))
    runs = world.history(canary(world))
    times = [run.key.fire_at.minute for run in runs]
    assert sorted(times) == [5, 10]
    assert {run.status for run in runs} == {RunStatus.SUCCEEDED}


def test_one_that_fails_is_missed_two_minutes_later(world: World) -> None:
    keeper(world).keep()
    world.targets.behave = lambda call: Failure(RunError("down", "no process"))
    world.run_until(NOON + timedelta(minutes=4) + CANARY_EXPECT_WITHIN + timedelta(seconds=1))
    (missed,) = [run for run in world.history(canary(world)) if run.status is RunStatus.MISSED]
    assert missed.key.fire_at == NOON + timedelta(minutes=4)


@pytest.mark.parametrize(
    "changes",
    [
        {"schedule": parse_schedule("every 1h")},
        {"target": TaskTarget(name="echo")},
        {"expect_within": 60},
        {"state": JobState.PAUSED, "paused_at": NOON},
        {"state": JobState.DELETED, "expires_at": NOON + timedelta(days=40)},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_another_release_s_is_filed_anew(world: World, changes: dict[str, object]) -> None:
    keeper(world).keep()
    first = canary(world)
    assert world.jobs.replace(job_with(first, **changes, revision=2), 1)
    assert keeper(world).keep()
    job = canary(world)
    assert (job.schedule, job.spec.target) == (first.schedule, first.spec.target)
    assert (job.state, job.revision, job.expires_at) == (JobState.ACTIVE, 3, None)
    assert job.generation.generation_id > first.generation.generation_id
    assert not keeper(world).keep()
    world.run_until(NOON + timedelta(minutes=6))
    assert [run.status for run in world.history(job)] == [RunStatus.SUCCEEDED]


def test_it_is_looked_for_again_after_a_failure(world: World) -> None:
    kept = keeper(world)
    with failing(world.jobs, "get"), pytest.raises(StoreUnavailableError):
        kept.keep()
    assert kept.keep()


def test_a_scheduler_that_has_only_its_canary_is_idle(world: World) -> None:
    keeper(world).keep()
    told = []
    for number in range(12):
        world.clock.set(NOON + timedelta(minutes=number))
        change = change_of(world.tick(), range(2), world.clock.now())
        told += [] if change is None else [(number, change.type.value)]
    assert told == [(0, "scheduler.idle")]
    assert world.queue.kept(), "it was sent all the same"
