"""Runs that messages of several generations have claimed, and whose executors die again."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from carillon.domain.job import Generation, Job
from carillon.domain.message import Message, Missed
from carillon.domain.policies import CatchUp, RetryPolicy
from carillon.domain.run import RunError, RunStatus
from carillon.domain.spec.completion_spec import CompletionSpec
from carillon.domain.targets import WebhookTarget
from carillon.domain.wheel.entry import message_of
from carillon.errors import StoreUnavailableError
from carillon.executor.batch import Handled
from carillon.executor.targets import Failure
from carillon.schedules import CalendarRule, parse_schedule
from tests.support.jobs import job_with
from tests.unit.executor.kit import LEASE_SECONDS, MINUTE, NOON, World
from tests.unit.faults import preceded

MOMENT = NOON + timedelta(minutes=1)
REPORTING = WebhookTarget(url="https://a.example/", completion=CompletionSpec(within="1h"))
RETRY = RetryPolicy(max_attempts=9)


@pytest.fixture
def job(world: World) -> Job:
    return world.create("job", "* * * * *", retry=RETRY)


def of(job: Job) -> Message:
    """The message of the occurrence at `MOMENT`."""
    return message_of(job, MOMENT)


def test_a_run_that_was_announced_under_another_generation_is_gone_on_with(world: World) -> None:
    """Of a run that ends by a report the row is put before its call."""
    first = world.create("job", "* * * * *", retry=RETRY, target=REPORTING)
    second = world.new_generation(first)
    world.due(second)
    world.crash_in_call(of(first))
    assert world.run_of(of(first)).generation_id == second.generation.generation_id

    world.new_generation(second)
    world.clock.advance(LEASE_SECONDS)
    assert world.handle(of(first)).handled is Handled.RAN
    assert world.run_of(of(first)).status is RunStatus.SUCCEEDED


def test_who_is_put_off_leaves_the_attempt_that_died_to_the_generation_before(
    world: World, job: Job
) -> None:
    """That does not count any more when its message comes, but the one that was put off does: the
    run goes on as that one's, and no attempt is made twice."""
    world.due(job)
    world.crash_in_call(of(job))
    second = committed(world, job, NOON)
    world.clock.advance(LEASE_SECONDS)
    put_off = world.handle(of(second), seconds=2)
    assert put_off.reason == "too little time is left in this process"
    committed(world, second, world.clock.now())

    assert world.handle(of(job)).handled is Handled.RAN
    assert world.handle(put_off.message).handled is Handled.REPEATED
    assert [call.attempt for call in world.targets.calls] == [1, 2]


def test_so_is_one_that_was_announced_in_place_of_another(world: World) -> None:
    first = world.create("job", "* * * * *", retry=RETRY, target=REPORTING)
    second = world.new_generation(first)
    world.due(second)
    with world.dying(world.jobs, "get"):
        world.handle(of(second))
    world.clock.advance(LEASE_SECONDS)
    with world.dying(world.jobs, "get"):
        world.handle(of(first))
    world.new_generation(second)
    world.clock.advance(LEASE_SECONDS)
    world.crash_in_call(of(first))

    world.clock.advance(LEASE_SECONDS)
    assert world.handle(of(first)).handled is Handled.RAN
    assert world.run_of(of(first)).status is RunStatus.SUCCEEDED


def test_what_is_adopted_twice_is_known_by_all(world: World, job: Job) -> None:
    second = world.new_generation(job)
    caught_up = replace(of(job), in_time=True)
    world.due(second)
    with world.dying(world.jobs, "get"):
        world.handle(of(second))
    world.clock.advance(LEASE_SECONDS)
    with world.dying(world.jobs, "get"):
        world.handle(caught_up)
    committed(world, second, NOON)
    world.clock.advance(LEASE_SECONDS)
    world.crash_in_call(caught_up)
    run = world.run_of(of(job))
    known = {run.generation_id, *run.other_generations}
    assert job.generation.generation_id in known


def test_a_closed_day_leaves_no_row_to_a_message_that_never_comes(world: World) -> None:
    first, second = moving(world)
    world.due(second)
    world.crash_in_call(of(first))
    world.close("days", f"{NOON:%Y-%m-%d}")
    world.clock.advance(LEASE_SECONDS)
    assert world.handle(of(first)).handled is Handled.DEFERRED
    assert world.runs.get(of(first).key) is None


def test_what_was_announced_on_an_open_day_is_moved_to_no_other(world: World) -> None:
    """Its target has begun, and may have reported: the row was removed, as if it never had."""
    _, job = moving(world, target=REPORTING)
    world.due(job)
    world.crash_in_call(of(job))
    world.close("days", f"{NOON:%Y-%m-%d}")
    world.clock.advance(LEASE_SECONDS)
    assert world.handle(of(job)).handled is Handled.RAN
    assert world.run_of(of(job)).attempt == 2


def test_nor_does_it_go_with_a_fixed_delay_that_was_changed_meanwhile(world: World) -> None:
    """The change had begun before the run, and was committed during its call."""
    first = world.create("job", "every 1m after finish", retry=RETRY, target=REPORTING)
    world.due(first)
    world.crash_in_call(of(first))
    changed = committed(world, first, MOMENT - timedelta(seconds=1))
    assert world.jobs.replace(
        job_with(changed, schedule=parse_schedule("every 2m after finish"), revision=3), 2
    )
    world.clock.advance(LEASE_SECONDS)
    assert world.handle(of(first)).handled is Handled.RAN
    assert world.run_of(of(first)).attempt == 2


