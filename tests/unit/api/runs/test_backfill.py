"""Backfills: which are taken on, and as what."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from carillon.domain.run import Resolution, RunKey, RunKind, RunStatus
from tests.unit.api.conftest import BODY, World
from tests.unit.api.gateway import OWNER, Client, Json
from tests.unit.api.runs.test_runs import make_run

SPAN = {"from": "2026-02-28T00:00:00.5Z", "to": "2026-03-01T11:59:59.5Z"}


def test_a_backfill_is_an_operation(client: Client, world: World, job: Json) -> None:
    answer = client.post(f"/jobs/{job['job_id']}/backfill", SPAN | {"only": "missed"})

    assert answer.status == 202
    told = answer.json
    assert answer.headers["location"] == f"/operations/{told['operation_id']}"
    assert client.get(answer.headers["location"]).json == told
    assert (
        told.items()
        >= {
            "kind": "backfill",
            "state": "running",
            "job_id": job["job_id"],
            "from": "2026-02-28T00:00:01Z",
            "to": "2026-03-01T11:59:59Z",
            "only": "missed",
            "reason": None,
            "per_minute": 60,
            "done": 0,
            "reached": None,
        }.items()
    )
    (order,) = [kept.message for kept in world.queue.kept()]
    assert (order.key.kind, order.key.job_id) == (RunKind.OPERATION, told["operation_id"])
    assert client.post(f"/jobs/{job['job_id']}/backfill", SPAN).json["only"] == "all"


def test_its_progress_is_shown(client: Client, world: World, job: Json) -> None:
    made = client.post(f"/jobs/{job['job_id']}/backfill", SPAN).json
    seen = world.operations.get(OWNER, made["operation_id"])
    assert seen is not None
    reached = str(int(world.clock.now().timestamp()) - 3600)
    later = replace(seen, revision=2, step=3, cursor=reached, done=40, passed_over=2, note="slow")
    assert world.operations.put(later, 1)

    told = client.get(f"/operations/{made['operation_id']}").json

    assert (told["done"], told["passed_over"], told["note"]) == (40, 2, "slow")
    assert told["reached"] == "2026-03-01T11:00:00Z"


def test_under_a_key_there_is_one_for_each_job(client: Client, job: Json) -> None:
    other = client.post("/jobs", BODY).json
    ids = [
        client.post(f"/jobs/{one['job_id']}/backfill", SPAN, key="k").json["operation_id"]
        for one in (job, job, other)
    ]
    assert ids[0] == ids[1] != ids[2]
    changed = client.post(f"/jobs/{job['job_id']}/backfill", SPAN | {"only": "missed"}, key="k")
    assert (changed.status, changed.fields) == (422, ["Idempotency-Key"])


def test_the_occurrences_of_a_backfill_are_limited(client: Client) -> None:
    path = f"/jobs/{client.post('/jobs', BODY | {'schedule': 'every 1s'}).json['job_id']}/backfill"
    to = SPAN["to"]

    refused = client.post(path, {"from": "2026-02-27T00:00:00Z", "to": to})
    assert (refused.status, refused.fields) == (422, ["to"])
    assert "more than 50000 occurrences" in refused.json["detail"]
    assert client.post(path, {"from": "2026-03-01T00:00:00Z", "to": to}).status == 202


def test_a_fixed_delay_has_nothing_to_fill(client: Client) -> None:
    body = BODY | {"schedule": "every 5m after finish"}
    job_id = client.post("/jobs", body).json["job_id"]

    answer = client.post(f"/jobs/{job_id}/backfill", SPAN)

    assert (answer.status, answer.fields) == (422, ["schedule"])
    assert client.get(f"/jobs/{job_id}/missed").json["items"] == []


def test_a_paused_job_s_backfill_is_taken_on(client: Client, job: Json) -> None:
    """It holds until the job is resumed."""
    client.post(f"/jobs/{job['job_id']}/pause")
    assert client.post(f"/jobs/{job['job_id']}/backfill", SPAN).status == 202


def test_a_backfill_may_reach_back_before_its_job(client: Client, world: World, job: Json) -> None:
    world.clock.advance(timedelta(days=1).total_seconds())
    span = {"from": "2026-01-01T00:00:00Z", "to": "2026-01-31T00:00:00Z"}
    assert client.post(f"/jobs/{job['job_id']}/backfill", span).status == 202


def test_a_repetition_is_answered_whatever_has_become_of_the_job(
    client: Client, world: World, job: Json
) -> None:
    path = f"/jobs/{job['job_id']}/backfill"
    first = client.post(path, SPAN, key="k")
    client.delete(f"/jobs/{job['job_id']}")

    again = client.post(path, SPAN, key="k")

    assert (first.status, again.status) == (202, 202)
    assert again.json == first.json
    assert len(client.get("/operations").json["items"]) == 1
    other = client.post(path, SPAN | {"per_minute": 5}, key="k")
    assert (other.status, other.fields) == (422, ["Idempotency-Key"])
    assert client.post(path, SPAN, key="another").status == 404


def test_what_was_refused_leaves_its_key_free(client: Client, job: Json) -> None:
    path = f"/jobs/{job['job_id']}/backfill"
    backwards = {"from": SPAN["to"], "to": SPAN["from"]}

    assert client.post(path, backwards, key="k").fields == ["to"]
    assert client.post(path, SPAN, key="k").status == 202


def test_what_became_of_the_runs_is_counted(
    client: Client, stranger: Client, world: World, job: Json
) -> None:
    path = f"/jobs/{job['job_id']}/backfill"
    body = {"from": "2026-03-01T00:00:00Z", "to": "2026-03-01T12:00:00Z"}
    operation_id = client.post(path, body).json["operation_id"]

    def put_run(minute: int, status: RunStatus, **values: Any) -> None:
        fire_at = datetime(2026, 3, 1, minute // 60, minute % 60, tzinfo=UTC)
        key = RunKey(OWNER, job["job_id"], RunKind.BACKFILL, fire_at, operation_id)
        key = replace(key, **values.pop("key", {}))
        run = make_run(job["job_id"], fire_at, status=status, **values)
        assert world.runs.claim(replace(run, key=key), None)

    for minute in range(0, 600, 5):
        put_run(minute, RunStatus.SUCCEEDED)
    put_run(605, RunStatus.DEAD, reason="exhausted")
    put_run(610, RunStatus.DEAD, reason="exhausted", settled=Resolution.REDRIVEN)
    put_run(610, RunStatus.RETRYING, key={"redrive": 1})
    # Neither its own, nor within its span.
    put_run(615, RunStatus.DEAD, key={"request_id": "another"})
    put_run(620, RunStatus.DEAD, key={"kind": RunKind.SCHEDULED, "request_id": ""})

    outcomes = f"/operations/{operation_id}/outcomes"
    answer = client.get(outcomes)
    assert (answer.status, answer.json) == (
        200,
        {"counts": {"succeeded": 120, "dead": 1, "retrying": 1}, "next_cursor": None},
    )
    assert stranger.get(outcomes).status == 404
    assert client.get(outcomes, cursor="x").fields == ["cursor"]
    other = client.post("/dead-letters/discard", {"all": True}).json["operation_id"]
    assert client.get(f"/operations/{other}/outcomes").status == 404


def test_a_run_whose_dead_letter_was_discarded_is_counted_once(
    client: Client, world: World, job: Json
) -> None:
    body = {"from": "2026-03-01T00:00:00Z", "to": "2026-03-01T12:00:00Z"}
    operation_id = client.post(f"/jobs/{job['job_id']}/backfill", body).json["operation_id"]
    fire_at = datetime(2026, 3, 1, 1, tzinfo=UTC)
    key = RunKey(OWNER, job["job_id"], RunKind.BACKFILL, fire_at, operation_id)
    dead = replace(make_run(job["job_id"], fire_at, status=RunStatus.DEAD), key=key)
    assert world.runs.claim(dead, None)
    assert client.delete(f"/dead-letters/{key.run_id}").status == 204

    assert client.get(f"/operations/{operation_id}/outcomes").json["counts"] == {"dead": 1}


def test_the_runs_are_counted_page_by_page(
    client: Client, world: World, job: Json, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("carillon.api.operations.service._PAGE_SIZE", 2)
    monkeypatch.setattr("carillon.api.operations.service._PAGES_COUNTED", 2)
    body = {"from": "2026-03-01T00:00:00Z", "to": "2026-03-01T12:00:00Z"}
    operation_id = client.post(f"/jobs/{job['job_id']}/backfill", body).json["operation_id"]
    for minute in range(7):
        fire_at = datetime(2026, 3, 1, 1, minute, tzinfo=UTC)
        key = RunKey(OWNER, job["job_id"], RunKind.BACKFILL, fire_at, operation_id)
        assert world.runs.claim(make_run(job["job_id"], fire_at, key=key), None)

    first = client.get(f"/operations/{operation_id}/outcomes").json
    rest = client.get(f"/operations/{operation_id}/outcomes", cursor=first["next_cursor"]).json

    assert (first["counts"], rest) == (
        {"succeeded": 4},
        {"counts": {"succeeded": 3}, "next_cursor": None},
    )
