"""Real dispatch and execution under a virtual clock: what fires, when, and what is recorded."""

from datetime import timedelta

import pytest

from carillon.domain.policies import Backoff, CatchUp, RetryPolicy
from carillon.domain.run import RunError, RunStatus
from carillon.executor.targets import Failure
from tests.simulation.story import MIDNIGHT, MINUTE, SECOND
from tests.support.world import World, times


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


def test_a_job_with_five_second_steps_fires_to_the_second_and_never_early() -> None:
    world = World(MIDNIGHT.replace(minute=3, second=58))
    job = world.create("fast", "every 5s")
    world.run_until(MIDNIGHT.replace(minute=8))
    first = MIDNIGHT.replace(minute=4)
    assert world.fired(job) == [first + timedelta(seconds=5 * n) for n in range(49)]
    assert {run.lag_seconds for run in world.history(job)} == {0.0}


def test_a_job_due_in_five_seconds_fires_in_five_seconds() -> None:
    world = World(MIDNIGHT)
    world.run_until(MIDNIGHT + timedelta(seconds=20))
    due_at = world.clock.now() + timedelta(seconds=5)
    job = world.create("soon", f"at {due_at:%Y-%m-%dT%H:%M:%S}")
    world.run_until(due_at)
    assert [(run.key.fire_at, run.lag_seconds) for run in world.history(job)] == [(due_at, 0.0)]


def test_a_rare_schedule_goes_on_as_a_dated_chain() -> None:
    world = World(MIDNIGHT)
    job = world.create("rare", "every 1001m", start_at=MIDNIGHT)
    for n in (1, 2, 3):
        due_at = MIDNIGHT + timedelta(minutes=1001 * n)
        world.leap_to(due_at - timedelta(minutes=3))
        world.run_until(due_at + SECOND)
    assert world.fired(job) == [MIDNIGHT + timedelta(minutes=1001 * n) for n in (1, 2, 3)]


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


def test_a_one_shot_missed_in_an_outage_always_runs() -> None:
    world = World(MIDNIGHT)
    world.run_until(MIDNIGHT + MINUTE)
    job = world.create("once", "at 2026-12-01T01:00:00", catch_up=CatchUp.SKIP)
    world.run_until(MIDNIGHT + timedelta(hours=2), ticking=False)
    world.run_until(MIDNIGHT + timedelta(hours=2, minutes=1))
    assert [run.status for run in world.history(job)] == [RunStatus.SUCCEEDED]


def test_a_paused_job_does_not_run_and_its_entries_leave_the_wheel() -> None:
    world = World(MIDNIGHT)
    job = world.create("paused", "* * * * *")
    world.run_until(MIDNIGHT + timedelta(minutes=2, seconds=30))
    before = len(world.fired(job))
    paused = world.pause(job)
    world.run_until(MIDNIGHT + timedelta(hours=2, minutes=10))
    assert len(world.fired(job)) == before
    skipped = [run for run in world.history(job) if run.status is RunStatus.SKIPPED]
    assert {run.reason for run in skipped} == {"paused"}
    # Those that may have been announced before the pause prove nothing: they are met twice.
    assert len(skipped) <= 60 + 3 + 11, "each standing entry is met once more, then removed"
    world.new_generation(paused)
    world.run_until(world.clock.now() + timedelta(minutes=3))
    assert len(world.fired(job)) == before + 3


def test_a_change_of_schedule_runs_what_the_old_one_covered_and_then_the_new_one() -> None:
    world = World(MIDNIGHT)
    job = world.create("changed", "*/2 * * * *")
    world.run_until(MIDNIGHT + timedelta(minutes=4, seconds=30))
    world.new_generation(job, "1-59/2 * * * *")
    world.run_until(MIDNIGHT + timedelta(minutes=9, seconds=30))
    assert world.fired(job) == times("00:02 00:04 00:05 00:07 00:09", MIDNIGHT)
