"""What requests about single runs come to: the api's services beside ticks and executors."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from carillon.api.jobs.service import JobService
from carillon.api.runs.dead_letters import DeadLetterService
from carillon.api.runs.service import RunService
from carillon.domain.idempotency import record_key_of_run
from carillon.domain.job import Job, JobState
from carillon.domain.policies import Backoff, BackoffType, OnComplete, Overlap, RetryPolicy
from carillon.domain.run import Resolution, Run, RunError, RunStatus
from carillon.executor.targets import Failure, Success
from carillon.services.history import History
from carillon.services.job_quotas import JobQuotas
from carillon.services.quotas import UNLIMITED
from carillon.services.redrive import Redriver
from carillon.telemetry import create_telemetry
from tests.simulation.stories.owners.test_handing_over import hand_over, taken_of
from tests.simulation.stories.story import MINUTE, NOON, row_of, run_of
from tests.support.world import LIFETIME, OWNER, World
from tests.unit.api.conftest import SETTINGS


@pytest.fixture
def world() -> World:
    world = World(NOON - MINUTE)
    world.targets.behave = lambda call: Failure(RunError("http_503", "down"))
    return world


def job_service(world: World) -> JobService:
    settings = replace(SETTINGS, segments=world.segments)
    stores: Any = world
    quotas = JobQuotas(UNLIMITED, stores.jobs, stores.uses, world.clock, world.entropy)
    return JobService(
        stores,
        world.indexer,
        quotas,
        world.clock,
        world.entropy,
        settings,
        create_telemetry("api"),
    )


def run_service(world: World) -> RunService:
    jobs, settings = job_service(world), SETTINGS
    return RunService(
        jobs,
        world.runs,
        History(world.runs),
        world.queue,
        world.clock,
        world.entropy,
        settings,
        world.idempotency_records,
    )


def dead_letter_service(world: World) -> DeadLetterService:
    redriver = Redriver(world.runs, world.indexer, world.clock, world.entropy, LIFETIME)
    return DeadLetterService(
        job_service(world), world.notifications, History(world.runs), redriver, world.clock
    )


def create(world: World, backoff_seconds: int, max_attempts: int = 3, **values: Any) -> Job:
    backoff = Backoff(base_seconds=backoff_seconds, type=BackoffType.FIXED)
    retry = RetryPolicy(max_attempts=max_attempts, backoff=backoff)
    return world.create("job", "at 2026-12-01T12:00:00", retry=retry, **values)


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
    assert (first.settled, len(first.attempts)) == (Resolution.REDRIVEN, 1)
    assert (second.key, second.status, second.attempt) == (made.key, RunStatus.SUCCEEDED, 1)
    assert dead_letter_service(world).redrive(OWNER, dead.key.run_id) == second
    assert len(world.targets.calls) == 3


def test_a_cancelled_retry_of_a_fixed_delay_lets_its_job_go_on(world: World) -> None:
    """Its own message is on the wheel for hours to come."""
    world.targets.behave = lambda call: Failure(RunError("busy", "x"), retry_after_seconds=6 * 3600)
    job = world.create("job", "every 1m after finish")
    world.run_until(NOON + timedelta(seconds=10))
    run = only_run(world, job)
    assert run.status is RunStatus.RETRYING
    run_service(world).cancel(OWNER, job.job_id, run.key.run_id)
    world.targets.behave = lambda call: Success("done")
    world.run_until(NOON + timedelta(minutes=5))
    first, *others = world.history(job)
    assert (first.status, first.finished_at) == (RunStatus.CANCELLED, NOON + timedelta(seconds=11))
    assert others[0].key.fire_at == NOON + timedelta(seconds=71), "one delay after the request"
    assert [run.status for run in others] == [RunStatus.SUCCEEDED] * len(others)
    assert {run.lag_seconds for run in others} == {0}
    assert len(others) == 4


def test_the_run_that_waits_for_a_cancelled_one_is_woken(world: World) -> None:
    world.targets.behave = lambda call: Failure(RunError("busy", "x"), retry_after_seconds=3600)
    job = world.create("job", "* * * * *", overlap=Overlap.QUEUE_ONE)
    world.run_until(NOON + timedelta(minutes=3))
    (run,) = [each for each in world.history(job) if each.status is RunStatus.RETRYING]
    world.targets.behave = lambda call: Success("done")
    world.clock.set(NOON + timedelta(minutes=3, seconds=10))
    run_service(world).cancel(OWNER, job.job_id, run.key.run_id)
    world.run_until(world.clock.now())
    waited = run_of(world, replace(run.key, fire_at=run.key.fire_at + MINUTE))
    assert waited.status is RunStatus.SUCCEEDED


def test_a_job_whose_last_run_is_cancelled_is_complete(world: World) -> None:
    job = world.create("job", "at 2026-12-01T12:00:00", on_complete=OnComplete.DELETE)
    world.run_until(NOON)
    run = only_run(world, job)
    run_service(world).cancel(OWNER, job.job_id, run.key.run_id)
    world.execute()
    assert row_of(world, job).state is JobState.COMPLETED


def test_so_is_one_that_was_handed_over_during_it(world: World) -> None:
    create(world, 3600, on_complete=OnComplete.DELETE)
    world.run_until(NOON)
    hand_over(world)
    world.run_until(NOON + MINUTE)
    job = taken_of(world, "job")
    (run,) = world.runs.list(OWNER, job.renamed_from, 1).items
    run_service(world).cancel(OWNER, job.renamed_from, run.key.run_id)
    world.execute()
    assert taken_of(world, "job").state is JobState.COMPLETED


def test_nothing_is_sent_for_a_cancelled_run_that_nothing_follows(world: World) -> None:
    job = create(world, 3600)
    world.run_until(NOON)
    sent = world.queue.kept()
    run_service(world).cancel(OWNER, job.job_id, only_run(world, job).key.run_id)
    assert world.queue.kept() == sent


def test_a_payload_of_its_own_goes_with_a_run_through_retries_and_redrives(world: World) -> None:
    job = create(world, 10, max_attempts=2)
    run = run_service(world).request(OWNER, job.job_id, None, '{"day":1}')

    world.run_until(world.clock.now() + timedelta(seconds=30), ticking=False)
    dead = world.runs.get(run.key)
    assert dead is not None
    assert dead.status is RunStatus.DEAD
    made = dead_letter_service(world).redrive(OWNER, run.key.run_id)
    world.run_until(world.clock.now() + timedelta(seconds=30), ticking=False)

    own = [call for call in world.targets.calls if call.run_id in (run.key.run_id, made.key.run_id)]
    assert [call.payload for call in own] == 4 * ['{"day":1}']
    assert {call.payload for call in world.targets.calls if call not in own} <= {job.spec.payload}


def test_a_payload_of_its_own_is_rendered_where_the_job_s_is(world: World) -> None:
    job = world.create("job", "at 2026-12-01T12:00:00", template=True)

    run_service(world).request(OWNER, job.job_id, None, '{"attempt":"{{attempt}}"}')
    world.execute()

    assert world.targets.calls[-1].payload == '{"attempt":1}'


def test_a_run_whose_own_payload_has_expired_is_skipped_and_says_so(world: World) -> None:
    job = create(world, 10)
    run = run_service(world).request(OWNER, job.job_id, None, "1")
    record = world.idempotency_records.get(OWNER, record_key_of_run(run.key))
    assert record is not None
    assert world.idempotency_records.delete(OWNER, record.key, record.revision)

    world.execute()

    row = world.runs.get(run.key)
    assert row is not None
    assert (row.status, world.targets.calls) == (RunStatus.SKIPPED, [])
    assert "has expired" in (row.note or "")
