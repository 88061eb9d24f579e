"""Real dispatch and execution under a virtual clock: what fires when, and where in its window."""

from datetime import datetime, timedelta

import pytest

from carillon.domain.job import Job
from carillon.domain.policies import Backoff, RetryPolicy
from carillon.domain.run import RunError, RunStatus
from carillon.executor.targets import Failure
from tests.simulation.stories.story import MIDNIGHT, SECOND
from tests.support.world import World, times


def effective(world: World, job: Job) -> list[datetime]:
    """When the job's runs started, oldest first."""
    return [run.started_at for run in world.history(job) if run.started_at is not None]


@pytest.mark.parametrize(
    ("schedule", "window", "fraction", "offset_seconds"),
    [
        ("*/10 * * * *", "5m", 0.5, 150),
        ("*/10 * * * *", "100%", 0.9999, 599),
        ("17 * * * *", "90s", 0.999, 89),
        ("0 0 * * *", "2h", 0.51, 3672),
        ("every 30s", "50%", 0.5, 7),
        ("at 2026-12-01T00:20:00", "15m", 0.123, 110),
        ("every 1001m", "24h", 0.03, 1801),
    ],
)
def test_each_run_starts_at_its_place_to_the_second_and_keeps_its_nominal_time(
    schedule: str, window: str, fraction: float, offset_seconds: int
) -> None:
    world = World(MIDNIGHT - timedelta(minutes=30))
    before = MIDNIGHT - timedelta(minutes=990)
    start_at = before if schedule == "every 1001m" else None
    job = world.create("spread", schedule, window=window, fraction=fraction, start_at=start_at)
    assert job.spread_seconds == offset_seconds
    until = MIDNIGHT + timedelta(hours=1, minutes=30)
    world.run_until(until)
    offset = timedelta(seconds=offset_seconds)
    nominal = list(job.schedule.between(job.generation.from_at, until - offset))
    assert world.fired(job) == nominal
    assert nominal, "something is shown"
    assert effective(world, job) == [fire_at + offset for fire_at in nominal]
    history = world.history(job)
    assert {run.lag_seconds for run in history} == {0.0}, "lag counts from the effective time"
    assert [run.effective_at for run in history] == effective(world, job)


def test_a_job_created_between_nominal_and_effective_time_has_that_occurrence_behind_it() -> None:
    world = World(MIDNIGHT + timedelta(seconds=30))
    job = world.create("late", "*/2 * * * *", window="2m", fraction=0.75)
    world.run_until(MIDNIGHT + timedelta(minutes=6))
    assert world.fired(job) == times("00:02 00:04", MIDNIGHT)
    assert effective(world, job) == times("00:03:30 00:05:30", MIDNIGHT)


@pytest.mark.parametrize(("before", "after"), [(0.25, 0.75), (0.75, 0.25)])
def test_a_change_of_the_window_moves_every_later_run_and_doubles_none(
    before: float, after: float
) -> None:
    """The entries of the generation before are still there, and their messages name the same
    runs."""
    world = World(MIDNIGHT)
    job = world.create("moved", "*/4 * * * *", window="4m", fraction=before)
    world.run_until(MIDNIGHT + timedelta(minutes=5, seconds=30))
    world.new_generation(job, spread_seconds=int(240 * after))
    world.run_until(MIDNIGHT + timedelta(minutes=20))
    fired = times("00:04 00:08 00:12 00:16", MIDNIGHT)
    assert world.fired(job) == fired
    offsets = [240 * before] + 3 * [240 * after]
    expected = [t + timedelta(seconds=o) for t, o in zip(fired, offsets, strict=True)]
    assert effective(world, job) == expected


def test_two_members_that_meet_at_one_instant_are_one_run() -> None:
    world = World(MIDNIGHT)
    job = world.create("both", ["*/2 * * * *", "*/3 * * * *"], except_=["8 * * * *"])
    world.run_until(MIDNIGHT + timedelta(minutes=10))
    assert world.fired(job) == times("00:02 00:03 00:04 00:06 00:09 00:10", MIDNIGHT)
    assert len(world.history(job)) == 6


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("17 * * * *", "00:17 01:17 02:17"),
        ("every 4m", "00:04 00:08 00:12 00:16"),
        ("every 6m offset 1m", "00:07 00:13 00:19"),
        ("every 25m offset 2m", "00:27 00:52 01:17 01:42"),
        ("every 100m", "01:40 03:20 05:00"),
    ],
)
def test_the_seeds_jobs_fire_at_the_seeds_times(schedule: str, expected: str) -> None:
    world = World(MIDNIGHT)
    job = world.create("seed", schedule, start_at=MIDNIGHT)
    wanted = times(expected, MIDNIGHT)
    world.run_until(wanted[-1] + SECOND)
    assert world.fired(job) == wanted
    assert [run.status for run in world.history(job)] == [RunStatus.SUCCEEDED] * len(wanted)


def test_a_job_due_in_five_seconds_fires_in_five_seconds() -> None:
    world = World(MIDNIGHT)
    world.run_until(MIDNIGHT + timedelta(seconds=20))
    due_at = world.clock.now() + timedelta(seconds=5)
    job = world.create("soon", f"at {due_at:%Y-%m-%dT%H:%M:%S}")
    world.run_until(due_at)
    assert [(run.key.fire_at, run.lag_seconds) for run in world.history(job)] == [(due_at, 0.0)]


def test_a_job_with_five_second_steps_fires_to_the_second_and_never_early() -> None:
    world = World(MIDNIGHT.replace(minute=3, second=58))
    job = world.create("fast", "every 5s")
    world.run_until(MIDNIGHT.replace(minute=8))
    first = MIDNIGHT.replace(minute=4)
    assert world.fired(job) == [first + timedelta(seconds=5 * n) for n in range(49)]
    assert {run.lag_seconds for run in world.history(job)} == {0.0}


def test_a_failing_run_is_retried_and_ends_as_a_dead_letter_with_its_reason() -> None:
    world = World(MIDNIGHT)
    world.targets.behave = lambda call: Failure(RunError("RuntimeError", "boom"))
    policy = RetryPolicy(max_attempts=3, backoff=Backoff(base_seconds=4, factor=2))
    job = world.create("failing", "at 2026-12-01T00:00:30", retry=policy)
    world.run_until(MIDNIGHT + timedelta(minutes=2))
    (run,) = world.history(job)
    assert (run.status, run.attempt, run.reason) == (RunStatus.DEAD, 3, "exhausted")
    assert [record.attempt for record in run.attempts] == [1, 2]
    assert run.error is not None
    assert run.error.message == "boom"
    assert [call.attempt for call in world.targets.calls] == [1, 2, 3]
