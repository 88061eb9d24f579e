"""Jobs that really fire: from POST /jobs to the recorded run, through the deployed template."""

import socket
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from statistics import median
from time import sleep

import pytest

from carillon.local.deployment import Deployment
from carillon.local.receiver import Receiver
from tests.e2e.conftest import Json, Person

pytestmark = pytest.mark.e2e

LAG_LIMIT_SECONDS = 1.5
"""Invariant I3."""


def seconds_ahead(seconds: int) -> str:
    return f"at {datetime.now(UTC) + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%S}"


@pytest.fixture(scope="module", autouse=True)
def minutely(alice: Person) -> Json:
    """Made first, and looked at last."""
    return alice.create({"cron": "* * * * *"}, timezone="Europe/Riga")


def test_a_job_fires_to_the_second_and_its_history_tells(alice: Person) -> None:
    job = alice.create("every 5s", name="heartbeat", payload={"n": 1})
    runs = alice.ended_runs(job, 4)
    assert {run["status"] for run in runs} == {"succeeded"}
    assert {run["result"] for run in runs} == {'{"n":1}'}
    times = [datetime.fromisoformat(run["fire_at"]) for run in runs]
    assert {(b - a).total_seconds() for a, b in pairwise(times)} == {5.0}
    lags = [run["lag_seconds"] for run in runs]
    assert min(lags) >= 0
    assert median(lags) <= LAG_LIMIT_SECONDS
    assert alice.http.delete(f"/jobs/{job['job_id']}").status_code == 204


def test_a_job_due_in_five_seconds_fires_in_five_seconds(alice: Person) -> None:
    job = alice.create(seconds_ahead(5))
    (run,) = alice.ended_runs(job, 1, within_seconds=15)
    assert run["status"] == "succeeded"
    assert 0 <= run["lag_seconds"] <= LAG_LIMIT_SECONDS


def test_a_failing_task_goes_through_its_retries_into_the_dead_letters(alice: Person) -> None:
    job = alice.create(
        seconds_ahead(2),
        target={"type": "task", "name": "fail"},
        payload={"message": "no paper"},
        retry={"max_attempts": 3, "backoff": {"base_seconds": 1, "factor": 1}},
    )
    (run,) = alice.ended_runs(job, 1)
    assert (run["status"], run["attempt"]) == ("dead", 3)
    assert run["error"]["message"] == "no paper"
    one = alice.http.get(f"/jobs/{job['job_id']}/runs/{run['run_id']}").json()
    assert [attempt["attempt"] for attempt in one["attempts"]] == [1, 2, 3]


def test_a_task_that_kills_its_process_takes_nothing_along(alice: Person) -> None:
    at = seconds_ahead(4)
    good = [alice.create(at, name=f"good-{number}") for number in range(9)]
    bad = alice.create(at, target={"type": "task", "name": "die"}, retry={"max_attempts": 1})
    for job in good:
        assert alice.ended_runs(job, 1)[0]["status"] == "succeeded"
    (run,) = alice.ended_runs(bad, 1)
    assert run["status"] == "dead"
    assert run["error"]["kind"] == "task_died"


@pytest.fixture
def silent_server() -> Iterator[str]:
    """A server that accepts connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}/"


def test_a_webhook_that_never_answers_is_cut_at_the_limit(
    alice: Person, silent_server: str
) -> None:
    job = alice.create(
        seconds_ahead(2),
        target={"type": "webhook", "url": silent_server},
        timeout_seconds=1,
        retry={"max_attempts": 1},
    )
    (run,) = alice.ended_runs(job, 1)
    assert run["status"] == "timed_out"
    assert run["lag_seconds"] >= 0


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
    job = alice.create("0 0 1 1 *")
    key = {"Idempotency-Key": "by-hand-1"}
    answers = [alice.http.post(f"/jobs/{job['job_id']}/run", headers=key) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [202, 202]
    assert len({answer.json()["run_id"] for answer in answers}) == 1
    runs = alice.ended_runs(job, 1)
    assert [run["status"] for run in runs] == ["succeeded"]


def test_a_paused_job_rests_and_a_resumed_one_goes_on(alice: Person) -> None:
    job = alice.create("every 2s")
    alice.ended_runs(job, 1)
    paused = alice.http.post(f"/jobs/{job['job_id']}/pause")
    paused_at = datetime.now(UTC)
    assert paused.json()["state"] == "paused"
    sleep(6)
    started = [
        datetime.fromisoformat(run["started_at"])
        for run in alice.runs(job)
        if run["status"] == "succeeded"
    ]
    assert max(started) <= paused_at
    assert alice.http.post(f"/jobs/{job['job_id']}/resume").json()["state"] == "active"
    resumed_at = datetime.now(UTC)
    sleep(6)
    fired = [
        run
        for run in alice.runs(job)
        if run["status"] == "succeeded" and datetime.fromisoformat(run["fire_at"]) > resumed_at
    ]
    assert fired
    alice.http.delete(f"/jobs/{job['job_id']}")


def test_the_tick_is_doubled_without_harm(alice: Person, deployment: Deployment) -> None:
    job = alice.create("every 10s")
    functions = deployment.client("lambda")
    for _ in range(5):
        functions.invoke(FunctionName=deployment.outputs["TickFunction"], Payload=b'{"worker":0}')
    runs = alice.ended_runs(job, 2)
    fire_times = [run["fire_at"] for run in alice.runs(job)]
    assert len(fire_times) == len(set(fire_times))
    assert {run["attempt"] for run in runs} == {1}
    alice.http.delete(f"/jobs/{job['job_id']}")


def test_a_cron_with_a_zone_fires_on_its_minute(alice: Person, minutely: Json) -> None:
    run = alice.ended_runs(minutely, 1, within_seconds=75)[0]
    assert run["fire_at"].endswith(":00Z")
    alice.http.delete(f"/jobs/{minutely['job_id']}")
