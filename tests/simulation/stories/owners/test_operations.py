"""Bulk redrives, discards and backfills through the real executor, in virtual time."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from carillon.domain.job import Job
from carillon.domain.operation import OperationKind, OperationState
from carillon.domain.run import Resolution, RunError, RunKey, RunKind, RunStatus
from carillon.domain.spec.after import After
from carillon.executor.targets import Failure
from carillon.schedules import CalendarRule
from tests.simulation.stories.story import empty_queue
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
from tests.unit.faults import failing


@pytest.fixture
def world() -> World:
    return World(NOON)


@pytest.fixture
def job(world: World) -> Job:
    """Its own occurrences are far away: what runs here is what the operations send."""
    return world.create("job", "0 0 1 1 *")


def test_runs_that_die_again_are_not_redriven_for_ever(world: World, job: Job) -> None:
    world.targets.behave = lambda call: Failure(RunError("gone", "no", permanent=True))
    put_dead(world, job, 40)

    ended = run_to_end(world, begin(world, OperationKind.REDRIVE, 10))

    assert (ended.state, ended.done) == (OperationState.SUCCEEDED, 40)
    assert len(world.targets.calls) == 40
    dead = world.runs.dead_letters(OWNER, 100).items
    assert {run.key.redrive for run in dead} == {1}
    assert len(dead) == 40


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


def test_a_redrive_keeps_its_pace_and_count_where_the_store_fails_in_a_step(
    world: World, job: Job
) -> None:
    """What the step has sent by then counts: the next try comes within seconds."""
    put_dead(world, job, 90)
    operation = begin(world, OperationKind.REDRIVE, 60)
    with failing(world.runs, "claim", after=2 * 28, times=1):
        world.run_until(NOON + timedelta(seconds=2), ticking=False)

    assert run_to_end(world, operation).done == 90
    check_redriven(world, job, 90, 60)


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


SCHEDULE = "*/5 * * * *"


def backfilled(world: World, job: Job) -> list[datetime]:
    """The fire times before noon that were called, in the order of the calls."""
    return [at for at in world.fired(job) if at <= NOON]


@pytest.fixture
def regular(world: World) -> Job:
    """A job every five minutes. Nothing ticks here, so that nothing of it runs by itself."""
    job = world.create("regular", SCHEDULE)
    empty_queue(world)
    return job


SPAN = {"from_at": NOON - timedelta(hours=2), "until_at": NOON - timedelta(minutes=5)}


def test_a_second_backfill_runs_them_again(world: World, regular: Job) -> None:
    for _ in range(2):
        run_to_end(world, begin(world, OperationKind.BACKFILL, 600, job_id=regular.job_id, **SPAN))

    assert len(world.history(regular)) == 48
    only = begin(
        world, OperationKind.BACKFILL, 600, job_id=regular.job_id, only_missed=True, **SPAN
    )
    ended = run_to_end(world, only)
    assert (ended.done, ended.passed_over) == (0, 24)


def test_what_ran_before_its_rows_expired_is_not_run_again(world: World, regular: Job) -> None:
    world.clock.set(SPAN["until_at"] - timedelta(minutes=4) + LIFETIME)

    only = begin(
        world, OperationKind.BACKFILL, 600, job_id=regular.job_id, only_missed=True, **SPAN
    )

    ended = run_to_end(world, only)
    assert (ended.done, ended.passed_over) == (1, 23)


def test_only_what_was_missed_is_run(world: World, regular: Job) -> None:
    kept = put_dead(world, regular, 1, key=_key(regular, 10))[0]
    put_dead(world, regular, 1, key=_key(regular, 15), status=RunStatus.SUCCEEDED)
    put_dead(world, regular, 1, key=_key(regular, 20), status=RunStatus.CANCELLED)
    put_dead(world, regular, 1, key=_key(regular, 25), settled=Resolution.DISCARDED)
    put_dead(world, regular, 1, key=_key(regular, 30), status=RunStatus.SKIPPED)
    span = {"from_at": NOON - timedelta(minutes=30), "until_at": NOON - timedelta(minutes=10)}

    ended = run_to_end(
        world,
        begin(world, OperationKind.BACKFILL, 60, job_id=regular.job_id, only_missed=True, **span),
    )

    assert (ended.done, ended.passed_over) == (2, 3)
    assert backfilled(world, regular) == [NOON - 30 * MINUTE, kept.key.fire_at]


def test_what_ran_under_the_name_before_is_not_missed(world: World, regular: Job) -> None:
    """It would run once more, under the next name."""
    renamed_at = regular.generation.from_at
    renamed = replace(
        regular, renamed_from="0" * 26, renamed_at=renamed_at, revision=regular.revision + 1
    )
    assert world.jobs.replace(renamed, regular.revision)
    for minutes in (10, 15, 20):
        before = replace(_key(regular, minutes), job_id="0" * 26)
        put_dead(world, regular, 1, key=before, status=RunStatus.SUCCEEDED)
    span = {"from_at": NOON - timedelta(minutes=25), "until_at": NOON - timedelta(minutes=10)}

    ended = run_to_end(
        world,
        begin(world, OperationKind.BACKFILL, 60, job_id=regular.job_id, only_missed=True, **span),
    )

    assert (ended.done, ended.passed_over) == (1, 3)
    assert backfilled(world, regular) == [NOON - 25 * MINUTE]


def test_a_backfill_of_a_paused_job_holds_until_it_is_resumed(world: World, regular: Job) -> None:
    paused = world.pause(regular)
    operation = begin(world, OperationKind.BACKFILL, 60, job_id=regular.job_id, **SPAN)
    world.run_until(world.clock.now() + 10 * MINUTE, ticking=False)

    held = now_of(world, operation)
    assert (held.state, held.done, held.reached_at) == (OperationState.RUNNING, 0, None)
    assert "paused" in held.note
    assert held.step == 6, "it looks after one minute, then after as long as the pause has lasted"
    world.run_until(world.clock.now() + 60 * MINUTE, ticking=False)
    assert now_of(world, operation).step == 12, "... and at last once in ten minutes"
    assert backfilled(world, regular) == []
    world.new_generation(paused)
    ended = run_to_end(world, operation)
    assert (ended.state, ended.done, ended.note) == (OperationState.SUCCEEDED, 24, "")


def test_a_backfill_leaves_out_closed_days(world: World) -> None:
    world.close("holidays", "2026-11-30")
    job = world.create("job", "0 6 * * *", calendar=("holidays", CalendarRule.SKIP))
    span = {"from_at": NOON - timedelta(days=3), "until_at": NOON}

    run_to_end(world, begin(world, OperationKind.BACKFILL, 60, job_id=job.job_id, **span))

    assert [at.day for at in backfilled(world, job)] == [29, 1]


def test_a_backfill_of_a_deleted_job_fails(world: World, regular: Job) -> None:
    operation = begin(world, OperationKind.BACKFILL, 60, job_id=regular.job_id, **SPAN)
    gone = regular.deleted(world.clock.now(), world.clock.now() + LIFETIME)
    assert world.jobs.replace(gone, regular.revision)

    ended = run_to_end(world, operation)

    assert (ended.state, ended.note) == (OperationState.FAILED, "the job is there no more")


@pytest.mark.parametrize(
    ("schedule", "after", "note"),
    [("every 5m after finish", None, "a fixed delay"), ("0 0 1 1 *", "other", "after another one")],
)
def test_a_backfill_fails_once_its_job_has_no_fire_times_of_its_own(
    world: World, regular: Job, schedule: str, after: str | None, note: str
) -> None:
    """No instants are made up for it, nor does it succeed without a run."""
    operation = begin(world, OperationKind.BACKFILL, 60, job_id=regular.job_id, **SPAN)
    follows = None if after is None else After(after)
    changed = world.new_generation(regular, schedule, after=follows)

    ended = run_to_end(world, operation)

    assert backfilled(world, changed) == []
    assert (ended.state, ended.done) == (OperationState.FAILED, 0)
    assert note in ended.note


@pytest.mark.parametrize("only_missed", [False, True])
def test_a_backfill_survives_crashes_and_counts_right(
    world: World, regular: Job, monkeypatch: pytest.MonkeyPatch, only_missed: bool
) -> None:
    operation = begin(
        world, OperationKind.BACKFILL, 6, job_id=regular.job_id, only_missed=only_missed, **SPAN
    )
    with monkeypatch.context() as patch:
        failures = harass(world, patch, lambda n: n % 13 == 0, after=only_missed)
        execute_badly(world, NOON + timedelta(hours=3), doubled=False)
        assert failures() > 3
    execute_badly(world, NOON + timedelta(hours=5), doubled=False)

    ended = now_of(world, operation)
    assert (ended.state, ended.done, ended.passed_over) == (OperationState.SUCCEEDED, 24, 0)
    assert len(set(backfilled(world, regular))) == 24
    assert {run.status for run in world.history(regular)} == {RunStatus.SUCCEEDED}
    assert most_in_a_minute(starts(world, regular)) <= 6


def _key(job: Job, minutes_before_noon: int) -> RunKey:
    at = NOON - timedelta(minutes=minutes_before_noon)
    return RunKey(OWNER, job.job_id, RunKind.SCHEDULED, at)
