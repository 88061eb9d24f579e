"""Bulk redrives and discards through the real executor, in virtual time."""

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

from carillon.domain.job import Job
from carillon.domain.operation import STEP_SECONDS, OperationKind, OperationState
from carillon.domain.run import Resolution, RunError, RunStatus
from carillon.executor.targets import Failure
from tests.support.operation_kit import (
    MINUTE,
    NOON,
    begin,
    execute_badly,
    harass,
    most_in_a_minute,
    now_of,
    put_dead,
    run_to_end,
    starts,
)
from tests.support.world import LIFETIME, OWNER, World


@pytest.fixture
def world() -> World:
    return World(NOON)


@pytest.fixture
def job(world: World) -> Job:
    """Its own occurrences are far away: what runs here is what the operations send."""
    return world.create("job", "0 0 1 1 *")


@pytest.mark.parametrize("per_minute", [1, 7, 60])
def test_a_bulk_redrive_keeps_its_pace_in_every_minute(
    world: World, job: Job, per_minute: int
) -> None:
    count = 5 if per_minute == 1 else per_minute * 3 + 2
    put_dead(world, job, count)
    operation = begin(world, OperationKind.REDRIVE, per_minute)

    ended = run_to_end(world, operation)

    assert (ended.state, ended.done, ended.passed_over) == (OperationState.SUCCEEDED, count, 0)
    assert most_in_a_minute(starts(world, job)) == per_minute
    assert set(Counter(starts(world, job)).values()) == {1}, "they are spread over the minute"
    redriven = [run for run in world.history(job) if run.key.redrive == 1]
    assert {run.status for run in redriven} == {RunStatus.SUCCEEDED}
    assert len(redriven) == len(world.targets.calls) == count
    assert world.runs.dead_letters(OWNER, 10).items == ()
    took = max(starts(world, job)) - min(starts(world, job))
    assert took <= timedelta(seconds=60 * (count / per_minute) + STEP_SECONDS)


def test_runs_that_die_again_are_not_redriven_for_ever(world: World, job: Job) -> None:
    world.targets.behave = lambda call: Failure(RunError("gone", "no", permanent=True))
    put_dead(world, job, 40)

    ended = run_to_end(world, begin(world, OperationKind.REDRIVE, 10))

    assert (ended.state, ended.done) == (OperationState.SUCCEEDED, 40)
    assert len(world.targets.calls) == 40
    dead = world.runs.dead_letters(OWNER, 100).items
    assert {run.key.redrive for run in dead} == {1}
    assert len(dead) == 40


def test_a_filter_leaves_out_all_others(world: World, job: Job) -> None:
    other = world.create("other", "0 0 1 1 *")
    put_dead(world, job, 6)
    put_dead(world, other, 6)

    bounds = {"from_at": NOON - 4 * MINUTE, "until_at": NOON - 2 * MINUTE}
    ended = run_to_end(world, begin(world, OperationKind.REDRIVE, 600, job_id=job.job_id, **bounds))

    assert ended.done == 3
    assert sorted(world.fired(job)) == [NOON - n * MINUTE for n in (4, 3, 2)]
    assert world.fired(other) == []


def test_dead_letters_of_a_deleted_job_are_passed_over(world: World, job: Job) -> None:
    put_dead(world, job, 30)
    gone = job.deleted(world.clock.now(), world.clock.now() + LIFETIME)
    assert world.jobs.replace(gone, job.revision)

    ended = run_to_end(world, begin(world, OperationKind.REDRIVE, 600))

    assert (ended.state, ended.done, ended.passed_over) == (OperationState.SUCCEEDED, 0, 30)
    assert len(world.runs.dead_letters(OWNER, 100).items) == 30


def test_a_bulk_discard_calls_nothing(world: World, job: Job) -> None:
    put_dead(world, job, 70)

    ended = run_to_end(world, begin(world, OperationKind.DISCARD, 60))

    assert (ended.state, ended.done) == (OperationState.SUCCEEDED, 70)
    settled = {(run.key.redrive, run.status, run.settled) for run in world.history(job)}
    assert settled == {
        (0, RunStatus.DEAD, Resolution.DISCARDED),
        (1, RunStatus.CANCELLED, None),
    }
    assert world.targets.calls == []


