"""GET and PATCH of jobs."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from carillon.domain.job import Job
from carillon.stores.memory import MemoryJobStore
from tests.unit.api.conftest import BODY, NOW, World, without_report
from tests.unit.api.gateway import OWNER, Client

NO_ID = "0" * 26


def row(world: World, job_id: str) -> Job:
    job = world.jobs.get(OWNER, job_id)
    assert job is not None
    return job


def test_get_answers_the_job_with_its_etag(client: Client, job: dict[str, Any]) -> None:
    answer = client.get(f"/jobs/{job['job_id']}")

    assert (answer.status, answer.headers["etag"]) == (200, '"1"')
    assert without_report(answer.json) == job


@pytest.mark.parametrize("job_id", [NO_ID, "x", "a.b", "%23", NO_ID.upper() + "Ž"])
def test_a_job_that_is_not_there_is_not_found(client: Client, job_id: str) -> None:
    answer = client.get(f"/jobs/{job_id}")

    assert answer.status == 404
    assert answer.json["type"] == "urn:carillon:problem:not-found"


def test_lists_are_paged(client: Client) -> None:
    ids = {client.post("/jobs", BODY, key=str(n)).json["job_id"] for n in range(5)}
    seen: list[str] = []
    query = {"limit": "2"}
    while True:
        page = client.get("/jobs", **query).json
        assert len(page["items"]) <= 2
        seen += [job["job_id"] for job in page["items"]]
        if page["next_cursor"] is None:
            break
        query["cursor"] = page["next_cursor"]

    assert sorted(seen) == sorted(ids)


def test_a_page_holds_twenty_jobs_unless_told(client: Client) -> None:
    for n in range(21):
        client.post("/jobs", BODY, key=str(n))

    page = client.get("/jobs").json
    assert (len(page["items"]), page["next_cursor"] is None) == (20, False)
    assert len(client.get("/jobs", limit="100").json["items"]) == 21


@pytest.mark.parametrize("payload", ["x" * 60_000, "ж" * 30_000], ids=["ascii", "escaped"])
def test_a_page_of_large_payloads_is_shorter_and_loses_nothing(
    client: Client, payload: str
) -> None:
    body = BODY | {"payload": payload}
    ids = {client.post("/jobs", body, key=str(n)).json["job_id"] for n in range(40)}
    seen: set[str] = set()
    query = {"limit": "100"}
    while True:
        answer = client.get("/jobs", **query)
        assert len(answer.text) < 3_000_000
        assert answer.json["items"]
        seen |= {job["job_id"] for job in answer.json["items"]}
        if answer.json["next_cursor"] is None:
            break
        query["cursor"] = answer.json["next_cursor"]

    assert seen == ids


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"limit": "0"}, "limit"),
        ({"limit": "101"}, "limit"),
        ({"limit": "1,2"}, "limit"),
        ({"limit": "many"}, "limit"),
        ({"limit": ""}, "limit"),
        ({"cursor": "nonsense"}, "cursor"),
        ({"cursor": ""}, "cursor"),
        ({"colour": "red"}, "colour"),
        ({"Limit": "1"}, "Limit"),
    ],
)
def test_a_bad_query_parameter_is_named(client: Client, query: dict[str, str], field: str) -> None:
    answer = client.get("/jobs", **query)

    assert answer.status == 422
    assert answer.fields == [field]


def test_a_change_of_what_it_sends_keeps_the_generation(
    client: Client, world: World, job: dict[str, Any]
) -> None:
    generation = row(world, job["job_id"]).generation
    world.clock.advance(60)

    answer = client.patch(
        f"/jobs/{job['job_id']}", {"description": "other", "payload": {"a": 1}}, 1
    )

    assert (answer.status, answer.headers["etag"]) == (200, '"2"')
    expected = {"description": "other", "payload": {"a": 1}, "revision": 2}
    changed = without_report(answer.json)
    assert changed == job | expected | {"updated_at": "2026-03-01T12:01:00.250Z"}
    assert without_report(client.get(f"/jobs/{job['job_id']}").json) == changed
    assert row(world, job["job_id"]).generation == generation


@pytest.mark.parametrize(
    "change",
    [
        {"schedule": "every 7m"},
        {"schedule": {"cron": "*/7 * * * *"}},
        {"timezone": "Europe/Riga"},
        {"start_at": "2026-03-01T12:00:01Z"},
        {"priority": "low"},
        {"catch_up": "skip"},
    ],
)
def test_a_change_of_what_entries_carry_is_a_new_filing(
    client: Client, world: World, job: dict[str, Any], change: dict[str, Any]
) -> None:
    before = row(world, job["job_id"])
    world.clock.advance(60)

    assert client.patch(f"/jobs/{job['job_id']}", change, 1).status == 200

    after = row(world, job["job_id"])
    now = (NOW + timedelta(seconds=60)).replace(microsecond=0)
    assert after.generation.generation_id > before.generation.generation_id
    assert after.generation.from_at == now
    assert after.previous is not None
    assert after.previous.covers(before.generation.generation_id, now)
    assert after.previous.place == before.place is not None
    assert after.segment == before.segment


@pytest.mark.parametrize("seconds", [0, -30])
def test_filings_are_in_order_whatever_the_clock_of_each_request_says(
    world: World, client: Client, job: dict[str, Any], seconds: int
) -> None:
    """Found by seed 77005498: of two generations of one millisecond the later had the smaller
    id."""
    path, generations = (
        f"/jobs/{job['job_id']}",
        [row(world, job["job_id"]).generation.generation_id],
    )
    for revision in range(1, 9):
        world.clock.advance(seconds)
        change = {"schedule": f"every {revision}h"}
        assert client.patch(path, change, revision).status == 200
        generations.append(row(world, job["job_id"]).generation.generation_id)
    client.post(f"{path}/pause")
    assert client.post(f"{path}/resume").status == 200
    generations.append(row(world, job["job_id"]).generation.generation_id)

    assert generations == sorted(set(generations))


def test_retry_and_target_are_merged_and_null_means_the_default(client: Client) -> None:
    body = BODY | {
        "target": {"type": "webhook", "url": "https://example.com/a"},
        "retry": {"max_attempts": 9, "backoff": {"base_seconds": 5, "factor": 3}},
        "payload": {"a": {"b": 1}},
        "start_at": "2026-02-01T00:00:00Z",
        "timeout_seconds": 20,
        "priority": "high",
    }
    path = f"/jobs/{client.post('/jobs', body).json['job_id']}"
    change = {
        "target": {"url": "https://example.com/b"},
        "retry": {"max_attempts": 4, "backoff": {"factor": None, "cap_seconds": 100}},
        "payload": {"c": 2},
        "start_at": None,
        "timeout_seconds": None,
        "priority": None,
    }

    changed = client.patch(path, change, 1).json

    assert changed["target"].items() >= {"type": "webhook", "url": "https://example.com/b"}.items()
    backoff = {"type": "exponential", "base_seconds": 5, "factor": 2.0, "cap_seconds": 100}
    assert changed["retry"] == {"max_attempts": 4, "backoff": backoff, "retry_on": []}
    assert changed["payload"] == {"c": 2}
    assert (changed["start_at"], changed["timeout_seconds"]) == (None, None)
    assert changed["priority"] == "normal"


def test_another_type_of_target_replaces_the_old_one(client: Client, job: dict[str, Any]) -> None:
    target = {"type": "webhook", "url": "https://example.com/a"}

    answer = client.patch(f"/jobs/{job['job_id']}", {"target": target}, 1)

    assert answer.json["target"].items() >= target.items()


def test_a_change_that_changes_nothing_writes_nothing(client: Client, job: dict[str, Any]) -> None:
    for change in ({}, {"schedule": "every 300s"}, {"retry": {"max_attempts": 3}}):
        answer = client.patch(f"/jobs/{job['job_id']}", change, 1)
        assert (answer.status, without_report(answer.json)) == (200, job)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"colour": "red"}, "colour"),
        ({"state": "paused"}, "state"),
        ({"revision": 3}, "revision"),
        ({"name": None}, "name"),
        ({"schedule": None}, "schedule"),
        ({"schedule": 5}, "schedule"),
        ({"schedule": "never"}, "schedule"),
        ({"schedule": "at 2020-01-01T00:00:00Z"}, "schedule"),
        ({"timezone": "Nowhere"}, "timezone"),
        ({"target": {"name": "a b"}}, "target.name"),
        ({"target": {"type": "webhook"}}, "target.url"),
        ({"target": {"type": "lambada"}}, "target.type"),
        ({"target": {"url": "https://example.com/"}}, "target.url"),
        ({"target": {"type": "webhook", "url": "http://example.com/"}}, "target.url"),
        ({"retry": {"backoff": {"factor": 0}}}, "retry.backoff.factor"),
        ({"retry": {"backoff": {"colour": 1}}}, "retry.backoff.colour"),
        ({"timeout_seconds": 56}, "timeout_seconds"),
    ],
)
def test_a_bad_change_is_refused_whole(
    client: Client, job: dict[str, Any], change: dict[str, Any], field: str
) -> None:
    answer = client.patch(f"/jobs/{job['job_id']}", {"priority": "low"} | change, 1)

    assert answer.status == 422, answer.text
    assert answer.fields == [field]
    assert without_report(client.get(f"/jobs/{job['job_id']}").json) == job


def test_a_large_payload_is_refused_in_a_change_too(client: Client, job: dict[str, Any]) -> None:
    answer = client.patch(f"/jobs/{job['job_id']}", {"payload": "x" * 70_000}, 1)

    assert (answer.status, answer.fields) == (413, ["payload"])


def test_a_fired_one_shot_can_be_renamed_and_given_another_priority(
    client: Client, world: World
) -> None:
    body = BODY | {"schedule": "at 2026-03-01T12:01:00Z"}
    path = f"/jobs/{client.post('/jobs', body).json['job_id']}"
    world.clock.advance(3600)

    answer = client.patch(path, {"description": "done", "priority": "low"}, 1)

    assert (answer.status, answer.json["next_fire_at"]) == (200, None)


def test_a_value_beyond_a_lowered_limit_does_not_block_other_changes(
    client: Client, world: World
) -> None:
    path = f"/jobs/{client.post('/jobs', BODY | {'timeout_seconds': 55}).json['job_id']}"

    world.settings = replace(world.settings, executor_timeout_seconds=30)
    later = Client(world.api())

    assert later.patch(path, {"description": "renamed"}, 1).status == 200
    assert later.patch(path, {"timeout_seconds": 26}, 2).fields == ["timeout_seconds"]


@pytest.mark.parametrize(
    ("tag", "status"),
    [
        (None, 428),
        ("", 400),
        ('"2"', 412),
        ('"1', 400),
        ('W/"1"', 400),
        ('"1", "2"', 400),
        ("one", 400),
        ('"1"', 200),
        ("1", 200),
        ("*", 200),
    ],
)
def test_a_change_needs_the_revision(
    client: Client, job: dict[str, Any], tag: str | None, status: int
) -> None:
    answer = client.patch(f"/jobs/{job['job_id']}", {"description": "other"}, tag)

    assert answer.status == status
    if status != 200:
        assert answer.fields == ["If-Match"]
        assert without_report(client.get(f"/jobs/{job['job_id']}").json) == job


@pytest.mark.parametrize("change", [{"description": "mine"}, {"priority": "low"}])
@pytest.mark.parametrize("tag", ['"1"', "*"])
def test_a_change_that_loses_a_race_is_told_so(
    world: World, change: dict[str, Any], tag: str
) -> None:
    class Racing(MemoryJobStore):
        def replace(self, job: Job, revision: int) -> bool:
            stored = self.get(job.owner, job.job_id)
            assert stored is not None
            super().replace(stored.paused(NOW), revision)
            return super().replace(job, revision)

    world.jobs = Racing()
    client = Client(world.api())
    path = f"/jobs/{client.post('/jobs', BODY).json['job_id']}"

    answer = client.patch(path, change, tag)

    assert answer.status == 412
    assert client.get(path).json["state"] == "paused"
