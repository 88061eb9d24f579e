"""Dead letters: the list, redriving and discarding one, and many as an operation."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from carillon.domain.operation import OperationState
from carillon.domain.run import DeadReason, Resolution, Run, RunError, RunKind, RunStatus
from tests.unit.api.conftest import BODY, World
from tests.unit.api.gateway import OWNER, Answer, Client, Json
from tests.unit.api.runs.test_runs import SECOND, FailingQueue, make_run, put, stored


def put_dead(world: World, job_id: str, fire_at: datetime = SECOND, **values: Any) -> Run:
    dead = make_run(
        job_id,
        fire_at,
        status=RunStatus.DEAD,
        error=RunError("http_503", "down"),
        reason=DeadReason.EXHAUSTED,
        attempt_started_at=fire_at,
        finished_at=fire_at,
    )
    return put(world, replace(dead, **values))


def redrive(client: Client, run: Run) -> Answer:
    return client.post(f"/dead-letters/{run.key.run_id}/redrive")


def discard(client: Client, run: Run) -> Answer:
    return client.delete(f"/dead-letters/{run.key.run_id}")


@pytest.fixture
def dead(world: World, job: Json) -> Run:
    return put_dead(world, job["job_id"])


def test_the_list_holds_what_has_failed_for_good(client: Client, world: World, job: Json) -> None:
    rows = [put_dead(world, job["job_id"], SECOND + timedelta(minutes=n)) for n in range(3)]
    put(world, make_run(job["job_id"], SECOND + timedelta(minutes=9)))
    timed_out = put_dead(
        world, job["job_id"], SECOND + timedelta(minutes=4), status=RunStatus.TIMED_OUT
    )

    first = client.get("/dead-letters", limit="2").json
    rest = client.get("/dead-letters", limit="2", cursor=first["next_cursor"]).json

    ids = [run["run_id"] for run in first["items"] + rest["items"]]
    assert ids == [run.key.run_id for run in (timed_out, *reversed(rows))]
    assert rest["next_cursor"] is None
    assert first["items"][0]["settled"] is None
    assert client.get("/dead-letters", cursor="x").fields == ["cursor"]


def test_the_list_can_be_narrowed(client: Client, world: World, job: Json) -> None:
    other = client.post("/jobs", BODY).json["job_id"]
    put_dead(world, job["job_id"], error=RunError("timeout", "slow"))
    put_dead(world, job["job_id"], SECOND - timedelta(hours=1), reason=DeadReason.REFUSED)
    put_dead(world, other, SECOND - timedelta(hours=2))

    def hours(**query: str) -> list[int]:
        items = client.get("/dead-letters", **query).json["items"]
        return [12 - int(run["fire_at"][11:13]) for run in items]

    assert hours() == [0, 1, 2]
    assert hours(job_id=other) == [2]
    assert hours(reason="refused") == [1]
    assert hours(error="timeout") == [0]
    assert hours(**{"from": "2026-03-01T11:00:00Z"}) == [0, 1]
    assert hours(**{"from": "2026-03-01T10:00:00.5Z", "to": "2026-03-01T11:00:00.5Z"}) == [1]
    assert hours(job_id=other, reason="refused") == []


def test_a_redrive_answers_the_new_run(client: Client, world: World, dead: Run) -> None:
    world.clock.advance(90)

    answer = redrive(client, dead)

    assert answer.status == 202
    run = answer.json
    assert (run["kind"], run["redrive"], run["status"]) == ("scheduled", 1, "scheduled")
    assert run["fire_at"] == "2026-03-01T12:00:00Z"
    assert run["effective_at"] == "2026-03-01T12:01:30Z", "its lag counts from now"
    assert client.get(answer.headers["location"]).json == run
    (sent,) = [kept.message for kept in world.queue.kept()]
    assert (sent.key, sent.attempt) == (dead.key.redriven, 1)
    assert stored(world, dead).settled is Resolution.REDRIVEN
    assert client.get("/dead-letters").json["items"] == []
    history = client.get(f"/jobs/{dead.key.job_id}/runs").json["items"]
    assert [(run["redrive"], run["settled"]) for run in history] == [(0, "redriven"), (1, None)]


def test_a_repeated_redrive_answers_the_same_run(client: Client, world: World, dead: Run) -> None:
    first = redrive(client, dead)
    world.clock.advance(3600)
    again = redrive(client, dead)

    assert (again.status, again.json) == (202, first.json)
    # It has yet to begin: its message may be lost, so it is sent again, and absorbed if it was not.
    assert {kept.message.key for kept in world.queue.kept()} == {dead.key.redriven}


def test_a_redrive_whose_message_was_refused_can_be_repeated(world: World) -> None:
    queue = FailingQueue(world.clock)
    client = Client(world.api(queue=queue))
    dead = put_dead(world, client.post("/jobs", BODY).json["job_id"])

    assert redrive(client, dead).status == 503
    assert [run["run_id"] for run in client.get("/dead-letters").json["items"]] == [dead.key.run_id]
    queue.is_down = False
    assert redrive(client, dead).status == 202
    assert [kept.message.key for kept in queue.kept()] == [dead.key.redriven]


def test_a_dead_letter_of_a_paused_job_is_redriven(client: Client, world: World, dead: Run) -> None:
    client.post(f"/jobs/{dead.key.job_id}/pause")
    assert redrive(client, dead).status == 202


def test_a_dead_letter_of_a_deleted_job_is_not(client: Client, world: World, dead: Run) -> None:
    client.delete(f"/jobs/{dead.key.job_id}")

    answer = redrive(client, dead)

    assert (answer.status, answer.json["type"]) == (409, "urn:carillon:problem:job-gone")
    assert f"job {dead.key.job_id} was deleted" in answer.json["detail"]
    assert world.queue.kept() == []
    assert discard(client, dead).status == 204


def test_a_discarded_one_is_off_the_list(client: Client, world: World, dead: Run) -> None:
    assert (discard(client, dead).status, discard(client, dead).status) == (204, 204)
    assert client.get("/dead-letters").json["items"] == []
    told = client.get(f"/jobs/{dead.key.job_id}/runs/{dead.key.run_id}").json
    assert (told["status"], told["settled"]) == ("dead", "discarded")
    answer = redrive(client, dead)
    assert (answer.status, answer.json["type"]) == (409, "urn:carillon:problem:not-a-dead-letter")
    assert "discarded" in answer.json["detail"]


def test_a_redriven_one_is_not_discarded(client: Client, dead: Run) -> None:
    run_id = redrive(client, dead).json["run_id"]

    answer = discard(client, dead)

    assert answer.status == 409
    assert run_id in answer.json["detail"]


def test_a_run_that_is_none_is_not_settled(client: Client, world: World, job: Json) -> None:
    run = put(world, make_run(job["job_id"], SECOND))

    for answer in (redrive(client, run), discard(client, run)):
        assert answer.status == 409
        assert "succeeded" in answer.json["detail"]


@pytest.mark.parametrize("run_id", ["nonsense", "~operations_19700101T000000Z_operation-x_0"])
def test_text_that_is_no_run_is_not_found(client: Client, run_id: str) -> None:
    assert client.post(f"/dead-letters/{run_id}/redrive").status == 404
    assert client.delete(f"/dead-letters/{run_id}").status == 404


@pytest.mark.parametrize("kind", ["redrive", "discard"])
def test_many_are_settled_by_an_operation(
    client: Client, world: World, dead: Run, kind: str
) -> None:
    body = {
        "job_id": dead.key.job_id,
        "reason": "exhausted",
        "error": "http_503",
        "from": "2026-03-01T00:00:00Z",
        "to": "2026-03-01T12:00:00.9Z",
        "per_minute": 30,
    }
    answer = client.post(f"/dead-letters/{kind}", body)

    assert answer.status == 202
    told = answer.json
    assert answer.headers["location"] == f"/operations/{told['operation_id']}"
    assert client.get(answer.headers["location"]).json == told
    assert (
        told.items()
        >= {
            "kind": kind,
            "state": "running",
            "job_id": dead.key.job_id,
            "reason": "exhausted",
            "error": "http_503",
            "from": "2026-03-01T00:00:00Z",
            "to": "2026-03-01T12:00:00Z",
            "only": None,
            "per_minute": 30,
            "done": 0,
            "passed_over": 0,
            "reached": None,
            "note": None,
        }.items()
    )
    (order,) = [kept.message for kept in world.queue.kept()]
    assert (order.key.kind, order.key.job_id) == (RunKind.OPERATION, told["operation_id"])
    assert stored(world, dead).settled is None, "that is the executor's work"


def test_an_operation_takes_all_dead_letters_where_all_are_asked_for(client: Client) -> None:
    told = client.post("/dead-letters/discard", {"all": True}).json
    filters = ("job_id", "reason", "error", "from", "to")
    assert [told[name] for name in filters] == [None] * 5
    assert told["per_minute"] == 600


def test_settling_is_told(client: Client, world: World, dead: Run, job: Json) -> None:
    redrive(client, dead)
    discard(client, put_dead(world, job["job_id"], SECOND - timedelta(minutes=5)))
    operation = client.post("/dead-letters/discard", {"all": True}).json["operation_id"]
    client.post(f"/operations/{operation}/cancel")

    found = world.operations.get(OWNER, operation)
    assert found is not None
    assert found.state is OperationState.CANCELLED
    log = world.log.getvalue()
    actions = "run.redriven", "run.discarded", "operation.requested", "operation.cancelled"
    assert all(f'"action":"{action}"' in log for action in actions)
