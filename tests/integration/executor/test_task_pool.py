"""The bound of real child processes: calls that wait for one, give up, or are served in order."""

import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event, Thread

import pytest

from carillon.domain.execution.stopping import STOPPED
from carillon.domain.run import RunError
from carillon.executor.targets.call import Failure, Outcome, Success
from carillon.executor.task_process.parent import TaskCode
from carillon.executor.task_process.pool import MOST_CHILDREN, ChildPool, PoolBusyError
from tests.integration.executor.processes import SAMPLES, Tasks, children, tasks, wait_until

TIMED = "tests.integration.executor.timed_tasks"
NOT_READY = Failure(RunError("task_not_ready", "no task process was ready within 0.3 s"))


@contextmanager
def counted(before: set[int]) -> Iterator[Callable[[], int]]:
    """The most children that were there at once, beside those before, so far."""
    ended, counts = Event(), [0]

    def count() -> None:
        while not ended.wait(0.005):
            counts.append(len(children() - before))

    counter = Thread(target=count)
    counter.start()
    try:
        yield lambda: max(counts)
    finally:
        ended.set()
        counter.join()


@contextmanager
def one_busy_child(seconds: float) -> Iterator[tuple[Tasks, ThreadPoolExecutor, Future[Outcome]]]:
    """A pool of one, at work for so long."""
    with tasks(SAMPLES, TIMED, limit=1) as caller, ThreadPoolExecutor(8) as threads:
        caller.run("instant")
        busy = threads.submit(caller.run, "sleep", str(seconds))
        assert wait_until(busy.running)
        assert wait_until(lambda: not caller.pool._idle)
        yield caller, threads, busy


def test_forty_calls_at_once_share_the_children() -> None:
    before = children()
    with tasks() as caller, ThreadPoolExecutor(40) as threads, counted(before) as most:
        payloads = [str(number) for number in range(40)]
        slept = threads.map(lambda _: caller.run("sleep", "0.1"), payloads)
        assert all(isinstance(outcome, Success) for outcome in slept)
        answers = list(threads.map(lambda payload: caller.run("echo", payload), payloads))
        assert answers == [Success(payload) for payload in payloads]
        assert most() == MOST_CHILDREN


def test_children_that_die_or_are_killed_free_their_places() -> None:
    before = children()
    calls = [("die", "null", 20.0), ("echo", "1", 20.0), ("spin", "null", 1.0)] * 3
    with tasks(limit=3) as caller, ThreadPoolExecutor(9) as threads, counted(before) as most:
        caller.pool.prepare(3)
        outcomes = list(threads.map(lambda call: caller.run(*call), calls))
        assert most() <= 3
        soon = [threads.submit(caller.run_in_child, "sleep", "0.3") for _ in range(3)]
        assert [one.result().error for one in soon] == [None] * 3
    kinds = [one.error.kind if isinstance(one, Failure) else "" for one in outcomes]
    assert kinds[0::3] == ["task_died"] * 3
    assert kinds[1::3] == [""] * 3
    assert set(kinds[2::3]) <= {"timeout", "task_not_ready"}


def test_a_child_that_cannot_be_started_frees_its_place() -> None:
    fails = [True, True]

    def variables() -> Mapping[str, str]:
        if fails and fails.pop():
            raise OSError("no credentials")
        return {}

    caller = Tasks(ChildPool(TaskCode((SAMPLES,)), variables, limit=1))
    try:
        with pytest.raises(OSError, match="no credentials"):
            caller.run_in_child("echo")
        with pytest.raises(OSError, match="no credentials"):
            caller.pool.prepare(1)
        assert caller.run_in_child("echo", "1").result == "1"
    finally:
        caller.pool.close()


def test_preparing_counts_the_children_at_work() -> None:
    before = children()
    with one_busy_child(0.3) as (caller, _, busy):
        caller.pool.prepare(3)
        assert len(children() - before) == 1
        assert isinstance(busy.result(), Success)


def test_who_gives_up_waiting_starts_nothing() -> None:
    before = children()
    with one_busy_child(1) as (caller, _, busy):
        began = time.monotonic()
        with pytest.raises(PoolBusyError):
            caller.run_in_child("die", timeout_seconds=0.3)
        assert time.monotonic() - began >= 0.3
        assert not busy.done()
        assert len(children() - before) == 1
        assert isinstance(busy.result(), Success)  # its child was not killed
        assert caller.run_in_child("echo", "1").result == "1"


def test_a_limit_that_passes_before_a_child_is_free_is_no_time_out_of_the_task() -> None:
    with one_busy_child(1) as (caller, _, busy):
        assert caller.run("instant", timeout_seconds=0.3) == NOT_READY
        assert isinstance(busy.result(), Success)


def test_a_call_that_waits_is_stopped() -> None:
    stopped = Event()
    with one_busy_child(2) as (caller, threads, busy):
        waiting = threads.submit(caller.run, "instant", stopped=stopped)
        assert wait_until(lambda: len(caller.pool._waiting) == 1)
        stopped.set()
        assert waiting.result() == Failure(STOPPED)
        assert not busy.done()


def test_a_place_that_comes_at_the_last_moment_is_passed_on() -> None:
    with one_busy_child(0.5) as (caller, _, busy):

        class SetWhenFree(Event):
            """Looked at when a child is still busy, and set when none is any more."""

            def is_set(self) -> bool:
                busy.result()
                return True

        assert caller.run("instant", stopped=SetWhenFree()) == Failure(STOPPED)
        assert caller.run_in_child("echo", "1").result == "1"


def test_who_waits_longest_is_served_first() -> None:
    """The one in the middle that gives up is left out, and takes no place along."""
    with one_busy_child(1.5) as (caller, threads, _):
        events = [Event() for _ in range(5)]
        waiting: list[Future[Outcome]] = []
        for number, stopped in enumerate(events):
            waiting.append(threads.submit(caller.run, "instant", stopped=stopped))
            assert wait_until(lambda before=number: len(caller.pool._waiting) > before)  # type: ignore[misc]
        events[2].set()
        outcomes = [one.result() for one in waiting]
    assert outcomes.pop(2) == Failure(STOPPED)
    instants = [float(str(one.result)) for one in outcomes if isinstance(one, Success)]
    assert len(instants) == 4
    assert instants == sorted(instants)
