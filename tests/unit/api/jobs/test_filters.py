"""Jobs by parent and tags: listed, paused, resumed and deleted."""

from dataclasses import replace
from typing import Any

import pytest

from carillon.api.jobs.bulk_service import PAGE_SIZE, TIME_BUDGET
from carillon.domain.events import Event, EventType
from carillon.domain.job import Job, JobState
from carillon.errors import StoreUnavailableError
from carillon.stores.memory import MemoryJobStore
from tests.support.jobs import job_with
from tests.unit.api.conftest import World, create
from tests.unit.api.gateway import OWNER, Answer, Client, Json

KINDS: list[Json] = [
    {"name": "a", "parent": "channel, 1", "tags": {"team": "x", "city": "Riga"}},
    {"name": "b", "parent": "channel, 1", "tags": {"team": "y"}},
    {"name": "c", "parent": "channel", "tags": {"team": "x"}},
    {"name": "d"},
]

LAST = {"managed": 0, "next_cursor": None}


@pytest.fixture
def jobs(client: Client) -> dict[str, str]:
    """Ids by name."""
    return {kind["name"]: create(client, **kind)["job_id"] for kind in KINDS}


def names(client: Client, **query: str) -> str:
    answer = client.get("/jobs", limit="100", **query)
    assert answer.status == 200, answer.text
    return "".join(sorted(job["name"] for job in answer.json["items"]))


def state(client: Client, job_id: str) -> str:
    return str(client.get(f"/jobs/{job_id}").json.get("state", "none"))


def change(client: Client, verb: str, **query: str) -> Answer:
    if verb == "delete":
        return client.send("DELETE", "/jobs", query=query)
    return client.send("POST", f"/jobs/{verb}", query=query)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"parent": "channel, 1"}, "ab"),
        ({"parent": "channel"}, "c"),
        ({"parent": "nobody"}, ""),
        ({"tag": "team:x"}, "ac"),
        ({"tag": "team:x,city:Riga"}, "a"),
        ({"tag": "team:x,team:x"}, "ac"),
        ({"tag": "team:"}, ""),
        ({"tag": "team:x", "parent": "channel"}, "c"),
    ],
)
def test_lists_by_parent_and_tags(
    client: Client, jobs: dict[str, str], query: dict[str, str], found: str
) -> None:
    assert names(client, **query) == found


def test_delete_the_parent_delete_its_jobs(client: Client, jobs: dict[str, str]) -> None:
    answer = change(client, "delete", parent="channel, 1")

    assert (answer.status, answer.json) == (200, {"changed": 2, **LAST})
    assert names(client) == "cd"
    assert change(client, "delete", parent="channel, 1").json["changed"] == 0


def test_pause_and_resume_by_tag_count_what_they_change(
    client: Client, jobs: dict[str, str], world: World
) -> None:
    client.post(f"/jobs/{jobs['c']}/pause")

    assert change(client, "pause", tag="team:x").json == {
        "changed": 1,
        "managed": 0,
        "next_cursor": None,
    }
    assert [state(client, jobs[name]) for name in "abcd"] == [
        "paused",
        "active",
        "paused",
        "active",
    ]
    world.clock.advance(60)
    assert change(client, "resume", tag="team:x").json == {
        "changed": 2,
        "managed": 0,
        "next_cursor": None,
    }
    assert {state(client, job_id) for job_id in jobs.values()} == {"active"}
    resumed = world.jobs.get(OWNER, jobs["a"])
    assert resumed is not None
    assert resumed.generation.from_at == world.clock.now().replace(microsecond=0)
    assert change(client, "resume", tag="team:x").json["changed"] == 0


def test_another_owner_s_jobs_are_not_chosen(
    client: Client, stranger: Client, jobs: dict[str, str]
) -> None:
    for verb in ("pause", "delete"):
        assert change(stranger, verb, parent="channel").json["changed"] == 0
    assert names(stranger, tag="team:x") == ""
    assert state(client, jobs["c"]) == "active"


class Slow(MemoryJobStore):
    """A page takes half of the time that a call has."""

    world: World

    def list(self, *arguments: Any, **named: Any) -> Any:
        self.world.clock.advance(TIME_BUDGET.total_seconds() / 2)
        return super().list(*arguments, **named)


def test_what_a_call_does_not_reach_the_next_one_does(world: World) -> None:
    world.jobs = Slow()
    world.jobs.world = world
    client = Client(world.api())
    total = 3 * PAGE_SIZE + 1
    for n in range(total):
        create(client, key=str(n), parent="p")

    first = change(client, "delete", parent="p").json
    assert first["changed"] == 2 * PAGE_SIZE
    second = change(client, "delete", parent="p", cursor=first["next_cursor"]).json

    assert second == {"changed": PAGE_SIZE + 1, **LAST}
    assert names(client, parent="p") == ""


class Racing(MemoryJobStore):
    """Another request changes a job, or deletes it, before the first write to it."""

    rivals: dict[str, bool]

    def replace(self, job: Job, revision: int) -> bool:
        is_deleted = self.rivals.pop(job.job_id, None)
        if is_deleted is not None:
            stored = self.get(job.owner, job.job_id)
            assert stored is not None
            rival = stored.paused(job.updated_at, "by another")
            if is_deleted:
                rival = stored.deleted(job.updated_at, job.updated_at)
            assert super().replace(rival, stored.revision)
        return super().replace(job, revision)


