"""Every type of target, callbacks and events, on the deployed stack with real services behind."""

import json
from time import monotonic, sleep
from typing import Any

import pytest

from carillon.local.deployment import Deployment
from carillon.local.emulator import REGION
from tests.e2e.conftest import NEVER, Json, Person, owner_of, run_by_hand, run_of, task, until
from tests.integration.executor.endpoints import endpoint

pytestmark = pytest.mark.e2e

ENVELOPE = {"run": "{{run_id}}", "n": "{{attempt}}", "for": "{{tags.customer}}"}


class Inbox:
    """A queue that a test reads."""

    def __init__(self, deployment: Deployment, name: str) -> None:
        self._sqs = deployment.client("sqs")
        self._url = self._sqs.create_queue(QueueName=name)["QueueUrl"]
        answer = self._sqs.get_queue_attributes(QueueUrl=self._url, AttributeNames=["QueueArn"])
        self.arn = str(answer["Attributes"]["QueueArn"])

    def wait(self, count: int, within_seconds: float = 30) -> list[Json]:
        """The bodies of the first `count` messages, as JSON."""
        found: list[Json] = []
        deadline = monotonic() + within_seconds
        while len(found) < count:
            assert monotonic() < deadline, found
            answer = self._sqs.receive_message(QueueUrl=self._url, MaxNumberOfMessages=10)
            for message in answer.get("Messages", []):
                found.append(json.loads(message["Body"]))
                handle = message["ReceiptHandle"]
                self._sqs.delete_message(QueueUrl=self._url, ReceiptHandle=handle)
            sleep(0.2)
        return found


@pytest.fixture
def inbox(deployment: Deployment, request: pytest.FixtureRequest) -> Inbox:
    return Inbox(deployment, f"inbox-{abs(hash(request.node.name)) % 10**8}")


@pytest.fixture
def bus_inbox(deployment: Deployment, inbox: Inbox) -> Inbox:
    """An inbox that gets every event of the deployment's bus."""
    bus = deployment.outputs["EventBusName"]
    events = deployment.client("events")
    events.put_rule(Name="all", EventBusName=bus, EventPattern='{"source": ["carillon"]}')
    events.put_targets(Rule="all", EventBusName=bus, Targets=[{"Id": "inbox", "Arn": inbox.arn}])
    return inbox


def call(person: Person, target: Json, **fields: Any) -> Json:
    """Run a job with this target by hand; its run, ended."""
    job = person.create(
        NEVER,
        target=target,
        template=True,
        tags={"customer": "7"},
        **{"payload": ENVELOPE, **fields},
    )
    run = run_by_hand(person, job)
    until(lambda: run_of(person, run)["status"] not in ("scheduled", "running", "retrying"))
    return run_of(person, run)


def filled(run: Json) -> Json:
    """The payload that the template makes of ENVELOPE."""
    return {"run": run["run_id"], "n": 1, "for": "7"}


def test_a_header_may_be_a_secret_of_the_owner(alice: Person, deployment: Deployment) -> None:
    owner = owner_of(alice)
    secrets = deployment.client("secretsmanager")
    secrets.create_secret(Name=f"carillon-local/{owner}/api", SecretString="Bearer s3cret")
    deployment.client("ssm").put_parameter(
        Name=f"/carillon-local/{owner}/region", Value="north", Type="SecureString"
    )
    headers = {
        "Authorization": {"secret": "api"},
        "X-Region": {"parameter": "region"},
        "X-Plain": "yes",
    }
    with endpoint() as hook:
        run = call(alice, {"type": "webhook", "url": hook.url, "headers": headers})
        assert run["status"] == "succeeded", run
        (request,) = hook.received
    sent = {"authorization": "Bearer s3cret", "x-region": "north", "x-plain": "yes"}
    assert sent.items() <= request.headers.items()
    assert json.loads(request.body) == filled(run)
    shown = alice.http.get(f"/jobs/{run['job_id']}").text
    assert "s3cret" not in shown


def test_what_is_not_allowed_is_refused_by_name(alice: Person) -> None:
    body = {
        "name": "not allowed",
        "schedule": NEVER,
        "target": {"type": "sqs", "queue_arn": f"arn:aws:sqs:{REGION}:999999999999:other"},
    }
    answer = alice.http.post("/jobs", json=body)
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert error["field"] == "target.queue_arn"
    assert "target_arns" in error["message"]


def test_callbacks_tell_how_it_ended(alice: Person, inbox: Inbox) -> None:
    told = {"on_success": {"type": "sqs", "queue_arn": inbox.arn}}
    told["on_failure"] = told["on_success"]
    good = call(alice, task("echo"), **told)
    bad = call(alice, task("fail"), retry={"max_attempts": 1}, **told)
    came = {each["run_id"]: each for each in inbox.wait(2)}
    assert came[good["run_id"]]["status"] == "succeeded"
    assert came[bad["run_id"]]["status"] == "dead"
    assert came[bad["run_id"]]["error"]["kind"] == "RuntimeError"
    runs = alice.runs({"job_id": bad["job_id"]})
    assert {run["kind"] for run in runs} == {"manual", "callback"}


def test_events_reach_a_subscriber_as_cloud_events(alice: Person, bus_inbox: Inbox) -> None:
    chosen = ["run.started", "run.failed", "run.retrying", "run.dead", "job.paused"]
    retry = {"max_attempts": 2, "backoff": {"type": "fixed", "base_seconds": 1}}
    run = call(alice, task("fail"), retry=retry, events=chosen, name="told")
    assert alice.http.post(f"/jobs/{run['job_id']}/pause").status_code == 200
    found: dict[str, Json] = {}
    deadline = monotonic() + 30
    while len(found) < 7 and monotonic() < deadline:
        for event in bus_inbox.wait(1):
            about = event["detail"]["data"].get("job_id")
            if about == run["job_id"]:
                found[event["detail"]["id"]] = event
    kinds = sorted(event["detail-type"] for event in found.values())
    first, last = ["failed", "retrying", "started"], ["dead", "failed", "started"]
    assert kinds == sorted([*(f"run.{what}" for what in first + last), "job.paused"])
    (dead,) = [event["detail"] for event in found.values() if event["detail-type"] == "run.dead"]
    assert (dead["specversion"], dead["type"]) == ("1.0", "carillon.run.dead")
    assert dead["subject"] == run["run_id"]
    assert dead["data"]["tags"] == {"customer": "7"}
