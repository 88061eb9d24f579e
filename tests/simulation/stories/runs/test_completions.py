"""Runs that end later than their call, by a report: what becomes of them, told by hand."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from carillon.api.http.problems import MissingError
from carillon.api.runs.completions import CompletionService, ReportRefusedError
from carillon.domain.events import JOB_EVENTS
from carillon.domain.job import Job
from carillon.domain.policies import Backoff, BackoffType, Concurrency, Overlap, RetryPolicy
from carillon.domain.run import DeadReason, Run, RunError, RunStatus
from carillon.domain.spec.completion_spec import CompletionSpec
from carillon.domain.targets import SqsTarget, WebhookTarget
from carillon.executor.batch import Handled
from carillon.executor.targets import Call, ReportTo, Success
from tests.simulation.stories.operators.test_reindexing import lose_wheel, reindex
from tests.simulation.stories.story import MINUTE, NOON, SECOND, Killed
from tests.support.jobs import job_with
from tests.support.world import World

BEAT = 20
WITHIN = 120
RETRY = RetryPolicy(2, Backoff(base_seconds=5, type=BackoffType.FIXED))
FAILED = RunError("failed", "the disk is full")


def target(within: int = WITHIN, heartbeat: int | None = BEAT) -> WebhookTarget:
    return WebhookTarget(
        url="https://example.com/hook",
        completion=CompletionSpec.model_construct(within=within, heartbeat=heartbeat),
    )


def accepts(call: Call) -> Success:
    return Success("202", is_accepted=call.report_to is not None)


class Story:
    """One job, due at 12:01, whose receiver accepts the work."""

    def __init__(self, schedule: str = "1 12 * * *", **members: Any) -> None:
        self.world = World(NOON)
        self.world.targets.behave = accepts
        members = {"target": target(), "retry": RETRY} | members
        self.job: Job = self.world.create("long", schedule, **members)
        self.service = CompletionService(
            self.world.jobs,
            self.world.runs,
            self.world.indexer,
            self.world.clock,
            self.world.entropy,
        )

    def until(self, at: datetime) -> None:
        self.world.run_until(at)

    @property
    def run(self) -> Run:
        (run,) = self.world.history(self.job)
        return run

    @property
    def calls(self) -> list[Call]:
        return [call for call in self.world.targets.calls if call.report_to is not None]

    def address(self, number: int = -1) -> tuple[str, str]:
        """The run and the token that a call was told."""
        call = self.calls[number]
        assert call.report_to is not None
        return call.run_id, call.report_to.token

    def handled(self) -> list[Handled]:
        return [report.handled for report in self.world.reports]


DUE = NOON + MINUTE


def test_a_run_stays_open_until_it_is_reported_complete() -> None:
    story = Story()
    story.until(DUE + 10 * SECOND)
    assert (story.run.status, story.run.is_open) == (RunStatus.RUNNING, True)
    assert story.run.lease_until == DUE + BEAT * SECOND
    run = story.service.complete(*story.address(), "42 rows")
    assert (run.status, run.result) == (RunStatus.SUCCEEDED, "42 rows")
    story.until(DUE + 5 * MINUTE)
    assert story.run.status is RunStatus.SUCCEEDED
    assert len(story.calls) == 1
    assert story.world.queue.kept() == []
    assert story.handled().count(Handled.RAN) == 1  # its end is counted once


def test_the_token_is_stored_as_its_digest_only() -> None:
    story = Story()
    story.until(DUE)
    _, token = story.address()
    assert token not in repr(story.run)
    assert token.partition(".")[2] not in repr(story.run)
    told = story.calls[0].report_to
    assert isinstance(told, ReportTo)
    assert token not in repr(story.calls[0])
    assert told.url == f"/completions/{story.run.key.run_id}"


def test_heartbeats_keep_it_open_for_as_long_as_it_may_take() -> None:
    story = Story()
    for second in range(15, 106, 15):
        story.until(DUE + second * SECOND)
        run = story.service.heartbeat(*story.address())
        now = story.world.clock.now()
        assert run.lease_until == min(now + BEAT * SECOND, DUE + WITHIN * SECOND)
    story.until(DUE + 119 * SECOND)
    assert story.run.is_open
    story.until(DUE + 121 * SECOND)
    assert (story.run.status, story.run.attempts[0].error.kind) == (RunStatus.RETRYING, "timeout")


def test_silence_is_a_failed_attempt_and_at_last_a_time_out() -> None:
    story = Story()
    story.until(DUE + (BEAT + 1) * SECOND)
    assert story.run.status is RunStatus.RETRYING
    assert "heartbeat" in story.run.attempts[0].error.message
    story.until(DUE + 5 * MINUTE)
    assert (story.run.status, story.run.reason) == (RunStatus.TIMED_OUT, DeadReason.EXHAUSTED)
    assert [call.attempt for call in story.calls] == [1, 2]
    assert story.world.queue.kept() == []


def test_a_late_report_is_refused_after_the_takeover() -> None:
    story = Story()
    story.until(DUE + (BEAT + 10) * SECOND)
    assert (story.run.attempt, story.run.is_open) == (2, True)
    for report in reports(story, 0):
        with pytest.raises(ReportRefusedError, match="attempt 2 has taken over"):
            report()
    story.service.complete(*story.address(), None)
    assert story.run.status is RunStatus.SUCCEEDED


def test_a_report_that_comes_before_the_takeover_counts() -> None:
    """Nobody has looked after the lease: the work is done."""
    story = Story()
    story.until(DUE + 10 * SECOND)
    story.world.clock.advance(3600)
    story.service.complete(*story.address(), "late")
    story.until(story.world.clock.now() + 2 * MINUTE)
    assert (story.run.status, story.run.result, len(story.calls)) == (
        RunStatus.SUCCEEDED,
        "late",
        1,
    )


def reports(story: Story, number: int = -1) -> list[Callable[[], object]]:
    service, address = story.service, story.address(number)
    return [
        lambda: service.complete(*address, None),
        lambda: service.fail(*address, FAILED),
        lambda: service.heartbeat(*address),
    ]


def test_nobody_else_can_report() -> None:
    story = Story()
    story.until(DUE)
    run_id, token = story.address()
    owner, _, secret = token.partition(".")
    wrong = [
        *("", ".", "a.b", secret, f".{secret}", f"{owner}.", f"{owner}.{secret}x"),
        *(f"{owner}.{secret[::-1]}", f"{owner[:-2]}.{secret}", f"ü.{secret}"),
    ]
    for other in [(run_id, each) for each in wrong] + [(run_id + "0", token), ("x", token)]:
        with pytest.raises(MissingError):
            story.service.complete(*other, None)
        with pytest.raises(MissingError):
            story.service.heartbeat(*other)
    assert story.run.is_open


class TestRepetitions:
    def test_the_same_report_is_answered_alike(self) -> None:
        story = Story()
        story.until(DUE)
        first = story.service.complete(*story.address(), "done")
        assert story.service.complete(*story.address(), "done") == first
        with pytest.raises(ReportRefusedError, match="the run is succeeded"):
            story.service.complete(*story.address(), "otherwise")
        with pytest.raises(ReportRefusedError):
            story.service.fail(*story.address(), FAILED)
        with pytest.raises(ReportRefusedError):
            story.service.heartbeat(*story.address())

    def test_a_failure_is_reported_once(self) -> None:
        story = Story()
        story.until(DUE)
        first = story.service.fail(*story.address(), FAILED)
        assert first.status is RunStatus.RETRYING
        assert story.service.fail(*story.address(), FAILED) == first
        with pytest.raises(ReportRefusedError):
            story.service.complete(*story.address(), "done")

    def test_a_failure_that_is_repeated_after_the_next_attempt_has_begun_is_no_conflict(
        self,
    ) -> None:
        story = Story()
        story.until(DUE)
        story.service.fail(*story.address(), FAILED)
        story.until(DUE + 10 * SECOND)
        assert story.service.fail(*story.address(0), FAILED) == story.run
        assert (story.run.attempt, story.run.is_open) == (2, True)
        with pytest.raises(ReportRefusedError):
            story.service.fail(*story.address(0), replace(FAILED, message="another"))


class TestFailures:
    def test_a_reported_failure_is_retried_by_the_jobs_policy(self) -> None:
        story = Story()
        story.until(DUE)
        story.service.fail(*story.address(), FAILED)
        story.until(DUE + 10 * SECOND)
        assert (story.run.attempt, story.run.is_open) == (2, True)
        assert story.run.attempts[0].error == FAILED
        story.service.fail(*story.address(), FAILED)
        assert (story.run.status, story.run.reason) == (RunStatus.DEAD, DeadReason.EXHAUSTED)

    def test_one_that_is_retried_at_once_is_told_before_the_next_attempt(self) -> None:
        at_once = RetryPolicy(2, Backoff(base_seconds=1, type=BackoffType.FIXED))
        story = Story(events=JOB_EVENTS, retry=at_once)
        story.until(DUE)
        story.service.fail(*story.address(), FAILED)
        story.until(DUE + 10 * SECOND)
        told = [(each.type.value, each.data["attempt"]) for each in story.world.events.emitted]
        first = [("run.started", 1), ("run.failed", 1), ("run.retrying", 1)]
        assert told == [*first, ("run.started", 2)]

    def test_the_last_one_is_told_though_fewer_are_allowed_by_then(self) -> None:
        at_once = RetryPolicy(3, Backoff(base_seconds=1, type=BackoffType.FIXED))
        story = Story(events=JOB_EVENTS, retry=at_once)
        story.until(DUE)
        story.service.fail(*story.address(), FAILED)
        story.until(DUE + 10 * SECOND)
        once = job_with(story.job, revision=2, retry=RetryPolicy(1))
        assert story.world.jobs.replace(once, 1)
        story.service.fail(*story.address(), FAILED)
        story.until(DUE + 20 * SECOND)
        told = [(each.type.value, each.data["attempt"]) for each in story.world.events.emitted]
        last = [each for each in dict.fromkeys(told) if each[1] == 2]
        assert last == [("run.started", 2), ("run.failed", 2), ("run.dead", 2)]

    def test_a_permanent_one_is_not(self) -> None:
        story = Story()
        story.until(DUE)
        story.service.fail(*story.address(), RunError("gone", "no such account", permanent=True))
        assert (story.run.status, story.run.reason) == (RunStatus.DEAD, DeadReason.REFUSED)

    def test_a_retry_far_ahead_comes_by_the_wheel(self) -> None:
        backoff = Backoff(base_seconds=1200, type=BackoffType.FIXED)
        story = Story(retry=RetryPolicy(2, backoff), target=target(heartbeat=None))
        story.until(DUE)
        story.service.fail(*story.address(), FAILED)
        story.until(DUE + 21 * MINUTE)
        assert (story.run.attempt, story.run.is_open) == (2, True)


def test_a_receiver_that_has_nothing_to_do_ends_the_run_at_once() -> None:
    story = Story()
    story.world.targets.behave = lambda call: Success("204")
    story.until(DUE)
    assert (story.run.status, story.run.result) == (RunStatus.SUCCEEDED, "204")


def test_a_report_may_be_quicker_than_the_answer() -> None:
    story = Story()

    def quick(call: Call) -> Success:
        assert call.report_to is not None
        story.service.complete(call.run_id, call.report_to.token, "quick")
        return Success("202", is_accepted=True)

    story.world.targets.behave = quick
    story.until(DUE + 5 * MINUTE)
    assert (story.run.status, story.run.result) == (RunStatus.SUCCEEDED, "quick")
    assert len(story.calls) == 1
    assert story.world.queue.kept() == []


def test_a_heartbeat_while_the_call_is_under_way_disturbs_nothing() -> None:
    story = Story()

    def beats(call: Call) -> Success:
        assert call.report_to is not None
        told = story.service.heartbeat(call.run_id, call.report_to.token)
        assert told.lease_until == story.world.clock.now() + BEAT * SECOND
        return Success("202", is_accepted=True)

    story.world.targets.behave = beats
    story.until(DUE)
    assert story.run.is_open


def test_the_attempt_alone_has_to_be_unique_for_services_that_deduplicate() -> None:
    queue = SqsTarget(
        queue_arn="arn:aws:sqs:eu-west-1:123456789012:work", completion=target().completion
    )
    story = Story(target=queue)
    story.until(DUE + (BEAT + 10) * SECOND)
    assert [call.attempt for call in story.calls] == [1, 2]
    assert story.address(0)[1] != story.address(1)[1]


class TestWhatDependsOnIt:
    def test_the_next_occurrence_is_skipped_while_it_is_open(self) -> None:
        story = Story("* 12 * * *", overlap=Overlap.SKIP, target=target(heartbeat=None))
        story.until(DUE + 90 * SECOND)
        assert [run.status for run in story.world.history(story.job)] == [
            RunStatus.RUNNING,
            RunStatus.SKIPPED,
        ]
        story.service.complete(*story.address(), None)
        story.until(DUE + 2 * MINUTE)
        assert story.world.history(story.job)[-1].is_open

    def test_one_that_waits_for_it_begins_at_its_end(self) -> None:
        story = Story("* 12 * * *", overlap=Overlap.QUEUE_ONE, target=target(heartbeat=None))
        story.until(DUE + 85 * SECOND)
        story.service.complete(*story.address(), None)
        story.until(DUE + 92 * SECOND)
        first, second = story.world.history(story.job)
        assert (first.status, second.is_open) == (RunStatus.SUCCEEDED, True)

    def test_it_holds_its_permit_of_a_key_as_long(self) -> None:
        place = Concurrency("db", 1)
        story = Story(concurrency=place)
        other = story.world.create("other", "5 1 12 * * *", concurrency=place)
        story.until(DUE + 15 * SECOND)
        story.service.heartbeat(*story.address())
        story.until(DUE + 32 * SECOND)
        assert story.run.is_open
        assert story.world.history(other)[0].status is RunStatus.SCHEDULED
        story.service.complete(*story.address(), None)
        story.until(DUE + MINUTE)
        assert story.run.status is RunStatus.SUCCEEDED
        assert story.world.history(other)[0].status is RunStatus.SUCCEEDED
        row = story.world.admission_rows.get(story.job.owner, "key/db")
        assert row is not None
        assert row.holders == ()

    def test_a_silent_one_gives_its_permit_back(self) -> None:
        story = Story(concurrency=Concurrency("db", 1), retry=RetryPolicy(1))
        story.until(DUE + (BEAT + 1) * SECOND)
        assert story.run.status is RunStatus.TIMED_OUT
        row = story.world.admission_rows.get(story.job.owner, "key/db")
        assert row is not None
        assert row.holders == ()

    def test_a_fixed_delay_counts_from_its_reported_end(self) -> None:
        story = Story("every 30s after finish")
        story.until(NOON + 40 * SECOND)
        story.service.complete(*story.address(), None)
        ended_at = story.run.finished_at
        assert ended_at is not None
        story.until(ended_at + 32 * SECOND)
        first, second = story.world.history(story.job)
        assert second.key.fire_at - first.finished_at <= timedelta(seconds=31)  # type: ignore[operator]
        assert second.is_open


def test_a_long_one_is_checked_by_the_wheel_also_by_one_that_was_lost() -> None:
    story = Story(target=target(within=1800, heartbeat=None), retry=RetryPolicy(1))
    story.until(DUE + 10 * MINUTE)
    assert story.world.queue.kept() == []
    lose_wheel(story.world)
    reindex(story.world)
    story.until(DUE + 31 * MINUTE)
    assert story.run.status is RunStatus.TIMED_OUT


def test_one_whose_executor_has_died_before_it_was_opened_is_taken_over() -> None:
    story = Story()

    def dies(call: Call) -> Success:
        raise Killed

    story.world.targets.behave = dies
    with pytest.raises(Killed):
        story.until(DUE)
    story.world.targets.behave = accepts
    assert (story.run.status, story.run.is_open) == (RunStatus.RUNNING, False)
    story.until(DUE + 7 * MINUTE)
    assert story.run.attempts[0].error.kind == "executor_died"
    with pytest.raises(ReportRefusedError, match="has taken over"):
        story.service.heartbeat(*story.address(0))


def test_a_check_that_its_lane_has_given_up_ends_the_attempt_all_the_same() -> None:
    story = Story(retry=RetryPolicy(1))
    story.until(DUE)
    (check,) = story.world.queue.kept()
    story.world.clock.advance(BEAT + 5)
    ends_at = story.world.clock.now() + MINUTE
    report = story.world.executor.dead(check.body, ends_at)
    assert (report.handled, story.run.status) == (Handled.RAN, RunStatus.TIMED_OUT)
