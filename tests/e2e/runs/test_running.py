"""What becomes of occurrences on the deployed stack: retries, dead letters, policies, lanes."""

import json
from datetime import UTC, datetime
from time import sleep

import pytest

from carillon.domain.job import Lane
from carillon.domain.message import Message, encode
from carillon.domain.run import RunKey, RunKind
from carillon.domain.tracing import TraceContext
from carillon.local.deployment import EXECUTOR_TIMEOUT_SECONDS, Deployment
from tests.e2e.conftest import (
    ENDED,
    LAG_LIMIT_SECONDS,
    NEVER,
    Json,
    Person,
    instant,
    owner_of,
    post,
    run_by_hand,
    run_of,
    seconds_ahead,
    task,
    until,
)
from tests.integration.executor.endpoints import endpoint

pytestmark = pytest.mark.e2e


LEASE_SECONDS = EXECUTOR_TIMEOUT_SECONDS + 2


def status_of(person: Person, run: Json) -> str:
    return str(run_of(person, run)["status"])


def test_retry_after_is_honoured_and_every_attempt_is_told(alice: Person) -> None:
    with endpoint() as hook:
        hook.answers = [(429, {"retry-after": "4"}), (503, {})]
        job = alice.create(
            seconds_ahead(2),
            target={"type": "webhook", "url": hook.url},
            retry={"max_attempts": 4, "backoff": {"type": "fixed", "base_seconds": 1}},
        )
        (run,) = alice.ended_runs(job, 1)
        first, second, third = (request.at for request in hook.received)
    assert run["status"] == "succeeded"
    assert 4 <= second - first <= 4 + 2 * LAG_LIMIT_SECONDS
    assert 1 <= third - second <= 1 + 2 * LAG_LIMIT_SECONDS
    attempts = run_of(alice, run)["attempts"]
    assert [attempt["attempt"] for attempt in attempts] == [1, 2, 3]
    kinds = [attempt["error"] and attempt["error"]["kind"] for attempt in attempts]
    assert kinds == ["http_429", "http_503", None]
    assert all(instant(a["started_at"]) <= instant(a["finished_at"]) for a in attempts)
    traced = [TraceContext.of_call(run["run_id"], attempt, 100) for attempt in (1, 2, 3)]
    told = [request.headers["traceparent"] for request in hook.received]
    assert told == [each.traceparent for each in traced]


def test_a_dead_letter_is_redriven_into_success_and_the_history_shows_both(alice: Person) -> None:
    with endpoint() as hook:
        hook.answers = [(500, {})]
        job = alice.create(
            seconds_ahead(2),
            target={"type": "webhook", "url": hook.url},
            retry={"max_attempts": 1},
        )
        (dead,) = alice.ended_runs(job, 1)
        assert (dead["status"], dead["reason"]) == ("dead", "exhausted")

        def letters() -> list[str]:
            page = alice.http.get("/dead-letters", params={"job_id": job["job_id"]}).json()
            return [letter["run_id"] for letter in page["items"]]

        until(lambda: letters() == [dead["run_id"]])
        again = post(alice, f"/dead-letters/{dead['run_id']}/redrive")
        assert post(alice, f"/dead-letters/{dead['run_id']}/redrive")["run_id"] == again["run_id"]
        until(lambda: status_of(alice, again) == "succeeded")
        until(lambda: letters() == [])
    history = {run["run_id"]: run for run in alice.runs(job)}
    assert history[dead["run_id"]]["settled"] == "redriven"
    assert history[again["run_id"]]["redrive"] == 1
    assert history[again["run_id"]]["fire_at"] == history[dead["run_id"]]["fire_at"]
    assert len(hook.received) == 2


def test_a_killer_takes_none_of_its_batch_with_it(alice: Person, deployment: Deployment) -> None:
    def create(name: str, **fields: object) -> Json:
        # Other sessions' jobs are in lane normal, whose workers are to stay warm.
        return alice.create(NEVER, name=name, priority="low", **fields)

    killer = create("killer", target=task("kill_executor"), retry={"max_attempts": 2})
    jobs = [killer, *(create(f"beside-{number}") for number in range(9))]
    keys = [manual_key(alice, job) for job in jobs]
    function = deployment.outputs["ExecutorFunctionLow"]
    for reception in range(1, 6):  # as SQS would give the batch again each time it was not answered
        records = [sqs_record(key, reception) for key in keys]
        deployment.client("lambda").invoke(
            FunctionName=function, Payload=json.dumps({"Records": records}).encode()
        )
        runs = [one for job in jobs for one in alice.runs(job)]
        if len(runs) == 10 and all(run["status"] in ENDED for run in runs):
            break
        sleep(LEASE_SECONDS)
    died, *others = runs
    assert (died["status"], died["reason"]) == ("dead", "executor_died")
    assert [run["status"] for run in others] == ["succeeded"] * 9
    assert reception <= 4  # after the fifth SQS would give up


