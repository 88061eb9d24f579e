"""Jobs that run after another one: created, changed, applied, and linked."""

from datetime import timedelta
from typing import Any

import pytest

from carillon.domain.job import MOST_SUCCESSORS, Job
from carillon.domain.spec.names import job_id_of
from carillon.schedules import NEVER
from tests.unit.api.conftest import World
from tests.unit.api.gateway import OWNER, Answer, Client, Json

TASK = {"type": "task", "name": "echo"}
NIGHTLY = {"schedule": "0 3 * * *", "target": TASK}


@pytest.fixture
def nightly(client: Client) -> Json:
    answer = client.put("/jobs/named/nightly", NIGHTLY)
    assert answer.status == 201, answer.text
    job: Json = answer.json["job"]
    return job


def put(client: Client, name: str, after: Any = "nightly", **more: Any) -> Answer:
    return client.put(f"/jobs/named/{name}", {"after": after, "target": TASK, **more})


def row(world: World, name: str) -> Job:
    found = world.jobs.get(OWNER, job_id_of(OWNER, name))
    assert found is not None
    return found


def links(world: World, name: str = "nightly") -> dict[str, str]:
    """The ends that are linked, by job id."""
    return {link.job_id: link.when.value for link in row(world, name).successors}


def apply(client: Client, jobs: Json, **more: Any) -> Json:
    answer = client.post("/apply", {"manifest": "m", "jobs": jobs, **more})
    assert answer.status == 200, answer.text
    found: Json = answer.json
    return found


def actions(answer: Json) -> dict[str, str]:
    return {item["name"]: item["action"] for item in answer["items"]}


def faults(answer: Json, name: str) -> list[str]:
    """The fields that the item of this name is refused for."""
    (item,) = (item for item in answer["items"] if item["name"] == name)
    return [error["field"] for error in item["problem"]["errors"]]


def test_it_has_no_fire_times_and_its_predecessor_links_it(
    world: World, client: Client, nightly: Json
) -> None:
    job = put(client, "report", {"job": "Nightly", "when": "finished", "within": "2h"}).json["job"]

    assert (job["schedule"], job["state"], job["next_fire_at"]) == (None, "active", None)
    assert job["ends_at"] is None
    assert job["after"] == {"job": "Nightly", "when": "finished", "within": "2h"}
    assert job["sentence"] == "after Nightly finished within 2h"
    assert (job["warnings"], job["transitions"], job["successors"]) == ([], [], [])
    assert client.get(f"/jobs/{job['job_id']}/upcoming").json["items"] == []
    assert row(world, "report").schedule == NEVER
    assert job["job_id"] not in {
        entry.job_id for slot in world.wheel._slots.values() for entry in slot.values()
    }
    before = client.get("/jobs/named/nightly").json
    assert before["successors"] == [job["job_id"]]
    assert before["revision"] == nightly["revision"], "it is no change of its owner's"


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        *(("start_at", "2026-12-01T00:00:00Z"), ("end_at", "2027-12-01T00:00:00Z")),
        *(("max_runs", 3), ("dst", {"gap": "skip"}), ("except", ["* * 25 12 *"])),
        *(("catch_up", "all"), ("catch_up", "skip"), ("grace", "5m"), ("tolerance", "5s")),
        *(("expect_within", "10m"), ("on_complete", "delete"), ("window", "5m")),
        ("calendar", {"name": "holidays"}),
    ],
)
def test_settings_of_a_schedule_are_refused_by_field(
    client: Client, nightly: Json, setting: str, value: Any
) -> None:
    client.put("/calendars/holidays", {"weekdays": ["sun"]})
    answer = put(client, "report", **{setting: value})
    assert (answer.status, answer.fields) == (422, [setting])
    assert put(client, "report").status == 201
    changed = client.patch(f"/jobs/{job_id_of(OWNER, 'report')}", {setting: value}, "*")
    assert (changed.status, changed.fields) == (422, [setting])


def test_other_settings_hold_and_a_time_zone_of_defaults_is_harmless(
    client: Client, nightly: Json
) -> None:
    more = {
        **{"overlap": "skip", "rate": {"limit": 1, "per": "1m"}, "priority": "high"},
        **{"timezone": "Europe/Riga", "pause_after_failures": 2, "initial_state": "paused"},
    }
    assert put(client, "report", **more).status == 201
    again = put(client, "report", **more).json
    assert (again["action"], again["job"]["timezone"]) == ("none", "Europe/Riga")
    assert again["job"]["state"] == "paused"


