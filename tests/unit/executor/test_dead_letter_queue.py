"""What the consumer of a lane's dead-letter queue does."""

from dataclasses import replace
from datetime import timedelta

import pytest

from carillon.domain.job import Job
from carillon.domain.message import Message
from carillon.domain.policies import RetryPolicy
from carillon.domain.run import RunError, RunStatus
from carillon.errors import HeldError
from carillon.executor.batch import Handled
from carillon.executor.targets import Failure
from tests.unit.executor.kit import LEASE_SECONDS, World


@pytest.fixture
def job(world: World) -> Job:
    return world.create("job", "* * * * *", retry=RetryPolicy(max_attempts=3))


def sent_back(world: World, message: Message) -> Message:
    """What the consumer sends back in the place of the message; it calls nobody."""
    report = world.handle_dead(message)
    assert report.handled is Handled.SENT_BACK
    kept = world.queue.kept()[-1]
    world.queue.delete(kept.receipt)
    assert kept.message == report.message
    assert kept.message.returns == message.returns + 1
    return kept.message


def test_a_run_that_was_never_begun_goes_back_to_its_lane_and_runs(world: World, job: Job) -> None:
    """On AWS a throttled invocation counts as a reception: five of them were a dead letter."""
    message = world.due(job)
    again = sent_back(world, message)
    assert again == replace(message, returns=1)
    assert world.runs.get(message.key) is None
    assert world.handle(again).handled is Handled.RAN
    assert world.run_of(message).attempt == 1


def test_each_return_waits_longer_up_to_a_quarter_of_an_hour(world: World, job: Job) -> None:
    message, delays = world.due(job), []
    for _ in range(7):
        message = world.handle_dead(message).message
        (kept,) = world.queue.kept()
        world.queue.delete(kept.receipt)
        delays.append((kept.visible_at - world.clock.now()).total_seconds())
    assert delays == [30, 60, 120, 240, 480, 900, 900]


def test_a_live_lease_keeps_the_message(world: World, job: Job) -> None:
    message = world.due(job)
    world.crash_in_call(message)
    before = world.run_of(message)
    with pytest.raises(HeldError):
        world.handle_dead(message)
    assert (world.run_of(message), world.queue.kept()) == (before, [])


def test_an_attempt_that_died_is_followed_by_another_as_long_as_any_is_left(world: World) -> None:
    job = world.create("dies", "* * * * *", retry=RetryPolicy(max_attempts=2))
    message = world.due(job)
    world.crash_in_call(message)
    world.clock.advance(LEASE_SECONDS)
    again = sent_back(world, message)
    assert world.run_of(message).attempt == 1

    world.crash_in_call(again)
    world.clock.advance(LEASE_SECONDS)
    assert world.handle_dead(again).handled is Handled.RAN
    run = world.run_of(message)
    assert (run.status, run.reason) == (RunStatus.DEAD, "executor_died")
    assert len(run.attempts) == 2


def test_a_retry_that_was_never_begun_goes_back_to_its_lane(world: World, job: Job) -> None:
    message = world.due(job)
    world.targets.behave = lambda call: Failure(RunError("busy", "later"))
    world.handle(message)
    (retry,) = (kept for kept in world.queue.kept() if kept.message.attempt == 2)
    world.queue.delete(retry.receipt)
    world.clock.set(retry.message.due_at)
    sent_back(world, retry.message)
    assert world.run_of(message).status is RunStatus.RETRYING


@pytest.mark.parametrize("fails", [False, True])
def test_what_could_not_be_begun_for_ten_days_is_dead_as_never_started(
    world: World, job: Job, fails: bool
) -> None:
    message = world.due(job)
    if fails:
        world.targets.behave = lambda call: Failure(RunError("busy", "later"))
        world.handle(message)
        message = next(k.message for k in world.queue.kept() if k.message.attempt == 2)
    world.clock.set(message.due_at + timedelta(days=10))
    message = sent_back(world, message)
    world.clock.advance(1)
    assert world.handle_dead(message).handled is Handled.RAN
    run = world.run_of(message)
    assert (run.status, run.reason) == (RunStatus.DEAD, "never_started")
    assert run.error is not None
    assert run.error.kind == ("busy" if fails else "never_started")
    assert (len(run.attempts), run.attempt_started_at) == (int(fails), None)
    assert len(world.targets.calls) == int(fails)


def test_a_retrying_run_is_left_to_the_message_of_its_retry(world: World, job: Job) -> None:
    message = world.due(job)
    world.targets.behave = lambda call: Failure(RunError("busy", "later"))
    world.handle(message)
    before = world.run_of(message)
    assert world.handle_dead(message) is not None
    assert world.run_of(message) == before
    (retry,) = world.queue.kept()
    assert retry.message.attempt == 2


def test_a_finished_run_is_left_alone(world: World, job: Job) -> None:
    message = world.due(job)
    world.handle(message)
    before = world.run_of(message)
    report = world.handle_dead(message)
    assert report.handled is Handled.REPEATED
    assert world.run_of(message) == before


def test_a_paused_jobs_run_is_skipped_not_dead(world: World, job: Job) -> None:
    message = world.due(job)
    world.pause(job)
    world.clock.advance(11 * 86_400)
    world.handle_dead(message)
    assert world.run_of(message).status is RunStatus.SKIPPED
