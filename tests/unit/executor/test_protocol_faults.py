"""The run protocol under faults around it: throttled reads, changed limits, noise."""

from dataclasses import replace
from datetime import timedelta

import pytest

from carillon.domain.job import Job, JobState
from carillon.domain.message import Message, encode
from carillon.domain.policies import Backoff, OnComplete, RetryPolicy
from carillon.domain.run import Run, RunError, RunStatus
from carillon.domain.targets import TaskTarget
from carillon.domain.wheel.entry import Slot, message_of, minute_of
from carillon.errors import HeldError, QueueUnavailableError, StoreUnavailableError
from carillon.executor.batch import Handled, PartlyHandledError
from carillon.executor.targets import Failure
from carillon.schedules import CalendarRule, SlotKind
from tests.support.world import FUNCTION_SECONDS
from tests.unit.executor.kit import LEASE_SECONDS, NOON, World


def execute_for(world: World, seconds: int) -> None:
    """Handle what becomes visible; like the handler, put off what the store could not be asked."""
    for _ in range(seconds):
        for received in world.queue.receive(world.clock.now(), 10):
            try:
                world.executor.lane(received.body, world.ends_at())
            except HeldError:
                continue
            world.queue.delete(received.receipt)
        world.clock.advance(1)


class TestTimeLimits:
    """A run must never end after its process does, and must always come to an end."""

    def test_a_job_made_for_longer_processes_runs_with_what_these_have(self, world: World) -> None:
        """The function's timeout was lowered to a minute under a job of two: its message must not
        go round for ever in search of a process that has the time."""
        job = world.create("job", "* * * * *", timeout_seconds=2 * FUNCTION_SECONDS)
        message = world.due(job)
        world.queue.send([message], [0])
        execute_for(world, 600)
        assert world.queue.kept() == []
        assert world.run_of(message).status is RunStatus.SUCCEEDED
        (call,) = world.targets.calls
        assert call.timeout_seconds < FUNCTION_SECONDS

    @pytest.mark.parametrize("seconds_left", [9.5, 10.0, 11.0])
    def test_a_run_that_could_end_after_its_process_is_not_started(
        self, world: World, seconds_left: float
    ) -> None:
        """The lease lasts a little longer than the process, and is no measure for the limit."""
        job = world.create("job", "* * * * *", timeout_seconds=10)
        message = world.due(job)
        report = world.handle(message, seconds_left)
        assert report.handled is Handled.DEFERRED
        assert world.targets.calls == []
        assert world.runs.get(message.key) is None


class TestAttempts:
    """What counts as an attempt of a run, and what its last one is blamed for."""

    @pytest.mark.parametrize("attempts", [1, 3])
    def test_throttled_reads_of_the_job_use_up_no_attempt(
        self, world: World, attempts: int
    ) -> None:
        policy = RetryPolicy(max_attempts=attempts)
        message = world.due(world.create("job", "at 2026-12-01T12:01:00", retry=policy))
        world.queue.send([message], [0])
        with world.failing(world.jobs, "get", times=attempts):
            execute_for(world, 900)
        run = world.run_of(message)
        assert (run.status, run.attempt, run.attempts) == (RunStatus.SUCCEEDED, 1, ())

    def test_fewer_attempts_after_a_change_blame_the_targets_error(self, world: World) -> None:
        policy = RetryPolicy(max_attempts=3, backoff=Backoff(base_seconds=60))
        job = world.create("job", "at 2026-12-01T12:01:00", retry=policy)
        world.targets.behave = lambda call: Failure(RunError("busy", "later"))
        message = world.due(job)
        world.handle(message)
        world.change(job, retry=RetryPolicy(max_attempts=1))
        execute_for(world, 300)
        run = world.run_of(message)
        assert (run.status, run.reason) == (RunStatus.DEAD, "exhausted")
        assert run.error == RunError("busy", "later")
        assert len(world.targets.calls) == 1
        assert (len(run.attempts), run.attempt_started_at) == (1, None), "there was no second one"


