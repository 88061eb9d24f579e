"""/jobs/named/{name}, and names as addresses."""

from dataclasses import replace
from typing import Any

import pytest

from carillon.domain.job import Job
from carillon.domain.spec.names import job_id_of
from carillon.stores.memory import MemoryJobStore
from tests.unit.api.conftest import BODY, World
from tests.unit.api.gateway import OWNER, Answer, Client

SETTINGS = {name: value for name, value in BODY.items() if name != "name"}
PATH = "/jobs/named/Nightly report"
TAKEN = "urn:carillon:problem:name-taken"


def put(client: Client, name: str = "Nightly report", /, **changes: Any) -> Answer:
    return client.put(f"/jobs/named/{name}", {**SETTINGS, **changes})


def entries(world: World, job_id: str) -> set[str]:
    """The generations that have entries on the wheel."""
    slots = world.wheel._slots.values()
    found = [entry for slot in slots for entry in slot.values() if entry.job_id == job_id]
    return {entry.generation_id for entry in found}


def row(world: World, job_id: str) -> Job:
    job = world.jobs.get(OWNER, job_id)
    assert job is not None
    return job


def test_a_put_creates_then_changes_then_does_nothing(client: Client, world: World) -> None:
    made = put(client)
    assert made.status == 201
    assert (made.json["action"], made.json["reindexes"]) == ("create", True)
    job = made.json["job"]
    assert job["job_id"] == job_id_of(OWNER, "nightly report")
    assert job["name"] == "Nightly report"
    assert made.headers["location"] == f"/jobs/{job['job_id']}"
    assert {"path": "schedule", "before": None, "after": "every 5m"} in made.json["changes"]

    changed = put(client, retry={"max_attempts": 7})
    assert (changed.status, changed.json["action"]) == (200, "change")
    assert changed.json["changes"] == [{"path": "retry.max_attempts", "before": 3, "after": 7}]
    assert (changed.json["reindexes"], changed.headers["etag"]) == (False, '"2"')

    same = put(client, retry={"max_attempts": 7})
    assert (same.status, same.json["action"], same.json["changes"]) == (200, "none", [])
    assert same.headers["etag"] == '"2"'

    back = put(client)
    assert back.json["changes"] == [{"path": "retry.max_attempts", "before": 7, "after": 3}]
    assert len(entries(world, job["job_id"])) == 1, "it fires as before"


def test_an_interval_keeps_its_beat_when_it_is_put_again(client: Client, world: World) -> None:
    first = put(client, schedule="every 7s").json["job"]
    world.clock.advance(100)
    again = put(client, schedule="every 7s")
    assert again.json["action"] == "none"
    assert again.json["job"]["start_at"] == first["start_at"]


def test_another_schedule_is_a_new_generation(client: Client, world: World) -> None:
    job_id = put(client).json["job"]["job_id"]
    before = row(world, job_id)
    answer = put(client, schedule="every 9m").json
    assert (answer["action"], answer["reindexes"]) == ("change", True)
    after = row(world, job_id)
    assert after.previous is not None
    assert after.previous.generation_id == before.generation.generation_id


def test_a_paused_job_stays_paused(client: Client) -> None:
    job_id = put(client).json["job"]["job_id"]
    client.post(f"/jobs/{job_id}/pause")
    answer = put(client, schedule="every 9m")
    assert answer.json["job"]["state"] == "paused"
    assert answer.json["reindexes"] is False


def test_a_dry_run_writes_nothing(client: Client, world: World) -> None:
    def dry_run(**changes: Any) -> Answer:
        return client.send("PUT", PATH, {**SETTINGS, **changes}, query={"dry_run": "true"})

    answer = dry_run()
    assert (answer.status, answer.json["action"]) == (200, "create")
    assert client.get(PATH).status == 404
    put(client)
    answer = dry_run(overlap="skip")
    assert answer.json["changes"] == [{"path": "overlap", "before": "allow", "after": "skip"}]
    assert client.get(PATH).json["overlap"] == "allow"
    assert dry_run(schedule="every never").status == 422
    assert client.get(PATH).json["revision"] == 1
    assert answer.headers["etag"] == '"1"', "of what is stored"
    assert (
        "etag"
        not in client.send("PUT", "/jobs/named/other", SETTINGS, query={"dry_run": "true"}).headers
    )


def test_conditions_of_a_put(client: Client) -> None:
    assert client.put(PATH, SETTINGS, if_match='"1"').status == 412
    assert client.put(PATH, SETTINGS, if_none_match="*").status == 201
    assert client.put(PATH, SETTINGS, if_none_match="*").status == 412
    changed = {**SETTINGS, "overlap": "skip"}
    assert client.put(PATH, changed, if_match='"2"').status == 412
    assert client.put(PATH, changed, if_match='"1"').status == 200


