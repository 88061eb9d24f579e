"""Pause, resume and DELETE of jobs."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from carillon.domain.events import Event
from carillon.domain.job import Job, JobState
from carillon.stores.memory import MemoryEvents, MemoryJobStore
from tests.support.jobs import job_with
from tests.unit.api.conftest import BODY, NOW, World
from tests.unit.api.gateway import Client, Json
from tests.unit.api.jobs.test_jobs import row
from tests.unit.faults import preceded


def test_pause_and_resume_are_idempotent(client: Client, world: World, job: Json) -> None:
    path = f"/jobs/{job['job_id']}"
    paused = client.post(f"{path}/pause")
    assert (paused.status, paused.json["state"], paused.json["next_fire_at"]) == (
        200,
        "paused",
        None,
    )
    assert client.post(f"{path}/pause", {}).json == paused.json
    world.clock.advance(600)

    resumed = client.post(f"{path}/resume")

    assert (resumed.status, resumed.json["state"]) == (200, "active")
    assert resumed.headers["etag"] == '"3"'
    assert resumed.json["next_fire_at"] == "2026-03-01T12:15:00Z"
    assert client.post(f"{path}/resume").json == resumed.json
    after = row(world, job["job_id"])
    assert after.generation.from_at == (NOW + timedelta(seconds=600)).replace(microsecond=0)
    assert after.previous is not None
    assert after.previous.until_at == NOW


def test_a_paused_job_takes_a_new_schedule_when_it_is_resumed(
    client: Client, world: World, job: Json
) -> None:
    path = f"/jobs/{job['job_id']}"
    client.post(f"{path}/pause")
    generation = row(world, job["job_id"]).generation

    changed = client.patch(path, {"schedule": "every 7m"}, 2)

    assert (changed.json["state"], changed.json["schedule"]) == ("paused", "every 7m")
    assert row(world, job["job_id"]).generation == generation
    assert client.post(f"{path}/resume").json["next_fire_at"] == "2026-03-01T12:07:00Z"
    assert row(world, job["job_id"]).generation.generation_id > generation.generation_id


def test_a_deleted_job_leaves_a_tombstone_and_is_not_found(
    client: Client, world: World, job: Json
) -> None:
    path = f"/jobs/{job['job_id']}"
    answer = client.delete(path)

    assert (answer.status, answer.text) == (204, "")
    assert "content-type" not in answer.headers
    tombstone = row(world, job["job_id"])
    assert (tombstone.state, tombstone.spec.payload) == (JobState.DELETED, "null")
    assert tombstone.expires_at is not None
    assert tombstone.expires_at - NOW >= timedelta(days=30)
    assert client.get("/jobs").json["items"] == []
    for method, end in (
        ("GET", ""),
        ("DELETE", ""),
        ("POST", "/pause"),
        ("POST", "/resume"),
        ("POST", "/run"),
        ("GET", "/upcoming"),
    ):
        assert client.send(method, path + end).status == 404
    assert client.patch(path, {"description": "x"}, 2).status == 404


@pytest.mark.parametrize(
    ("run_days", "queue_days", "lifetime_days"), [(30, 10, 30), (1, 10, 25), (11, 14, 29)]
)
def test_a_tombstone_outlives_messages_and_runs(
    world: World, run_days: int, queue_days: int, lifetime_days: int
) -> None:

    world.settings = replace(
        world.settings, run_retention_days=run_days, queue_retention_days=queue_days
    )
    client = Client(world.api())
    job_id = client.post("/jobs", BODY).json["job_id"]
    client.delete(f"/jobs/{job_id}")

    expires_at = row(world, job_id).expires_at
    assert expires_at is not None
    assert timedelta(0) <= expires_at - NOW - timedelta(days=lifetime_days) < timedelta(seconds=1)


@pytest.mark.parametrize(("action", "state"), [("pause", "paused"), ("resume", "active")])
def test_an_action_that_loses_a_race_is_repeated(
    client: Client, world: World, job: Json, action: str, state: str
) -> None:
    path = f"/jobs/{job['job_id']}"
    if action == "resume":
        client.post(f"{path}/pause")
    stored = row(world, job["job_id"])
    raced = job_with(stored, name="raced", revision=stored.revision + 1)
    replace_row = world.jobs.replace

    with preceded(world.jobs, "replace", lambda: replace_row(raced, stored.revision)):
        answer = client.post(f"{path}/{action}")

    assert (answer.status, answer.json["state"], answer.json["name"]) == (200, state, "raced")


@pytest.mark.parametrize(("method", "end"), [("POST", "/pause"), ("DELETE", "")])
def test_endless_races_end_in_a_conflict(world: World, method: str, end: str) -> None:
    class Losing(MemoryJobStore):
        def replace(self, job: Job, revision: int) -> bool:
            return False

    world.jobs = Losing()
    client = Client(world.api())
    path = f"/jobs/{client.post('/jobs', BODY).json['job_id']}"

    answer = client.send(method, path + end)

    assert answer.status == 409
    assert answer.json["type"] == "urn:carillon:problem:contended"


def test_an_event_that_the_bus_did_not_take_is_logged(world: World) -> None:
    class Refusing(MemoryEvents):
        def emit(self, events: Sequence[Event]) -> int:
            return len(events)

    world.settings = replace(world.settings, event_bus="bus")
    client = Client(world.api(events=Refusing()))
    job_id = client.post("/jobs", BODY | {"events": ["job.paused"]}).json["job_id"]
    assert "events.lost" not in world.log.getvalue()

    assert client.post(f"/jobs/{job_id}/pause").status == 200

    (line,) = [json.loads(each) for each in world.log.getvalue().splitlines() if "lost" in each]
    assert (line["action"], line["level"]) == ("events.lost", "WARNING")
    assert line["count"] == 1


def test_a_repeated_pause_tells_of_the_same_one(world: World) -> None:
    """The first request may have died before its event was taken."""
    world.settings = replace(world.settings, event_bus="bus")
    client = Client(world.api())
    job_id = client.post("/jobs", BODY | {"events": ["job.paused"]}).json["job_id"]
    path = f"/jobs/{job_id}"
    client.post(f"{path}/pause")
    world.clock.advance(60)
    client.post(f"{path}/pause")

    first, again = world.events.emitted
    assert again == first
    client.patch(path, {"name": "renamed"}, "*")
    client.post(f"{path}/pause")
    assert world.events.emitted[2].event_id == first.event_id, "a change is no other pause"
