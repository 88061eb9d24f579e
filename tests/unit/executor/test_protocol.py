"""The run protocol on memory stores: what a crash between any two calls leaves behind."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from carillon.domain.decisions import Drop
from carillon.domain.execution import start_decision as starting
from carillon.domain.job import Job
from carillon.domain.message import Message
from carillon.domain.policies import RetryPolicy
from carillon.domain.run import Run, RunError, RunKind, RunStatus
from carillon.domain.wheel.entry import message_of
from carillon.errors import HeldError, QueueUnavailableError, RunAloneError, StoreUnavailableError
from carillon.executor.batch import Handled
from carillon.executor.targets import Call, Failure, Outcome, Success
from tests.support.world import FUNCTION_SECONDS, World

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)


class Killed(BaseException):
    """The process dies here: nothing after it runs."""


@pytest.fixture
def world() -> World:
    return World(NOON)


@pytest.fixture
def job(world: World) -> Job:
    return world.create("job", "* * * * *", retry=RetryPolicy(max_attempts=3))


def due(world: World, job: Job) -> Message:
    """The message of the next occurrence, at its very instant; the queue holds nothing."""
    message = message_of(job, NOON + timedelta(minutes=1))
    world.clock.set(message.due_at)
    for kept in world.queue.kept():
        world.queue.delete(kept.receipt)
    return message


def ends_at(world: World) -> datetime:
    return world.clock.now() + timedelta(seconds=FUNCTION_SECONDS)


def run_of(world: World, message: Message) -> Run:
    run = world.runs.get(message.key)
    assert run is not None
    return run


def crash_in_call(world: World, message: Message) -> None:
    """The executor dies while it calls the target; later calls succeed."""

    def die(call: Call) -> Outcome:
        raise Killed

    world.targets.behave = die
    with pytest.raises(Killed):
        world.executor.handle(message, ends_at(world))
    world.targets.behave = lambda call: Success(None)


def test_an_ordinary_run_is_one_claim_one_read_one_finish(
    world: World, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    for store, name in ((world.runs, "claim"), (world.runs, "finish"), (world.runs, "get")):
        original = getattr(store, name)

        def counted(*args: object, _name: str = name, _original: object = original) -> object:
            calls.append(_name)
            return _original(*args)  # type: ignore[operator]

        monkeypatch.setattr(store, name, counted)
    report = world.executor.handle(due(world, job), ends_at(world))
    assert report.handled is Handled.RAN
    assert calls == ["claim", "finish"]


def test_a_duplicate_repeats_nothing_but_the_follow_up(world: World, job: Job) -> None:
    message = due(world, job)
    world.executor.handle(message, ends_at(world))
    report = world.executor.handle(message, ends_at(world))
    assert report.handled is Handled.REPEATED
    assert len(world.targets.calls) == 1


def test_the_job_is_read_after_the_claim(
    world: World, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pause acknowledged before the job is read must keep the run from starting."""
    message = due(world, job)
    claim = world.runs.claim

    def claim_then_pause(run: Run, over: Run | None) -> bool:
        claimed = claim(run, over)
        world.pause(job)
        return claimed

    monkeypatch.setattr(world.runs, "claim", claim_then_pause)
    report = world.executor.handle(message, ends_at(world))
    assert (report.handled, report.reason) == (Handled.SKIPPED, "paused")
    assert world.targets.calls == []


def test_an_early_message_is_sent_on_with_the_delay_that_is_left(world: World, job: Job) -> None:
    message = due(world, job)
    world.clock.advance(-30)
    report = world.executor.handle(message, ends_at(world))
    assert report.handled is Handled.DEFERRED
    (copy,) = world.queue.kept()
    assert (copy.message, copy.visible_at) == (message, message.due_at)
    assert world.runs.get(message.key) is None


def test_a_little_early_it_waits_and_starts_on_the_second(world: World, job: Job) -> None:
    message = due(world, job)
    world.clock.advance(-0.8)
    world.executor.handle(message, ends_at(world))
    assert run_of(world, message).lag_seconds == 0.0