def test_nor_is_it_after_another_executor_has_died_before_its_call(world: World) -> None:
    """The row has the announcement among its attempts only, by then."""
    _, job = moving(world, target=REPORTING)
    world.due(job)
    world.crash_in_call(of(job))
    world.clock.advance(LEASE_SECONDS)
    with world.dying(world.jobs, "get"):
        world.handle(of(job))
    world.close("days", f"{NOON:%Y-%m-%d}")
    world.clock.advance(LEASE_SECONDS)
    assert world.handle(of(job)).handled is Handled.RAN
    assert world.run_of(of(job)).attempt == 3


@pytest.mark.parametrize("released", [False, True])
def test_who_was_never_committed_leaves_what_was_announced_to_the_fixed_delay(
    world: World, released: bool
) -> None:
    """Two changes began in one second, and so would have the first occurrence at one instant. Under
    the one that lost nothing would come after the run."""
    job = world.create("job", "every 1m after finish", retry=RETRY, target=REPORTING)
    lost = replace(of(job), generation_id=world.entropy.new_id(NOON))
    world.due(job)
    world.crash_in_call(of(job))
    world.clock.advance(LEASE_SECONDS)
    world.targets.behave = lambda call: Failure(RunError("busy", "later"))
    if released:
        with world.failing(world.jobs, "get", times=1), pytest.raises(StoreUnavailableError):
            world.handle(lost)
    world.handle(lost)
    world.handle(of(job))
    (retry,) = world.drain()
    assert retry == replace(of(job), attempt=3, due_at=retry.due_at)


def test_a_write_that_fails_before_the_call_is_no_attempt(world: World, job: Job) -> None:
    second = world.new_generation(job)
    world.due(second)
    with world.failing(world.runs, "finish", times=1), pytest.raises(StoreUnavailableError):
        world.handle(of(job))
    assert world.handle(of(job)).handled is Handled.RAN
    assert world.run_of(of(job)).attempt == 1


def test_what_is_moved_in_place_of_another_comes_as_that(world: World) -> None:
    """The own generation of the message does not count on the other day either."""
    first, second = moving(world)
    world.due(second)
    world.crash_in_call(of(first))
    world.clock.advance(LEASE_SECONDS)
    world.new_generation(second, "0 3 * * *")
    world.close("days", f"{NOON:%Y-%m-%d}")
    moved = world.handle(of(first))
    assert moved.handled is Handled.DEFERRED
    world.clock.set(moved.message.due_at)
    assert world.handle(moved.message).handled is Handled.RAN
    assert world.runs.get(of(first).key) is None


def standing_for_others(job: Job, minutes: int) -> Message:
    """The message by which a tick catches up on the occurrences since noon."""
    message = message_of(job, NOON + timedelta(minutes=minutes))
    return replace(message, missed=Missed(NOON, CatchUp.LATEST, job.schedule), in_time=False)


def test_what_stands_for_others_leaves_no_attempt_that_died_though_its_generation_ended_before(
    world: World, job: Job
) -> None:
    """A change that was long under way: others are sent in its place. The row was RUNNING for ever,
    and no other run of a job whose `overlap` forbids it could start."""
    late = standing_for_others(job, minutes=5)
    world.due(job, minutes=5)
    world.crash_in_call(late)
    changed = job.in_new_generation(
        Generation(world.entropy.new_id(world.clock.now()), NOON + timedelta(minutes=3)), NOON
    )
    changed = job_with(changed, schedule=parse_schedule("0 3 * * *"))
    assert world.jobs.replace(changed, job.revision)
    world.clock.advance(LEASE_SECONDS)
    assert world.handle(late).reason == "changed"
    assert world.run_of(late).status is RunStatus.SKIPPED
    (instead,) = world.drain()
    assert instead.key.fire_at == NOON + timedelta(minutes=3)


def test_what_follows_from_its_end_is_done_though_its_generation_ended_before(
    world: World, job: Job
) -> None:
    back = WebhookTarget(url="https://example.com/done")
    job = world.change(job, on_success=back)
    late = standing_for_others(job, minutes=5)
    world.due(job, minutes=5)
    with world.dying(world.queue, "send"):
        world.handle(late)
    committed(world, job, NOON + timedelta(minutes=3))
    assert world.handle(late).handled is Handled.REPEATED
    assert late.key.callback in [message.key for message in world.drain()]


def test_what_stands_for_others_is_cut_off_though_its_generation_ends_under_its_claim(
    world: World, job: Job
) -> None:
    """A change that was long under way is committed between two reads of the job. The message was
    dropped, and what it stood for had neither run nor row."""
    late = standing_for_others(job, minutes=5)
    world.due(job, minutes=5)
    with preceded(world.runs, "claim", lambda: committed(world, job, NOON + 3 * MINUTE)):
        assert world.handle(late).handled is Handled.DROPPED
    assert world.runs.get(late.key) is None
    (instead,) = world.drain()
    assert instead.key.fire_at == NOON + 3 * MINUTE
    assert world.handle(instead).handled is Handled.RAN
    (missed,) = [row for row in world.history(job) if row.covers_from]
    assert (missed.covers_from, missed.key.fire_at) == (NOON + MINUTE, NOON + 2 * MINUTE)


def committed(world: World, job: Job, from_at: datetime) -> Job:
    """The job in a new generation, which is committed now."""
    now = world.clock.now()
    changed = job.in_new_generation(Generation(world.entropy.new_id(now), from_at), now)
    assert world.jobs.replace(changed, job.revision)
    return changed


def moving(world: World, **settings: Any) -> tuple[Job, Job]:
    """Two generations of a job whose calendar has no closed day yet."""
    world.close("days")
    use = ("days", CalendarRule.NEXT_BUSINESS_DAY)
    first = world.create("job", "1 12 * * *", retry=RETRY, calendar=use, **settings)
    return first, world.new_generation(first)
