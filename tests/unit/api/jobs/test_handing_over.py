"""Requests to hand jobs over: who may, which jobs, and what is noted."""

import json
from dataclasses import replace
from typing import Any

import pytest

from carillon.clock import SeededEntropy
from carillon.domain.changes.handing_over import begun, ended, settled
from carillon.domain.job import Generation
from carillon.domain.operation import Operation, OperationKind
from carillon.domain.spec.names import job_id_of
from carillon.domain.spec.owners import Author, AuthorKind, Via
from carillon.stores.recording import ChangeEvents, GenerationRecords, RecordedJobs
from tests.unit.api.callers.test_roles import JOB, signed
from tests.unit.api.callers.test_team_roles import member
from tests.unit.api.conftest import BODY, SETTINGS, World
from tests.unit.api.gateway import Answer, Client, Json

BOTH = "[billing:admin growth:admin]"
PATH = "/jobs/hand-over"
GROWTH: Json = {"to": "growth", "all": True}


def operation_of(world: World, answer: Answer) -> Operation:
    assert answer.status == 202, answer.text
    found = world.operations.get("team/billing", answer.json["operation_id"])
    assert found is not None
    return found


def test_an_admin_of_both_hands_jobs_over(world: World) -> None:
    client = member(world, BOTH, username="Ann")
    chosen = {"to": "growth", "parent": "p", "tags": {"b": "2", "a": "1"}, "force": True}
    answer = client.post(PATH, chosen, key='"k"')
    operation = operation_of(world, answer)
    assert operation.kind is OperationKind.HAND_OVER
    assert (operation.owner, operation.to) == ("team/billing", "team/growth")
    assert (operation.parent, operation.tags, operation.force) == (
        "p",
        (("a", "1"), ("b", "2")),
        True,
    )
    assert operation.author == Author(AuthorKind.PERSON, "ann", "Ann", Via.API)
    assert answer.headers["location"] == f"/operations/{operation.operation_id}"
    told = answer.json
    assert (told["kind"], told["new_owner"], told["left"]) == ("hand_over", "team/growth", [])
    assert (told["parent"], told["tags"]) == ("p", {"a": "1", "b": "2"})
    assert client.post(PATH, chosen, key='"k"').json["operation_id"] == operation.operation_id
    assert client.post(PATH, GROWTH, key='"k"').status == 422
    (change,) = client.get("/changes").json["items"]
    assert (change["action"], change["by"]["name"]) == ("hand_over", "Ann")
    lines = [json.loads(line) for line in world.log.getvalue().splitlines()]
    assert {(line["by"]["name"], line["via"]) for line in lines} == {("Ann", "api")}


@pytest.mark.parametrize(
    ("groups", "status", "kind"),
    [
        ("[billing:admin]", 403, "not-a-member"),
        ("[billing:admin growth:editor]", 403, "role-too-low"),
        ("[billing:editor growth:admin]", 403, "role-too-low"),
        ("[growth:admin]", 403, "not-a-member"),
    ],
)
def test_nobody_else_does(world: World, groups: str, status: int, kind: str) -> None:
    answer = member(world, groups).post(PATH, GROWTH)
    assert (answer.status, answer.json["type"].rpartition(":")[2]) == (status, kind)
    assert not world.operations.list("team/billing", 10).items


def test_an_operator_who_acts_for_teams_does_and_is_named_so(world: World) -> None:
    settings = replace(SETTINGS, operators_act_for_teams=True)
    assert member(world, "[operators]").post(PATH, GROWTH).status == 403
    acting = member(replace(world, settings=settings), "[operators]", username="Ann")
    assert operation_of(world, acting.post(PATH, GROWTH)).author.name == "Ann (operator)"
    half = member(replace(world, settings=settings), "[operators billing:admin]", username="Ann")
    assert operation_of(world, half.post(PATH, GROWTH)).author.name == "Ann (operator)"


def test_a_role_of_iam_is_of_one_team_and_hands_nothing_over(world: World) -> None:
    assert signed(world, "POST", "/aws-admin/billing/jobs", JOB).status == 201
    body = '{"to": "growth", "all": true}'
    answer = signed(world, "POST", "/aws-admin/billing/jobs/hand-over", body)
    assert (answer.status, answer.json["type"].rpartition(":")[2]) == (403, "not-a-member")


def test_a_person_hands_its_own_jobs_over(world: World) -> None:
    client = Client(world.api(), "user/ann", "[growth:admin]")
    assert client.post(PATH, GROWTH).status == 202
    assert world.operations.list("user/ann", 10).items[0].to == "team/growth"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"to": "growth"}, "body"),
        ({"to": "growth", "all": False}, "all"),
        ({"to": "growth", "all": True, "parent": "p"}, "body"),
        ({"to": "growth", "tags": {}}, "body"),
        ({"to": "growth", "tags": {f"k{number}": "v" for number in range(21)}}, "tags"),
        ({"to": "growth", "job_id": "0" * 26, "parent": "p"}, "body"),
        ({"to": "growth", "job_id": "x"}, "job_id"),
        ({"all": True}, "to"),
        ({"to": "Team Growth", "all": True}, "to"),
        ({"to": "billing", "all": True}, "to"),
    ],
)
def test_a_request_says_which_jobs_and_to_whom(world: World, body: Any, field: str) -> None:
    answer = member(world, BOTH).post(PATH, body)
    assert answer.status == 422, answer.text
    assert answer.fields == [field]


