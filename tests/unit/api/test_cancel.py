"""Cancelling a run that waits; what the history tells of spans and attempts."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from carillon.domain.run import AttemptRecord, DeadReason, Run, RunError, RunStatus
from tests.unit.api.conftest import World
from tests.unit.api.gateway import Answer, Client, Json
from tests.unit.api.test_runs import SECOND, make_run, put, stored
from tests.unit.faults import preceded

ERROR = RunError("http_503", "down")
ERROR_FORM = {"kind": "http_503", "message": "down", "permanent": False}


def cancel(client: Client, run: Run) -> Answer:
    return client.post(f"/jobs/{run.key.job_id}/runs/{run.key.run_id}/cancel")


@pytest.fixture
def retrying(world: World, job: Json) -> Run:
    run = make_run(
        job["job_id"],
        SECOND,
        status=RunStatus.RETRYING,
        error=ERROR,
        started_at=SECOND,
        attempt_started_at=SECOND,
        next_attempt_at=SECOND + timedelta(days=3),
        attempts=(AttemptRecord(1, SECOND, SECOND + timedelta(seconds=1), ERROR),),
    )
    return put(world, run)


def test_a_run_that_waits_for_a_retry_is_cancelled(
    client: Client, world: World, retrying: Run
) -> None:
    answer = cancel(client, retrying)

    assert answer.status == 200
    told = answer.json
    assert (told["status"], told["reason"]) == ("cancelled", "on request")
    assert (told["next_attempt_at"], told["finished_at"]) == (None, "2026-03-01T12:00:00.250Z")
    assert [attempt["attempt"] for attempt in told["attempts"]] == [1]
    now = stored(world, retrying)
    assert (now.token, now.claim_id != retrying.claim_id) == (retrying.token + 1, True)
    assert now.expires_at >= retrying.expires_at
    assert f'"run_id":"{retrying.key.run_id}"' in world.log.getvalue()
    assert '"action":"run.cancelled"' in world.log.getvalue()


def test_a_run_that_has_not_started_is_cancelled(client: Client, job: Json) -> None:
    path = client.post(f"/jobs/{job['job_id']}/run").headers["location"]

    assert client.post(f"{path}/cancel").json["status"] == "cancelled"
    assert client.get(path).json["attempts"] == []


def test_a_repetition_changes_nothing(client: Client, world: World, retrying: Run) -> None:
    first = cancel(client, retrying)
    world.clock.advance(60)

    again = cancel(client, retrying)
    assert (again.status, again.json) == (200, first.json)


@pytest.mark.parametrize(
    "status",
    [
        status
        for status in RunStatus
        if status not in (RunStatus.SCHEDULED, RunStatus.RETRYING, RunStatus.CANCELLED)
    ],
)
def test_no_other_run_is_cancelled(
    client: Client, world: World, job: Json, status: RunStatus
) -> None:
    run = put(world, make_run(job["job_id"], SECOND, status=status))

    answer = cancel(client, run)

    assert (answer.status, answer.json["type"]) == (409, "urn:carillon:problem:not-cancellable")
    assert status.value in answer.json["detail"]
    assert stored(world, run) == run


def test_a_claim_that_comes_between_wins(client: Client, world: World, retrying: Run) -> None:
    started = replace(retrying, status=RunStatus.RUNNING, attempt=2, token=2, claim_id="other")
    claim = world.runs.claim

    with preceded(world.runs, "claim", lambda: claim(started, retrying)):
        assert cancel(client, retrying).status == 409

    assert stored(world, retrying) == started


# Spans of the history


def test_the_history_can_be_narrowed_to_a_span(client: Client, world: World, job: Json) -> None:
    for minute in range(5):
        put(world, make_run(job["job_id"], SECOND + timedelta(minutes=minute)))

    def minutes(**query: str) -> list[int]:
        page = client.get(f"/jobs/{job['job_id']}/runs", **query).json
        return [int(run["fire_at"][14:16]) for run in page["items"]]

    from_at, to = {"from": "2026-03-01T12:01:00Z"}, {"to": "2026-03-01T12:03:00Z"}
    assert minutes(**from_at) == [4, 3, 2, 1]
    assert minutes(**to) == [3, 2, 1, 0]
    assert minutes(**from_at, **to) == [3, 2, 1]
    assert minutes(**{"from": "2026-03-01T12:01:00.001Z"}) == [4, 3, 2]
    refused = client.get(f"/jobs/{job['job_id']}/runs", **{**to, "from": "2026-03-02T00:00:00Z"})
    assert (refused.status, refused.fields) == (422, ["to"])


# Attempts

DIED = RunError("executor_died", "the executor stopped before it recorded a result")
DEAD = {"status": RunStatus.DEAD, "finished_at": SECOND + timedelta(seconds=19)}


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"finished_at": SECOND + timedelta(seconds=10)}, [(1, True, "http_503"), (2, True, None)]),
        ({"status": RunStatus.RUNNING}, [(1, True, "http_503"), (2, False, None)]),
        ({"status": RunStatus.RETRYING, "attempt": 1, "error": ERROR}, [(1, True, "http_503")]),
        (
            {**DEAD, "error": RunError("timeout", "slow"), "reason": DeadReason.EXHAUSTED},
            [(1, True, "http_503"), (2, True, "timeout")],
        ),
        (
            {
                **DEAD,
                "error": DIED,
                "reason": DeadReason.EXECUTOR_DIED,
                "attempts": (AttemptRecord(1, SECOND, SECOND + timedelta(seconds=1), DIED),),
            },
            [(1, True, "executor_died")],
        ),
        (
            {"status": RunStatus.SKIPPED, "attempts": (), "started_at": None, "attempt": 1}
            | {"attempt_started_at": None, "reason": "paused"},
            [],
        ),
    ],
    ids=["a success is one", "under way", "none twice", "the last failure", "given up", "a skip"],
)
def test_each_attempt_is_told_once(
    client: Client, world: World, job: Json, values: Json, told: list[Any]
) -> None:
    """Number, whether it has ended, and kind of error, of a run in its second attempt."""
    run = make_run(
        job["job_id"],
        SECOND,
        attempt=2,
        started_at=SECOND,
        attempt_started_at=SECOND + timedelta(seconds=9),
        attempts=(AttemptRecord(1, SECOND, SECOND + timedelta(seconds=1), ERROR),),
    )
    put(world, replace(run, **values))

    attempts = client.get(f"/jobs/{job['job_id']}/runs/{run.key.run_id}").json["attempts"]

    assert [
        (each["attempt"], each["finished_at"] is not None, each["error"] and each["error"]["kind"])
        for each in attempts
    ] == told
    if len(attempts) == 2:
        assert attempts[1]["started_at"] == "2026-03-01T12:00:09Z"
