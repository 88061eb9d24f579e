"""A run that is cancelled, or taken over, while its target is called."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from threading import Event
from time import sleep

import pytest

from carillon.clock import ThreadTimers
from carillon.domain.admission.state import AdmissionRow, key_admission
from carillon.domain.events import EventType
from carillon.domain.execution.stopping import LOOK_SECONDS, STOPPED
from carillon.domain.job import Job
from carillon.domain.message import Message
from carillon.domain.policies import Concurrency, RetryPolicy
from carillon.domain.run import RunError, RunStatus
from carillon.errors import StoreUnavailableError
from carillon.executor.batch import Handled, Report
from carillon.executor.router import Router
from carillon.executor.targets import Call, Failure, Outcome, Success
from tests.support.world import OWNER
from tests.unit.executor.kit import World


class ManualTimers:
    """What is to be repeated is done by `pass_`, which a test's target calls."""

    def __init__(self) -> None:
        self.repeated: list[tuple[float, Callable[[], None]]] = []

    def after(self, seconds: float, act: Callable[[], None]) -> Callable[[], None]:
        return lambda: None

    def every(self, seconds: float, act: Callable[[], None]) -> Callable[[], None]:
        self.repeated.append((seconds, act))
        return self.repeated.clear

    def pass_(self) -> None:
        for _, act in self.repeated:
            act()


@pytest.fixture
def timers(world: World) -> ManualTimers:
    timers = ManualTimers()
    world.executor_ports = replace(world.executor_ports, timers=timers)
    world.executor = Router(world.executor_ports)
    return timers


def new_job(world: World, **members: object) -> Job:
    return world.create("stopped", "* * * * *", retry=RetryPolicy(max_attempts=3), **members)


def stop_in_call(world: World, timers: ManualTimers, message: Message, answer: Outcome) -> Report:
    """The run is cancelled in the third second of its call, which looks before it answers."""

    def behave(call: Call) -> Outcome:
        ((seconds, _),) = timers.repeated
        assert seconds == LOOK_SECONDS
        timers.pass_()
        assert not call.stopped.is_set()
        world.clock.advance(3)
        world.cancel(world.run_of(message))
        timers.pass_()
        assert call.stopped.is_set()
        assert call.timed_out("too long") == Failure(STOPPED)
        return answer

    world.targets.behave = behave
    return world.handle(message)


@pytest.mark.parametrize("answer", [Failure(STOPPED), Success("done"), Failure(RunError("x", "y"))])
def test_nothing_is_recorded_over_a_stopped_run(
    world: World, timers: ManualTimers, answer: Outcome
) -> None:
    """Whatever its target answers: no retry is sent, no failure counted, nobody is told."""
    told = [EventType.RUN_STARTED, EventType.RUN_FAILED, EventType.RUN_SUCCEEDED]
    job = new_job(
        world,
        events=(*told, EventType.RUN_DEAD),
        pause_after_failures=1,
        concurrency=Concurrency("k", 1),
    )
    message = world.due(job)

    report = stop_in_call(world, timers, message, answer)

    assert report.handled is Handled.REPEATED
    assert report.run == world.run_of(message)
    assert world.run_of(message).status is RunStatus.CANCELLED
    assert world.queue.kept() == []
    assert timers.repeated == []
    assert [event.type for event in world.events.emitted] == [EventType.RUN_STARTED]
    assert world.stored(job) == job
    gate = world.admission_rows.get(OWNER, key_admission("k"))
    assert gate is not None
    assert gate.holders == ()


def test_the_next_run_of_a_fixed_delay_follows(world: World, timers: ManualTimers) -> None:
    job = world.create("chain", "every 5m after finish")
    message = replace(world.due(job), after_finish=True)

    stop_in_call(world, timers, message, Failure(STOPPED))

    (following,) = world.drain()
    finished_at = world.run_of(message).finished_at
    assert finished_at is not None
    assert following.key.fire_at == finished_at + timedelta(minutes=5)


def test_a_call_that_was_taken_over_is_stopped_too(world: World, timers: ManualTimers) -> None:
    message = world.due(new_job(world))
    calls: list[Call] = []

    def behave(call: Call) -> Outcome:
        calls.append(call)
        if len(calls) == 1:
            world.clock.advance(70)  # it stood still for longer than its lease
            world.handle(message)
            del timers.repeated[1:]
            timers.repeated.append((LOOK_SECONDS, lambda: None))
        return Success(None)

    looks: list[Callable[[], None]] = []
    every = timers.every

    def remembered(seconds: float, act: Callable[[], None]) -> Callable[[], None]:
        looks.append(act)
        return every(seconds, act)

    timers.every = remembered  # type: ignore[method-assign]
    world.targets.behave = behave
    world.handle(message)
    looks[0]()
    assert [call.attempt for call in calls] == [1, 2]
    assert [call.stopped.is_set() for call in calls] == [True, False]


def test_a_look_that_fails_stops_nothing(
    world: World, timers: ManualTimers, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = world.due(new_job(world))

    def fails(key: object) -> None:
        raise StoreUnavailableError("down")

    def behave(call: Call) -> Outcome:
        with monkeypatch.context() as patch:
            patch.setattr(world.runs, "get", fails)
            timers.pass_()
        assert not call.stopped.is_set()
        return Success(None)

    world.targets.behave = behave
    world.handle(message)
    assert world.run_of(message).status is RunStatus.SUCCEEDED


@pytest.mark.parametrize(("gate_seconds", "calls"), [(1.9, 1), (2.0, 0)])
def test_a_run_that_was_cancelled_while_gates_were_slow_is_not_called(
    world: World,
    timers: ManualTimers,
    monkeypatch: pytest.MonkeyPatch,
    gate_seconds: float,
    calls: int,
) -> None:
    """Younger it cannot be cancelled: so nobody looks."""
    message = world.due(new_job(world, concurrency=Concurrency("k", 1)))
    put = world.admission_rows.put

    def slow(row: AdmissionRow, over_revision: int | None) -> bool:
        world.clock.advance(gate_seconds)
        if gate_seconds >= LOOK_SECONDS and world.run_of(message).status is RunStatus.RUNNING:
            world.cancel(world.run_of(message))
        return put(row, over_revision)

    monkeypatch.setattr(world.admission_rows, "put", slow)
    world.handle(message)
    assert len(world.targets.calls) == calls
    gate = world.admission_rows.get(OWNER, key_admission("k"))
    assert gate is not None
    assert gate.holders == ()


def test_what_is_repeated_by_threads_ends_when_it_is_called_off() -> None:
    """Also from within; and one that was called off holds up none that was ordered later."""
    timers, done, twice = ThreadTimers(), [], Event()

    def act() -> None:
        done.append(1)
        if len(done) == 2:
            call_off()
            twice.set()

    timers.every(0.01, lambda: done.append(9))()
    call_off = timers.every(0.02, act)
    assert twice.wait(10)
    sleep(0.1)
    assert done == [1, 1]
    again = Event()
    call_off = timers.every(0.01, again.set)
    assert again.wait(10), "it waits for what comes after there was nothing to wait for"
    call_off()
