"""Events as functions of rows, and what is told where nothing was called."""

from dataclasses import replace
from datetime import timedelta

import pytest

from carillon.domain.events import JOB_EVENTS, EventType
from carillon.domain.execution.callbacks import job_event
from carillon.domain.execution.transitions import EXECUTOR_DIED
from carillon.domain.job import JobState
from carillon.domain.policies import CatchUp
from carillon.domain.run import AttemptRecord, DeadReason, RunError, RunKind, RunStatus
from carillon.executor.runs.lifecycle_events import ended
from tests.support.world import World
from tests.unit.domain.samples import NOON, job, run

DIED = AttemptRecord(1, NOON, NOON + timedelta(seconds=61), EXECUTOR_DIED)


def types(status: RunStatus, attempt: int, **changes: object) -> list[tuple[EventType, int]]:
    events = ended(run(status, attempt, **changes), job())
    return [(event.type, event.data["attempt"]) for event in events]


def test_a_takeover_that_ends_skipped_tells_of_the_attempt_before() -> None:
    assert types(RunStatus.SKIPPED, 2, attempts=(DIED,), reason="paused") == [
        (EventType.RUN_FAILED, 1),
        (EventType.RUN_SKIPPED, 2),
    ]


@pytest.mark.parametrize("reason", sorted({*DeadReason} - {DeadReason.REFUSED}))
def test_a_takeover_that_ends_dead_before_its_call_tells_of_the_attempt_before(reason: str) -> None:
    dead = types(RunStatus.DEAD, 2, attempts=(DIED,), reason=reason, attempt_started_at=None)
    assert dead == [(EventType.RUN_FAILED, 1), (EventType.RUN_DEAD, 2)]


def test_a_retry_that_ends_skipped_has_told_of_the_attempt_before() -> None:
    failed = replace(DIED, error=RunError("busy", "x"))
    skipped = types(RunStatus.SKIPPED, 2, attempts=(failed,), reason="paused")
    assert skipped == [(EventType.RUN_SKIPPED, 2)]


@pytest.mark.parametrize("state", [JobState.ACTIVE, JobState.COMPLETED])
def test_a_job_that_is_complete_is_said_to_be_whether_it_is_kept_or_not(state: JobState) -> None:
    event = job_event(EventType.JOB_COMPLETED, job(state=state), NOON)
    assert event.data["state"] == "completed"
    assert job_event(EventType.JOB_PAUSED, job(state=JobState.PAUSED), NOON).data["state"] == (
        "paused"
    )


def test_a_row_that_covers_a_span_is_told_as_a_skip_under_one_id() -> None:
    world = World(NOON, segments=1)
    listening = world.create("job", "* * * * *", catch_up=CatchUp.LATEST, events=JOB_EVENTS)
    world.run_until(NOON + timedelta(minutes=2, seconds=30))
    world.clock.set(NOON + timedelta(minutes=20))
    world.run_until(NOON + timedelta(minutes=20, seconds=30))
    (span,) = (row for row in world.history(listening) if row.key.kind is RunKind.MISSED)
    (event,) = (each for each in world.events.emitted if each.subject == span.key.run_id)
    assert event.type is EventType.RUN_SKIPPED
    assert (event.subject, event.data["reason"]) == (span.key.run_id, "catch_up")
    assert event.data["covers_from"] == "2026-12-01T12:05:00Z"
    assert event.data["covers_count"] == span.covers_count
    world.executor.handle(world.reports[-1].message, NOON + timedelta(minutes=25))
    again = [each for each in world.events.emitted if each.subject == event.subject]
    assert [each.event_id for each in again] == [event.event_id] * 2
