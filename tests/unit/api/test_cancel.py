"""Cancelling a run that waits; what the history tells of spans and attempts."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from carillon.domain.run import AttemptRecord, DeadReason, Run, RunError, RunStatus
from tests.unit.api.conftest import BODY, World
from tests.unit.api.gateway import Answer, Client
from tests.unit.api.test_runs import SECOND, make_run, put

ERROR = RunError("http_503", "down")
ERROR_FORM = {"kind": "http_503", "message": "down", "permanent": False}


def cancel(client: Client, run: Run) -> Answer:
    return client.post(f"/jobs/{run.key.job_id}/runs/{run.key.run_id}/cancel")


def stored(world: World, run: Run) -> Run:
    found = world.runs.get(run.key)
    assert found is not None
    return found


@pytest.fixture
def retrying(world: World, job: dict[str, Any]) -> Run:
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


def test_a_run_that_has_not_started_is_cancelled(client: Client, job: dict[str, Any]) -> None:
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
    client: Client, world: World, job: dict[str, Any], status: RunStatus
) -> None:
    run = put(world, make_run(job["job_id"], SECOND, status=status))

    answer = cancel(client, run)

    assert (answer.status, answer.json["type"]) == (409, "urn:carillon:problem:not-cancellable")
    assert status.value in answer.json["detail"]
    assert stored(world, run) == run


def test_a_claim_that_comes_between_wins(
    client: Client, world: World, retrying: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = world.runs.claim
    started = replace(retrying, status=RunStatus.RUNNING, attempt=2, token=2, claim_id="other")
    times = 0

    def executor_first(run: Run, over: Run | None) -> bool:
        nonlocal times
        times += 1
        if times == 1:
            assert original(started, retrying)
        return original(run, over)

    monkeypatch.setattr(world.runs, "claim", executor_first)

    assert cancel(client, retrying).status == 409
    assert stored(world, retrying) == started


def test_another_owner_s_run_cannot_be_told_from_none(
    client: Client, stranger: Client, retrying: Run
) -> None:
    gone = replace(retrying, key=replace(retrying.key, fire_at=SECOND - timedelta(days=1)))

    assert (cancel(stranger, retrying).status, cancel(stranger, gone).status) == (404, 404)
    other = client.post("/jobs", BODY).json["job_id"]
    assert client.post(f"/jobs/{other}/runs/{retrying.key.run_id}/cancel").status == 404


# Spans of the history


def test_the_history_can_be_narrowed_to_a_span(
    client: Client, world: World, job: dict[str, Any]
) -> None:
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


def attempts(client: Client, world: World, run: Run) -> list[tuple[int, bool, str | None]]:
    """Number, whether it has ended, and kind of error."""
    put(world, run)
    told = client.get(f"/jobs/{run.key.job_id}/runs/{run.key.run_id}").json["attempts"]
    return [
        (each["attempt"], each["finished_at"] is not None, each["error"] and each["error"]["kind"])
        for each in told
    ]


def after_one(job_id: str, **values: Any) -> Run:
    """A run in its second attempt."""
    first = AttemptRecord(1, SECOND, SECOND + timedelta(seconds=1), ERROR)
    second_at = SECOND + timedelta(seconds=9)
    run = make_run(
        job_id,
        SECOND,
        attempt=2,
        started_at=SECOND,
        attempt_started_at=second_at,
        attempts=(first,),
    )
    return replace(run, **values)


def test_a_success_is_an_attempt_too(client: Client, world: World, job: dict[str, Any]) -> None:
    run = after_one(job["job_id"], finished_at=SECOND + timedelta(seconds=10))

    assert attempts(client, world, run) == [(1, True, "http_503"), (2, True, None)]
    told = client.get(f"/jobs/{job['job_id']}/runs/{run.key.run_id}").json["attempts"]
    assert told[1] == {
        "attempt": 2,
        "started_at": "2026-03-01T12:00:09Z",
        "finished_at": "2026-03-01T12:00:10Z",
        "error": None,
    }


def test_the_last_failure_is_an_attempt_too(
    client: Client, world: World, job: dict[str, Any]
) -> None:
    dead = after_one(
        job["job_id"],
        status=RunStatus.DEAD,
        error=RunError("timeout", "slow"),
        reason=DeadReason.EXHAUSTED,
        finished_at=SECOND + timedelta(seconds=19),
    )
    assert attempts(client, world, dead) == [(1, True, "http_503"), (2, True, "timeout")]


def test_an_attempt_under_way_has_no_end(client: Client, world: World, job: dict[str, Any]) -> None:
    running = after_one(job["job_id"], status=RunStatus.RUNNING)
    assert attempts(client, world, running) == [(1, True, "http_503"), (2, False, None)]


def test_a_retrying_run_lists_no_attempt_twice(
    client: Client, world: World, job: dict[str, Any]
) -> None:
    retrying = after_one(job["job_id"], status=RunStatus.RETRYING, attempt=1, error=ERROR)
    assert attempts(client, world, retrying) == [(1, True, "http_503")]


def test_a_skip_has_no_attempt(client: Client, world: World, job: dict[str, Any]) -> None:
    skipped = make_run(job["job_id"], SECOND, status=RunStatus.SKIPPED, reason="paused")
    assert attempts(client, world, skipped) == []


def test_giving_up_on_a_deadly_run_is_no_attempt(
    client: Client, world: World, job: dict[str, Any]
) -> None:
    died = RunError("executor_died", "the executor stopped before it recorded a result")
    record = AttemptRecord(1, SECOND, SECOND + timedelta(seconds=1), died)
    dead = after_one(
        job["job_id"],
        status=RunStatus.DEAD,
        error=died,
        reason=DeadReason.EXECUTOR_DIED,
        finished_at=SECOND + timedelta(seconds=9),
        attempts=(record,),
    )
    assert attempts(client, world, dead) == [(1, True, "executor_died")]
