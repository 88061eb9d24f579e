"""What the executor does with the messages of operations, one at a time."""

from dataclasses import replace
from datetime import timedelta

import pytest

from carillon.domain.job import Job, Lane
from carillon.domain.message import Message, decode, encode
from carillon.domain.operation import Operation, OperationKind, OperationState
from carillon.domain.run import RunKind
from carillon.errors import HeldError, RunAloneError, StoreUnavailableError
from carillon.executor.batch import Handled, Report
from carillon.executor.operations.steps import MOST_TRIES
from tests.support.operation_kit import begin, now_of, put_dead
from tests.support.world import FUNCTION_SECONDS, LIFETIME, OWNER
from tests.unit.executor.kit import NOON, World


@pytest.fixture
def job(world: World) -> Job:
    return world.create("job", "0 0 1 1 *")


@pytest.fixture
def operation(world: World, job: Job) -> Operation:
    """A discard of 30 dead letters, ten in each step; its message is taken off the queue."""
    put_dead(world, job, 30)
    begun = begin(world, OperationKind.DISCARD, 20)
    world.drain()
    world.clock.advance(1)
    return begun


def order(world: World, operation: Operation) -> Message:
    return operation.step_message(world.clock.now())


def handled(world: World, message: Message, seconds_left: float = FUNCTION_SECONDS) -> Handled:
    return world.handle(message, seconds_left).handled


def handle_dead(world: World, operation: Operation) -> Report:
    """What the dead-letter queue's consumer does with the order of the present step."""
    report = world.handle_dead(order(world, operation))
    world.drain()
    return report


def test_the_order_survives_its_queue(world: World, operation: Operation) -> None:
    message = order(world, operation)

    assert decode(encode(message)) == message
    assert (message.key.kind, message.key.job_id) == (RunKind.OPERATION, operation.operation_id)
    assert (message.lane, message.attempt, message.generation_id) == (Lane.LOW, 1, "")


def test_a_step_is_recorded_and_the_next_one_ordered(world: World, operation: Operation) -> None:
    assert handled(world, order(world, operation)) is Handled.RAN

    after = now_of(world, operation)
    assert (after.step, after.done, after.busy_until) == (2, 10, None)
    assert after.state is OperationState.RUNNING
    (following,) = world.drain()
    assert following.attempt == 2
    assert following.due_at == world.clock.now() + timedelta(seconds=30)


def test_the_last_step_orders_nothing(world: World, operation: Operation) -> None:
    for _ in range(3):
        handled(world, order(world, now_of(world, operation)))
        world.drain()

    ended = now_of(world, operation)
    assert (ended.state, ended.done) == (OperationState.SUCCEEDED, 30)
    assert ended.expires_at >= world.clock.now() + LIFETIME
    assert handled(world, order(world, ended)) is Handled.REPEATED
    assert world.drain() == []


def test_an_early_order_waits(world: World, operation: Operation) -> None:
    now = world.clock.now()
    early = replace(order(world, operation), due_at=now + timedelta(seconds=20))

    assert handled(world, early) is Handled.DEFERRED
    assert [kept.visible_at for kept in world.queue.kept()] == [early.due_at]
    assert now_of(world, operation) == operation
    almost = replace(early, due_at=now + timedelta(seconds=1.5))
    assert handled(world, almost) is Handled.RAN
    assert world.clock.now() == almost.due_at


def test_no_two_do_a_step_side_by_side(world: World, operation: Operation) -> None:
    """The other's process may live for 65 s more; then its step is anybody's."""
    held = replace(operation, revision=2, busy_until=world.clock.now() + timedelta(seconds=65))
    assert world.operations.put(held, 1)

    assert handled(world, order(world, operation)) is Handled.DEFERRED
    assert [kept.visible_at for kept in world.queue.kept()] == [held.busy_until]
    world.clock.advance(65)
    assert handled(world, order(world, operation)) is Handled.RAN


