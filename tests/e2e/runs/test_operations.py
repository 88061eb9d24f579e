"""Operations on jobs, on the deployed stack: backfill, cancelling, bulk, groups, the watch."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import time

import pytest

from carillon.local.deployment import EXECUTOR_TIMEOUT_SECONDS
from carillon.settings import TASK_RESERVE_SECONDS
from tests.e2e.conftest import NEVER, Json, Person, instant, post, run_by_hand, run_of, task, until

pytestmark = pytest.mark.e2e

LONGEST_SECONDS = EXECUTOR_TIMEOUT_SECONDS - TASK_RESERVE_SECONDS
"""The limit that a call may have here."""


def text(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def finished(person: Person, operation: Json) -> Json:
    """The operation, when it has ended."""
    path = f"/operations/{operation['operation_id']}"
    until(lambda: person.http.get(path).json()["state"] != "running", 120)
    found: Json = person.http.get(path).json()
    return found


def test_a_backfill_runs_a_span_and_tells_how_far_it_is(alice: Person) -> None:
    job = alice.create("every 1h", name="hourly")
    hour = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    body = {"from": text(hour - timedelta(hours=5)), "to": text(hour), "per_minute": 600}
    operation = post(alice, f"/jobs/{job['job_id']}/backfill", body)
    ended = finished(alice, operation)
    assert (ended["kind"], ended["state"], ended["done"]) == ("backfill", "succeeded", 6)
    until(lambda: len(alice.ended_runs(job, 6)) == 6)
    runs = alice.ended_runs(job, 6)
    assert {run["kind"] for run in runs} == {"backfill"}
    assert [instant(run["fire_at"]) for run in runs] == [
        hour - timedelta(hours=back) for back in (5, 4, 3, 2, 1, 0)
    ]


def test_what_a_pause_missed_can_be_listed_and_run(alice: Person) -> None:
    job = alice.create("every 3s", name="pausing")
    path = f"/jobs/{job['job_id']}"
    alice.ended_runs(job, 1)
    paused = alice.http.post(f"{path}/pause").json()
    since = instant(paused["updated_at"])
    until(lambda: datetime.now(UTC) > since + timedelta(seconds=8))
    span = {"from": text(since + timedelta(seconds=1)), "to": text(datetime.now(UTC))}
    missed = alice.http.get(f"{path}/missed", params=span).json()
    assert len(missed["items"]) >= 2
    assert alice.http.post(f"{path}/resume").status_code == 200
    operation = post(alice, f"{path}/backfill", {**span, "only": "missed", "per_minute": 600})
    ended = finished(alice, operation)
    assert ended["done"] == len(missed["items"])

    def still_missed() -> list[Json]:
        page: Json = alice.http.get(f"{path}/missed", params=span).json()
        items: list[Json] = page["items"]
        return items

    until(lambda: still_missed() == [])
    alice.http.delete(path)


def test_a_run_that_waits_for_its_retry_is_cancelled(alice: Person) -> None:
    job = alice.create(
        NEVER,
        target=task("fail"),
        retry={"max_attempts": 2, "backoff": {"type": "fixed", "base_seconds": 600}},
    )
    run = run_by_hand(alice, job)
    until(lambda: run_of(alice, run)["status"] == "retrying")
    path = f"/jobs/{job['job_id']}/runs/{run['run_id']}/cancel"
    assert post(alice, path, status=200)["status"] == "cancelled"
    assert post(alice, path, status=200)["status"] == "cancelled"
    done = run_by_hand(alice, alice.create(NEVER))
    until(lambda: run_of(alice, done)["status"] == "succeeded")
    refused = alice.http.post(f"/jobs/{done['job_id']}/runs/{done['run_id']}/cancel")
    assert refused.status_code == 409
    assert refused.json()["type"].endswith("not-cancellable")


def test_a_run_that_is_running_is_stopped_and_the_next_one_runs(
    alice: Person, tmp_path: Path
) -> None:
    """Its process is gone long before its end; the command waits until it can be stopped."""
    heart = tmp_path / "heart"
    job = alice.create(
        NEVER,
        name="beating",
        target=task("beat"),
        payload={"path": str(heart), "seconds": LONGEST_SECONDS - 0.5},
        timeout_seconds=LONGEST_SECONDS,
        overlap="queue_one",
    )
    run = run_by_hand(alice, job)
    until(heart.exists)
    own = {"payload": {"path": str(tmp_path / "other"), "seconds": 0}}
    following = post(alice, f"/jobs/{job['job_id']}/run", own)

    done = alice.carillon("runs", "cancel", run["run_id"], "--json")

    assert done.returncode == 0, done.stderr
    stopped = json.loads(done.stdout)
    assert (stopped["status"], stopped["note"]) == ("cancelled", "its call was stopped")
    assert [each["error"]["kind"] for each in stopped["attempts"]] == ["stopped"]
    until(lambda: run_of(alice, following)["status"] == "succeeded")
    until(lambda: time() > instant(stopped["started_at"]).timestamp() + LONGEST_SECONDS + 1)
    beats = [float(line) for line in heart.read_text().split()]
    assert beats[-1] - beats[0] < LONGEST_SECONDS - 2
    assert beats[-1] <= instant(stopped["finished_at"]).timestamp() + 4
    begun_at = instant(run_of(alice, following)["started_at"]).timestamp()
    assert begun_at < beats[0] + LONGEST_SECONDS - 2
    assert run_of(alice, run) == stopped


def test_a_bulk_creation_is_repeated_without_harm_and_deleted_by_its_parent(alice: Person) -> None:
    body = {"schedule": NEVER, "target": task("echo"), "parent": "channel-7"}
    items = [{**body, "name": f"bulk-{number}", "tags": {"n": str(number)}} for number in range(60)]
    items[7] = {**items[7], "schedule": "every never"}
    key = {"Idempotency-Key": "bulk-1"}
    first = alice.http.post("/jobs/bulk", json={"items": items}, headers=key).json()
    assert (first["created"], first["refused"]) == (59, 1)
    assert first["items"][7]["status"] == 422
    assert first["items"][7]["problem"]["errors"][0]["field"] == "schedule"
    again = alice.http.post("/jobs/bulk", json={"items": items}, headers=key).json()
    assert (again["created"], again["existing"]) == (0, 59)
    assert [i["job_id"] for i in again["items"]] == [i["job_id"] for i in first["items"]]
    tagged = alice.http.get("/jobs", params={"parent": "channel-7", "tag": "n:5"}).json()["items"]
    assert [job["name"] for job in tagged] == ["bulk-5"]
    paused = alice.http.post("/jobs/pause", params={"parent": "channel-7", "tag": "n:5"}).json()
    assert paused["changed"] == 1
    changed, cursor = 0, ""
    while cursor is not None:
        params = {"parent": "channel-7", **({"cursor": cursor} if cursor else {})}
        answer = alice.http.delete("/jobs", params=params)
        assert answer.status_code == 200, answer.text
        changed += answer.json()["changed"]
        cursor = answer.json()["next_cursor"]
    assert changed == 59
    assert alice.http.get("/jobs", params={"parent": "channel-7"}).json()["items"] == []
    assert alice.http.delete("/jobs").status_code == 422
