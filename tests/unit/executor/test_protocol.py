"""The run protocol on memory stores: what a crash between any two calls leaves behind."""

from dataclasses import replace
from datetime import timedelta

import pytest

from carillon.domain.decisions import Drop
from carillon.domain.execution import start_decision as starting
from carillon.domain.execution.resuming import resume_message
from carillon.domain.job import Generation, Job, Slow
from carillon.domain.message import Missed
from carillon.domain.policies import CatchUp, RetryPolicy
from carillon.domain.run import Run, RunError, RunKind, RunStatus
from carillon.domain.wheel.entry import message_of
from carillon.errors import HeldError, QueueUnavailableError, RunAloneError, StoreUnavailableError
from carillon.executor.batch import Handled
from carillon.executor.targets import Call, Failure, Outcome, Success
from tests.support.world import FUNCTION_SECONDS
from tests.unit.executor.kit import LEASE_SECONDS, MINUTE, NOON, World


@pytest.fixture
def job(world: World) -> Job:
    return world.create("job", "* * * * *", retry=RetryPolicy(max_attempts=3))


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
    report = world.handle(world.due(job))
    assert report.handled is Handled.RAN
    assert calls == ["claim", "finish"]


def test_a_duplicate_repeats_nothing_but_the_follow_up(world: World, job: Job) -> None:
    message = world.due(job)
    world.handle(message)
    report = world.handle(message)
    assert report.handled is Handled.REPEATED
    assert len(world.targets.calls) == 1


