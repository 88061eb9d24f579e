"""The decision to cancel a run, one table row at a time."""

from dataclasses import replace
from datetime import timedelta

import pytest

from carillon.domain.execution.stopping import (
    STOPPED,
    NotCancellable,
    decide_cancel,
    is_overdue,
)
from carillon.domain.execution.transitions import EXECUTOR_DIED
from carillon.domain.run import FINAL, AttemptRecord, Run, RunError, RunStatus
from tests.unit.domain.samples import NOON, OLD, run

FAILED = AttemptRecord(1, NOON, NOON + timedelta(seconds=1), RunError("http_503", "down"))
CALLED = run(
    RunStatus.RUNNING,
    attempt=2,
    started_at=NOON,
    attempt_started_at=NOON + timedelta(seconds=10),
    lease_until=NOON + timedelta(seconds=70),
    attempts=(FAILED,),
    other_generations=(OLD,),
)
UNTIL = NOON + timedelta(days=40)


def cancelled(seen: Run, seconds: float) -> Run | NotCancellable:
    return decide_cancel(seen, "cancel", NOON + timedelta(seconds=seconds), UNTIL)


@pytest.mark.parametrize(
    ("seconds", "error", "note"),
    [
        (12, STOPPED, "its call was stopped"),
        (69.999, STOPPED, "its call was stopped"),
        (70, EXECUTOR_DIED, "its executor had died"),
    ],
)
def test_a_running_run_ends_with_its_attempt(seconds: float, error: RunError, note: str) -> None:
    now = NOON + timedelta(seconds=seconds)
    ended = cancelled(CALLED, seconds)
    assert isinstance(ended, Run)
    assert (ended.status, ended.reason, ended.note) == (RunStatus.CANCELLED, "on request", note)
    assert (ended.token, ended.claim_id) == (CALLED.token + 1, "cancel")
    assert ended.attempts == (FAILED, AttemptRecord(2, NOON + timedelta(seconds=10), now, error))
    assert (ended.started_at, ended.finished_at, ended.lease_until) == (NOON, now, None)
    assert (ended.other_generations, ended.expires_at) == ((), UNTIL)


@pytest.mark.parametrize("seconds", [5, 10, 11.999])
def test_one_that_has_just_begun_is_to_be_asked_for_again(seconds: float) -> None:
    """Also where the clock of whoever asks is behind."""
    refused = cancelled(CALLED, seconds)
    assert isinstance(refused, NotCancellable)
    assert refused.again_after_seconds == 2


def test_without_a_lease_its_age_does_not_matter() -> None:
    for lease_until in (None, NOON + timedelta(seconds=10)):
        assert isinstance(cancelled(replace(CALLED, lease_until=lease_until), 10), Run)


def test_what_its_row_said_before_is_kept() -> None:
    ended = cancelled(replace(CALLED, note="moved from Monday"), 20)
    assert isinstance(ended, Run)
    assert ended.note == "moved from Monday; its call was stopped"


@pytest.mark.parametrize("status", [RunStatus.SCHEDULED, RunStatus.RETRYING])
def test_one_that_waits_ends_as_it_is(status: RunStatus) -> None:
    waits = run(status, note="waits", next_attempt_at=UNTIL, attempts=(FAILED,))
    ended = cancelled(waits, 0)
    assert isinstance(ended, Run)
    assert (ended.status, ended.next_attempt_at) == (RunStatus.CANCELLED, None)
    assert (ended.note, ended.attempts) == ("waits", (FAILED,))


@pytest.mark.parametrize("status", sorted(FINAL))
def test_one_that_has_ended_never_is(status: RunStatus) -> None:
    assert cancelled(run(status), 9999) == NotCancellable(f"is {status.value}: it has ended")


def test_a_run_is_overdue_once_it_could_be_stopped() -> None:
    assert not is_overdue(CALLED, NOON + timedelta(seconds=11.999))
    assert is_overdue(CALLED, NOON + timedelta(seconds=12))


def test_a_row_is_held_by_its_claim_alone() -> None:
    assert CALLED.is_held_by(replace(CALLED, note="said since"))
    assert not replace(CALLED, token=2).is_held_by(CALLED)
    assert not replace(CALLED, claim_id="other").is_held_by(CALLED)
    assert not replace(CALLED, status=RunStatus.RETRYING).is_held_by(CALLED)