def test_a_name_is_found_whatever_its_case_and_composition(client: Client) -> None:
    job_id = put(client, "Ärger & Söhne: 50 €").json["job"]["job_id"]
    for name in ("ärger & söhne: 50 €", "A\u0308RGER & SO\u0308HNE: 50 €"):
        assert client.get(f"/jobs/named/{name}").json["job_id"] == job_id
    spelt = put(client, "ÄRGER & Söhne: 50 €").json
    assert spelt["job"]["job_id"] == job_id
    assert [each["path"] for each in spelt["changes"]] == ["name"]
    assert client.delete("/jobs/named/ärger & söhne: 50 €").status == 204
    missing = client.get("/jobs/named/ärger & söhne: 50 €")
    assert missing.status == 404
    assert "ärger & söhne" in missing.json["detail"]
    assert client.delete("/jobs/named/ärger & söhne: 50 €").status == 404


@pytest.mark.parametrize("name", ["runs", "run", "pause", "named", "bulk"])
def test_names_that_are_words_of_other_paths(client: Client, name: str) -> None:
    assert put(client, name).status == 201
    assert client.get(f"/jobs/named/{name}").json["name"] == name


@pytest.mark.parametrize(
    "name",
    [
        " x",
        "x ",
        ".",
        "..",
        ".x",
        "a/b",
        "a\\b",
        "100%",
        "a?",
        "#1",
        "a\x07",
        "",
        "0" * 26,
        "a\u200b",
        "a\u00a0b",
    ],
)
def test_names_that_are_no_address_are_refused(client: Client, name: str) -> None:
    refused = client.post("/jobs", {**BODY, "name": name})
    assert refused.status == 422
    assert [error["field"] for error in refused.json["errors"]] == ["name"]


def test_the_names_of_path_and_body_are_one(client: Client) -> None:
    assert put(client, name="nightly REPORT").json["job"]["name"] == "nightly REPORT"
    refused = put(client, name="another")
    assert (refused.status, refused.json["errors"][0]["field"]) == (422, "name")


def test_a_name_is_taken_once(client: Client, stranger: Client) -> None:
    made = client.post("/jobs", BODY)
    for key in (None, "k"):
        taken = client.post("/jobs", {**BODY, "name": "NIGHTLY report"}, key=key)
        assert (taken.status, taken.json["type"]) == (409, TAKEN)
        assert made.json["job_id"] in taken.json["detail"]
    assert stranger.post("/jobs", BODY).status == 201


def test_the_address_cannot_change_but_its_case_can(client: Client) -> None:
    path = f"/jobs/{client.post('/jobs', BODY).json['job_id']}"
    assert client.patch(path, {"name": "NIGHTLY report"}, "*").json["name"] == "NIGHTLY report"
    refused = client.patch(path, {"name": "daily report"}, "*")
    assert (refused.status, refused.json["errors"][0]["field"]) == (422, "name")


@pytest.mark.parametrize("how", ["put", "post"])
def test_a_deleted_job_is_revived(client: Client, world: World, how: str) -> None:
    job_id = put(client, events=[]).json["job"]["job_id"]
    before = row(world, job_id)
    world.clock.advance(61)
    client.delete(f"/jobs/{job_id}")
    deleted_at = world.clock.now()
    world.clock.advance(90)
    answer = put(client) if how == "put" else client.post("/jobs", {**BODY, "name": PATH[12:]})
    assert answer.status == 201
    revived = row(world, job_id)
    assert (revived.state, revived.revision, revived.expires_at) == ("active", 3, None)
    assert revived.generation.generation_id > before.generation.generation_id
    assert revived.generation.from_at == world.clock.now().replace(microsecond=0)
    assert revived.previous is not None
    assert revived.previous.generation_id == before.generation.generation_id
    assert revived.previous.until_at == deleted_at, "what came due before is still owed"
    assert entries(world, job_id) >= {revived.generation.generation_id}
    if how == "put":
        assert (answer.json["action"], answer.json["reindexes"]) == ("revive", True)


def test_what_a_paused_job_left_out_is_not_owed_after_its_revival(
    client: Client, world: World
) -> None:
    job_id = put(client).json["job"]["job_id"]
    client.post(f"/jobs/{job_id}/pause")
    paused_at = world.clock.now()
    world.clock.advance(600)
    client.delete(f"/jobs/{job_id}")
    put(client)
    revived = row(world, job_id)
    assert revived.state == "active"
    assert revived.previous is not None
    assert revived.previous.until_at == paused_at