def test_a_crash_in_the_call_is_taken_over_once_the_lease_has_lapsed(
    world: World, job: Job
) -> None:
    message = due(world, job)

    crash_in_call(world, message)
    with pytest.raises(HeldError, match="another executor holds the lease"):
        world.executor.handle(message, ends_at(world))
    assert world.queue.kept() == [], "a copy could be doubled at every look"
    lease_until = run_of(world, message).lease_until
    assert lease_until is not None
    world.clock.set(lease_until)
    assert world.executor.handle(message, ends_at(world)).handled is Handled.RAN
    run = run_of(world, message)
    assert (run.status, run.attempt) == (RunStatus.SUCCEEDED, 2)
    assert [record.error.kind for record in run.attempts] == ["executor_died"]


def test_crashes_beyond_the_attempts_end_as_a_dead_letter(world: World, job: Job) -> None:
    message = due(world, job)

    for _ in range(3):
        crash_in_call(world, message)
        world.clock.advance(FUNCTION_SECONDS + 2)
    world.executor.handle(message, ends_at(world))
    run = run_of(world, message)
    assert (run.status, run.reason) == (RunStatus.DEAD, "executor_died")


def test_a_paused_worker_cannot_record_over_its_successor(world: World, job: Job) -> None:
    """It wakes up after its lease lapsed and another has finished: its finish is refused, and it
    acts as if it had just received the message."""
    message = due(world, job)
    inner: list[Handled] = []

    def oversleep(call: Call) -> Outcome:
        if call.attempt == 1:
            world.clock.advance(FUNCTION_SECONDS + 5)
            inner.append(world.executor.handle(message, ends_at(world)).handled)
        return Success(f"by attempt {call.attempt}")

    world.targets.behave = oversleep
    report = world.executor.handle(message, ends_at(world))
    assert inner == [Handled.RAN]
    assert report.handled is Handled.REPEATED
    assert run_of(world, message).result == "by attempt 2"


