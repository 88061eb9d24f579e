"""Packed runs beside what cannot be read, is to come, or has not been in any chunk: a failure stays
as small as its cause."""

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from carillon.domain.job import Job
from carillon.domain.run import Run, RunStatus
from carillon.stores.chunks import Read
from tests.unit.api.conftest import BODY, World
from tests.unit.api.gateway import OWNER, Client
from tests.unit.api.runs.test_packed_runs import DUE_AT, RETRY, SINCE, Packed, packed, succeeded_at

__all__ = ["packed"]

MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)


def make(world: World, client: Client, **more: Any) -> Job:
    made = client.post("/jobs", BODY | {"retry": RETRY} | more)
    assert made.status == 201, made.text
    job = world.jobs.get(OWNER, made.json["job_id"])
    assert isinstance(job, Job)
    return job


def test_a_job_that_cannot_be_read_hides_no_other_in_summaries(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Client(world.api())
    jobs = [make(world, client, name=f"job {n}") for n in range(3)]
    # The index of DynamoDB has what a summary shows beside the member that cannot be read.
    before = world.jobs.summaries(OWNER, 10)
    monkeypatch.setattr(world.jobs, "summaries", lambda *_, **__: before)
    world.jobs.spoil(jobs[1].job_id)

    answer = client.get("/jobs", view="summary", include="last_run")

    assert (answer.status, len(answer.json["items"])) == (200, 3), answer.text


def test_a_record_that_cannot_be_read_hides_no_run_that_is_listed(
    packed: Packed, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed.succeeded()
    bad: Read[int, Any] = Read({}, {7: "generation record: spoilt"})
    monkeypatch.setattr(packed.world.chunks, "get_records", lambda *_, **__: bad)

    listed = packed.client.get(f"{packed.path}/runs").json["items"]

    assert [run["run_id"] for run in listed] == [packed.key.run_id]
    assert packed.client.get(f"/runs/{packed.key.run_id}").status == 200
    other = packed.key.run_id.replace("T15", "T14")
    assert packed.client.get(f"/runs/{other}").status == 503, "it may be under that record"


def test_a_record_that_cannot_be_read_hides_no_row(
    packed: Packed, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = packed.world.clock.now()
    generation_id = packed.job.generation.generation_id
    row = Run(packed.key, RunStatus.RETRYING, 1, 1, "c", generation_id, now, now + 30 * DAY)
    assert packed.world.runs.claim(replace(row, next_attempt_at=now + MINUTE), None)
    bad: Read[int, Any] = Read({}, {7: "generation record: spoilt"})
    monkeypatch.setattr(packed.world.chunks, "get_records", lambda *_, **__: bad)

    assert packed.client.get(packed.run_path).json["status"] == "retrying"
    assert packed.client.post(f"{packed.run_path}/cancel").json["status"] == "cancelled"


def test_in_a_long_outage_the_first_page_has_runs_from_before_it(world: World) -> None:
    client = Client(world.api())
    job = make(world, client)
    for n in range(3):
        succeeded_at(world, job, DUE_AT + n * MINUTE)
    world.clock.set(DUE_AT + DAY)

    listed = client.get(f"/jobs/{job.job_id}/runs").json

    assert listed["items"]


def test_a_run_of_the_farthest_future_is_not_found(world: World) -> None:
    client = Client(world.api())
    job = make(world, client, schedule="0 * * * *", window="30m")
    assert client.get(f"/runs/{job.job_id}_99991231T235959Z_scheduled_0").status == 404


def test_what_never_went_in_chunks_leaves_no_record(world: World) -> None:
    client = Client(world.api())
    job = make(world, client, schedule="0 * * * *")
    for number in range(9):
        world.clock.advance(20)
        change = {"schedule": f"{number + 1} * * * *"}
        assert client.patch(f"/jobs/{job.job_id}", change, number + 1).status == 200
    assert world.chunks.get_records(OWNER, job.job_id, consistent=True).rows == {}


def test_a_run_is_listed_for_as_long_as_its_chunk_lives(world: World) -> None:
    client = Client(world.api())
    job = make(world, client, schedule="0 * * * *", window="8h")
    offset = timedelta(seconds=job.spread_seconds)
    assert offset > timedelta(minutes=1)
    succeeded_at(world, job, DUE_AT + offset)
    world.clock.set(DUE_AT + offset + world.settings.run_lifetime - MINUTE)
    span = {"from": DUE_AT.isoformat(), "to": (DUE_AT + MINUTE).isoformat()}
    (listed,) = client.get(f"/jobs/{job.job_id}/runs", **span).json["items"]
    assert client.get(f"/runs/{listed['run_id']}").json["status"] == "succeeded"


def test_a_chunk_that_cannot_be_read_hides_no_sums(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Client(world.api())
    job = make(world, client, schedule="0 * * * *")
    make(world, client, schedule="0 * * * *", name="other", overlap="skip")
    succeeded_at(world, job, DUE_AT)
    world.clock.set(DUE_AT + 30 * MINUTE)
    get_all = world.chunks.get_all

    def spoilt(keys: Any, *, consistent: bool) -> Any:
        return Read({}, dict.fromkeys(get_all(keys, consistent=consistent).rows, "chunk: spoilt"))

    monkeypatch.setattr(world.chunks, "get_all", spoilt)
    answer = client.get("/runs/summary", **SINCE)
    assert (answer.status, answer.json["complete"]) == (200, False), answer.text
    assert sum(each["counts"]["missed"] for each in answer.json["buckets"]) == 0, "it is not known"
    of_job = client.get("/runs", job=job.job_id, status="succeeded").json
    assert (of_job["items"], of_job["next_cursor"]) == ([], None)
    assert [each["reason"] for each in of_job["unreadable"]] == ["chunk: spoilt"]
    assert of_job["unreadable"] == client.get(f"/jobs/{job.job_id}/runs").json["unreadable"]


def test_a_filter_costs_requests_by_the_hundred_rows(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Client(world.api())
    job = make(world, client, schedule="* * * * *")
    for number in range(120):
        succeeded_at(world, job, DUE_AT + number * MINUTE)
    world.clock.set(DUE_AT + 120 * MINUTE)
    asked = Counter[str]()
    get_all = world.chunks.get_all

    def counted(keys: Any, *, consistent: bool) -> Any:
        asked["chunks"] += 1
        return get_all(keys, consistent=consistent)

    monkeypatch.setattr(world.chunks, "get_all", counted)
    ways = {"job": job.job_id, "status": "succeeded", "limit": "7"}
    shown, cursor = list[str](), None
    while True:
        page = client.get("/runs", **ways, **({"cursor": cursor} if cursor else {})).json
        shown += [run["run_id"] for run in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert len(shown) == len(set(shown)) == 120
    asked.clear()
    none = client.get("/runs", job=job.job_id, status="dead", limit="1").json
    assert none["items"] == []
    assert asked["chunks"] < 20, "not one for each run"