def test_a_clock_behind_revives_nothing_before_the_deletion(client: Client, world: World) -> None:
    job_id = put(client, schedule="every 1s").json["job"]["job_id"]
    world.clock.advance(20)
    client.delete(f"/jobs/{job_id}")
    deleted_at = world.clock.now()
    world.clock.advance(-5)
    put(client, schedule="every 1s")
    assert row(world, job_id).generation.from_at == deleted_at.replace(microsecond=0)


def test_the_key_of_a_deleted_job_brings_it_back_never(client: Client) -> None:
    body = {**BODY, "name": "mine"}
    job_id = client.post("/jobs", body, key="k").json["job_id"]
    client.delete(f"/jobs/{job_id}")
    assert client.post("/jobs", body, key="k").status == 410
    assert client.post("/jobs", body, key="another").status == 201
    assert client.post("/jobs", body, key="k").status == 410
    again = client.post("/jobs", body, key="another")
    assert (again.status, again.json["job_id"]) == (200, job_id)


def test_no_key_of_a_deleted_job_brings_back_a_later_one(client: Client) -> None:
    body = {**BODY, "name": "mine"}
    for key in ("1", "2", "3"):
        job_id = client.post("/jobs", body, key=key).json["job_id"]
        client.delete(f"/jobs/{job_id}")
    assert [client.post("/jobs", body, key=key).status for key in "123"] == [410] * 3
    assert client.put("/jobs/named/mine", SETTINGS).status == 201
    assert [client.post("/jobs", body, key=key).status for key in "123"] == [410] * 3


@pytest.mark.parametrize("by_name", [True, False])
def test_a_deletion_may_name_its_revision(client: Client, by_name: bool) -> None:
    job_id = put(client).json["job"]["job_id"]
    path = PATH if by_name else f"/jobs/{job_id}"
    late = client.delete(path, if_match='"7"')
    assert (late.status, client.get(PATH).status) == (412, 200)
    assert client.delete(path, if_match='"1"').status == 204


def test_settings_that_were_carried_out_revive_nothing(client: Client, world: World) -> None:
    at = {"schedule": "at 2026-03-01T12:01:00Z", "on_complete": "delete"}
    job_id = put(client, **at).json["job"]["job_id"]
    world.clock.advance(120)
    stored = row(world, job_id)
    completed = stored.completed(world.clock.now(), world.clock.now())
    assert world.jobs.replace(completed, stored.revision)
    again = put(client, **at)
    assert (again.status, again.json["action"], again.json["changes"]) == (200, "none", [])
    assert row(world, job_id) == replace(completed, expires_at=row(world, job_id).expires_at)
    later = put(client, **{**at, "schedule": "at 2026-03-01T12:09:00Z"})
    assert (later.status, later.json["action"]) == (201, "revive")


def test_the_order_of_members_is_no_change_but_a_type_is(client: Client) -> None:
    put(client, payload={"a": 1, "b": [True]})
    same = put(client, payload={"b": [True], "a": 1})
    assert (same.json["action"], same.headers["etag"]) == ("none", '"1"')
    other = put(client, payload={"b": [1], "a": 1})
    assert other.json["changes"] == [{"path": "payload.b", "before": [True], "after": [1]}]


def test_a_job_that_cannot_be_read_is_deleted_by_its_name(client: Client, world: World) -> None:
    world.jobs.spoil(put(client).json["job"]["job_id"])
    assert client.get(PATH).status == 503
    assert client.delete(PATH).status == 204
    assert put(client).status == 201


def test_a_put_that_loses_a_race_looks_again(world: World) -> None:
    class Interrupted(MemoryJobStore):
        """Another request changes the job between look and write."""

        interrupts = 1

        def replace(self, job: Job, revision: int) -> bool:
            if self.interrupts:
                self.interrupts -= 1
                stored = self.get(job.owner, job.job_id)
                assert stored is not None
                assert super().replace(replace(stored, revision=revision + 1), revision)
            return super().replace(job, revision)

    store = Interrupted()
    client = Client(world.api(jobs=store))
    put(client)
    answer = put(client, overlap="skip")
    assert (answer.status, answer.json["action"]) == (200, "change")
    assert answer.json["job"]["revision"] == 3
    store.interrupts = 9
    contended = put(client, overlap="allow")
    assert (contended.status, contended.json["type"]) == (409, "urn:carillon:problem:contended")


def test_lists_are_by_name_and_narrowed_by_its_beginning(client: Client) -> None:
    for name in ("b", "Ab", "aa", "c"):
        put(client, name)
    names = [job["name"] for job in client.get("/jobs").json["items"]]
    assert names == ["aa", "Ab", "b", "c"]
    assert [job["name"] for job in client.get("/jobs", name="A").json["items"]] == ["aa", "Ab"]
