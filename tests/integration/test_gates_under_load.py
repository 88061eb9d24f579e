"""Sixteen executors at one gate, on a server whose conditional writes are atomic.

Time is virtual and stands still while they are at work, so that the windows of rates are exact;
that two runs are active at once is real.
"""

import time
import uuid
from bisect import bisect_left
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from threading import Barrier, Lock

import pytest

from carillon.clock import ManualClock, SystemClock
from carillon.domain.decisions import SkipReason
from carillon.domain.job import Job
from carillon.domain.message import Message
from carillon.domain.policies import Concurrency, Overlap, Rate
from carillon.domain.run import Run, RunStatus
from carillon.domain.targets import Target
from carillon.domain.wheel.entry import message_of
from carillon.executor.targets import Call, Outcome, Success
from carillon.stores.dynamo import open_stores
from carillon.stores.memory.messaging import MemoryQueue
from tests.integration.system import System
from tests.support.jobs import job_with
from tests.support.tables import create_deployment

pytestmark = pytest.mark.ministack

EXECUTORS = 16
RUNS = 32
NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)


class ActiveTargets:
    """Calls take a moment; notes when each began and how many were active."""

    def __init__(self, clock: ManualClock) -> None:
        self.last_seconds = 0.02
        self._clock = clock
        self._lock = Lock()
        self._active = 0
        self.most_active = 0
        self.starts: list[datetime] = []

    def deliver(self, target: Target, call: Call) -> Outcome:
        with self._lock:
            self._active += 1
            self.most_active = max(self.most_active, self._active)
            self.starts.append(self._clock.now())
        time.sleep(self.last_seconds)
        with self._lock:
            self._active -= 1
        return Success(None)


class Load:
    """A deployment at noon plus a minute, and what its executors have to do."""

    def __init__(self, name: str) -> None:
        self.clock = ManualClock(NOON)
        stores = open_stores(create_deployment(name), SystemClock())
        self.queue = MemoryQueue(self.clock)
        self.system = System(stores, self.queue, self.clock)
        self.targets = ActiveTargets(self.clock)
        self.system.targets = self.targets  # type: ignore[assignment]
        self.sent: list[Message] = []

    def job(self, name: str, **policies: object) -> Job:
        job = job_with(self.system.job(name, "every 1s"), **policies)
        assert self.system.stores.jobs.create(job)
        return job

    def send(self, messages: Sequence[Message]) -> None:
        self.clock.set(NOON + timedelta(seconds=60))
        self.sent.extend(messages)
        self.queue.send(messages, [0] * len(messages))

    def work_off(self, until: Callable[[], bool]) -> None:
        """All executors at once, second after second."""
        executor = self.system.executor()

        def work(barrier: Barrier) -> None:
            barrier.wait()
            while received := self.queue.receive(self.clock.now(), 1):
                executor.handle(received[0].message, self.system.ends_at())
                self.queue.delete(received[0].receipt)

        with ThreadPoolExecutor(EXECUTORS) as threads:
            for _ in range(600):
                barrier = Barrier(EXECUTORS, timeout=30)
                for worker in [threads.submit(work, barrier) for _ in range(EXECUTORS)]:
                    worker.result()
                if until():
                    return
                self.clock.advance(1)
        raise AssertionError("the runs came to no end")

    def is_done(self) -> bool:
        return self.queue.kept() == []

    def runs(self) -> list[Run]:
        rows = [self.system.stores.runs.get(message.key) for message in self.sent]
        return [row for row in rows if row is not None]


@pytest.fixture
def load(ministack: str) -> Load:
    return Load(f"gates-{uuid.uuid4().hex[:8]}")


def occurrences(job: Job, count: int = RUNS) -> list[Message]:
    return [message_of(job, NOON + timedelta(seconds=1 + n)) for n in range(count)]


@pytest.mark.parametrize("overlap", [Overlap.SKIP, Overlap.QUEUE_ONE])
def test_never_two_runs_of_a_job_are_active(load: Load, overlap: Overlap) -> None:
    load.send(occurrences(load.job("job", overlap=overlap)))
    load.work_off(load.is_done)
    assert load.targets.most_active == 1
    runs = load.runs()
    assert len(runs) == RUNS
    succeeded = [run for run in runs if run.status is RunStatus.SUCCEEDED]
    skipped = [run for run in runs if run.reason == SkipReason.OVERLAP]
    assert len(succeeded) + len(skipped) == RUNS
    assert len(succeeded) == len(load.targets.starts)
    assert {run.attempt for run in succeeded} == {1}
    assert skipped != [], "sixteen at once: not all were alone"


def test_what_was_asked_for_waits_and_all_of_it_runs(load: Load) -> None:
    """Redrives of a job that skips what overlaps: each runs, one after the other."""
    job = load.job("job", overlap=Overlap.SKIP)
    load.send([replace(m, key=m.key.redriven) for m in occurrences(job, 8)])
    load.work_off(load.is_done)
    assert load.targets.most_active == 1
    assert [run.status for run in load.runs()] == [RunStatus.SUCCEEDED] * 8


def test_no_more_than_the_limit_hold_a_concurrency_key(load: Load) -> None:
    load.targets.last_seconds = 0.3
    key = Concurrency("database", 3)
    jobs = [load.job(f"job-{n}", concurrency=key) for n in range(RUNS)]
    load.send([occurrences(job, 1)[0] for job in jobs])
    load.work_off(load.is_done)
    assert 1 < load.targets.most_active <= key.limit
    assert [run.status for run in load.runs()] == [RunStatus.SUCCEEDED] * RUNS
    assert len(load.targets.starts) == RUNS


def test_no_window_has_more_starts_than_the_rate(load: Load) -> None:
    rate = Rate(5, 10, "mail")
    jobs = [load.job(f"job-{n}", rate=rate) for n in range(RUNS)]
    load.send([occurrences(job, 1)[0] for job in jobs])
    load.work_off(load.is_done)
    starts = sorted(load.targets.starts)
    window = timedelta(seconds=rate.per)
    within = [bisect_left(starts, at + window) - n for n, at in enumerate(starts)]
    assert max(within) == rate.limit
    assert len(starts) == RUNS
    assert [run.status for run in load.runs()] == [RunStatus.SUCCEEDED] * RUNS
    # Seven windows hold them all; a slot is lost only where a gate was too crowded for a turn.
    assert starts[-1] - starts[0] <= 10 * window
