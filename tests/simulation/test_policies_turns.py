"""Runs that wait for their turn behind the active one: all of them get it, and soon."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from carillon.domain.admission.state import job_admission
from carillon.domain.decisions import SkipReason
from carillon.domain.job import Job
from carillon.domain.policies import Overlap, RetryPolicy
from carillon.domain.run import Run, RunError, RunKey, RunKind, RunStatus
from carillon.executor.targets import Call, Failure, Outcome, Success
from tests.simulation.test_policies import Slow
from tests.support.world import OWNER, World

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
IN_THE_EVENING = "at 2026-12-01T18:00:00Z"
SKIP_AND_QUEUE = pytest.mark.parametrize("overlap", [Overlap.SKIP, Overlap.QUEUE_ONE])


@pytest.fixture
def world() -> World:
    return World(NOON, segments=1)


def run_of(world: World, key: RunKey) -> Run:
    run = world.runs.get(key)
    assert run is not None
    return run


@SKIP_AND_QUEUE
def test_the_one_that_waits_begins_as_the_active_one_ends(world: World, overlap: Overlap) -> None:
    """Those behind it look from time to time, each in a second of its own."""
    starts: list[datetime] = []
    notes: list[str | None] = []

    def last(call: Call) -> Outcome:
        starts.append(world.clock.now())
        if len(keys) == 1:
            keys.extend(world.ask(job) for _ in range(2))
        world.run_until(world.clock.now() + 14 * SECOND)
        notes.extend(run_of(world, key).note for key in keys)
        return Success(None)

    world.targets.behave = last
    job = world.create("job", IN_THE_EVENING, overlap=overlap)
    keys = [world.ask(job)]
    world.run_until(NOON + 4 * MINUTE)
    assert notes[:3] == [
        None,
        f"waits for the end of {keys[0].run_id}",
        f"waits behind {keys[1].run_id}",
    ]
    assert starts[:2] == [NOON, NOON + 15 * SECOND]
    assert NOON + 30 * SECOND <= starts[2] <= NOON + 60 * SECOND, "woken, or by its next look"


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


@SKIP_AND_QUEUE
def test_what_is_due_while_one_waits_is_skipped(world: World, overlap: Overlap) -> None:
    starts: list[datetime] = []

    def last(call: Call) -> Outcome:
        starts.append(world.clock.now())
        if len(keys) == 1:
            keys.append(world.ask(job))
        world.run_until(world.clock.now() + 24 * SECOND)
        return Success(None)

    world.targets.behave = last
    job = world.create("job", "every 1m", overlap=overlap, timeout_seconds=30)
    world.run_until(NOON + 49 * SECOND)
    keys = [world.ask(job)]
    world.run_until(NOON + 110 * SECOND)
    first, second = keys
    assert starts == [NOON + 50 * SECOND, NOON + 75 * SECOND]
    (skipped,) = [run for run in world.history(job) if run.key.kind is RunKind.SCHEDULED]
    assert (skipped.key.fire_at, skipped.reason) == (NOON + MINUTE, SkipReason.OVERLAP)
    in_the_way = f"{first.run_id} was active"
    if overlap is Overlap.QUEUE_ONE:
        in_the_way = f"{second.run_id} was waiting for its turn"
    assert skipped.note == in_the_way


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


def test_the_gate_outlives_a_run_that_is_tried_again_for_weeks(world: World) -> None:
    week = timedelta(days=7)

    def busy(call: Call) -> Outcome:
        return Failure(RunError("busy", "later"), retry_after_seconds=week.total_seconds())

    world.targets.behave = busy
    retry = RetryPolicy(max_attempts=10)
    at = "at 2026-12-01T12:00:10Z"
    job: Job = world.create("job", at, overlap=Overlap.SKIP, retry=retry)
    world.run_until(NOON + 20 * SECOND)
    for attempt in range(2, 7):
        (run,) = world.history(job)
        assert run.next_attempt_at is not None
        world.leap_to(run.next_attempt_at.replace(second=0) - MINUTE)
        world.run_until(run.next_attempt_at + SECOND)
        (run,) = world.history(job)
        gate = world.admission_rows.get(OWNER, job_admission(job.job_id))
        assert gate is not None
        assert (run.attempt, gate.active) == (attempt, run.key.run_id)
        assert run.next_attempt_at is not None
        assert gate.expires_at > run.next_attempt_at
