"""Runs that the end of another job's run starts."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from carillon.domain.execution.successors import link_of, linked, messages_after
from carillon.domain.job import Job
from carillon.domain.message import Message
from carillon.domain.policies import CatchUp, Overlap, RetryPolicy
from carillon.domain.run import Run, RunError, RunKey, RunKind, RunStatus
from carillon.domain.spec.after import After, Outcome
from carillon.domain.spec.completion_spec import CompletionSpec
from carillon.domain.targets import WebhookTarget
from carillon.executor.batch import Handled
from carillon.executor.targets import Failure, Success
from carillon.schedules import NEVER
from tests.support.jobs import job_with
from tests.unit.executor.kit import LEASE_SECONDS, MINUTE, NOON, World

ONCE = RetryPolicy(max_attempts=1)


def pair(world: World, after: After | None = None, **settings: Any) -> tuple[Job, Job]:
    """A job every minute, and one that runs after it."""
    setting = after or After("nightly")
    made = world.new_job("report", "every 1m", retry=ONCE, **settings)
    report = job_with(made, schedule=NEVER, after=setting)
    nightly = world.create("nightly", "every 1m", retry=ONCE, catch_up=CatchUp.ALL)
    link = link_of(report)
    assert link is not None
    assert world.jobs.relink(linked(nightly, link), ())
    assert world.indexer.index_job(report, None)
    return world.stored(nightly), report


def ended(world: World, nightly: Job) -> tuple[Run, list[Message]]:
    """The end of the next run of the predecessor, and what it has sent."""
    message = world.due(nightly)
    world.handle(message)
    return world.run_of(message), world.drain()


def fail(world: World) -> None:
    world.targets.behave = lambda call: Failure(RunError("http_400", "no", permanent=True))


def test_a_success_starts_one_run_whose_key_names_it(world: World) -> None:
    nightly, report = pair(world)
    before, (message,) = ended(world, nightly)

    assert message.key == before.key.successor(report.job_id)
    assert (message.key.kind, message.key.predecessor) == (RunKind.AFTER, before.key)
    assert RunKey.from_run_id(message.key.owner, message.key.run_id) == message.key
    assert world.handle(message).handled is Handled.RAN
    assert world.run_of(message).status is RunStatus.SUCCEEDED
    assert world.handle(message).handled is Handled.REPEATED
    assert [call.job_name for call in world.targets.calls] == ["nightly", "report"]
    assert world.drain() == [], "nothing follows a run that was started so"


@pytest.mark.parametrize(
    ("when", "starts"),
    [
        (Outcome.SUCCEEDED, {RunStatus.SUCCEEDED}),
        (Outcome.FAILED, {RunStatus.DEAD, RunStatus.TIMED_OUT}),
        (Outcome.FINISHED, {RunStatus.SUCCEEDED, RunStatus.DEAD, RunStatus.TIMED_OUT}),
    ],
)
@pytest.mark.parametrize("kind", RunKind)
def test_what_starts_a_run_by_end_and_kind(
    world: World, when: Outcome, starts: set[RunStatus], kind: RunKind
) -> None:
    nightly, _ = pair(world, After("nightly", when))
    run, _ = ended(world, nightly)
    counts = kind in (RunKind.SCHEDULED, RunKind.MANUAL, RunKind.BACKFILL)
    for status in RunStatus:
        found = list(
            messages_after(replace(run, key=replace(run.key, kind=kind), status=status), nightly)
        )
        assert bool(found) == (counts and status in starts), status


def test_a_redrive_starts_it_once_more_under_another_key(world: World) -> None:
    nightly, _ = pair(world, After("nightly", Outcome.FINISHED))
    fail(world)
    before, (first,) = ended(world, nightly)
    redriven = replace(before, key=before.key.redriven)
    (second,) = messages_after(redriven, nightly)
    assert first.key != second.key
    assert second.key.predecessor == redriven.key


def test_a_follow_up_that_died_is_repeated_by_the_next_reception(world: World) -> None:
    nightly, report = pair(world)
    message = world.due(nightly)
    with world.dying(world.queue, "send"):
        world.handle(message)
    assert world.run_of(message).status is RunStatus.SUCCEEDED
    assert world.drain() == []
    assert world.handle(message).handled is Handled.REPEATED
    (sent,) = world.drain()
    assert sent.key == world.run_of(message).key.successor(report.job_id)


def test_runs_that_ended_before_the_link_start_nothing(world: World) -> None:
    nightly = world.create("nightly", "every 1m")
    message = world.due(nightly)
    world.handle(message)
    world.clock.advance(61)
    report = job_with(world.new_job("report", "every 1m"), schedule=NEVER, after=After("nightly"))
    link = link_of(report)
    assert link is not None
    assert world.jobs.relink(linked(nightly, link), ())
    assert world.indexer.index_job(report, None)

    assert world.handle(message).handled is Handled.REPEATED
    assert world.drain() == []


def test_what_had_ended_before_the_job_was_made_starts_nothing_by_the_link_of_a_creation_that_died(
    world: World,
) -> None:
    nightly, report = pair(world)
    message = world.due(nightly)
    with world.dying(world.queue, "send"):
        world.handle(message)
    world.jobs._rows.pop(report.job_id)
    world.clock.advance(62)
    assert world.indexer.index_job(job_with(report, created_at=world.clock.now()), None)
    assert world.handle(message).handled is Handled.REPEATED
    (sent,) = world.drain()
    assert world.handle(sent).handled is Handled.DROPPED
    assert world.runs.get(sent.key) is None


def test_a_job_that_was_never_committed_starts_and_records_nothing(world: World) -> None:
    nightly, report = pair(world)
    _, (message,) = ended(world, nightly)
    world.jobs._rows.pop(report.job_id)
    assert world.handle(message).handled is Handled.DROPPED
    assert world.runs.get(message.key) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"after": None, "schedule": "every 1m"},
        {"after": After("other")},
        {"after": After("nightly", Outcome.FAILED)},
    ],
    ids=["a schedule", "another job", "another end"],
)
def test_a_job_that_says_otherwise_by_now_starts_nothing(
    world: World, changes: dict[str, Any]
) -> None:
    nightly, report = pair(world)
    _, (message,) = ended(world, nightly)
    after = changes["after"]
    world.change(report, after=after)
    assert world.handle(message).handled is Handled.DROPPED
    assert world.runs.get(message.key) is None


def test_a_copy_leaves_the_row_of_a_called_attempt_to_the_retry(world: World) -> None:
    """Seed 9100000491: the history lost an attempt, and the run its retry."""
    nightly, report = pair(world)
    report = world.change(report, retry=RetryPolicy(max_attempts=4))
    _, (message,) = ended(world, nightly)
    world.targets.behave = lambda call: Failure(RunError("http_500", "not now"))
    world.handle(message)
    (retry,) = world.drain()
    world.clock.advance(60)
    world.crash_in_call(retry)
    world.clock.advance(3600)
    world.change(report, after=None)

    assert world.handle(message).handled is Handled.DROPPED
    assert [each.attempt for each in world.run_of(message).attempts] == [1]
    world.targets.behave = lambda call: Success(None)
    assert world.handle(retry).handled is Handled.RAN
    run = world.run_of(message)
    assert (run.status, run.attempt) == (RunStatus.SUCCEEDED, 3)


def test_what_has_announced_its_call_goes_on_though_its_job_says_otherwise_by_now(
    world: World,
) -> None:
    """Its target has the token, and may report, or have reported that it is at work."""
    terms = CompletionSpec(within="1h")
    target = WebhookTarget(url="https://a.example/", completion=terms)
    nightly, report = pair(world, target=target)
    report = world.change(report, retry=RetryPolicy(max_attempts=2))
    _, (message,) = ended(world, nightly)
    world.crash_in_call(message)
    world.change(report, after=After("nightly", Outcome.FAILED))
    world.clock.advance(LEASE_SECONDS)
    assert world.handle(message).handled is Handled.RAN
    assert world.run_of(message).attempt == 2


@pytest.mark.parametrize("stop", ["paused", "deleted"])
def test_a_stopped_job_records_a_skip(world: World, stop: str) -> None:
    nightly, report = pair(world)
    _, (message,) = ended(world, nightly)
    now = world.clock.now()
    row = report.paused(now) if stop == "paused" else report.deleted(now, now + timedelta(days=30))
    assert world.jobs.replace(row, report.revision)
    assert world.handle(message).handled is Handled.SKIPPED
    assert world.run_of(message).reason == stop


@pytest.mark.parametrize(("seconds", "handled"), [(60, Handled.RAN), (61, Handled.SKIPPED)])
def test_within_counts_from_the_effective_time_of_the_run_before(
    world: World, seconds: int, handled: Handled
) -> None:
    nightly, _ = pair(world, After("nightly", Outcome.SUCCEEDED, 60))
    message = world.due(nightly)
    world.clock.advance(seconds)
    world.handle(message)
    (started,) = world.drain()
    assert world.handle(started).handled is handled
    if handled is Handled.SKIPPED:
        run = world.run_of(started)
        assert (run.reason, "1m1s after its time" in (run.note or "")) == ("misfire", True)


def test_the_run_before_is_in_the_template(world: World) -> None:
    payload = (
        '{"run":"{{after.run_id}}","got":"{{after.result}}",'
        '"at":"{{ after.fire_at }}, {{after.status}}"}'
    )
    nightly, report = pair(world, template=True, payload=payload)
    world.targets.behave = lambda call: Success("17 rows")
    before, (message,) = ended(world, nightly)
    world.handle(message)
    call = world.targets.calls[-1]
    assert call.payload == (
        f'{{"run":"{before.key.run_id}","got":"17 rows","at":"2026-12-01T12:01:00Z, succeeded"}}'
    )
    # Run by hand there is none.
    manual = RunKey(report.owner, report.job_id, RunKind.MANUAL, NOON, "r1")
    world.handle(Message.of(report, manual, NOON))
    assert world.targets.calls[-1].payload == '{"run":null,"got":null,"at":", "}'


def test_the_run_before_may_be_gone(world: World) -> None:
    nightly, _ = pair(world)
    before, (message,) = ended(world, nightly)
    world.runs._rows.pop(before.key)
    assert world.handle(message).handled is Handled.SKIPPED
    run = world.run_of(message)
    assert (run.reason, run.note) == ("changed", "the run that it follows is gone")


def test_overlap_skips_it_as_an_occurrence(world: World) -> None:
    nightly, _ = pair(world, overlap=Overlap.SKIP)
    _, (first,) = ended(world, nightly)
    world.crash_in_call(first)  # its lease lasts on

    second = world.due(nightly, 2)
    world.handle(second)
    (message,) = world.drain()
    assert world.handle(message).handled is Handled.SKIPPED
    assert world.run_of(message).reason == "overlap"


def test_failures_in_a_row_pause_it(world: World) -> None:
    nightly, report = pair(world, pause_after_failures=1)
    _, (message,) = ended(world, nightly)
    fail(world)
    world.clock.set(NOON + 2 * MINUTE)
    world.handle(message)
    paused = world.stored(report)
    assert (paused.state.value, "failed" in paused.note) == ("paused", True)
