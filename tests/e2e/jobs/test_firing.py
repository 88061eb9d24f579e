"""Jobs that really fire: from POST /jobs to the recorded run, through the deployed template."""

import json
from itertools import pairwise
from statistics import median

import pytest

from carillon.local.receiver import Receiver
from tests.e2e.conftest import (
    LAG_LIMIT_SECONDS,
    NEVER,
    Json,
    Person,
    instant,
    post,
    seconds_ahead,
    task,
)

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module", autouse=True)
def minutely(alice: Person) -> Json:
    """Made first, and looked at last."""
    return alice.create({"cron": "* * * * *"}, timezone="Europe/Riga")


def test_a_job_fires_to_the_second_and_its_history_tells(alice: Person) -> None:
    job = alice.create("every 5s", name="heartbeat", payload={"n": 1})
    runs = alice.ended_runs(job, 4)
    assert {run["status"] for run in runs} == {"succeeded"}
    assert {run["result"] for run in runs} == {'{"n":1}'}
    times = [instant(run["fire_at"]) for run in runs]
    assert {(b - a).total_seconds() for a, b in pairwise(times)} == {5.0}
    lags = [run["lag_seconds"] for run in runs]
    assert min(lags) >= 0
    assert median(lags) <= LAG_LIMIT_SECONDS
    alice.delete(job)


def test_a_job_due_in_five_seconds_fires_in_five_seconds(alice: Person) -> None:
    job = alice.create(seconds_ahead(5))
    (run,) = alice.ended_runs(job, 1, within_seconds=15)
    assert run["status"] == "succeeded"
    assert 0 <= run["lag_seconds"] <= LAG_LIMIT_SECONDS


def test_a_webhook_arrives_signed_and_once(alice: Person, receiver: Receiver) -> None:
    job = alice.create(
        seconds_ahead(3), target={"type": "webhook", "url": receiver.url}, payload={"to": "you"}
    )
    (run,) = alice.ended_runs(job, 1)
    assert run["status"] == "succeeded", run
    (delivery,) = receiver.deliveries
    assert delivery.verified
    assert delivery.webhook_id == run["run_id"]
    assert delivery.body == b'{"to":"you"}'


def test_a_run_by_hand_and_its_repetition_are_one_run(alice: Person) -> None:
    job = alice.create(NEVER)
    key = {"Idempotency-Key": "by-hand-1"}
    answers = [alice.http.post(f"/jobs/{job['job_id']}/run", headers=key) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [202, 202]
    assert len({answer.json()["run_id"] for answer in answers}) == 1
    runs = alice.ended_runs(job, 1)
    assert [run["status"] for run in runs] == ["succeeded"]


def test_a_run_starts_the_job_after_it_once_and_its_redrive_starts_it_again(alice: Person) -> None:
    failing = {"target": task("fail"), "retry": {"max_attempts": 1}}
    before = alice.create(seconds_ahead(8), name="before", **failing)
    payload = {"of": "{{after.run_id}}", "was": "{{after.status}}", "with": "{{after.result}}"}
    after = {"job": before["name"], "when": "finished"}
    job = alice.create(None, name="after", after=after, template=True, payload=payload)

    (dead,) = alice.ended_runs(before, 1)
    (first,) = alice.ended_runs(job, 1)
    assert (first["kind"], first["fire_at"]) == ("after", dead["fire_at"])
    assert json.loads(first["result"]) == {"of": dead["run_id"], "was": "dead", "with": None}

    mended = {"target": task("echo"), "payload": 17}
    path, headers = f"/jobs/{before['job_id']}", {"If-Match": "*"}
    assert alice.http.patch(path, json=mended, headers=headers).status_code == 200
    again = post(alice, f"/dead-letters/{dead['run_id']}/redrive")
    runs = {run["run_id"]: run for run in alice.ended_runs(job, 2)}
    (second,) = (run for run_id, run in runs.items() if run_id != first["run_id"])
    was = {"of": again["run_id"], "was": "succeeded", "with": "17"}
    assert (len(runs), json.loads(second["result"])) == (2, was)


def test_a_cron_with_a_zone_fires_on_its_minute(alice: Person, minutely: Json) -> None:
    run = alice.ended_runs(minutely, 1, within_seconds=75)[0]
    assert run["fire_at"].endswith(":00Z")
    alice.delete(minutely)
