"""The api's handler as Lambda loads it, on the tables and queues of an emulated account."""

import importlib
import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
from moto import mock_aws

from carillon.domain.job import Lane
from carillon.domain.message import Message, decode
from carillon.settings import Settings
from tests.support.tables import create_deployment
from tests.unit.api.conftest import without_report
from tests.unit.api.gateway import Answer, Client, event

HANDLER = "carillon.api.handler"
BODY = {
    "name": "report",
    "schedule": "every 5m",
    "target": {"type": "task", "name": "echo"},
    "payload": {"ž": [1, 2.5]},
}


class Deployment:
    """The handler, and the deployment it is on."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.handler = importlib.import_module(HANDLER)

    def client(self, owner: str = "owner-1", groups: Any = None) -> Client:
        return Client(self.handler.api, owner, groups)

    def messages(self) -> list[Message]:
        """Messages that are visible now."""
        sqs = boto3.client("sqs")
        found = []
        for lane in Lane:
            url = self.settings.lane_queues[lane]
            answer = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)
            found += [decode(message["Body"]) for message in answer.get("Messages", [])]
        return found


@pytest.fixture
def deployment(monkeypatch: pytest.MonkeyPatch) -> Iterator[Deployment]:
    for name, value in {
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "POWERTOOLS_SERVICE_NAME": "api",
        "POWERTOOLS_METRICS_NAMESPACE": "Carillon",
        "SEGMENTS": "2",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with mock_aws():
        settings = create_deployment("api")
        for name, value in {
            "JOBS_TABLE": settings.jobs_table,
            "WHEEL_TABLE": settings.wheel_table,
            "RUNS_TABLE": settings.runs_table,
            "LANE_QUEUES": json.dumps(settings.lane_queues),
        }.items():
            monkeypatch.setenv(name, value)
        sys.modules.pop(HANDLER, None)
        yield Deployment(settings)
        sys.modules.pop(HANDLER, None)


def ok(answer: Answer, status: int = 200) -> Any:
    assert answer.status == status, answer.text
    return answer.json


def test_the_life_of_a_job(deployment: Deployment) -> None:
    client = deployment.client()
    answered = ok(client.post("/jobs", BODY, key="k"), 201)
    created = without_report(answered)
    path = f"/jobs/{created['job_id']}"

    assert ok(client.post("/jobs", BODY, key="k")) == answered
    assert ok(client.get(path)) == {**created, "last_run": None, "failures_in_a_row": 0}
    assert ok(client.get("/jobs"))["items"] == [created]
    changed = ok(client.patch(path, {"schedule": {"cron": "*/5 * * * *"}, "priority": "high"}, 1))
    assert (changed["revision"], changed["payload"]) == (2, BODY["payload"])
    assert client.patch(path, {"description": "late"}, 1).status == 412
    assert ok(client.post(f"{path}/pause"))["state"] == "paused"
    resumed = ok(client.post(f"{path}/resume"))
    assert (resumed["state"], resumed["revision"]) == ("active", 4)
    upcoming = ok(client.get("/upcoming", count="1"))
    assert [item["fire_at"] for item in upcoming["items"]] == [resumed["next_fire_at"]]
    assert client.delete(path).status == 204
    assert client.get(path).status == 404
    assert client.post("/jobs", BODY, key="k").status == 410


def test_many_jobs_at_once_from_several_threads(deployment: Deployment) -> None:
    client = deployment.client()
    tagged = BODY | {"parent": "channel", "tags": {"team": "x"}, "overlap": "skip", "grace": "1m"}
    items = [tagged | {"name": f"job {n}"} for n in range(30)]
    first = ok(client.post("/jobs/bulk", {"items": items}, key="k"))
    again = ok(client.post("/jobs/bulk", {"items": [*items, BODY]}, key="k"))

    assert (first["created"], again["created"], again["existing"]) == (30, 1, 30)
    assert len(ok(client.get("/jobs", tag="team:x", limit="100"))["items"]) == 30
    paused = ok(client.send("POST", "/jobs/pause", query={"parent": "channel"}))
    assert paused == {"changed": 30, "managed": 0, "next_cursor": None}
    resumed = ok(client.send("POST", "/jobs/resume", query={"tag": "team:x"}))
    assert resumed == {"changed": 30, "managed": 0, "next_cursor": None}
    page = ok(client.get("/jobs", parent="channel", limit="1"))
    assert (page["items"][0]["state"], page["items"][0]["overlap"]) == ("active", "skip")
    gone = ok(client.send("DELETE", "/jobs", query={"parent": "channel", "tag": "team:x"}))
    assert gone == {"changed": 30, "managed": 0, "next_cursor": None}
    (left,) = ok(client.get("/jobs"))["items"]
    assert left["parent"] is None


def test_a_manual_run_reaches_its_lane_and_the_history(deployment: Deployment) -> None:
    client = deployment.client()
    path = f"/jobs/{ok(client.post('/jobs', BODY | {'priority': 'high'}), 201)['job_id']}"
    run = ok(client.post(f"{path}/run", key="k"), 202)

    assert ok(client.post(f"{path}/run", key="k"), 202) == run
    assert ok(client.get(f"{path}/runs/{run['run_id']}")) == run
    assert [found["run_id"] for found in ok(client.get(f"{path}/runs"))["items"]] == [run["run_id"]]
    sent = deployment.messages()
    assert {message.key.run_id for message in sent} == {run["run_id"]}
    assert {message.lane for message in sent} == {Lane.HIGH}
    assert ok(client.get("/status"))["active_jobs"] == 1


def test_a_job_due_at_once_is_sent_although_no_tick_has_come(deployment: Deployment) -> None:
    """First use makes the segment's control item; the tick will find the entry."""
    client = deployment.client(groups=["operators"])
    fire_at = datetime.now(UTC) + timedelta(seconds=90)
    body = BODY | {"schedule": f"at {fire_at:%Y-%m-%dT%H:%M:%SZ}"}
    ok(client.post("/jobs", body), 201)

    segments = ok(client.get("/status"))["segments"]
    assert len(segments) == 2
    assert sum(view["horizon_at"] is not None for view in segments) == 1
    assert deployment.messages() == []


def test_the_largest_payload_fits_into_a_row(deployment: Deployment) -> None:
    payload = "ž" * ((64 * 1024 - 2) // 2)
    created = ok(deployment.client().post("/jobs", BODY | {"payload": payload}), 201)

    assert ok(deployment.client().get(f"/jobs/{created['job_id']}"))["payload"] == payload


def test_the_handler_takes_the_gateway_s_events(deployment: Deployment) -> None:
    answer = deployment.handler.handler(event("GET", "/openapi.json"), None)

    assert answer["statusCode"] == 200
    assert json.loads(answer["body"])["info"]["title"] == "Carillon"