class TestNoise:
    """Messages of generations that do not count meet the runs of those that do."""

    def test_it_does_not_hold_up_the_real_message(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The real message comes in the milliseconds between the noise's claim and its withdrawal:
        it must not wait for the end of a lease that is given back at once."""
        job = world.create("job", "* * * * *")
        real = world.due(job)
        world.new_generation(job, "0 0 * * *")  # 12:01:00 itself belongs to the generation before
        noise = replace(real, generation_id=world.entropy.new_id(world.clock.now()))
        get = world.jobs.get
        inner: list[Handled] = []

        def read_while_the_real_one_comes(owner: str, job_id: str) -> Job | None:
            monkeypatch.setattr(world.jobs, "get", get)
            inner.append(world.handle(real).handled)
            return get(owner, job_id)

        monkeypatch.setattr(world.jobs, "get", read_while_the_real_one_comes)
        world.handle(noise)
        assert inner == [Handled.DEFERRED]
        execute_for(world, 2 * FUNCTION_SECONDS)
        run = world.run_of(real)
        assert run.status is RunStatus.SUCCEEDED
        assert run.lag_seconds is not None
        assert run.lag_seconds < 5

    def test_it_leaves_no_run_that_never_ends(self, world: World) -> None:
        """Its executor dies behind the claim. The next reception takes over and drops the message,
        the last one that knows of the row: nobody else would ever come for it."""
        job = world.create("job", "* * * * *")
        noise = message_of(job, NOON + timedelta(minutes=2))
        for schedule in (
            "0 0 * * *",
            "0 1 * * *",
        ):  # the first generation is not even the previous one
            world.clock.advance(10)
            job = world.new_generation(job, schedule)
        world.drain()
        world.clock.set(noise.due_at)

        with world.dying(world.jobs, "get"):
            world.handle(noise)
        assert world.run_of(noise).status is RunStatus.RUNNING
        world.queue.send([noise], [0])
        execute_for(world, 600)
        assert world.queue.kept() == []
        run = world.runs.get(noise.key)
        assert run is None or run.is_final

    def test_it_uses_up_no_attempt_of_the_real_occurrence(self, world: World) -> None:
        """A change died before its commit. Its message for 12:02 goes first and meets a throttled
        read; the real 12:02 has one attempt, and that must be left for it."""
        job = world.create("job", "*/2 * * * *", retry=RetryPolicy(max_attempts=1))
        world.clock.advance(5)
        real = message_of(job, NOON + timedelta(minutes=2))
        noise = replace(real, generation_id=world.entropy.new_id(world.clock.now()))
        world.drain()
        world.clock.set(real.due_at)
        world.new_generation(job, "0 0 * * *")
        world.queue.send([noise, real], [0, 1])
        with world.failing(world.jobs, "get", times=1):
            execute_for(world, 600)
        run = world.run_of(real)
        assert (run.status, run.attempt) == (RunStatus.SUCCEEDED, 1)


class TestEndsOfJobs:
    """What follows from a final run is repeated until it is done, and done once."""

    @pytest.fixture
    def last(self, world: World) -> Message:
        job = world.create("job", "at 2026-12-01T12:01:00", on_complete=OnComplete.DELETE)
        return world.due(job)

    def test_a_row_that_cannot_be_written_makes_the_message_come_again(
        self, world: World, last: Message
    ) -> None:

        world.queue.send([last], [0])
        with world.failing(world.jobs, "replace"):
            execute_for(world, 5)
        assert world.run_of(last).status is RunStatus.SUCCEEDED
        execute_for(world, 30)
        stored = world.jobs.get(last.key.owner, last.key.job_id)
        assert stored is not None
        assert (stored.state, len(world.targets.calls)) == (JobState.COMPLETED, 1)
        assert world.queue.kept() == []

    def test_a_row_that_changes_at_every_step_makes_it_come_again(
        self, world: World, last: Message, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(world.jobs, "replace", lambda job, revision: False)
            with pytest.raises(PartlyHandledError) as raised:
                world.handle(last)
        assert isinstance(raised.value.__cause__, StoreUnavailableError)
        assert world.handle(last).completes

    def test_a_duplicate_of_an_earlier_run_completes_nothing(self, world: World) -> None:
        job = world.create("job", "* * * * *", max_runs=3, on_complete=OnComplete.DELETE)
        message = world.due(job)
        assert not world.handle(message).completes
        assert not world.handle(message).completes
        assert world.jobs.get(job.owner, job.job_id) == job

    def test_its_row_outlives_the_longest_waits_of_its_retries(self, world: World) -> None:
        a_week = int(timedelta(days=7).total_seconds())
        policy = RetryPolicy(5, Backoff(base_seconds=a_week, factor=1, cap_seconds=a_week))
        job = world.create(
            "job", "at 2026-12-01T12:01:00", on_complete=OnComplete.DELETE, retry=policy
        )
        world.handle(world.due(job))
        stored = world.jobs.get(job.owner, job.job_id)
        assert stored is not None
        assert stored.expires_at is not None
        assert stored.expires_at > world.clock.now() + timedelta(days=4 * 7 + 25)

    def test_its_row_stays_where_a_manifest_declares_it(self, world: World) -> None:
        """Without the row the next apply would make the job again, or refuse it as past."""
        job = world.create("job", "at 2026-12-01T12:01:00", on_complete=OnComplete.DELETE)
        assert world.jobs.replace(replace(job, managed_by="m"), job.revision)
        world.handle(world.due(job))
        stored = world.jobs.get(job.owner, job.job_id)
        assert stored is not None
        assert (stored.state, stored.expires_at) == (JobState.COMPLETED, None)


class TestClosedLate:
    """A day that is closed when its message is on its way already, and that rolls."""

    def test_the_row_of_an_executor_that_died_on_it_does_not_stay(self, world: World) -> None:
        calendar = ("holidays", CalendarRule.NEXT_BUSINESS_DAY)
        job = world.create("job", "0 12 * * *", calendar=calendar)
        message = message_of(job, NOON + timedelta(days=1))
        world.clock.set(message.due_at)

        with world.dying(world.jobs, "get"):
            world.handle(message)
        world.clock.advance(LEASE_SECONDS)
        world.close("holidays", "2026-12-02")
        report = world.handle(message)
        assert report.handled is Handled.DEFERRED
        assert report.message.key.fire_at == NOON + timedelta(days=2)
        assert world.runs.get(message.key) is None
        slot = Slot(SlotKind.DATED, minute_of(report.message.due_at))
        (entry,) = world.wheel.query(job.segment, slot).items
        assert entry.message == report.message, "farther than a queue can delay: by the wheel"

    def test_a_calendar_that_cannot_be_read_at_a_takeover_forgets_no_attempt(
        self, world: World
    ) -> None:
        job = world.create("job", "* * * * *", calendar=("holidays", CalendarRule.SKIP))
        message = world.due(job)
        row = Run(message.key, RunStatus.RUNNING, 1, 1, "c", message.generation_id, NOON, NOON)
        assert world.runs.claim(row, None)

        with world.failing(world.calendars, "get"), pytest.raises(StoreUnavailableError):
            world.handle(message)
        world.handle(message)
        assert world.run_of(message).attempt == 2


def test_what_would_run_in_the_place_of_a_late_one_is_given_back_where_that_is_not_recorded(
    world: World,
) -> None:
    """Its attempt counted, and was the only one: it was dead without a call."""
    job = world.create("job", "* * * * *", retry=RetryPolicy(max_attempts=1))
    late = world.due(job)
    world.clock.advance(130)
    latest = message_of(job, late.due_at + timedelta(minutes=2))
    with world.failing(world.runs, "finish", times=1), pytest.raises(StoreUnavailableError):
        world.handle(late)
    assert world.runs.get(latest.key) is None
    world.clock.advance(10)
    world.handle(late)
    assert world.run_of(latest).status is RunStatus.SUCCEEDED
    assert [call.fire_at for call in world.targets.calls] == [latest.key.fire_at]


class TestWhatFollowsFails:
    """A run has died for good: whoever repeats what follows from it tells nobody of that."""

    def dies(self, world: World) -> Message:
        job = world.create(
            "job",
            "* * * * *",
            retry=RetryPolicy(max_attempts=1),
            on_failure=TaskTarget(name="tell"),
        )
        world.targets.behave = lambda call: Failure(RunError("busy", "later"))
        return world.due(job)

    def test_it_is_told_and_the_message_waits_for_the_store(self, world: World) -> None:
        message = self.dies(world)
        down = StoreUnavailableError("down")
        with world.failing(world.executor_ports.indexer, "schedule_message", down):
            report = world.executor.lane(encode(message), world.ends_at())
        died, waits = report.whole
        assert died.run == world.run_of(message)
        assert (died.handled, waits.handled) == (Handled.RAN, Handled.DEFERRED)
        world.clock.advance(10)
        (kept,) = world.queue.kept()
        assert world.handle(kept.message).handled is Handled.REPEATED
        assert message.key.callback in {each.message.key for each in world.queue.kept()}

    def test_it_is_told_and_the_message_stays_with_the_queue(self, world: World) -> None:
        message, down = self.dies(world), QueueUnavailableError(1, "down")
        with (
            world.failing(world.queue, "send", down),
            pytest.raises(PartlyHandledError) as raised,
        ):
            world.executor.lane(encode(message), world.ends_at())
        assert raised.value.__cause__ is down
        assert raised.value.report.run == world.run_of(message)