def manual_key(person: Person, job: Json) -> RunKey:
    """The key of a run by hand that nobody has asked for yet."""
    fire_at = datetime.now(UTC).replace(microsecond=0)
    return RunKey(owner_of(person), job["job_id"], RunKind.MANUAL, fire_at, "batch")


def sqs_record(key: RunKey, reception: int) -> Json:
    """What Lambda is given of a message, at its so-manieth reception."""
    message = Message(key, generation_id="0" * 26, segment=0, lane=Lane.LOW, due_at=key.fire_at)
    attributes = {"ApproximateReceiveCount": str(reception)}
    return {"messageId": key.run_id, "body": encode(message), "attributes": attributes}


def test_a_rate_spreads_starts(alice: Person) -> None:
    job = alice.create(NEVER, name="rated", rate={"limit": 1, "per": "2s"})
    runs = [run_by_hand(alice, job) for _ in range(4)]
    until(lambda: all(status_of(alice, run) == "succeeded" for run in runs), 60)
    starts = sorted(instant(run_of(alice, run)["started_at"]) for run in runs)
    assert (starts[-1] - starts[0]).total_seconds() >= 3 * 2 - 0.5


@pytest.mark.parametrize(
    ("meanwhile", "reason"), [("pause", "paused"), ("delete", "deleted"), ("change", "changed")]
)
def test_what_comes_between_dispatch_and_start_holds(
    alice: Person, meanwhile: str, reason: str
) -> None:
    job = alice.create(seconds_ahead(6))  # dispatched at once: the message waits for its second
    path = f"/jobs/{job['job_id']}"
    if meanwhile == "pause":
        assert alice.http.post(f"{path}/pause").status_code == 200
    elif meanwhile == "delete":
        assert alice.http.delete(path).status_code == 204
    else:
        answer = alice.http.patch(path, json={"schedule": NEVER}, headers={"If-Match": "*"})
        assert answer.status_code == 200, answer.text
    (run,) = alice.ended_runs(job, 1)
    assert (run["status"], run["reason"], run["started_at"]) == ("skipped", reason, None)


def test_a_flood_in_low_does_not_delay_high(alice: Person) -> None:
    flood = alice.create(
        NEVER,
        name="flood",
        priority="low",
        target=task("sleep"),
        payload={"seconds": 4},
        timeout_seconds=5,
    )
    for _ in range(80):
        run_by_hand(alice, flood)
    urgent = alice.create("every 2s", name="urgent", priority="high")
    runs = alice.ended_runs(urgent, 8)
    alice.http.delete(f"/jobs/{urgent['job_id']}")
    unfinished = [run for run in alice.runs(flood) if run["status"] != "succeeded"]
    assert unfinished, "the flood was over before the urgent runs were"
    assert {run["status"] for run in runs} == {"succeeded"}
    assert max(run["lag_seconds"] for run in runs) <= LAG_LIMIT_SECONDS
    alice.http.delete(f"/jobs/{flood['job_id']}")


def test_what_a_task_logs_is_read_by_its_owner_alone(alice: Person, bob: Person) -> None:
    job = alice.create(NEVER, target=task("fail"), payload={"message": "no such customer"})
    run = run_by_hand(alice, job)

    def lines() -> list[Json]:
        answer = alice.http.get(f"/runs/{run['run_id']}/logs")
        assert answer.status_code == 200, answer.text
        items: list[Json] = answer.json()["items"]
        return items

    first = until(lines, 60)[0]
    assert (first["level"], first["attempt"]) == ("ERROR", 1)
    assert first["message"].startswith("the task failed\nTraceback")
    assert "RuntimeError: no such customer" in first["message"]
    assert bob.http.get(f"/runs/{run['run_id']}/logs").status_code == 404
