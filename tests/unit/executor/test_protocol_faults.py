"""The run protocol under faults around it: throttled reads, changed limits, noise."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from functions.executor.protocol import Handled
from functions.executor.targets import Failure
from shared.domain.job import Backoff, Job, RetryPolicy
from shared.domain.message import Message
from shared.domain.run import Run, RunError, RunStatus
from shared.errors import StoreUnavailableError
from shared.filing import message_of
from tests.simulation.world import FUNCTION_SECONDS, World

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)


class Killed(BaseException):
    """The process dies here: nothing after it runs."""


@pytest.fixture
def world() -> World:
    return World(NOON)


def empty_queue(world: World) -> None:
    for kept in world.queue.kept():
        world.queue.delete(kept.receipt)


def due(world: World, job: Job) -> Message:
    """The message of the next occurrence, at its very instant; the queue holds nothing."""
    message = message_of(job, NOON + timedelta(minutes=1))
    world.clock.set(message.due_at)
    empty_queue(world)
    return message


def ends_at(world: World, seconds: float = FUNCTION_SECONDS) -> datetime:
    return world.clock.now() + timedelta(seconds=seconds)


def run_of(world: World, message: Message) -> Run:
    run = world.runs.get(message.key)
    assert run is not None
    return run


def execute_for(world: World, seconds: int) -> None:
    """Handle what becomes visible; like the handler, put off what the store could not be asked."""
    for _ in range(seconds):
        for received in world.queue.receive(world.clock.now(), 10):
            try:
                world.protocol.handle(received.message, ends_at(world))
            except StoreUnavailableError:
                world.protocol.wait_for_store(received.message)
            world.queue.delete(received.receipt)
        world.clock.advance(1)


def throttle_reads_of_jobs(world: World, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """The next `number` reads of a job fail."""
    get = world.jobs.get
    failures = iter(range(number))

    def throttled(owner: str, job_id: str) -> Job | None:
        if next(failures, None) is not None:
            raise StoreUnavailableError("throttled")
        return get(owner, job_id)

    monkeypatch.setattr(world.jobs, "get", throttled)


class TestTimeLimits:
    """A run must never end after its process does, and must always come to an end."""

    def test_a_job_made_for_longer_processes_runs_with_what_these_have(self, world: World) -> None:
        """The function's timeout was lowered to a minute under a job of two: its message must not
        go round for ever in search of a process that has the time."""
        job = world.create("job", "* * * * *", timeout_seconds=2 * FUNCTION_SECONDS)
        message = due(world, job)
        world.queue.send([message], [0])
        execute_for(world, 600)
        assert world.queue.kept() == []
        assert run_of(world, message).status is RunStatus.SUCCEEDED
        (call,) = world.targets.calls
        assert call.timeout_seconds < FUNCTION_SECONDS

    @pytest.mark.parametrize("seconds_left", [9.5, 10.0, 11.0])
    def test_a_run_that_could_end_after_its_process_is_not_started(
        self, world: World, seconds_left: float
    ) -> None:
        """The lease lasts a little longer than the process, and is no measure for the limit."""
        job = world.create("job", "* * * * *", timeout_seconds=10)
        message = due(world, job)
        report = world.protocol.handle(message, ends_at(world, seconds_left))
        assert report.handled is Handled.SENT_ON
        assert world.targets.calls == []
        assert world.runs.get(message.key) is None


class TestAttempts:
    """What counts as an attempt of a run, and what its last one is blamed for."""

    @pytest.mark.parametrize("attempts", [1, 3])
    def test_throttled_reads_of_the_job_use_up_no_attempt(
        self, world: World, monkeypatch: pytest.MonkeyPatch, attempts: int
    ) -> None:
        policy = RetryPolicy(max_attempts=attempts)
        message = due(world, world.create("job", "at 2026-12-01T12:01:00", retry=policy))
        throttle_reads_of_jobs(world, monkeypatch, attempts)
        world.queue.send([message], [0])
        execute_for(world, 900)
        run = run_of(world, message)
        assert (run.status, run.attempt, run.attempts) == (RunStatus.SUCCEEDED, 1, ())

    def test_fewer_attempts_after_a_change_blame_the_targets_error(self, world: World) -> None:
        policy = RetryPolicy(max_attempts=3, backoff=Backoff(base_seconds=60))
        job = world.create("job", "at 2026-12-01T12:01:00", retry=policy)
        world.targets.behave = lambda call: Failure(RunError("busy", "later"))
        message = due(world, job)
        world.protocol.handle(message, ends_at(world))
        changed = replace(job, retry=RetryPolicy(max_attempts=1), revision=job.revision + 1)
        assert world.jobs.replace(changed, job.revision)
        execute_for(world, 300)
        run = run_of(world, message)
        assert (run.status, run.reason) == (RunStatus.DEAD, "no attempts left")
        assert run.error == RunError("busy", "later")
        assert len(world.targets.calls) == 1


class TestNoise:
    """Messages of filings that do not count meet the runs of those that do."""

    def test_it_does_not_hold_up_the_real_message(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The real message comes in the milliseconds between the noise's claim and its withdrawal:
        it must not wait for the end of a lease that is given back at once."""
        job = world.create("job", "* * * * *")
        real = due(world, job)
        world.refile(job, "0 0 * * *")  # 12:01:00 itself belongs to the filing before
        noise = replace(real, filing_id=world.entropy.new_id(world.clock.now()))
        get = world.jobs.get
        inner: list[Handled] = []

        def read_while_the_real_one_comes(owner: str, job_id: str) -> Job | None:
            monkeypatch.setattr(world.jobs, "get", get)
            inner.append(world.protocol.handle(real, ends_at(world)).handled)
            return get(owner, job_id)

        monkeypatch.setattr(world.jobs, "get", read_while_the_real_one_comes)
        world.protocol.handle(noise, ends_at(world))
        assert inner == [Handled.SENT_ON]
        execute_for(world, 2 * FUNCTION_SECONDS)
        run = run_of(world, real)
        assert run.status is RunStatus.SUCCEEDED
        assert run.lag_seconds is not None
        assert run.lag_seconds < 5

    def test_it_leaves_no_run_that_never_ends(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its executor dies behind the claim. The next reception takes over and drops the message,
        the last one that knows of the row: nobody else would ever come for it."""
        job = world.create("job", "* * * * *")
        noise = message_of(job, NOON + timedelta(minutes=2))
        for schedule in ("0 0 * * *", "0 1 * * *"):  # the first filing is not even the previous one
            world.clock.advance(10)
            job = world.refile(job, schedule)
        empty_queue(world)
        world.clock.set(noise.due_at)

        def die(owner: str, job_id: str) -> Job | None:
            raise Killed

        with monkeypatch.context() as patch:
            patch.setattr(world.jobs, "get", die)
            with pytest.raises(Killed):
                world.protocol.handle(noise, ends_at(world))
        assert run_of(world, noise).status is RunStatus.RUNNING
        world.queue.send([noise], [0])
        execute_for(world, 600)
        assert world.queue.kept() == []
        run = world.runs.get(noise.key)
        assert run is None or run.is_final

    def test_it_uses_up_no_attempt_of_the_real_occurrence(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A change died before its commit. Its message for 12:02 goes first and meets a throttled
        read; the real 12:02 has one attempt, and that must be left for it."""
        job = world.create("job", "*/2 * * * *", retry=RetryPolicy(max_attempts=1))
        world.clock.advance(5)
        real = message_of(job, NOON + timedelta(minutes=2))
        noise = replace(real, filing_id=world.entropy.new_id(world.clock.now()))
        empty_queue(world)
        world.clock.set(real.due_at)
        world.refile(job, "0 0 * * *")
        throttle_reads_of_jobs(world, monkeypatch, 1)
        world.queue.send([noise, real], [0, 1])
        execute_for(world, 600)
        run = run_of(world, real)
        assert (run.status, run.attempt) == (RunStatus.SUCCEEDED, 1)