def test_changes_of_others_meanwhile_count_for_them(world: World) -> None:
    racing = Racing()
    world.jobs = racing
    client = Client(world.api())
    ids = [create(client, key=str(n), parent="p")["job_id"] for n in range(3)]
    racing.rivals = {ids[0]: True, ids[1]: False}

    assert change(client, "pause", parent="p").json["changed"] == 1
    assert [state(client, job_id) for job_id in ids] == ["none", "paused", "paused"]


@pytest.mark.parametrize("verb", ["pause", "resume", "delete"])
def test_what_loses_its_tag_meanwhile_is_left_alone(world: World, verb: str) -> None:
    """Its change was acknowledged: nobody may delete it by a tag that it has no more."""

    class Untagging(MemoryJobStore):
        def list(self, *arguments: Any, **named: Any) -> Any:
            page = super().list(*arguments, **named)
            for job in page.items:
                spec = job.spec.model_copy(update={"tags": {}})
                self.replace(replace(job, spec=spec, revision=job.revision + 1), job.revision)
            return page

    client = Client(world.api())
    job_id = create(client, tags={"temporary": "yes"})["job_id"]
    if verb == "resume":
        client.post(f"/jobs/{job_id}/pause")
    before = state(client, job_id)
    world.jobs.__class__ = Untagging

    assert change(client, verb, tag="temporary:yes").json["changed"] == 0
    assert state(client, job_id) == before


def test_a_store_that_fails_is_told_and_the_call_can_be_repeated(world: World) -> None:
    class Failing(MemoryJobStore):
        failing: str = ""

        def replace(self, job: Job, revision: int) -> bool:
            if job.job_id == self.failing:
                self.failing = ""
                raise StoreUnavailableError("no answer")
            return super().replace(job, revision)

    failing = Failing()
    world.jobs = failing
    client = Client(world.api())
    ids = [create(client, key=str(n), parent="p")["job_id"] for n in range(5)]
    failing.failing = ids[2]

    assert change(client, "pause", parent="p").status == 503
    assert change(client, "pause", parent="p").status == 200
    assert {state(client, job_id) for job_id in ids} == {"paused"}
    # Each is on record, whichever of the calls has paused it.
    assert world.log.getvalue().count('"action":"job.paused"') == len(ids)


def test_each_deleted_job_is_told_of(client: Client, world: World, jobs: dict[str, str]) -> None:
    change(client, "delete", parent="channel, 1")

    assert world.log.getvalue().count('"action":"job.deleted"') == 2


def test_a_pause_is_an_event_where_the_job_wants_it(world: World, client: Client) -> None:
    quiet = create(client, key="q", parent="p")["job_id"]
    loud = create(client, key="l", parent="p", tags={"a": "b"})["job_id"]
    job = world.jobs.get(OWNER, loud)
    assert job is not None
    assert world.jobs.replace(with_events(job), job.revision)

    client.post(f"/jobs/{quiet}/pause")
    assert world.events.emitted == []
    change(client, "pause", parent="p")
    client.post(f"/jobs/{loud}/pause")

    event, again = world.events.emitted
    assert again == event, "a repetition tells of it again, for nobody may have been told"
    assert isinstance(event, Event)
    assert (event.type, event.subject) == (EventType.JOB_PAUSED, loud)
    assert event.event_id == f"{loud}/{world.clock.now().isoformat()}/job.paused"
    assert event.occurred_at == world.clock.now()
    assert event.data == {
        "job_id": loud,
        "job_name": job.spec.name,
        "state": JobState.PAUSED.value,
        "note": None,
        "tags": {"a": "b"},
        "parent": "p",
    }


def with_events(job: Job) -> Job:
    """The job as if it had been made while the deployment had a bus."""
    return job_with(job, events=(EventType.JOB_PAUSED,), revision=job.revision + 1)


def test_all_jobs_are_paused_with_a_reason_and_resumed(client: Client) -> None:
    ids = [create(client, key=str(number))["job_id"] for number in range(3)]

    paused = client.send("POST", "/jobs/pause", {"reason": "release"}, query={"all": "true"})
    assert paused.json == {"changed": 3, **LAST}
    assert {client.get(f"/jobs/{job_id}").json["note"] for job_id in ids} == {"release"}
    resumed = client.send("POST", "/jobs/resume", query={"all": "true"})
    assert resumed.json == {"changed": 3, **LAST}
    assert {client.get(f"/jobs/{job_id}").json["note"] for job_id in ids} == {None}


@pytest.mark.parametrize(
    ("query", "field"), [({}, "parent"), ({"all": "false"}, "parent"), ({"all": "x"}, "all")]
)
def test_nobody_pauses_all_by_a_slip(client: Client, query: Json, field: str) -> None:
    create(client)

    refused = client.send("POST", "/jobs/pause", query=query)
    assert (refused.status, refused.fields) == (422, [field])
    both = client.send("POST", "/jobs/pause", query={"all": "true", "parent": "p"})
    assert (both.status, both.fields) == (422, ["all"])


def test_a_pause_says_why(client: Client) -> None:
    job_id = create(client)["job_id"]

    assert client.post(f"/jobs/{job_id}/pause", {"reason": "holiday"}).json["note"] == "holiday"
    assert client.post(f"/jobs/{job_id}/pause", {"reasons": "x"}).fields == ["reasons"]
