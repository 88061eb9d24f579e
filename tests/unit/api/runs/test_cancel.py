"""Cancelling a run; what the history tells of spans and attempts."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from carillon.domain.run import FINAL, AttemptRecord, DeadReason, Run, RunError, RunStatus
from tests.unit.api.conftest import BODY, World
from tests.unit.api.gateway import OWNER, Answer, Client, Json
from tests.unit.api.runs.test_runs import SECOND, make_run, put, stored
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
    # The claim stays: by it the run's message gives up what the run has waited with.
    assert (now.token, now.claim_id) == (retrying.token + 1, retrying.claim_id)
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
    [status for status in RunStatus if status in FINAL and status is not RunStatus.CANCELLED],
)
def test_a_run_that_has_ended_is_not_cancelled(
    client: Client, world: World, job: Json, status: RunStatus
) -> None:
    run = put(world, make_run(job["job_id"], SECOND, status=status))

    answer = cancel(client, run)

    assert (answer.status, answer.json["type"]) == (409, "urn:carillon:problem:not-cancellable")
    assert status.value in answer.json["detail"]
    assert "Retry-After" not in answer.headers
    assert stored(world, run) == run


def running(
    world: World, job: Json, seconds: float, lease_seconds: float = 60, **values: Any
) -> Run:
    """A run that an executor has claimed so long ago, in its second attempt."""
    claimed_at = world.clock.now() - timedelta(seconds=seconds)
    run = make_run(
        job["job_id"],
        SECOND,
        status=RunStatus.RUNNING,
        attempt=2,
        token=3,
        started_at=SECOND - timedelta(minutes=5),
        attempt_started_at=claimed_at,
        lease_until=claimed_at + timedelta(seconds=lease_seconds),
        attempts=(AttemptRecord(1, SECOND, SECOND + timedelta(seconds=1), ERROR),),
        **values,
    )
    return put(world, run)


def test_a_run_whose_call_lasts_is_stopped(client: Client, world: World, job: Json) -> None:
    run = running(world, job, seconds=2)

    told = cancel(client, run).json

    assert (told["status"], told["reason"]) == ("cancelled", "on request")
    assert (told["note"], told["error"]) == ("its call was stopped", None)
    assert (told["started_at"], told["finished_at"]) == (
        "2026-03-01T11:55:00Z",
        "2026-03-01T12:00:00.250Z",
    )
    kinds = [(each["attempt"], each["error"]["kind"]) for each in told["attempts"]]
    assert kinds == [(1, "http_503"), (2, "stopped")]
    assert told["attempts"][1]["started_at"] == "2026-03-01T11:59:58.250Z"
    now = stored(world, run)
    assert (now.token, now.lease_until, now.next_attempt_at) == (4, None, None)
    assert not now.is_held_by(run)
    assert not world.runs.finish(replace(run, status=RunStatus.SUCCEEDED))


def test_one_that_has_just_begun_is_to_be_cancelled_again(
    client: Client, world: World, job: Json
) -> None:
    run = running(world, job, seconds=1.999)

    answer = cancel(client, run)

    assert (answer.status, answer.json["type"]) == (409, "urn:carillon:problem:not-cancellable")
    assert "less than 2 s" in answer.json["detail"]
    assert answer.headers["retry-after"] == "2"
    assert stored(world, run) == run


def test_one_whose_executor_has_died_is_cancelled_at_any_age(
    client: Client, world: World, job: Json
) -> None:
    run = running(world, job, seconds=1, lease_seconds=1)

    told = cancel(client, run).json

    assert (told["status"], told["note"]) == ("cancelled", "its executor had died")
    assert told["attempts"][1]["error"]["kind"] == "executor_died"


def test_a_takeover_that_comes_between_wins(client: Client, world: World, job: Json) -> None:
    run = running(world, job, seconds=60)
    now = world.clock.now()
    taken = replace(run, attempt=3, token=4, claim_id="other", attempt_started_at=now)
    taken = replace(taken, lease_until=now + timedelta(seconds=60))
    claim = world.runs.claim

    with preceded(world.runs, "claim", lambda: claim(taken, run)):
        assert cancel(client, run).headers["retry-after"] == "2"

    assert stored(world, run) == taken


@pytest.mark.parametrize("schedule", ["every 1h after finish", "every 1h"])
def test_what_follows_a_stopped_run_is_ordered(client: Client, world: World, schedule: str) -> None:
    """The next run of a fixed delay, and with `overlap: queue_one` the run that waits."""
    overlap = "allow" if "finish" in schedule else "queue_one"
    job = client.post("/jobs", BODY | {"schedule": schedule, "overlap": overlap}).json
    row = world.jobs.get(OWNER, job["job_id"])
    assert row is not None
    generation_id = row.generation.generation_id
    run = running(world, job, seconds=30, generation_id=generation_id)

    cancel(client, run)

    (kept,) = [each for each in world.queue.kept() if each.message.key == run.key]
    assert kept.visible_at == world.clock.now()
    assert kept.message.after_finish is ("finish" in schedule)


def test_a_claim_that_comes_between_wins(client: Client, world: World, retrying: Run) -> None:
    now = world.clock.now()
    started = replace(retrying, status=RunStatus.RUNNING, attempt=2, token=2, claim_id="other")
    started = replace(started, attempt_started_at=now, lease_until=now + timedelta(seconds=60))
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