def test_a_crash_between_the_retrys_message_and_the_finish_loses_no_attempt(
    world: World, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = due(world, job)
    world.targets.behave = lambda call: Failure(RunError("busy", "later"))

    def die(run: Run) -> bool:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(world.runs, "finish", die)
        with pytest.raises(Killed):
            world.executor.handle(message, ends_at(world))
    (retry,) = world.queue.kept()
    assert retry.message.attempt == 2
    world.targets.behave = lambda call: Success(None)
    world.clock.set(retry.visible_at)
    assert world.executor.handle(retry.message, ends_at(world)).handled is Handled.DEFERRED
    world.clock.advance(FUNCTION_SECONDS + 2)
    assert world.executor.handle(message, ends_at(world)).handled is Handled.RAN
    assert world.executor.handle(retry.message, ends_at(world)).handled is Handled.REPEATED
    run = run_of(world, message)
    assert (run.status, run.attempt, len(world.targets.calls)) == (RunStatus.SUCCEEDED, 2, 2)


def test_duplicates_of_a_failed_attempt_order_no_further_retries(world: World, job: Job) -> None:
    message = due(world, job)
    world.targets.behave = lambda call: Failure(RunError("busy", "later"))
    for _ in range(3):
        world.executor.handle(message, ends_at(world))
    (retry,) = world.queue.kept()
    assert retry.message.attempt == 2


def test_a_retry_that_the_queue_does_not_take_is_an_attempt_without_a_record(
    world: World, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = due(world, job)
    world.targets.behave = lambda call: Failure(RunError("busy", "later"))

    def refuse(messages: Sequence[Message], delays: Sequence[float], *until: Any) -> None:
        raise QueueUnavailableError(1, "throttled")

    with monkeypatch.context() as patch:
        patch.setattr(world.queue, "send", refuse)
        with pytest.raises(QueueUnavailableError):
            world.executor.handle(message, ends_at(world))
    assert run_of(world, message).status is RunStatus.RUNNING
    world.clock.advance(FUNCTION_SECONDS + 2)
    world.executor.handle(message, ends_at(world))
    run = run_of(world, message)
    assert (run.status, run.attempt) == (RunStatus.RETRYING, 2)


def test_a_message_before_its_commit_waits_and_leaves_no_run(world: World) -> None:
    uncommitted = world.new_job("new", "* * * * *")
    message = message_of(uncommitted, NOON)
    report = world.executor.handle(message, ends_at(world))
    assert report.handled is Handled.DEFERRED
    assert world.runs.get(message.key) is None
    world.clock.advance(61)
    assert world.executor.handle(message, ends_at(world)).handled is Handled.DROPPED


def test_a_run_is_not_started_in_a_process_that_cannot_finish_it(world: World, job: Job) -> None:
    message = due(world, job)
    report = world.executor.handle(message, world.clock.now() + timedelta(seconds=5))
    assert report.handled is Handled.DEFERRED
    assert world.targets.calls == []
    assert world.runs.get(message.key) is None
    world.clock.advance(1)
    assert world.executor.handle(message, ends_at(world)).handled is Handled.RAN


def test_a_takeover_waits_until_nothing_runs_beside_it(world: World, job: Job) -> None:
    message = due(world, job)
    assert world.executor.handle(message, ends_at(world), alone=False).handled is Handled.RAN
    world.clock.advance(60)
    message = message_of(job, NOON + timedelta(minutes=2))
    crash_in_call(world, message)
    world.clock.advance(FUNCTION_SECONDS + 2)
    died = run_of(world, message)
    with pytest.raises(RunAloneError):
        world.executor.handle(message, ends_at(world), alone=False)
    assert run_of(world, message) == died
    assert world.executor.handle(message, ends_at(world)).handled is Handled.RAN


class TestDeadLetterQueue:
    """What the consumer of a lane's dead-letter queue does."""

    def sent_back(self, world: World, message: Message) -> Message:
        """What the consumer sends back in the place of the message; it calls nobody."""
        report = world.executor.handle_dead(message, ends_at(world))
        assert report.handled is Handled.SENT_BACK
        kept = world.queue.kept()[-1]
        world.queue.delete(kept.receipt)
        assert kept.message == report.message
        assert kept.message.returns == message.returns + 1
        return kept.message

    def test_a_run_that_was_never_begun_goes_back_to_its_lane_and_runs(
        self, world: World, job: Job
    ) -> None:
        """On AWS a throttled invocation counts as a reception: five of them were a dead letter."""
        message = due(world, job)
        again = self.sent_back(world, message)
        assert again == replace(message, returns=1)
        assert world.runs.get(message.key) is None
        assert world.executor.handle(again, ends_at(world)).handled is Handled.RAN
        assert run_of(world, message).attempt == 1

    def test_each_return_waits_longer_up_to_a_quarter_of_an_hour(
        self, world: World, job: Job
    ) -> None:
        message, delays = due(world, job), []
        for _ in range(7):
            message = world.executor.handle_dead(message, ends_at(world)).message
            (kept,) = world.queue.kept()
            world.queue.delete(kept.receipt)
            delays.append((kept.visible_at - world.clock.now()).total_seconds())
        assert delays == [30, 60, 120, 240, 480, 900, 900]

    def test_a_live_lease_keeps_the_message(self, world: World, job: Job) -> None:
        message = due(world, job)
        crash_in_call(world, message)
        before = run_of(world, message)
        with pytest.raises(HeldError):
            world.executor.handle_dead(message, ends_at(world))
        assert (run_of(world, message), world.queue.kept()) == (before, [])

    def test_an_attempt_that_died_is_followed_by_another_as_long_as_any_is_left(
        self, world: World
    ) -> None:
        job = world.create("dies", "* * * * *", retry=RetryPolicy(max_attempts=2))
        message = due(world, job)
        crash_in_call(world, message)
        world.clock.advance(FUNCTION_SECONDS + 2)
        again = self.sent_back(world, message)
        assert run_of(world, message).attempt == 1

        crash_in_call(world, again)
        world.clock.advance(FUNCTION_SECONDS + 2)
        assert world.executor.handle_dead(again, ends_at(world)).handled is Handled.RAN
        run = run_of(world, message)
        assert (run.status, run.reason) == (RunStatus.DEAD, "executor_died")
        assert len(run.attempts) == 2

    def test_a_retry_that_was_never_begun_goes_back_to_its_lane(
        self, world: World, job: Job
    ) -> None:
        message = due(world, job)
        world.targets.behave = lambda call: Failure(RunError("busy", "later"))
        world.executor.handle(message, ends_at(world))
        (retry,) = (kept for kept in world.queue.kept() if kept.message.attempt == 2)
        world.queue.delete(retry.receipt)
        world.clock.set(retry.message.due_at)
        self.sent_back(world, retry.message)
        assert run_of(world, message).status is RunStatus.RETRYING

    @pytest.mark.parametrize("fails", [False, True])
    def test_what_could_not_be_begun_for_ten_days_is_dead_as_never_started(
        self, world: World, job: Job, fails: bool
    ) -> None:
        message = due(world, job)
        if fails:
            world.targets.behave = lambda call: Failure(RunError("busy", "later"))
            world.executor.handle(message, ends_at(world))
            message = next(k.message for k in world.queue.kept() if k.message.attempt == 2)
        world.clock.set(message.due_at + timedelta(days=10))
        message = self.sent_back(world, message)
        world.clock.advance(1)
        assert world.executor.handle_dead(message, ends_at(world)).handled is Handled.RAN
        run = run_of(world, message)
        assert (run.status, run.reason) == (RunStatus.DEAD, "never_started")
        assert run.error is not None
        assert run.error.kind == ("busy" if fails else "never_started")
        assert (len(run.attempts), run.attempt_started_at) == (int(fails), None)
        assert len(world.targets.calls) == int(fails)

    def test_a_retrying_run_is_left_to_the_message_of_its_retry(
        self, world: World, job: Job
    ) -> None:
        message = due(world, job)
        world.targets.behave = lambda call: Failure(RunError("busy", "later"))
        world.executor.handle(message, ends_at(world))
        before = run_of(world, message)
        assert world.executor.handle_dead(message, ends_at(world)) is not None
        assert run_of(world, message) == before
        (retry,) = world.queue.kept()
        assert retry.message.attempt == 2

    def test_a_finished_run_is_left_alone(self, world: World, job: Job) -> None:
        message = due(world, job)
        world.executor.handle(message, ends_at(world))
        before = run_of(world, message)
        report = world.executor.handle_dead(message, ends_at(world))
        assert report.handled is Handled.REPEATED
        assert run_of(world, message) == before

    def test_a_paused_jobs_run_is_skipped_not_dead(self, world: World, job: Job) -> None:
        message = due(world, job)
        world.pause(job)
        world.clock.advance(11 * 86_400)
        world.executor.handle_dead(message, ends_at(world))
        assert run_of(world, message).status is RunStatus.SKIPPED


def test_a_manual_run_is_claimed_from_its_scheduled_row(world: World, job: Job) -> None:
    message = due(world, job)
    manual = replace(message, key=replace(message.key, kind=RunKind.MANUAL, request_id="REQ"))
    now = world.clock.now()
    row = Run(manual.key, RunStatus.SCHEDULED, 0, 0, "", manual.generation_id, now, now)
    assert world.runs.claim(row, None)
    assert world.executor.handle(manual, ends_at(world)).handled is Handled.RAN
    assert run_of(world, manual).attempt == 1


def test_a_takeover_that_cannot_read_the_job_forgets_no_attempt(
    world: World, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = due(world, job)

    crash_in_call(world, message)
    world.clock.advance(FUNCTION_SECONDS + 2)

    def throttle(owner: str, job_id: str) -> Job:
        raise StoreUnavailableError("throttled")

    with monkeypatch.context() as patch:
        patch.setattr(world.jobs, "get", throttle)
        with pytest.raises(StoreUnavailableError):
            world.executor.handle(message, ends_at(world))
    world.executor.handle(message, ends_at(world))
    assert run_of(world, message).attempt == 2


def test_noise_takes_no_row_along_that_another_filing_has_claimed_too(
    world: World, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by the simulation: the message of a generation that was replaced took a run over,
    died, came again and removed the row, and with it the attempts of the generation that counts."""
    first = job
    job = world.new_generation(
        job
    )  # both had the occurrence announced when the generation was replaced
    counts, noise = due(world, job), message_of(first, NOON + timedelta(minutes=1))
    crash_in_call(world, counts)
    world.clock.advance(FUNCTION_SECONDS + 2)
    with monkeypatch.context() as patch:
        patch.setattr(world.jobs, "get", _die)
        with pytest.raises(Killed):
            world.executor.handle(noise, ends_at(world))
    assert (run_of(world, counts).attempt, run_of(world, counts).generation_id) == (
        2,
        noise.generation_id,
    )

    world.new_generation(job)
    world.clock.advance(FUNCTION_SECONDS + 2)
    assert world.executor.handle(noise, ends_at(world)).handled is Handled.DROPPED
    assert run_of(world, counts).generation_id == counts.generation_id
    assert world.executor.handle(counts, ends_at(world)).handled is Handled.RAN
    run = run_of(world, counts)
    assert (run.status, run.attempt, run.other_generations) == (RunStatus.SUCCEEDED, 3, ())


@pytest.mark.parametrize("fails", [False, True])
def test_a_run_that_another_filing_begins_is_the_own_filings(
    world: World, job: Job, fails: bool
) -> None:
    """Found by the simulation: a duplicate from before a resume ran an occurrence of a generation
    that counts, came again after the next resume, and removed the row with the attempts that were
    made; the own message had been acknowledged when it met the run."""
    first = job
    job = world.new_generation(job)
    own, older = due(world, job), message_of(first, NOON + timedelta(minutes=1))
    if fails:
        world.targets.behave = lambda call: Failure(RunError("busy", "later"))
        assert world.executor.handle(older, ends_at(world)).handled is Handled.RAN
        assert world.executor.handle(own, ends_at(world)).handled is Handled.REPEATED
        retries = [kept.message for kept in world.queue.kept()]
        assert {retry.generation_id for retry in retries} == {job.generation.generation_id}
        world.clock.advance(60)
        crash_in_call(world, retries[0])
    else:
        crash_in_call(world, older)
    begun = run_of(world, own)
    assert (begun.generation_id, begun.other_generations) == (job.generation.generation_id, ())

    world.new_generation(job)
    world.clock.advance(FUNCTION_SECONDS + 2)
    assert world.executor.handle(older, ends_at(world)).handled is Handled.DROPPED
    assert len(run_of(world, own).attempts) == begun.attempt - 1
    comes_again = retries[0] if fails else own
    assert world.executor.handle(comes_again, ends_at(world)).handled is Handled.RAN
    run = run_of(world, own)
    assert (run.status, run.attempt) == (RunStatus.SUCCEEDED, begun.attempt + 1)


def test_the_last_filing_that_does_not_count_removes_its_row(
    world: World, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages = [due(world, job)]
    for _ in range(2):
        job = world.new_generation(job)
        messages.append(due(world, job))
    world.clock.set(NOON + timedelta(minutes=1))
    world.new_generation(job, "0 0 1 1 *")
    monkeypatch.setattr(starting, "decide_start", lambda *args: Drop("none of them counts"))
    for message in messages:
        with monkeypatch.context() as patch:
            patch.setattr(world.jobs, "get", _die)
            with pytest.raises(Killed):
                world.executor.handle(message, ends_at(world))
        world.clock.advance(FUNCTION_SECONDS + 2)
    assert len(run_of(world, messages[0]).other_generations) == 2
    for message in messages:
        assert world.runs.get(message.key) is not None
        assert world.executor.handle(message, ends_at(world)).handled is Handled.DROPPED
        world.clock.advance(1)
    assert world.runs.get(messages[0].key) is None


def _die(*args: object) -> None:
    raise Killed
