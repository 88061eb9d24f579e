"""`every … after finish`: each occurrence one delay after the end of the run before it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from carillon.domain.execution.next_run import SETTLED
from carillon.domain.job import Job, Lane
from carillon.domain.message import Message
from carillon.domain.policies import Backoff, RetryPolicy
from carillon.domain.run import Run, RunError, RunStatus
from carillon.domain.wheel.entry import message_of
from carillon.executor.batch import Handled
from carillon.executor.targets import Call, Failure, Outcome, Success
from carillon.schedules import CalendarRule, Delay
from tests.simulation.stories.story import HOUR, MIDNIGHT, MINUTE, SECOND, empty_queue
from tests.support.world import FUNCTION_SECONDS, World, times

SHORT, LONG = "every 10m after finish", "every 40m after finish"
"""A delay that the queue can bear, and one that goes over the wheel."""


def taking(world: World, seconds: float) -> Callable[[Call], Outcome]:
    """A target that takes its time."""

    def call(call: Call) -> Outcome:
        world.clock.advance(seconds)
        return Success(None)

    return call


def chain_of(world: World, job: Job) -> list[Run]:
    """The job's runs, each of which began one delay after the end of the one before it."""
    history = world.history(job)
    delay_of = {SHORT: timedelta(minutes=10), LONG: timedelta(minutes=40)}[job.schedule.text]
    for before, after in pairwise(history):
        assert before.finished_at is not None
        wait = after.key.fire_at - before.finished_at
        assert delay_of <= wait < delay_of + SECOND, "rounded up to a second"
    return history


@pytest.mark.parametrize("seconds", [0, -40])
@pytest.mark.parametrize("schedule", [SHORT, LONG])
def test_a_change_at_the_instant_of_the_creation_or_by_a_clock_behind_leaves_one_chain(
    schedule: str, seconds: int
) -> None:
    """Found by seed 77005498: the old generation's message took the new one for no later than
    itself, and its skip ended the new chain."""
    for seed in range(3):
        world = World(MIDNIGHT, seed=seed)
        job = world.create("chain", schedule)
        world.clock.advance(seconds)
        changed = world.new_generation(job, priority=Lane.HIGH)
        world.run_until(MIDNIGHT + timedelta(hours=2))
        assert {run.status for run in chain_of(world, changed)} == {RunStatus.SUCCEEDED}
        assert len(world.fired(changed)) == (12 if schedule == SHORT else 3)


@pytest.mark.parametrize("schedule", [SHORT, LONG])
def test_the_delay_counts_from_the_end_of_the_run(schedule: str) -> None:
    world = World(MIDNIGHT)
    world.targets.behave = taking(world, 90.5)
    job = world.create("chain", schedule)
    world.run_until(MIDNIGHT + timedelta(hours=3))
    history = chain_of(world, job)
    assert len(history) == (15 if schedule == SHORT else 4)
    first, second = world.fired(job)[:2]
    delay = timedelta(minutes=10 if schedule == SHORT else 40)
    assert first == MIDNIGHT + delay
    assert second == first + timedelta(seconds=91) + delay
    assert {run.lag_seconds for run in history} == {0.0}


@pytest.mark.parametrize("schedule", [SHORT, LONG])
def test_retries_belong_to_the_run_and_a_dead_one_does_not_end_the_chain(schedule: str) -> None:
    world = World(MIDNIGHT)
    world.targets.behave = lambda call: Failure(RunError("busy", "later"))
    policy = RetryPolicy(2, Backoff(base_seconds=60, factor=1, cap_seconds=60))
    job = world.create("chain", schedule, retry=policy)
    world.run_until(MIDNIGHT + timedelta(hours=2, minutes=30))
    history = chain_of(world, job)
    assert {(run.status, run.attempt) for run in history[:2]} == {(RunStatus.DEAD, 2)}
    assert len(history) > 2