def test_a_cancelled_operation_does_no_further_step(world: World, job: Job) -> None:
    put_dead(world, job, 100)
    operation = begin(world, OperationKind.REDRIVE, 20)
    world.run_until(world.clock.now() + timedelta(seconds=40), ticking=False)
    running = now_of(world, operation)
    cancelled = running.cancelled(world.clock.now(), running.expires_at)
    assert world.operations.put(cancelled, running.revision)
    world.run_until(world.clock.now() + 5 * MINUTE, ticking=False)

    assert now_of(world, operation) == cancelled
    assert len(world.targets.calls) == cancelled.done == 20
    assert len(world.runs.dead_letters(OWNER, 100).items) == 80
    assert world.queue.kept() == []


def test_a_cancellation_during_a_step_keeps_what_the_step_has_done(
    world: World, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_dead(world, job, 100)
    operation = begin(world, OperationKind.REDRIVE, 20)
    listed = world.runs.dead_letters

    def list_then_cancel(*args: Any) -> Any:
        running = now_of(world, operation)
        if not running.is_final:
            cancelled = running.cancelled(world.clock.now(), running.expires_at)
            assert world.operations.put(cancelled, running.revision)
        return listed(*args)

    monkeypatch.setattr(world.runs, "dead_letters", list_then_cancel)
    ended = run_to_end(world, operation)

    assert (ended.state, ended.done) == (OperationState.CANCELLED, 10)
    assert len(world.targets.calls) == 10


def check_redriven(world: World, job: Job, count: int, per_minute: int) -> None:
    """Each dead letter was run again, once, within the pace."""
    assert world.runs.dead_letters(OWNER, 100).items == ()
    redriven = [run for run in world.history(job) if run.key.redrive == 1]
    assert [run.status for run in redriven] == [RunStatus.SUCCEEDED] * count
    assert {call.run_id for call in world.targets.calls} == {run.key.run_id for run in redriven}
    assert most_in_a_minute(starts(world, job)) <= per_minute


@pytest.mark.parametrize("every", [23, 37, 61])
@pytest.mark.parametrize("doubled", [False, True])
def test_a_redrive_survives_failures_and_duplicates(
    job: Job, world: World, monkeypatch: pytest.MonkeyPatch, every: int, doubled: bool
) -> None:
    put_dead(world, job, 50)
    operation = begin(world, OperationKind.REDRIVE, 20)
    with monkeypatch.context() as patch:
        failures = harass(world, patch, lambda n: n % every == 0, after=doubled)
        execute_badly(world, NOON + timedelta(hours=2), doubled=doubled)
        assert failures() > 3
    execute_badly(world, NOON + timedelta(hours=4), doubled=doubled)

    assert now_of(world, operation).state is OperationState.SUCCEEDED
    check_redriven(world, job, 50, 20)


@pytest.mark.parametrize("after", [False, True])
def test_a_redrive_survives_a_crash_at_each_call(
    monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    number, failed = 0, True
    while failed:
        number += 1
        world = World(NOON)
        job = world.create("job", "0 0 1 1 *")
        put_dead(world, job, 4)
        operation = begin(world, OperationKind.REDRIVE, 4)
        with monkeypatch.context() as patch:
            failures = harass(world, patch, lambda n: n == number, after=after)  # noqa: B023
            execute_badly(world, NOON + timedelta(minutes=20), doubled=False)
        failed = failures() == 1
        assert now_of(world, operation).state is OperationState.SUCCEEDED, number
        check_redriven(world, job, 4, 4)
    assert number > 30


def test_doubled_orders_do_not_live_on(world: World, job: Job) -> None:
    """A duplicate of a step orders nothing while the next one comes."""
    put_dead(world, job, 60)
    operation = begin(world, OperationKind.DISCARD, 20)
    (order,) = world.queue.kept()
    for _ in range(5):
        world.queue.send([order.message], [1])
    world.run_until(world.clock.now() + 2 * MINUTE, ticking=False)

    assert len(world.queue.kept()) == 1
    assert now_of(world, operation).step == 5
