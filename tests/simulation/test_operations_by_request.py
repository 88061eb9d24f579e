"""What requests about single runs come to: the api's services beside ticks and executors."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from functions.api.running import RunService
from functions.api.service import JobService
from functions.api.settling import DeadLetterService
from functions.executor.targets import Failure, Success
from shared.domain.job import Job
from shared.domain.policies import Backoff, BackoffType, RetryPolicy
from shared.domain.run import Run, RunError, RunStatus, Settled
from shared.redriving import Redriver
from tests.simulation.world import LIFETIME, OWNER, World
from tests.unit.api.conftest import SETTINGS

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)


@pytest.fixture
def world() -> World:
    world = World(NOON - timedelta(minutes=1))
    world.targets.behave = lambda call: Failure(RunError("http_503", "down"))
    return world


def job_service(world: World) -> JobService:
    settings = replace(SETTINGS, segments=world.segments)
    return JobService(
        world.jobs,
        world.calendars,
        world.filer,
        world.events,
        world.clock,
        world.entropy,
        settings,
    )


def run_service(world: World) -> RunService:
    jobs, settings = job_service(world), SETTINGS
    return RunService(jobs, world.runs, world.queue, world.clock, world.entropy, settings)


def dead_letter_service(world: World) -> DeadLetterService:
    redriver = Redriver(world.runs, world.filer, world.clock, world.entropy, LIFETIME)
    return DeadLetterService(job_service(world), world.runs, redriver, world.clock)


def create(world: World, backoff_seconds: int, max_attempts: int = 3) -> Job:
    backoff = Backoff(base_seconds=backoff_seconds, type=BackoffType.FIXED)
    retry = RetryPolicy(max_attempts=max_attempts, backoff=backoff)
    return world.create("job", "at 2026-12-01T12:00:00", retry=retry)


def only_run(world: World, job: Job) -> Run:
    (run,) = world.history(job)
    return run


@pytest.mark.parametrize("backoff_seconds", [60, 1200], ids=["by the queue", "by the wheel"])
def test_a_cancelled_run_is_not_tried_again(world: World, backoff_seconds: int) -> None:
    job = create(world, backoff_seconds)
    world.run_until(NOON + timedelta(seconds=10))
    waiting = only_run(world, job)
    assert waiting.status is RunStatus.RETRYING

    cancelled = run_service(world).cancel(OWNER, job.job_id, waiting.key.run_id)
    world.run_until(NOON + timedelta(seconds=backoff_seconds + 120))

    assert only_run(world, job) == cancelled
    assert len(world.targets.calls) == 1
    assert world.queue.kept() == []


def test_a_dead_letter_is_redriven_to_success_with_both_runs_in_the_history(world: World) -> None:
    job = create(world, 1, max_attempts=2)
    world.run_until(NOON + timedelta(seconds=10))
    dead = only_run(world, job)
    assert dead.is_dead_letter
    world.targets.behave = lambda call: Success("done")

    made = dead_letter_service(world).redrive(OWNER, dead.key.run_id)
    world.run_until(NOON + timedelta(seconds=30))

    first, second = sorted(world.history(job), key=lambda run: run.key.redrive)
    assert (first.settled, len(first.attempts)) == (Settled.REDRIVEN, 1)
    assert (second.key, second.status, second.attempt) == (made.key, RunStatus.SUCCEEDED, 1)
    assert dead_letter_service(world).redrive(OWNER, dead.key.run_id) == second
    assert len(world.targets.calls) == 3