def test_an_executor_that_died_for_good_leaves_the_chain_to_the_dead_letter_consumer() -> None:
    world = World(MIDNIGHT)
    job = world.create("chain", SHORT)
    world.run_until(MIDNIGHT + timedelta(minutes=9, seconds=59))
    (kept,) = world.queue.kept()
    world.queue.delete(kept.receipt)
    world.clock.advance(11 * 86_400)
    ends_at = world.clock.now() + timedelta(seconds=FUNCTION_SECONDS)
    assert world.executor.handle_dead(kept.message, ends_at).handled is Handled.RAN
    world.run_until(ends_at + timedelta(minutes=15))
    dead, *others = chain_of(world, job)
    assert (dead.status, dead.reason) == (RunStatus.DEAD, "never_started")
    assert RunStatus.SUCCEEDED in {run.status for run in others}


@pytest.mark.parametrize("schedule", [SHORT, LONG])
def test_a_pause_ends_the_chain_and_a_resume_begins_one_only(schedule: str) -> None:
    world = World(MIDNIGHT)
    job = world.create("chain", schedule)
    delay = timedelta(minutes=10 if schedule == SHORT else 40)
    world.run_until(MIDNIGHT + delay + timedelta(minutes=5))
    paused = world.pause(job)
    world.run_until(MIDNIGHT + 2 * delay - timedelta(minutes=2))
    resumed_at = world.clock.now()
    world.new_generation(paused)
    world.run_until(resumed_at + delay + timedelta(seconds=30))
    assert world.fired(job) == [MIDNIGHT + delay, resumed_at + delay]
    assert {run.status for run in world.history(job)} == {RunStatus.SUCCEEDED}


def test_a_change_to_another_schedule_ends_the_chain() -> None:
    world = World(MIDNIGHT)
    job = world.create("chain", SHORT)
    world.run_until(MIDNIGHT + timedelta(minutes=15))
    world.new_generation(job, "*/30 * * * *")
    world.run_until(MIDNIGHT + timedelta(hours=1, minutes=1))
    assert world.fired(job) == times("00:10 00:30 01:00", MIDNIGHT)


def test_the_chain_ends_at_the_jobs_end_and_keeps_to_its_window() -> None:
    world = World(MIDNIGHT)
    end_at = MIDNIGHT + timedelta(minutes=31)
    job = world.create("chain", SHORT, end_at=end_at, window="60s", fraction=0.5)
    world.run_until(MIDNIGHT + HOUR)
    history = world.history(job)
    assert [run.started_at for run in history] == times("00:10:30 00:21:00 00:31:30", MIDNIGHT)
    assert world.fired(job) == times("00:10:00 00:20:30 00:31:00", MIDNIGHT)


def test_on_closed_days_each_occurrence_is_skipped_and_the_chain_goes_on() -> None:
    world = World(MIDNIGHT - timedelta(minutes=25), segments=1)
    world.close("holidays", "2026-12-01")
    skips = world.create("skips", SHORT, calendar=("holidays", CalendarRule.SKIP))
    world.run_until(MIDNIGHT + timedelta(minutes=10))
    outcomes = [(run.status, run.reason) for run in world.history(skips)]
    assert outcomes == 2 * [(RunStatus.SUCCEEDED, None)] + 1 * [(RunStatus.SKIPPED, "calendar")]
    world.close("holidays", "2026-11-30")
    world.run_until(MIDNIGHT + timedelta(minutes=20))
    assert world.history(skips)[-1].status is RunStatus.SUCCEEDED


def test_an_outage_of_the_ticks_delays_the_chain_and_passes_over_nothing() -> None:
    world = World(MIDNIGHT)
    job = world.create("chain", LONG)
    world.run_until(MIDNIGHT + timedelta(minutes=20))
    back_at = MIDNIGHT + timedelta(hours=3)
    world.run_until(back_at - SECOND, ticking=False)
    world.run_until(back_at + timedelta(minutes=45))
    first, second = world.history(job)
    assert first.key.fire_at == MIDNIGHT + timedelta(minutes=40)
    assert first.started_at == back_at
    assert second.key.fire_at == back_at + timedelta(minutes=40)


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
