"""Notifications over failures and beside others: pauses, processes, a queue that fails once."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from carillon.domain.events import EventType
from carillon.domain.execution.callbacks import job_event
from carillon.domain.job import Job
from carillon.domain.notifying.notification import Told
from carillon.domain.policies import Backoff, BackoffType, RetryPolicy
from carillon.domain.run import RunError, RunKey, RunKind, RunStatus
from carillon.domain.targets import TaskTarget
from carillon.errors import QueueUnavailableError
from carillon.executor.router import Router
from carillon.executor.targets import Call, Failure, Outcome, Success
from tests.support.notification_kit import is_delivery, notify, said
from tests.support.world import OWNER, World

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
ONCE = RetryPolicy(max_attempts=1)


@pytest.fixture
def world() -> World:
    return World(NOON, segments=1)


def fail(world: World, seconds: float = 0, *, timed_out: bool = False) -> None:
    """Every call of a job lasts so long and fails."""

    def behave(call: Call) -> Outcome:
        if is_delivery(call.run_id):
            return Success("done")
        world.clock.advance(seconds)
        return Failure(RunError("http_503", "down"), timed_out=timed_out)

    world.targets.behave = behave


def refuse(world: World, monkeypatch: pytest.MonkeyPatch, kind: RunKind) -> list[Any]:
    """The queue takes no message of this kind, until the list that is answered has one."""
    refused: list[Any] = []
    sent = world.queue.send

    def send(messages: Any, delays: Any, until: Any = None) -> None:
        if not refused and any(x.key.kind is kind for x in messages):
            refused.extend(messages)
            raise QueueUnavailableError(len(messages), "down")
        sent(messages, delays, until)

    monkeypatch.setattr(world.queue, "send", send)
    return refused


def _refuse_all(messages: Any, delays: Any, until: Any = None) -> None:
    raise QueueUnavailableError(len(messages), "down")


def test_each_of_several_pauses_in_a_window_is_in_its_digest(world: World) -> None:
    notify(world)
    for name in ("import", "export", "report"):
        world.create(name, "every 5m", retry=ONCE, pause_after_failures=2)
    fail(world)
    world.run_until(NOON + 30 * MINUTE)
    assert said(world)[1]["counts"] == {"job.paused": 3, "run.dead": 5}


def test_two_processes_note_pauses_in_one_window(world: World) -> None:
    notify(world, on=(Told.JOB_PAUSED,))
    listeners = [world.executor_ports.notifying().notifier for _ in range(2)]
    jobs: list[Job] = [world.create(f"job {number}", "every 1d") for number in range(7)]
    for number, job in enumerate(jobs):
        event = job_event(EventType.JOB_PAUSED, job, world.clock.now())
        listeners[number % 2].heard(OWNER, event)
    world.run_until(NOON + 30 * MINUTE)
    assert said(world)[1]["counts"] == {"job.paused": 6}


@pytest.mark.parametrize("pauses", [20, 30])
def test_a_digest_says_that_more_were_paused_than_it_tells(world: World, pauses: int) -> None:
    notify(world, on=(Told.JOB_PAUSED,))
    for number in range(pauses):
        job = world.create(f"job {number}", "every 1d")
        event = job_event(EventType.JOB_PAUSED, job, world.clock.now())
        world.executor_ports.notifier.heard(OWNER, event)
    world.run_until(NOON + 30 * MINUTE)
    digest = said(world)[1]
    told, is_complete = digest["counts"]["job.paused"], digest["complete"]
    assert (told, is_complete) == ((19, True) if pauses == 20 else (20, False))


@pytest.mark.parametrize("kind", [RunKind.NOTICE, RunKind.WINDOW])
def test_after_a_send_that_failed_the_next_failure_is_told_at_once(
    world: World, monkeypatch: pytest.MonkeyPatch, kind: RunKind
) -> None:
    notify(world)
    world.create("import", "every 5m", retry=ONCE)
    fail(world)
    assert refuse(world, monkeypatch, kind) == []
    world.run_until(NOON + 9 * MINUTE)
    assert len(said(world)) == (kind is RunKind.WINDOW)
    world.run_until(NOON + 11 * MINUTE)
    assert [body["kind"] for body in said(world)] == ["first"]
    world.run_until(NOON + 25 * MINUTE)
    assert [body["kind"] for body in said(world)] == ["first", "digest"]
    assert said(world)[1]["counts"]["run.dead"] >= 2


def test_after_a_send_that_failed_another_process_tells_the_next_failure(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    notify(world)
    world.create("import", "every 5m", retry=ONCE)
    fail(world)
    refuse(world, monkeypatch, RunKind.NOTICE)
    world.run_until(NOON + 9 * MINUTE)
    world.executor = Router(world.executor_ports.notifying())
    world.run_until(NOON + 11 * MINUTE)
    assert [body["kind"] for body in said(world)] == ["first"]


def test_a_failure_after_the_end_of_a_window_that_was_not_ordered_is_told_at_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    notify(world)
    world.create("import", "every 3h", retry=ONCE)
    fail(world)
    refuse(world, monkeypatch, RunKind.NOTICE)
    world.run_until(NOON + 5 * 60 * MINUTE)
    assert said(world) == []
    world.run_until(NOON + 6.1 * 60 * MINUTE)
    assert [body["kind"] for body in said(world)] == ["first"]
    assert "T18:00:00Z" in said(world)[0]["event"]["at"]
    world.run_until(NOON + 6.5 * 60 * MINUTE)
    assert said(world)[1]["counts"] == {"run.dead": 1}, "that of which nobody has heard"


def test_a_pause_is_noted_though_the_queue_takes_no_message(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    notify(world, on=(Told.JOB_PAUSED,))
    jobs: list[Job] = [world.create(f"job {number}", "every 1d") for number in range(4)]
    with monkeypatch.context() as patch:
        patch.setattr(world.queue, "send", _refuse_all)
        for job in jobs[:3]:
            event = job_event(EventType.JOB_PAUSED, job, world.clock.now())
            world.executor_ports.notifier.heard(OWNER, event)
    event = job_event(EventType.JOB_PAUSED, jobs[3], world.clock.now())
    world.executor_ports.notifier.heard(OWNER, event)
    world.run_until(NOON + 30 * MINUTE)
    assert said(world)[0]["event"]["job_name"] == "job 0"
    assert said(world)[1]["counts"] == {"job.paused": 3}


def test_a_pause_that_could_not_be_told_is_told_with_the_next_one_however_late(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    notify(world, on=(Told.JOB_PAUSED,))
    jobs: list[Job] = [world.create(f"job {number}", "every 1d") for number in range(2)]
    refuse(world, monkeypatch, RunKind.NOTICE)
    for job in jobs:
        event = job_event(EventType.JOB_PAUSED, job, world.clock.now())
        world.executor_ports.notifier.heard(OWNER, event)
        world.run_until(world.clock.now() + 30 * MINUTE)
    assert said(world)[0]["event"]["job_name"] == "job 1"
    assert [each["job_name"] for each in said(world)[1]["jobs"]] == ["job 0"]


def test_a_digest_that_could_not_be_sent_is_sent_before_news_opens_the_window_anew(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    notify(world)
    world.create("import", "every 5m", retry=ONCE)
    other = world.create("export", "every 1d")
    fail(world)
    world.run_until(NOON + 6 * MINUTE)
    refuse(world, monkeypatch, RunKind.NOTICE)
    with pytest.raises(QueueUnavailableError):
        world.run_until(NOON + 25 * MINUTE)
    world.clock.advance(16 * 60)  # the message of the step has yet to come again
    event = job_event(EventType.JOB_PAUSED, other, world.clock.now())
    world.executor_ports.notifier.heard(OWNER, event)
    world.run_until(world.clock.now() + MINUTE)
    assert [body["kind"] for body in said(world)] == ["first", "digest", "first"]
    assert said(world)[1]["counts"] == {"run.dead": 3}


def test_what_a_window_owes_is_told_though_one_that_was_opened_over_it_has_not_been_ordered(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    notify(world, on=(Told.RUN_DEAD, Told.JOB_SLOWED))
    failing = world.create("import", "every 20m", retry=ONCE)
    slow = world.create("export", "every 1d")
    fail(world)
    world.run_until(NOON + 85 * MINUTE)
    assert said(world)[-1]["until"] < "2026-12-01T13:20", "the third failure has yet to be told"
    refused = refuse(world, monkeypatch, RunKind.WINDOW)
    event = job_event(EventType.JOB_SLOWED, slow, world.clock.now())
    world.executor_ports.notifier.heard(OWNER, event)
    assert refused
    world.pause(failing)
    world.run_until(NOON + 180 * MINUTE)
    assert [body["kind"] for body in said(world)] == ["first", "digest", "first", "digest"]
    assert said(world)[-1]["counts"] == {"run.dead": 1}


def test_a_fault_of_one_notification_deprives_no_other(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    notify(world, "a")
    notify(world, "b")
    world.create("import", "every 5m", retry=ONCE)
    fail(world)
    refuse(world, monkeypatch, RunKind.NOTICE)
    world.run_until(NOON + 6 * MINUTE)
    assert (len(said(world, "a")), len(said(world, "b"))) == (0, 1)


def test_a_slow_job_is_told(world: World) -> None:
    notify(world, on=(Told.JOB_SLOWED,))
    job = world.create("import", "every 10s", timeout_seconds=5, retry=ONCE)
    fail(world, 5, timed_out=True)
    world.run_until(NOON + MINUTE)
    (body,) = said(world)
    assert body["event"]["type"] == "job.slowed"
    assert body["event"]["job_id"] == job.job_id
    stored = world.jobs.get(OWNER, job.job_id)
    assert stored is not None
    assert stored.slow is not None


def test_a_job_that_cannot_be_read_holds_up_no_digest_of_others(world: World) -> None:
    notify(world)
    bad = world.create("import", "every 5m", retry=ONCE)
    world.create("export", "every 5m", retry=ONCE)
    fail(world)
    world.run_until(NOON + 6 * MINUTE)
    world.jobs.spoil(bad.job_id)
    world.run_until(NOON + 60 * MINUTE)
    assert [body["kind"] for body in said(world)] == ["first", "digest", "digest"]


def test_a_job_whose_runs_are_mostly_skipped_works_again(world: World) -> None:
    """Or its next failure would be no news, and wait for a digest that comes every six hours."""
    notify(world)
    job = world.create("import", "5 12 * * *", retry=ONCE)
    fail(world)
    world.run_until(NOON + 6 * MINUTE)
    (dead,) = world.history(job)
    for number in range(7, 16):
        at = NOON + number * MINUTE
        status = RunStatus.SUCCEEDED if number == 7 else RunStatus.SKIPPED
        ended = replace(dead, status=status, updated_at=at, finished_at=at, error=None)
        world.runs.claim(replace(ended, key=replace(dead.key, fire_at=at)), None)
    world.run_until(NOON + 30 * MINUTE)
    assert [body["kind"] for body in said(world)] == ["first", "recovered"]


def test_a_good_run_is_no_recovery_of_callbacks_that_fail(world: World) -> None:
    """Its run is a success each time, also while the callback before it is tried again."""
    notify(world)
    retry = RetryPolicy(2, backoff=Backoff(270, type=BackoffType.FIXED))
    world.create("import", "every 5m", retry=retry, on_success=TaskTarget(name="praised"))
    fails_until = NOON + 70 * MINUTE

    def behave(call: Call) -> Outcome:
        fails = f"_{RunKind.CALLBACK}-" in call.run_id and world.clock.now() < fails_until
        return Failure(RunError("http_503", "down")) if fails else Success("done")

    world.targets.behave = behave
    world.run_until(NOON + 130 * MINUTE)
    assert [body["summary"] for body in said(world)] == [
        "a callback of import failed",
        "3 runs failed",
        "6 runs failed",
        "3 runs failed, a callback of import works again",
    ]


def test_a_run_that_cannot_be_read_holds_up_no_digest(world: World) -> None:
    notify(world)
    job = world.create("import", "every 5m", retry=ONCE)
    fail(world)
    world.run_until(NOON + 20.5 * MINUTE)
    (delivered,) = (call.run_id for call in world.targets.calls if is_delivery(call.run_id))
    for run_id in (delivered, *(run.key.run_id for run in world.history(job))):
        world.runs.spoil(RunKey.from_run_id(OWNER, run_id))
    world.run_until(NOON + 24 * MINUTE)
    _, digest = said(world)
    assert digest["errors"] == [{"kind": "http_503", "message": "", "count": 3}]


def test_a_window_of_a_notification_that_was_deleted_is_none_of_the_next_one_of_its_name(
    world: World,
) -> None:
    """Processes know an owner's notifications for ten seconds: one may open it after that."""
    made = notify(world, jobs="import")
    world.create("export", "every 5m", retry=ONCE)
    world.create("import", "*/5 * * * *", window="10s", fraction=0.5, retry=ONCE)
    fail(world)
    world.run_until(NOON + 5 * MINUTE + timedelta(seconds=1))
    assert world.notifications.delete(OWNER, "ops", made.revision)
    world.run_until(NOON + 32 * MINUTE)
    notify(world)
    world.run_until(NOON + 36 * MINUTE)
    assert [body["kind"] for body in said(world)] == ["first"]


def test_nor_does_its_end_tell_that_one_what_was_before_it(world: World) -> None:
    made = notify(world, jobs="import")
    world.create("export", "every 5m", retry=ONCE)
    world.create("import", "*/5 * * * *", window="10s", fraction=0.5, retry=ONCE)
    fail(world)
    world.run_until(NOON + 5 * MINUTE + timedelta(seconds=1))
    assert world.notifications.delete(OWNER, "ops", made.revision)
    world.run_until(NOON + 6 * MINUTE)
    notify(world)
    world.targets.behave = lambda call: Success("done")
    world.run_until(NOON + 60 * MINUTE)
    assert said(world) == []
