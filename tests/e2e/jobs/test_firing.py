"""Jobs that really fire: from POST /jobs to the recorded run, through the deployed template."""

from itertools import pairwise
from statistics import median

import pytest

from carillon.local.receiver import Receiver
from tests.e2e.conftest import LAG_LIMIT_SECONDS, NEVER, Json, Person, instant, seconds_ahead

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


def test_a_cron_with_a_zone_fires_on_its_minute(alice: Person, minutely: Json) -> None:
    run = alice.ended_runs(minutely, 1, within_seconds=75)[0]
    assert run["fire_at"].endswith(":00Z")
    alice.delete(minutely)
