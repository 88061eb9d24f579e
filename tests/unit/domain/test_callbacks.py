"""Callbacks: who is called about which end, with what."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from carillon.domain.execution.callbacks import callback_message, callback_payload, callback_target
from carillon.domain.message import Missed, RateSlot, decode, encode
from carillon.domain.policies import CatchUp, Rate
from carillon.domain.run import RunError, RunKey, RunKind, RunStatus
from carillon.domain.targets import TaskTarget
from tests.unit.domain.samples import KEY, NOON, job, message, run

PRAISED, TOLD = TaskTarget(name="praised"), TaskTarget(name="told")
CALLING = job(on_success=PRAISED, on_failure=TOLD)
KINDS = [RunKind.SCHEDULED, RunKind.MANUAL, RunKind.BACKFILL]


@pytest.mark.parametrize("status", list(RunStatus))
@pytest.mark.parametrize("kind", KINDS)
def test_only_a_success_or_a_dead_letter_calls_back(status: RunStatus, kind: RunKind) -> None:
    targets = {
        RunStatus.SUCCEEDED: PRAISED,
        RunStatus.DEAD: TOLD,
        RunStatus.TIMED_OUT: TOLD,
    }
    row = run(status, key=replace(KEY, kind=kind))
    assert callback_target(CALLING, row) == targets.get(status)
    assert callback_target(job(), row) is None
    assert callback_target(CALLING, replace(row, key=row.key.callback)) is None


@pytest.mark.parametrize(
    "key",
    [
        KEY,
        KEY.redriven,
        replace(KEY, kind=RunKind.MANUAL, request_id="r-1-2"),
        replace(KEY, kind=RunKind.BACKFILL, request_id="op", redrive=3),
    ],
)
def test_its_key_names_the_run_that_it_tells_of(key: RunKey) -> None:
    assert key.callback.called_back == key
    assert RunKey.from_run_id(key.owner, key.callback.run_id) == key.callback


def test_its_message_is_a_function_of_the_row_and_due_at_once() -> None:
    ended_at = NOON + timedelta(seconds=5, microseconds=700_000)
    row = run(RunStatus.SUCCEEDED, finished_at=ended_at)
    plain = callback_message(row, message())
    assert plain.key == row.key.callback
    assert (plain.attempt, plain.due_at) == (1, NOON + timedelta(seconds=5))
    laden = message(
        attempt=3,
        due_at=NOON + timedelta(hours=1),
        slot_key="h3",
        missed=Missed(NOON, CatchUp.SKIP, CALLING.schedule),
        after_finish=True,
        moved_from=NOON,
        wait_until=NOON,
        waits=4,
        rate_slot=RateSlot(NOON, Rate(1, 60), "line"),
    )
    assert callback_message(row, laden) == plain
    assert decode(encode(plain)) == plain


def test_its_payload_is_the_run_as_compact_json() -> None:
    row = run(RunStatus.DEAD, error=RunError("E", "größer"), reason="exhausted")
    text = callback_payload(row, job(spread_seconds=60, tags={"a": "b"}))
    assert ", " not in text
    form = json.loads(text)
    assert (form["status"], form["reason"]) == ("dead", "exhausted")
    assert form["error"] == {"kind": "E", "message": "größer"}
    assert (form["tags"], form["parent"]) == ({"a": "b"}, None)
    assert form["fire_at"] == form["effective_at"] == "2026-12-01T12:00:00Z"