@pytest.mark.parametrize(
    ("after", "why"),
    [
        ("unknown", "you have no job"),
        ("gone", "you have no job"),
        ("report", "the job itself"),
        ("REPORT", "the job itself"),
        ("second", "runs after another job itself"),
    ],
)
def test_what_cannot_be_followed_is_refused(
    world: World, client: Client, nightly: Json, after: str, why: str
) -> None:
    assert put(client, "second").status == 201
    client.put("/jobs/named/gone", NIGHTLY)
    client.delete("/jobs/named/gone")
    linked = row(world, "nightly")

    answer = put(client, "report", after)

    assert (answer.status, answer.fields) == (422, ["after.job"])
    assert why in answer.json["errors"][0]["message"]
    assert row(world, "nightly") == linked
    assert world.jobs.get(OWNER, job_id_of(OWNER, "report")) is None


def test_a_job_that_others_run_after_keeps_its_schedule(client: Client, nightly: Json) -> None:
    client.put("/jobs/named/other", NIGHTLY)
    put(client, "report")
    answer = put(client, "nightly", "other")
    assert (answer.status, answer.fields) == (422, ["after"])
    assert "report" in answer.json["errors"][0]["message"]
    client.delete("/jobs/named/report")
    assert put(client, "nightly", "other").status == 200


def test_after_and_schedule_may_be_changed_into_each_other(
    world: World, client: Client, nightly: Json
) -> None:
    client.put("/jobs/named/report", NIGHTLY)
    path = f"/jobs/{job_id_of(OWNER, 'report')}"
    first = row(world, "report").generation

    assert client.patch(path, {"after": "nightly"}, "*").fields == ["after"]
    assert client.patch(path, {"after": "nightly", "schedule": None}, "*").status == 200
    second = row(world, "report").generation
    assert second.generation_id > first.generation_id
    assert links(world) == {job_id_of(OWNER, "report"): "succeeded"}

    changed = client.patch(path, {"after": {"when": "failed"}}, "*").json
    assert changed["after"] == {"job": "nightly", "when": "failed", "within": None}
    assert links(world) == {job_id_of(OWNER, "report"): "failed"}, "and nothing else any more"

    assert client.patch(path, {"after": None, "schedule": "every 5m"}, "*").status == 200
    assert row(world, "report").generation.generation_id > second.generation_id
    assert links(world) == {}


def test_another_predecessor_takes_the_link_over(
    world: World, client: Client, nightly: Json
) -> None:
    client.put("/jobs/named/other", NIGHTLY)
    put(client, "report")
    assert put(client, "report", "other").json["action"] == "change"
    assert (links(world), list(links(world, "other"))) == ({}, [job_id_of(OWNER, "report")])


def test_links_outlive_every_change_of_the_predecessor(
    world: World, client: Client, nightly: Json
) -> None:
    put(client, "report")
    linked = links(world)
    path = f"/jobs/{nightly['job_id']}"
    assert client.patch(path, {"schedule": "0 4 * * *"}, nightly["revision"]).status == 200
    client.post(f"{path}/pause")
    client.post(f"{path}/resume")
    assert client.delete("/jobs/named/nightly").status == 204
    assert client.put("/jobs/named/nightly", NIGHTLY).json["action"] == "revive"
    assert links(world) == linked


def test_a_job_whose_predecessor_is_gone_may_be_changed_and_keeps_its_link(
    world: World, client: Client, nightly: Json
) -> None:
    job = put(client, "report").json["job"]
    client.delete("/jobs/named/nightly")
    changes = {"priority": "high", "after": {"when": "failed"}}
    assert client.patch(f"/jobs/{job['job_id']}", changes, "*").status == 200
    client.put("/jobs/named/nightly", NIGHTLY)
    assert links(world) == {job["job_id"]: "failed"}
    assert [link.lane for link in row(world, "nightly").successors] == ["high"]


def test_a_predecessor_that_was_forgotten_and_made_anew_is_followed_once_after_is_set_anew(
    world: World, client: Client, nightly: Json
) -> None:
    """By the same request as at first: a manifest says nothing else."""
    wanted = {"report": {"after": "nightly", "target": TASK}}
    apply(client, wanted)
    world.jobs._rows.pop(nightly["job_id"])
    assert actions(apply(client, wanted)) == {"report": "none"}, "there is nothing to follow"
    client.put("/jobs/named/nightly", NIGHTLY)
    assert links(world) == {}

    for action in ("change", "none"):
        assert actions(apply(client, wanted)) == {"report": action}
        assert links(world) == {job_id_of(OWNER, "report"): "succeeded"}


def test_a_predecessor_that_cannot_be_read_holds_up_no_apply_that_leaves_its_follower(
    world: World, client: Client, nightly: Json
) -> None:
    """Once it is deleted and made anew, it is linked by the same apply."""
    wanted = {"report": {"after": "nightly", "target": TASK}}
    apply(client, wanted)
    world.jobs.spoil(nightly["job_id"])
    assert actions(apply(client, wanted)) == {"report": "none"}

    assert client.delete("/jobs/named/nightly").status == 204
    client.put("/jobs/named/nightly", NIGHTLY)
    assert actions(apply(client, wanted)) == {"report": "change"}
    assert list(links(world)) == [job_id_of(OWNER, "report")]


