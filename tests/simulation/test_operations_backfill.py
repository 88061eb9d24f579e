"""Backfills through the real executor, in virtual time."""

from datetime import datetime, timedelta

import pytest

from carillon.domain.job import Job
from carillon.domain.operation import OperationKind, OperationState
from carillon.domain.run import Resolution, RunKey, RunKind, RunStatus
from carillon.schedules import CalendarRule
from tests.simulation.story import empty_queue
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

SCHEDULE = "*/5 * * * *"


@pytest.fixture
def world() -> World:
    return World(NOON)


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