def test_a_step_is_held_longer_than_its_process_can_live(
    world: World, operation: Operation, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Operation] = []
    listed = world.runs.dead_letters

    def look(*args: object) -> object:
        seen.append(now_of(world, operation))
        return listed(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(world.runs, "dead_letters", look)
    handled(world, order(world, operation))

    assert seen[0].busy_until is not None
    assert seen[0].busy_until > world.clock.now() + timedelta(seconds=FUNCTION_SECONDS)


def test_a_step_needs_time_in_its_process(world: World, operation: Operation) -> None:
    assert handled(world, order(world, operation), seconds_left=2) is Handled.DEFERRED
    assert now_of(world, operation) == operation
    assert len(world.drain()) == 1


def test_an_order_before_its_operation_s_row_waits_for_it(world: World) -> None:
    now = world.clock.now()
    operation = Operation(
        OWNER, "0" * 26, OperationKind.DISCARD, now, now, now + LIFETIME, per_minute=60
    )
    assert handled(world, order(world, operation)) is Handled.DEFERRED
    (message,) = world.drain()
    world.clock.advance(60)
    assert handled(world, message) is Handled.DROPPED
    assert world.drain() == []


def test_a_step_that_kills_executors_fails_its_operation(
    world: World, operation: Operation
) -> None:
    """Five of them; until then its order goes back to the lane, and is tried alone."""
    for died in range(1, MOST_TRIES + 1):
        assert handle_dead(world, operation).handled is Handled.SENT_BACK
        with world.dying(world.runs, "dead_letters"):
            world.handle(order(world, operation))
        assert now_of(world, operation).tries == died
        world.clock.advance(70)
        with pytest.raises(RunAloneError):
            world.handle(order(world, operation), alone=False)

    assert handle_dead(world, operation).handled is Handled.RAN
    failed = now_of(world, operation)
    assert failed.state is OperationState.FAILED
    assert failed.note == "executors died on step 1: start another operation to go on"
    assert handle_dead(world, operation).handled is Handled.REPEATED


def test_a_step_that_nobody_could_begin_for_ten_days_fails_its_operation(
    world: World, operation: Operation
) -> None:
    message = order(world, operation)
    world.clock.set(message.due_at + timedelta(days=10))
    assert world.handle_dead(message).handled is Handled.SENT_BACK
    world.clock.advance(1)
    assert world.handle_dead(message).handled is Handled.RAN
    failed = now_of(world, operation)
    assert failed.note == "no executor could begin step 1: start another operation to go on"


def test_a_store_that_fails_under_a_step_is_no_executor_that_died(
    world: World, operation: Operation
) -> None:

    with world.failing(world.runs, "dead_letters"), pytest.raises(StoreUnavailableError):
        world.handle(order(world, operation))
    assert (now_of(world, operation).tries, now_of(world, operation).busy_until) == (0, None)
    assert handled(world, order(world, operation)) is Handled.RAN


def test_a_dead_order_waits_while_its_step_may_be_under_way(
    world: World, operation: Operation
) -> None:
    held = replace(operation, revision=2, busy_until=world.clock.now() + timedelta(seconds=9))
    assert world.operations.put(held, 1)

    with pytest.raises(HeldError):
        handle_dead(world, operation)
    assert (now_of(world, operation), world.queue.kept()) == (held, [])


def test_a_dead_order_of_an_earlier_step_fails_nothing(world: World, operation: Operation) -> None:
    first = order(world, operation)
    handled(world, first)
    (second,) = world.drain()
    world.clock.set(second.due_at)
    handled(world, second)
    world.drain()

    report = world.handle_dead(first)

    assert report.handled is Handled.REPEATED
    assert now_of(world, operation).state is OperationState.RUNNING


@pytest.mark.parametrize("per_minute", [1, 2, 59, 60, 1000])
def test_two_steps_make_a_minute(world: World, operation: Operation, per_minute: int) -> None:
    paced = [replace(operation, per_minute=per_minute, step=step) for step in (1, 2, 3)]

    assert paced[0].step_size + paced[1].step_size == per_minute
    assert paced[0].step_size == paced[2].step_size
    places = [paced[0].due_at(n, NOON) for n in range(paced[0].step_size)]
    assert places == sorted(places)
    assert places[0] >= NOON
    assert places[-1] < NOON + timedelta(seconds=30)


def test_a_doubled_order_waits_for_the_next_look_at_a_paused_job(world: World, job: Job) -> None:
    """It must not order another one before that has had its time."""
    world.pause(job)
    world.clock.advance(86_400)
    span = {"from_at": NOON - timedelta(days=1), "until_at": NOON}
    holding = begin(world, OperationKind.BACKFILL, 60, job_id=job.job_id, **span)
    world.drain()
    world.clock.advance(1)
    assert handled(world, order(world, holding)) is Handled.RAN
    (following,) = world.drain()
    assert following.due_at == world.clock.now() + timedelta(seconds=600)
    assert handled(world, order(world, holding)) is Handled.DEFERRED
    (kept,) = world.queue.kept()
    assert kept.visible_at > following.due_at


def test_dead_letters_of_a_job_that_cannot_be_read_hold_up_no_others(
    world: World, job: Job
) -> None:
    """Those that fired before them would never have been redriven."""
    bad = world.create("bad", "0 12 * * *")
    put_dead(world, bad, 2)
    put_dead(world, job, 3)
    world.jobs.spoil(bad.job_id)
    begun = begin(world, OperationKind.REDRIVE, 600)
    world.drain()
    world.clock.advance(1)

    assert handled(world, order(world, begun)) is Handled.RAN
    ended = now_of(world, begun)
    assert (ended.state, ended.done, ended.passed_over) == (OperationState.SUCCEEDED, 3, 2)


def test_dead_letters_that_the_list_cannot_read_are_passed_over(
    world: World, operation: Operation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else an operation that has succeeded says that it has left nothing."""
    page = replace(world.runs.dead_letters(OWNER, 5), next_cursor=None, unreadable={"x": "spoilt"})
    monkeypatch.setattr(world.runs, "dead_letters", lambda *asked: page)
    assert handled(world, order(world, operation)) is Handled.RAN
    ended = now_of(world, operation)
    assert (ended.state, ended.done, ended.passed_over) == (OperationState.SUCCEEDED, 5, 1)
