"""`every … after finish` when messages come twice: a duplicate dies out within one delay."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from carillon.domain.execution.next_run import SETTLED
from carillon.domain.job import Job
from carillon.domain.message import Message
from carillon.domain.run import RunError, RunStatus
from carillon.domain.wheel.entry import message_of
from carillon.executor.batch import Handled
from carillon.executor.targets import Failure, Success
from carillon.schedules import Delay
from tests.simulation.story import MIDNIGHT, MINUTE, empty_queue
from tests.support.world import FUNCTION_SECONDS, World

DELAYS = {
    "every 1m after finish": MINUTE,
    "every 10m after finish": timedelta(minutes=10),
    "every 17m after finish": timedelta(minutes=17),
    "every 40m after finish": timedelta(minutes=40),
}


def coming(world: World, job: Job) -> list[datetime]:
    """The fire times of the messages that wait for the job: in the queue, or on the wheel from the
    minute of the clock on."""
    waiting = [kept.message for kept in world.queue.kept()]
    horizon = world.indexer.control(job.segment).horizon
    for (segment, slot), entries in world.wheel._slots.items():
        if segment == job.segment and slot.number > horizon:
            waiting += [entry.message for entry in entries.values() if entry.message is not None]
    return [message.key.fire_at for message in waiting]


def double(world: World, messages: Iterable[Message]) -> None:
    for message in messages:
        world.queue.send([message], [message.delay_seconds(world.clock.now())])


@pytest.mark.parametrize("schedule", DELAYS)
def test_duplicates_do_not_stay_with_the_chain(schedule: str) -> None:
    delay = DELAYS[schedule]
    world = World(MIDNIGHT)
    job = world.create("chain", schedule)
    world.run_until(MIDNIGHT + delay - timedelta(seconds=30))
    double(world, 10 * [message_of(job, MIDNIGHT + delay)])
    world.run_until(MIDNIGHT + 2 * delay - timedelta(seconds=30))
    assert set(coming(world, job)) <= {MIDNIGHT + delay, MIDNIGHT + 2 * delay}
    world.run_until(MIDNIGHT + 3 * delay - timedelta(seconds=30))
    assert coming(world, job) == [MIDNIGHT + 3 * delay]
    assert world.fired(job) == [MIDNIGHT + delay, MIDNIGHT + 2 * delay]


@pytest.mark.parametrize("schedule", ["every 1s after finish", "every 3s after finish"])
def test_a_short_delay_has_few_messages_under_way(schedule: str) -> None:
    """Its first occurrence is sent before and after the commit."""
    world = World(MIDNIGHT)
    world.tick()
    job = world.create("chain", schedule)
    world.run_until(MIDNIGHT + timedelta(minutes=2))
    assert len(world.queue.kept()) == 1
    seconds = job.schedule.delay_seconds if isinstance(job.schedule, Delay) else 0
    assert len(world.fired(job)) == 120 // seconds
    assert {run.lag_seconds for run in world.history(job)} == {0.0}


def test_a_queue_that_doubles_everything_does_not_fill() -> None:
    world = World(MIDNIGHT)
    send = world.queue.send

    def twice(messages: Sequence[Message], delays: Sequence[float], *until: Any) -> None:
        send(messages, delays)
        send(messages, delays)

    world.queue.send = twice  # type: ignore[method-assign, assignment]
    job = world.create("chain", "every 1m after finish")
    world.run_until(MIDNIGHT + timedelta(minutes=30, seconds=30))
    assert world.fired(job) == [MIDNIGHT + timedelta(minutes=n) for n in range(1, 31)]
    assert len(world.queue.kept()) <= 6


class TestAMessageThatFindsItsRunEnded:
    """The executor of the run may have died before it sent the next one: nobody can tell."""

    @pytest.fixture
    def world(self) -> World:
        return World(MIDNIGHT)

    @pytest.fixture
    def job(self, world: World) -> Job:
        return world.create("chain", "every 10m after finish")

    def ended(self, world: World, job: Job) -> Message:
        """The message of the first run, which is over; nothing follows from it yet."""
        message = message_of(job, MIDNIGHT + timedelta(minutes=10))
        world.run_until(message.due_at)
        empty_queue(world)
        assert [run.status for run in world.history(job)] == [RunStatus.SUCCEEDED]
        return message

    def handled(self, world: World, message: Message) -> Handled:
        ends_at = world.clock.now() + timedelta(seconds=FUNCTION_SECONDS)
        return world.executor.handle(message, ends_at).handled

    def test_looks_again_when_the_next_one_must_have_begun(self, world: World, job: Job) -> None:
        message = self.ended(world, job)
        next_at = MIDNIGHT + timedelta(minutes=20)
        world.clock.set(next_at - timedelta(minutes=5))
        assert self.handled(world, message) is Handled.DEFERRED
        (kept,) = world.queue.kept()
        assert (kept.message, kept.visible_at) == (message, next_at + SETTLED)

    def test_sends_the_next_one_if_there_is_none_then(self, world: World, job: Job) -> None:
        message = self.ended(world, job)
        world.clock.set(MIDNIGHT + timedelta(minutes=20) + SETTLED)
        assert self.handled(world, message) is Handled.REPEATED
        world.run_until(MIDNIGHT + timedelta(minutes=21))
        assert world.fired(job) == [MIDNIGHT + timedelta(minutes=10 * n) for n in (1, 2)]

    def test_of_another_generation_orders_no_retry(self, world: World, job: Job) -> None:
        """It would take the place of the one that the chain goes on with."""
        busy = Failure(RunError("busy", "x"), retry_after_seconds=30)
        world.targets.behave = lambda call: busy if call.attempt == 1 else Success(None)
        message = message_of(job, MIDNIGHT + timedelta(minutes=10))
        world.run_until(message.due_at)
        sent = world.queue.kept()
        noise = replace(message, generation_id=world.entropy.new_id(MIDNIGHT), after_finish=False)
        assert self.handled(world, noise) is Handled.REPEATED
        assert world.queue.kept() == sent
        assert self.handled(world, message) is Handled.REPEATED
        assert world.queue.kept() == sent, "the retry was sent before the row could say so"

    def test_is_of_no_use_once_the_next_one_has_begun(self, world: World, job: Job) -> None:
        message = self.ended(world, job)
        double(world, [message_of(job, MIDNIGHT + timedelta(minutes=20))])
        world.run_until(MIDNIGHT + timedelta(minutes=21))
        (kept,) = world.queue.kept()
        assert self.handled(world, message) is Handled.REPEATED
        assert world.queue.kept() == [kept]

    def test_puts_a_far_one_on_the_wheel_where_there_is_but_one_of_it(self, world: World) -> None:
        job = world.create("far", "every 40m after finish")
        world.run_until(MIDNIGHT + timedelta(minutes=41))
        message = message_of(job, MIDNIGHT + timedelta(minutes=40))
        before = coming(world, job)
        assert self.handled(world, message) is Handled.REPEATED
        assert coming(world, job) == before
        assert MIDNIGHT + timedelta(minutes=80) in before

    def test_goes_on_nowhere_when_the_job_is_paused(self, world: World, job: Job) -> None:
        message = self.ended(world, job)
        world.pause(job)
        assert self.handled(world, message) is Handled.REPEATED
        assert world.queue.kept() == []
