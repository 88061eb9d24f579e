"""POST /jobs/{job_id}/run with a payload of its own, and a note."""

import json
from dataclasses import replace
from typing import Any

import pytest

from carillon.domain.idempotency import record_key_of_run
from carillon.domain.run import DeadReason, RunKey, RunStatus
from tests.unit.api.conftest import BODY, NOW, World
from tests.unit.api.gateway import OWNER, Answer, Client, Json


@pytest.fixture
def client(world: World) -> Client:
    return Client(world.api())


@pytest.fixture
def path(client: Client) -> str:
    return f"/jobs/{client.post('/jobs', BODY).json['job_id']}/run"


def stored(world: World, answer: Answer) -> Any:
    key = RunKey.from_run_id(OWNER, answer.json["run_id"])
    return world.idempotency_records.get(OWNER, record_key_of_run(key))


@pytest.mark.parametrize("payload", [{"day": 1}, None, 0, "", [1, True]])
def test_the_payload_is_on_record_before_the_message(
    client: Client, world: World, path: str, payload: Any
) -> None:
    answer = client.post(path, {"payload": payload, "note": "again for Ann"})

    assert answer.status == 202
    assert (answer.json["payload_overridden"], answer.json["request_note"]) == (
        True,
        "again for Ann",
    )
    record = stored(world, answer)
    assert json.loads(record.payload) == payload
    assert world.queue.kept()[-1].message.key.run_id == answer.json["run_id"]
    run = client.get(f"{path}s/{answer.json['run_id']}").json
    assert (run["payload_overridden"], run["request_note"]) == (True, "again for Ann")


def test_a_run_without_is_as_before(client: Client, world: World, path: str) -> None:
    for body in ({}, {"note": "why not"}):
        answer = client.post(path, body)
        assert (answer.status, answer.json["payload_overridden"]) == (202, False)
    assert answer.json["request_note"] == "why not"
    assert client.post(path).status == 202


def test_who_cancels_or_redrives_it_is_told_the_note(
    client: Client, world: World, path: str
) -> None:
    """As those are who read it."""
    ids = [client.post(path, {"note": "for Ann"}).json["run_id"] for _ in range(2)]
    run = world.runs.get(RunKey.from_run_id(OWNER, ids[1]))
    assert run is not None
    died: Json = {"status": RunStatus.DEAD, "reason": DeadReason.EXHAUSTED, "finished_at": NOW}
    assert world.runs.claim(replace(run, **died), run)

    cancelled = client.post(f"{path}s/{ids[0]}/cancel")
    redriven = client.post(f"/dead-letters/{ids[1]}/redrive")
    assert (cancelled.status, redriven.status) == (200, 202)
    for answer in (cancelled, redriven):
        assert answer.json["request_note"] == "for Ann"
        assert answer.json == client.get(f"{path}s/{answer.json['run_id']}").json


def test_under_a_key_it_is_one_run_with_one_payload(client: Client, path: str) -> None:
    first = client.post(path, {"payload": 1}, key="k")

    assert client.post(path, {"payload": 1}, key="k").json["run_id"] == first.json["run_id"]
    bodies: list[Json] = [{"payload": 2}, {"payload": 1, "note": "n"}, {}]
    for body in bodies:
        refused = client.post(path, body, key="k")
        assert (refused.status, refused.fields) == (422, ["Idempotency-Key"])


@pytest.mark.parametrize(
    ("job", "body", "status", "field"),
    [
        ({}, {"payload": "x" * 66_000}, 413, "payload"),
        ({"template": True}, {"payload": "{{nothing}}"}, 422, "payload"),
        (
            {"target": {"type": "webhook", "url": "https://a.test", "method": "GET"}},
            {"payload": 1},
            422,
            "payload",
        ),
        ({}, {"note": "x" * 257}, 422, "note"),
        ({}, {"payloads": 1}, 422, "payloads"),
    ],
)
def test_what_the_job_cannot_take_is_refused(
    client: Client, world: World, job: Json, body: Json, status: int, field: str
) -> None:
    path = f"/jobs/{client.post('/jobs', BODY | job).json['job_id']}/run"
    before = len(world.queue.kept())

    refused = client.post(path, body)

    assert (refused.status, refused.fields[0]) == (status, field)
    assert len(world.queue.kept()) == before
