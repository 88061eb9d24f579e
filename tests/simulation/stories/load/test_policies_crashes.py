"""The policies with a memory, and one fault at each call that an executor makes: nothing is lost,
nothing runs twice, nobody waits for ever."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from carillon.domain.admission.state import job_admission, key_admission
from carillon.domain.job import Job
from carillon.domain.policies import CatchUp, Concurrency, Overlap, Rate, RetryPolicy
from carillon.domain.run import RunError, RunStatus
from carillon.errors import HeldError, QueueUnavailableError, StoreUnavailableError
from carillon.executor.batch import PartlyHandledError
from carillon.executor.router import Router
from carillon.executor.targets import Call, Failure, Outcome, Success
from carillon.services.indexer import Indexer
from tests.simulation.stories.story import NOON, SECOND, Killed
from tests.support.world import FUNCTION_SECONDS, OWNER, World

OCCURRENCES = 4


class Fault:
    """Strikes at one call of those that go by; `at` counts from 0, and none is struck at -1."""

    def __init__(self, at: int, error: Callable[[], BaseException], after: bool) -> None:
        self._at = at
        self._error = error
        self._after = after
        self.calls: list[str] = []

    def around(self, port: object) -> Any:
        """The same port, whose calls go by here."""
        return _Watched(port, self)

    def go_by(self, name: str, call: Callable[[], object]) -> object:
        number = len(self.calls)
        self.calls.append(name)
        if number == self._at and not self._after:
            raise self._error()
        answer = call()
        if number == self._at:
            raise self._error()
        return answer


class _Watched:
    def __init__(self, port: object, fault: Fault) -> None:
        self._port = port
        self._fault = fault

    def __getattr__(self, name: str) -> object:
        method = getattr(self._port, name)

        def call(*arguments: Any, **named: Any) -> object:
            where = f"{type(self._port).__name__}.{name}"
            return self._fault.go_by(where, lambda: method(*arguments, **named))

        return call


def unavailable() -> BaseException:
    return StoreUnavailableError("throttled")


KINDS = {
    "killed-before": (Killed, False),
    "killed-after": (Killed, True),
    "unavailable": (unavailable, False),
    "answer-lost": (unavailable, True),
}


class Play:
    """A job of four occurrences with every policy that has a memory, under one fault."""

    def __init__(self, fault: Fault) -> None:
        self.world = world = World(NOON, segments=1)
        self.fault = fault
        self.successes: Counter[str] = Counter()
        self.active: set[str] = set()
        self.most_active = 0
        world.targets.behave = self.run_target
        self.job: Job = world.create(
            "job",
            "every 10s",
            max_runs=OCCURRENCES,
            catch_up=CatchUp.ALL,
            overlap=Overlap.QUEUE_ONE,
            rate=Rate(2, 30, "mail"),
            concurrency=Concurrency("db", 1),
            retry=RetryPolicy(max_attempts=6),
        )
        ports = world.executor_ports
        jobs, runs, admission_rows = (
            fault.around(port) for port in (ports.jobs, ports.runs, ports.admission_rows)
        )
        wheel, queue = fault.around(ports.wheel), fault.around(ports.queue)
        indexer = Indexer(jobs, wheel, queue, world.clock, ports.calendars)
        world.executor = Router(
            replace(
                ports,
                jobs=jobs,
                runs=runs,
                admission_rows=admission_rows,
                wheel=wheel,
                queue=queue,
                indexer=indexer,
            )
        )
        world.execute = self.execute  # type: ignore[method-assign]

    def run_target(self, call: Call) -> Outcome:
        self.active.add(call.run_id)
        self.most_active = max(self.most_active, len(self.active))
        self.world.run_until(self.world.clock.now() + 4 * SECOND)
        self.active.discard(call.run_id)
        if call.attempt == 1 and call.fire_at == NOON + 10 * SECOND:
            return Failure(RunError("busy", "later"), retry_after_seconds=6)
        self.successes[call.run_id] += 1
        return Success(None)

    def execute(self) -> None:
        """As the handler does: put off what the store was not there for, leave what failed."""
        world = self.world
        while received := world.queue.receive(world.clock.now(), 1):
            (one,) = received
            ends_at = world.clock.now() + timedelta(seconds=FUNCTION_SECONDS)
            try:
                world.executor.lane(one.body, ends_at)
            except (Killed, HeldError, QueueUnavailableError, PartlyHandledError):
                continue
            world.queue.delete(one.receipt)

    def to_the_end(self) -> None:
        self.world.run_until(NOON + timedelta(minutes=14))


def calls_without_a_fault() -> list[str]:
    fault = Fault(-1, Killed, after=False)
    play = Play(fault)
    play.to_the_end()
    *ran, skipped = [run.status for run in play.world.history(play.job)]
    assert ran == [RunStatus.SUCCEEDED] * 3
    assert skipped is RunStatus.SKIPPED
    return fault.calls


def test_the_play_passes_every_gate() -> None:
    called = Counter(calls_without_a_fault())
    assert called["MemoryVersionedRows.put"] >= 8
    assert called["MemoryQueue.send"] >= 4
    assert called["CheckedRuns.finish"] >= 5


@pytest.mark.parametrize("kind", KINDS)
def test_a_fault_at_any_call_loses_nothing_and_doubles_nothing(kind: str) -> None:
    error, after = KINDS[kind]
    for number, name in enumerate(calls_without_a_fault()):
        play = Play(Fault(number, error, after))
        play.to_the_end()
        where = f"{kind} at call {number}, {name}"
        history = play.world.history(play.job)
        assert len(history) == OCCURRENCES, where
        outcomes = {(run.status, run.reason) for run in history}
        allowed = {(RunStatus.SUCCEEDED, None), (RunStatus.SKIPPED, "overlap")}
        assert outcomes <= allowed, where
        succeeded = {run.key.run_id for run in history if run.status is RunStatus.SUCCEEDED}
        assert set(play.successes) == succeeded, where
        # A call whose end could not be recorded is made again: targets are called at least once.
        assert play.successes.total() <= len(succeeded) + 1, where
        assert play.most_active == 1, where
        assert play.world.queue.kept() == [], where
        assert_nothing_is_held(play, where)


def assert_nothing_is_held(play: Play, where: str) -> None:
    """No gate names a run that others would wait for."""
    world = play.world
    gate = world.admission_rows.get(OWNER, job_admission(play.job.job_id))
    assert gate is not None, where
    assert not gate.waiting or gate.waiting not in {
        run.key.run_id for run in world.history(play.job) if not run.is_final
    }, where
    key = world.admission_rows.get(OWNER, key_admission("db"))
    assert key is not None, where
    assert all(holder.until <= world.clock.now() for holder in key.holders), where