def test_the_job_is_read_after_the_claim(
    world: World, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pause acknowledged before the job is read must keep the run from starting."""
    message = world.due(job)
    claim = world.runs.claim

    def claim_then_pause(run: Run, over: Run | None) -> bool:
        claimed = claim(run, over)
        world.pause(job)
        return claimed

    monkeypatch.setattr(world.runs, "claim", claim_then_pause)
    report = world.handle(message)
    assert (report.handled, report.reason) == (Handled.SKIPPED, "paused")
    assert world.targets.calls == []


def test_an_early_message_is_sent_on_with_the_delay_that_is_left(world: World, job: Job) -> None:
    message = world.due(job)
    world.clock.advance(-30)
    report = world.handle(message)
    assert report.handled is Handled.DEFERRED
    (copy,) = world.queue.kept()
    assert (copy.message, copy.visible_at) == (message, message.due_at)
    assert world.runs.get(message.key) is None


def test_a_little_early_it_waits_and_starts_on_the_second(world: World, job: Job) -> None:
    message = world.due(job)
    world.clock.advance(-0.8)
    world.handle(message)
    assert world.run_of(message).lag_seconds == 0.0


def test_a_crash_in_the_call_is_taken_over_once_the_lease_has_lapsed(
    world: World, job: Job
) -> None:
    message = world.due(job)

    world.crash_in_call(message)
    with pytest.raises(HeldError, match="another executor holds the lease"):
        world.handle(message)
    assert world.queue.kept() == [], "a copy could be doubled at every look"
    lease_until = world.run_of(message).lease_until
    assert lease_until is not None
    world.clock.set(lease_until)
    assert world.handle(message).handled is Handled.RAN
    run = world.run_of(message)
    assert (run.status, run.attempt) == (RunStatus.SUCCEEDED, 2)
    assert [record.error.kind for record in run.attempts] == ["executor_died"]


def test_crashes_beyond_the_attempts_end_as_a_dead_letter(world: World, job: Job) -> None:
    message = world.due(job)

    for _ in range(3):
        world.crash_in_call(message)
        world.clock.advance(LEASE_SECONDS)
    world.handle(message)
    run = world.run_of(message)
    assert (run.status, run.reason) == (RunStatus.DEAD, "executor_died")


def test_a_paused_worker_cannot_record_over_its_successor(world: World, job: Job) -> None:
    """It wakes up after its lease lapsed and another has finished: its finish is refused, and it
    acts as if it had just received the message."""
    message = world.due(job)
    inner: list[Handled] = []

    def oversleep(call: Call) -> Outcome:
        if call.attempt == 1:
            world.clock.advance(FUNCTION_SECONDS + 5)
            inner.append(world.handle(message).handled)
        return Success(f"by attempt {call.attempt}")

    world.targets.behave = oversleep
    report = world.handle(message)
    assert inner == [Handled.RAN]
    assert report.handled is Handled.REPEATED
    assert world.run_of(message).result == "by attempt 2"


def test_a_crash_between_the_retrys_message_and_the_finish_loses_no_attempt(
    world: World, job: Job
) -> None:
    message = world.due(job)
    world.targets.behave = lambda call: Failure(RunError("busy", "later"))

    with world.dying(world.runs, "finish"):
        world.handle(message)
    (retry,) = world.queue.kept()
    assert retry.message.attempt == 2
    world.targets.behave = lambda call: Success(None)
    world.clock.set(retry.visible_at)
    assert world.handle(retry.message).handled is Handled.DEFERRED
    world.clock.advance(LEASE_SECONDS)
    assert world.handle(message).handled is Handled.RAN
    assert world.handle(retry.message).handled is Handled.REPEATED
    run = world.run_of(message)
    assert (run.status, run.attempt, len(world.targets.calls)) == (RunStatus.SUCCEEDED, 2, 2)


def test_duplicates_of_a_failed_attempt_order_no_further_retries(world: World, job: Job) -> None:
    message = world.due(job)
    world.targets.behave = lambda call: Failure(RunError("busy", "later"))
    for _ in range(3):
        world.handle(message)
    (retry,) = world.queue.kept()
    assert retry.message.attempt == 2


def test_a_retry_that_the_queue_does_not_take_is_an_attempt_without_a_record(
    world: World, job: Job
) -> None:
    message = world.due(job)
    world.targets.behave = lambda call: Failure(RunError("busy", "later"))

    gone = QueueUnavailableError(1, "throttled")
    with world.failing(world.queue, "send", gone), pytest.raises(QueueUnavailableError):
        world.handle(message)
    assert world.run_of(message).status is RunStatus.RUNNING
    world.clock.advance(LEASE_SECONDS)
    world.handle(message)
    run = world.run_of(message)
    assert (run.status, run.attempt) == (RunStatus.RETRYING, 2)


def test_a_message_before_its_commit_waits_and_leaves_no_run(world: World) -> None:
    uncommitted = world.new_job("new", "* * * * *")
    message = message_of(uncommitted, NOON)
    report = world.handle(message)
    assert report.handled is Handled.DEFERRED
    assert world.runs.get(message.key) is None
    world.clock.advance(61)
    assert world.handle(message).handled is Handled.DROPPED


def test_a_run_is_not_started_in_a_process_that_cannot_finish_it(world: World, job: Job) -> None:
    message = world.due(job)
    report = world.executor.handle(message, world.clock.now() + timedelta(seconds=5))
    assert report.handled is Handled.DEFERRED
    assert world.targets.calls == []
    assert world.runs.get(message.key) is None
    world.clock.advance(1)
    assert world.handle(message).handled is Handled.RAN


def test_a_takeover_waits_until_nothing_runs_beside_it(world: World, job: Job) -> None:
    message = world.due(job)
    assert world.handle(message, alone=False).handled is Handled.RAN
    world.clock.advance(60)
    message = message_of(job, NOON + timedelta(minutes=2))
    world.crash_in_call(message)
    world.clock.advance(LEASE_SECONDS)
    died = world.run_of(message)
    with pytest.raises(RunAloneError):
        world.handle(message, alone=False)
    assert world.run_of(message) == died
    assert world.handle(message).handled is Handled.RAN


def test_a_manual_run_is_claimed_from_its_scheduled_row(world: World, job: Job) -> None:
    message = world.due(job)
    manual = replace(message, key=replace(message.key, kind=RunKind.MANUAL, request_id="REQ"))
    now = world.clock.now()
    row = Run(manual.key, RunStatus.SCHEDULED, 0, 0, "", manual.generation_id, now, now)
    assert world.runs.claim(row, None)
    assert world.handle(manual).handled is Handled.RAN
    assert world.run_of(manual).attempt == 1


def test_a_takeover_that_cannot_read_the_job_forgets_no_attempt(world: World, job: Job) -> None:
    message = world.due(job)

    world.crash_in_call(message)
    world.clock.advance(LEASE_SECONDS)

    with world.failing(world.jobs, "get"), pytest.raises(StoreUnavailableError):
        world.handle(message)
    world.handle(message)
    assert world.run_of(message).attempt == 2


def test_noise_takes_no_row_along_that_another_filing_has_claimed_too(
    world: World, job: Job
) -> None:
    """Found by the simulation: the message of a generation that was replaced took a run over,
    died, came again and removed the row, and with it the attempts of the generation that counts."""
    first = job
    job = world.new_generation(
        job
    )  # both had the occurrence announced when the generation was replaced
    counts, noise = world.due(job), message_of(first, NOON + timedelta(minutes=1))
    world.crash_in_call(counts)
    world.clock.advance(LEASE_SECONDS)
    with world.dying(world.jobs, "get"):
        world.handle(noise)
    assert (world.run_of(counts).attempt, world.run_of(counts).generation_id) == (
        2,
        noise.generation_id,
    )

    world.new_generation(job)
    world.clock.advance(LEASE_SECONDS)
    assert world.handle(noise).handled is Handled.RAN, "for the generation that counts"
    assert world.handle(counts).handled is Handled.REPEATED
    run = world.run_of(counts)
    assert (run.status, run.attempt, run.other_generations) == (RunStatus.SUCCEEDED, 3, ())
    assert run.generation_id == counts.generation_id


def test_an_attempt_stays_that_was_made_for_a_generation_yet_to_be_committed(
    world: World, job: Job
) -> None:
    """Found by the race "spread of a one-shot": its executor died, and what a tick caught up on for
    the generation before removed the row, so that the first attempt was made twice."""
    world.clock.advance(30)
    now = world.clock.now()
    changed = job.in_new_generation(Generation(world.entropy.new_id(now), now), now)
    older, newer = world.due(job), world.due(changed)
    world.crash_in_call(newer)
    assert world.jobs.replace(changed, job.revision)

    world.clock.advance(LEASE_SECONDS)
    assert world.handle(replace(older, in_time=False)).handled is Handled.RAN
    assert world.handle(newer).handled is Handled.REPEATED
    run = world.run_of(newer)
    assert (run.attempt, run.generation_id) == (2, newer.generation_id)


@pytest.mark.parametrize("fails", [False, True])
def test_a_run_that_another_filing_begins_is_the_own_filings(
    world: World, job: Job, fails: bool
) -> None:
    """Found by the simulation: a duplicate from before a resume ran an occurrence of a generation
    that counts, came again after the next resume, and removed the row with the attempts that were
    made; the own message had been acknowledged when it met the run. Seed 9601000088: where it never
    comes, as a catch-up passes it over, the row that was left to it was RUNNING for ever."""
    first = job
    job = world.new_generation(job)
    own, older = world.due(job), message_of(first, NOON + timedelta(minutes=1))
    if fails:
        world.targets.behave = lambda call: Failure(RunError("busy", "later"))
        assert world.handle(older).handled is Handled.RAN
        assert world.handle(own).handled is Handled.REPEATED
        retries = [kept.message for kept in world.queue.kept()]
        assert {retry.generation_id for retry in retries} == {job.generation.generation_id}
        world.clock.advance(60)
        world.crash_in_call(retries[0])
    else:
        world.crash_in_call(older)
    begun = world.run_of(own)
    comes_again_too = () if fails else (first.generation.generation_id,)
    assert begun.generation_id == job.generation.generation_id
    assert begun.other_generations == comes_again_too

    world.new_generation(job)
    world.clock.advance(LEASE_SECONDS)
    ran = world.handle(older).handled
    assert ran is (Handled.DROPPED if fails else Handled.RAN)
    if fails:
        assert len(world.run_of(own).attempts) == begun.attempt - 1
        assert world.handle(retries[0]).handled is Handled.RAN
    run = world.run_of(own)
    assert (run.status, run.attempt) == (RunStatus.SUCCEEDED, begun.attempt + 1)
    assert (run.generation_id, run.other_generations) == (begun.generation_id, ())


@pytest.mark.parametrize("seconds", [FUNCTION_SECONDS, 5], ids=["another lane", "another process"])
def test_what_is_put_off_comes_as_the_filing_that_its_row_awaits(
    world: World, job: Job, monkeypatch: pytest.MonkeyPatch, seconds: int
) -> None:
    """Seed 9100001139: it came as the own filing's. When the day was closed then, the row was left
    to the other one, of which nothing came any more: RUNNING for ever."""
    first = job
    job = world.new_generation(job, slow=Slow(NOON, "slow"))
    own, older = world.due(job), message_of(first, NOON + timedelta(minutes=1))
    world.crash_in_call(replace(older, lane=job.lane))
    world.clock.advance(LEASE_SECONDS)
    world.drain()
    assert world.handle(older, seconds).handled is Handled.DEFERRED
    (again,) = world.drain()

    monkeypatch.setattr(starting, "decide_start", lambda *args: Drop("none of them counts"))
    for message in (own, again):
        world.clock.advance(1)
        assert world.handle(message).handled is Handled.DROPPED
    assert world.runs.get(own.key) is None


def test_the_last_filing_that_does_not_count_removes_its_row(
    world: World, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages = [world.due(job)]
    for _ in range(2):
        job = world.new_generation(job)
        messages.append(world.due(job))
    world.clock.set(NOON + timedelta(minutes=1))
    world.new_generation(job, "0 0 1 1 *")
    monkeypatch.setattr(starting, "decide_start", lambda *args: Drop("none of them counts"))
    for message in messages:
        with world.dying(world.jobs, "get"):
            world.handle(message)
        world.clock.advance(LEASE_SECONDS)
    assert len(world.run_of(messages[0]).other_generations) == 2
    for message in messages:
        assert world.runs.get(message.key) is not None
        assert world.handle(message).handled is Handled.DROPPED
        world.clock.advance(1)
    assert world.runs.get(messages[0].key) is None


def test_what_a_message_stands_for_is_recorded_though_another_one_ran_in_its_place(
    world: World, job: Job
) -> None:
    """A resumption that comes late sends its own messages, which no entry has."""
    message = world.due(job, minutes=5)
    world.handle(message)
    missed = Missed(NOON, CatchUp.LATEST, job.schedule)
    assert world.handle(replace(message, missed=missed, slot_key="")).handled is Handled.REPEATED
    (row,) = [run for run in world.history(job) if run.key.kind is RunKind.MISSED]
    assert (row.covers_from, row.key.fire_at) == (NOON + MINUTE, NOON + 4 * MINUTE)


@pytest.mark.parametrize("is_there", [True, False])
def test_what_a_message_stands_for_waits_until_it_can_be_recorded(
    world: World, job: Job, is_there: bool
) -> None:
    """The pace of catching up holds it back until after the end of a pause, whose resumption is
    late: the message that knows of the span is deferred."""
    message = world.due(job, minutes=5)
    if is_there:
        world.handle(message)
    now, resumed_at = world.clock.now(), message.key.fire_at + 2 * MINUTE
    paused = job.paused(now, resume_at=resumed_at)
    assert world.jobs.replace(paused, job.revision)
    world.clock.advance(180)
    missed = Missed(NOON, CatchUp.LATEST, job.schedule)
    late = replace(message, missed=missed, slot_key="", wait_until=resumed_at + MINUTE)
    assert world.handle(late).handled is Handled.DEFERRED
    world.handle(resume_message(paused))
    world.handle(late)
    (row,) = [run for run in world.history(job) if run.key.kind is RunKind.MISSED]
    assert (row.covers_from, row.key.fire_at) == (NOON + MINUTE, NOON + 4 * MINUTE)


def test_the_end_of_a_run_whose_job_is_gone_is_told_without_its_name(
    world: World, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = world.due(job)
    world.targets.behave = lambda call: Failure(RunError("fail", "no", permanent=True))
    world.handle(message)
    world.gathered._held.clear()  # the executor dies before it tells of it
    monkeypatch.setattr(world.jobs, "get", lambda owner, job_id: None)
    assert world.handle(message).handled is Handled.REPEATED
    world.gathered.flush()
    (told,) = [result for record in world.activity.all() for result in record.results]
    assert (told.key, told.status, told.job_name) == (message.key, RunStatus.DEAD, "")