def test_ten_jobs_run_after_one_and_links_of_no_job_make_room(
    world: World, client: Client, nightly: Json
) -> None:
    for number in range(MOST_SUCCESSORS):
        assert put(client, f"report {number}").status == 201
    answer = put(client, "report 10")
    assert (answer.status, answer.fields) == (422, ["after.job"])

    # A deletion that died before it took its link away.
    gone = row(world, "report 3")
    tombstone = gone.deleted(world.clock.now(), world.clock.now() + timedelta(days=30))
    assert world.jobs.replace(tombstone, gone.revision)
    world.clock.advance(2 * 3600)
    assert put(client, "report 10").status == 201
    assert set(links(world)) == {
        job_id_of(OWNER, f"report {number}") for number in range(11) if number != 3
    }


def test_a_placeholder_of_the_run_before_needs_one(client: Client, nightly: Json) -> None:
    template = {"template": True, "payload": {"from": ["{{after.result}}"]}}
    assert put(client, "report", **template).status == 201
    answer = client.put("/jobs/named/other", {**NIGHTLY, **template})
    assert (answer.status, answer.fields) == (422, ["payload.from[0]"])


def test_it_cannot_be_backfilled(client: Client, nightly: Json) -> None:
    job = put(client, "report").json["job"]
    span = {"from": "2026-02-01T00:00:00Z", "to": "2026-02-02T00:00:00Z"}
    answer = client.post(f"/jobs/{job['job_id']}/backfill", span)
    assert (answer.status, answer.fields) == (422, ["schedule"])


REPORT = {"after": "nightly", "target": TASK}


def test_in_one_apply_the_order_does_not_matter(world: World, client: Client) -> None:
    jobs = {"report": REPORT, "nightly": NIGHTLY}
    assert actions(apply(client, jobs, dry_run=True)) == dict.fromkeys(jobs, "create")
    done = apply(client, jobs)
    assert (done["written"], actions(done)) == (True, dict.fromkeys(jobs, "create"))
    assert list(links(world)) == [job_id_of(OWNER, "report")]
    assert actions(apply(client, jobs)) == dict.fromkeys(jobs, "none")


@pytest.mark.parametrize(
    ("jobs", "refused"),
    [
        ({"report": REPORT}, {"report": "after.job"}),
        ({"nightly": {**NIGHTLY}, "a": REPORT, "b": {**REPORT, "after": "a"}}, {"b": "after.job"}),
        (
            {"a": {**REPORT, "after": "b"}, "b": {**REPORT, "after": {"job": "a"}}},
            {"a": "after.job"},
        ),
        ({"a": {**REPORT, "after": "A"}}, {"a": "after.job"}),
        (
            {"nightly": NIGHTLY, **{f"r{n}": REPORT for n in range(11)}},
            {f"r{n}": "after.job" for n in range(11)},
        ),
    ],
    ids=["no predecessor", "two levels", "a circle", "itself", "eleven"],
)
def test_an_apply_that_cannot_be_is_refused_whole(
    client: Client, jobs: Json, refused: dict[str, str]
) -> None:
    answer = apply(client, jobs)
    assert (answer["written"], client.get("/jobs").json["items"]) == (False, [])
    for name, field in refused.items():
        assert faults(answer, name) == [field]


def test_an_apply_turns_a_pair_around(world: World, client: Client) -> None:
    apply(client, {"report": REPORT, "nightly": NIGHTLY})
    turned = {"report": NIGHTLY, "nightly": {**REPORT, "after": "report"}}
    assert apply(client, turned)["counts"] == {"change": 2}
    assert (links(world), list(links(world, "report"))) == ({}, [job_id_of(OWNER, "nightly")])


def test_neither_of_a_pair_is_renamed(client: Client) -> None:
    jobs = {"report": REPORT, "nightly": NIGHTLY}
    apply(client, jobs)
    for old, new in (("report", REPORT), ("nightly", NIGHTLY)):
        rest = {name: body for name, body in jobs.items() if name != old}
        answer = apply(client, {**rest, "renamed": {**new, "was": old}})
        assert (answer["written"], faults(answer, "renamed")) == (False, ["was"])


def test_nor_is_one_followed_under_the_name_that_it_loses(client: Client) -> None:
    apply(client, {"nightly": NIGHTLY})
    renamed = {"every night": {**NIGHTLY, "was": "nightly"}}

    answer = apply(client, {**renamed, "report": REPORT})

    assert (answer["written"], faults(answer, "report")) == (False, ["after.job"])
    assert [job["name"] for job in client.get("/jobs").json["items"]] == ["nightly"]
    followed = apply(client, {**renamed, "report": {**REPORT, "after": "every night"}})
    assert actions(followed) == {"every night": "rename", "report": "create"}