def test_a_job_that_is_not_there_cannot_be_handed_over(world: World) -> None:
    client = member(world, BOTH)
    assert client.post(PATH, {"to": "growth", "job_id": "0" * 26}).status == 404
    job = client.post("/jobs", {**BODY, "name": "a"}).json
    assert client.post(PATH, {"to": "growth", "job_id": job["job_id"]}).status == 202


def test_it_is_not_cancelled_while_jobs_are_between_two_owners(world: World) -> None:
    client = member(world, BOTH)
    operation = operation_of(world, client.post(PATH, GROWTH))
    path = f"/operations/{operation.operation_id}/cancel"
    held = replace(operation, revision=2, in_hand=("0" * 26,))
    assert world.operations.put(held, 1)
    refused = client.post(path)
    assert (refused.status, refused.json["type"].rpartition(":")[2]) == (409, "contended")
    assert world.operations.put(replace(held, revision=3, in_hand=()), 2)
    assert client.post(path).json["state"] == "cancelled"


def test_a_name_is_not_free_while_its_job_is_between_two_owners(world: World) -> None:
    """Nor is the history of the job that it was lost to an admin of both."""
    entropy = SeededEntropy(1)
    records = GenerationRecords(world.chunks, SETTINGS.run_lifetime)
    jobs = RecordedJobs(world.jobs, world.changes, ChangeEvents(world.events), records)
    client = member(world, BOTH)
    job_id = client.post("/jobs", {**BODY, "name": "a"}).json["job_id"]
    operation = operation_of(world, client.post(PATH, GROWTH))
    job = world.jobs.get("team/billing", job_id)
    assert job is not None
    now = world.clock.now()
    at = now.replace(microsecond=0)
    generation = Generation(entropy.new_id(job.generation.next_id_at(now)), at)
    tombstone = ended(job, operation, generation, now, now)
    assert jobs.replace(tombstone, job.revision)
    body = {**BODY, "name": "a"}
    refused = client.post("/jobs", body)
    assert (refused.status, refused.headers["retry-after"]) == (503, "2")
    assert "is being handed over" in refused.json["detail"]
    assert client.send("PUT", "/jobs/named/a", body).status == 503
    taken = begun(tombstone, operation, entropy.new_id(now), now, None)
    assert taken is not None
    assert jobs.create(taken)
    assert client.post("/jobs", body).status == 503
    assert jobs.replace(settled(tombstone), tombstone.revision)
    assert client.get(f"/jobs/{job_id}/runs").status == 200
    there = Client(world.api(), "user/ann", BOTH, team="growth")
    found = there.get(f"/jobs/{job_id_of('team/growth', 'a')}").json
    assert (found["renamed_from"], found["handed_over_from"]) == (job_id, "team/billing")
    world.clock.advance(1)
    assert client.post("/jobs", body).status == 201
    notes = [item["note"] for item in there.get("/changes").json["items"]]
    assert notes == [f"from team/billing, where it was {job_id}"]
    actions = [item["action"] for item in client.get("/changes").json["items"]]
    assert actions.count("hand_over") == 2
    # One that gets the name there is another job, whose earlier runs are the team's own.
    there.send("DELETE", "/jobs/named/a")
    first = {name: value for name, value in BODY.items() if name != "name"}
    for wanted in ({"b": first}, {"a": {**first, "was": "b"}}):
        applied = there.post("/apply", {"manifest": "m", "jobs": wanted})
        assert applied.json["written"], applied.text
    found = there.get("/jobs/named/a").json
    assert found["renamed_from"] == job_id_of("team/growth", "b")
    assert found["handed_over_from"] is None
    newest = there.get(f"/jobs/{found['job_id']}/changes").json["items"][0]
    assert newest["action"] == "rename"


def test_the_same_settings_leave_a_job_its_place_in_its_window(world: World) -> None:
    """It came along, and is another than that of a job which is made here."""
    there = Client(world.api(), "user/ann", BOTH, team="growth")
    settings = {**BODY, "name": "a", "schedule": "0 3 * * *", "window": "1h"}
    job_id = there.post("/jobs", settings).json["job_id"]
    stored = world.jobs.get("team/growth", job_id)
    assert stored is not None
    assert world.jobs.replace(replace(stored, spread_seconds=stored.spread_seconds ^ 1), 1)

    for window in ("1h", "PT60M"):
        again = there.put("/jobs/named/a", settings | {"window": window})
        assert (again.json["action"], again.json["reindexes"]) == ("none", False)
    wider = there.put("/jobs/named/a", settings | {"window": "2h"})
    assert (wider.json["action"], wider.json["reindexes"]) == ("change", True)
