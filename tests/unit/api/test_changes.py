"""GET /changes and /jobs/{job_id}/changes."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from carillon.domain.events import Event, EventType
from carillon.domain.run import RunKey, RunKind
from carillon.domain.spec.names import job_id_of
from carillon.stores.memory import MemoryChangeStore, MemoryEvents
from carillon.stores.recording import ChangeEvents, GenerationRecords, RecordedJobs
from tests.unit.api.callers.test_team_roles import member
from tests.unit.api.conftest import BODY, NOW, World, create
from tests.unit.api.gateway import OWNER, Answer, Client, Json
from tests.unit.api.runs.test_dead_letters import put_dead


def as_(world: World, sub: str = "owner-1", **claims: Any) -> Client:
    client = Client(world.api())
    client._claims = {"sub": sub, **claims}
    return client


def changes_of(client: Client, job_id: str, **query: str) -> list[Json]:
    answer = client.get(f"/jobs/{job_id}/changes", **query)
    assert answer.status == 200, answer.text
    items: list[Json] = answer.json["items"]
    return items


@pytest.fixture(autouse=True)
def bus(world: World) -> None:
    """A deployment with an event bus."""
    world.settings = replace(world.settings, event_bus="bus")


def logged_by(world: World) -> list[tuple[str, str]]:
    """Who did it and by which way, of every line of the log, with the actions told once."""
    lines = [json.loads(line) for line in world.log.getvalue().splitlines()]
    return [(line["by"]["name"], line["via"]) for line in lines]


def event_of(world: World) -> Json:
    """The data of the last event, which is the only one of its change."""
    told = [each for each in world.events.emitted if each.type is EventType.JOB_CHANGED]
    assert len({each.event_id for each in told}) == len(told)
    assert told[-1].as_cloud_event()["type"] == "carillon.job.changed"
    return told[-1].data


Act = Callable[[Client, str], Answer]
REPORT, JOB = "nightly report", "/jobs/named/nightly%20report"
SPEC = {"schedule": "0 3 * * *", "target": {"type": "task", "name": "echo"}}
PATCH, ALL = {"schedule": "every 6m"}, {"tag": "team:a"}

MUTATIONS: dict[str, tuple[Act, str, str]] = {
    "put_job": (lambda c, i: c.put(JOB, SPEC), "change", "api"),
    "delete_named_job": (lambda c, i: c.delete(JOB), "delete", "api"),
    "delete_job": (lambda c, i: c.delete(f"/jobs/{i}"), "delete", "api"),
    "change_job": (lambda c, i: c.patch(f"/jobs/{i}", PATCH, "*"), "change", "api"),
    "pause_job": (lambda c, i: c.post(f"/jobs/{i}/pause"), "pause", "api"),
    "resume_job": (lambda c, i: c.post(f"/jobs/{i}/resume"), "resume", "api"),
    "create_job": (lambda c, i: c.post("/jobs", BODY | {"name": "other"}), "create", "api"),
    "delete_jobs": (lambda c, i: c.send("DELETE", "/jobs", query=ALL), "delete", "api"),
    "create_jobs": (
        lambda c, i: c.post("/jobs/bulk", {"items": [BODY | {"name": "other"}]}),
        "create",
        "api",
    ),
    "change_jobs": (
        lambda c, i: c.send("PATCH", "/jobs/bulk", {"items": [{"job_id": i, "patch": PATCH}]}),
        "change",
        "api",
    ),
    "pause_jobs": (lambda c, i: c.send("POST", "/jobs/pause", query=ALL), "pause", "api"),
    "resume_jobs": (lambda c, i: c.send("POST", "/jobs/resume", query=ALL), "resume", "api"),
    "apply_manifest": (
        lambda c, i: c.post("/apply", {"manifest": "m", "jobs": {REPORT: SPEC}, "adopt": True}),
        "change",
        "apply",
    ),
}
"""By operation: what does it to the job of an id, and what is noted then."""
DAYS: Json = {"weekdays": ["sat"]}
TOLD: Json = {"on": ["run.dead"], "to": {"type": "slack", "url": {"secret": "hook"}}}
ROWS: dict[str, tuple[str, Act, list[str]]] = {
    "put_calendar": (
        "calendar",
        lambda c, n: c.put(f"/calendars/{n}", {"weekdays": ["sun"]}),
        ["change", "create"],
    ),
    "delete_calendar": (
        "calendar",
        lambda c, n: c.delete(f"/calendars/{n}"),
        ["delete", "create"],
    ),
    "put_notification": (
        "notification",
        lambda c, n: c.put(f"/notifications/{n}", TOLD | {"jobs": "n*"}),
        ["change", "create"],
    ),
    "delete_notification": (
        "notification",
        lambda c, n: c.delete(f"/notifications/{n}"),
        ["delete", "create"],
    ),
}
SPAN = {"from": "2026-03-01T11:00:00Z", "to": "2026-03-01T11:30:00Z"}
ACTS: dict[str, tuple[Act, str]] = {
    "run_job": (lambda c, i: c.post(f"/jobs/{i}/run", {"note": "again"}), "run"),
    "cancel_run": (
        lambda c, i: c.post(f"/jobs/{i}/runs/{waiting_run(c, i)}/cancel"),
        "cancel",
    ),
    "backfill_job": (
        lambda c, i: c.post(f"/jobs/{i}/backfill", SPAN, key="k"),
        "backfill",
    ),
    "cancel_operation": (
        lambda c, i: c.post(f"/operations/{backfill(c, i)}/cancel"),
        "cancel",
    ),
    "redrive_dead_letter": (lambda c, i: c.post(f"/dead-letters/{dead_id(i)}/redrive"), "redrive"),
    "discard_dead_letter": (lambda c, i: c.delete(f"/dead-letters/{dead_id(i)}"), "discard"),
    "redrive_dead_letters": (
        lambda c, i: c.post("/dead-letters/redrive", {"job_id": i}),
        "redrive",
    ),
    "discard_dead_letters": (
        lambda c, i: c.post("/dead-letters/discard", {"job_id": i}),
        "discard",
    ),
}
DEAD_AT = NOW.replace(microsecond=0) - timedelta(minutes=30)
OF_TWO_OWNERS = {"hand_over_jobs"}
"""tests/unit/api/jobs/test_handing_over.py has it: its caller is an admin of two teams."""
NO_CHANGES = {
    *("test_notification", "preview_schedule"),
    *("complete_run", "fail_run", "send_heartbeat"),
}
"""They change nothing of an owner's, or are reports of targets, which have no author."""


def dead_id(job_id: str) -> str:
    return RunKey(OWNER, job_id, RunKind.SCHEDULED, DEAD_AT).run_id


def waiting_run(client: Client, job_id: str) -> str:
    run_id: str = client.post(f"/jobs/{job_id}/run").json["run_id"]
    return run_id


def backfill(client: Client, job_id: str) -> str:
    operation_id: str = client.post(f"/jobs/{job_id}/backfill", SPAN, key="k").json["operation_id"]
    return operation_id


@pytest.mark.parametrize("operation", ACTS)
def test_every_request_about_runs_names_its_actor(world: World, operation: str) -> None:
    act, action = ACTS[operation]
    ann, bob = as_(world, username="ann"), as_(world, username="bob")
    job_id = create(ann, events=["job.changed"])["job_id"]
    put_dead(world, job_id, DEAD_AT)
    world.clock.advance(1)

    answer = act(bob, job_id)
    assert answer.status in (200, 202, 204), answer.text

    newest = next(each for each in changes_of(bob, job_id) if each["action"] == action)
    assert newest["by"]["name"] == "bob"
    assert (newest["job_name"], newest["revision"]) == (REPORT, 1)
    answered = answer.json if answer.status != 204 else {"run_id": dead_id(job_id)}
    assert newest["ref"] == answered.get("run_id", answered.get("operation_id"))
    assert newest["note"] == ("again" if operation == "run_job" else None)
    assert logged_by(world)[-1] == ("bob", "api")
    told = event_of(world)
    assert {member: told[member] for member in told.keys() & newest.keys()} == {
        member: newest[member] for member in told.keys() & newest.keys()
    }
    assert told.keys() >= {"action", "revision", "by", "via", "changed", "note", "source", "ref"}


@pytest.mark.parametrize("operation", ["cancel_run", "cancel_operation", "discard_dead_letter"])
def test_what_somebody_else_has_done_before_is_not_noted_again(
    world: World, operation: str
) -> None:
    ann, bob = as_(world, username="ann"), as_(world, username="bob")
    job_id = create(ann, events=["job.changed"])["job_id"]
    put_dead(world, job_id, DEAD_AT)
    run_id = waiting_run(ann, job_id)
    path = {
        "cancel_run": f"/jobs/{job_id}/runs/{run_id}/cancel",
        "cancel_operation": f"/operations/{backfill(ann, job_id)}/cancel",
        "discard_dead_letter": f"/dead-letters/{dead_id(job_id)}",
    }[operation]
    ask = Client.delete if operation == "discard_dead_letter" else Client.post
    for caller in (ann, bob):
        world.clock.advance(1)
        assert ask(caller, path).status in (200, 204)

    action = ACTS[operation][1]
    (noted,) = (each for each in changes_of(ann, job_id) if each["action"] == action)
    assert noted["by"]["name"] == "ann"


def test_a_repetition_under_a_key_is_not_noted_again(world: World) -> None:
    ann = as_(world, username="ann")
    job_id = create(ann)["job_id"]
    for _ in range(2):
        world.clock.advance(1)
        backfill(ann, job_id)
    assert [each["action"] for each in changes_of(ann, job_id)] == ["backfill", "create"]


def test_an_operation_on_all_dead_letters_is_its_own_subject(world: World) -> None:
    bob = as_(world, username="bob")
    operation_id = bob.post("/dead-letters/discard", {"all": True}).json["operation_id"]

    (made,) = bob.get("/changes").json["items"]
    assert (made["subject"], made["action"], made["ref"]) == ("operation", "discard", operation_id)
    assert (made["name"], made["job_id"]) == ("discard", None)


def test_no_operation_is_forgotten(world: World) -> None:
    paths = world.api().describe()["paths"]
    writing = {
        operation["operationId"]
        for methods in paths.values()
        for method, operation in methods.items()
        if method != "get"
    }
    elsewhere = OF_TWO_OWNERS | {"put_quota_of_an_owner"}  # test_quotas.py
    assert writing == MUTATIONS.keys() | ROWS.keys() | ACTS.keys() | NO_CHANGES | elsewhere


@pytest.mark.parametrize("operation", MUTATIONS)
def test_every_mutation_names_its_actor(world: World, operation: str) -> None:
    act, action, via = MUTATIONS[operation]
    ann, bob = as_(world, username="ann"), as_(world, username="bob")
    job_id = create(ann, tags={"team": "a"}, events=["job.changed"])["job_id"]
    if action == "resume":
        ann.post(f"/jobs/{job_id}/pause")
    world.clock.advance(1)

    answer = act(bob, job_id)
    assert answer.status in (200, 201, 204), answer.text

    changed_id = job_id_of(OWNER, "other") if action == "create" else job_id
    newest, *earlier = changes_of(ann, changed_id)
    assert newest["by"] == {"kind": "person", "id": "owner-1", "name": "bob"}
    assert (newest["action"], newest["via"], newest["job_id"]) == (action, via, changed_id)
    assert [each["by"]["name"] for each in earlier] == ["ann"] * len(earlier)
    assert ann.get("/changes").json["items"][0] == newest
    assert ann.get("/changes", job=changed_id).json["items"] == [newest, *earlier]
    assert newest["at"] == "2026-03-01T12:00:01.250Z"
    assert logged_by(world)[-1] == ("bob", via)
    if action != "create":  # the new job has chosen no events
        told = event_of(world)
        assert (told["job_id"], told["action"], told["by"]["name"], told["via"]) == (
            job_id,
            action,
            "bob",
            via,
        )
        assert (told["revision"], told["changed"]) == (newest["revision"], newest["changed"])


@pytest.mark.parametrize("operation", ROWS)
def test_every_change_of_a_calendar_or_notification_names_its_actor(
    world: World, operation: str
) -> None:
    subject, act, actions = ROWS[operation]
    ann, bob = as_(world, username="ann"), as_(world, username="bob")
    first = ann.put(f"/{subject}s/a", DAYS if subject == "calendar" else TOLD)
    assert first.status == 201, first.text
    world.clock.advance(1)
    assert act(bob, "a").status in (200, 204)
    assert logged_by(world) == [("ann", "api"), ("bob", "api")]

    items = ann.get("/changes", **{subject: "a"}).json["items"]
    assert [(each["action"], each["by"]["name"]) for each in items] == list(
        zip(actions, ["bob", "ann"], strict=True)
    )
    assert (items[0]["subject"], items[0]["name"], items[0]["job_id"]) == (subject, "a", None)
    assert ann.get("/changes").json["items"] == items
    assert [each["path"] for each in items[0]["changed"]] == {
        "put_calendar": ["weekdays"],
        "put_notification": ["jobs"],
    }.get(operation, [])


def test_a_job_that_chooses_no_event_of_changes_has_none(client: Client, world: World) -> None:
    job_id = create(client, events=["run.dead"])["job_id"]
    assert client.post(f"/jobs/{job_id}/pause").status == 200
    assert client.post(f"/jobs/{job_id}/run").status == 202
    assert world.events.emitted == []


def test_an_event_that_the_bus_does_not_take_is_counted(world: World) -> None:
    class Full(MemoryEvents):
        def emit(self, events: Sequence[Event]) -> int:
            return len(events)

    counted = list[int]()
    told = ChangeEvents(Full(), counted.append)
    jobs = RecordedJobs(
        world.jobs, world.changes, told, GenerationRecords(world.chunks, timedelta(days=30))
    )
    client = Client(world.api(jobs=jobs, events=Full()))
    job_id = create(client, events=["job.changed"])["job_id"]
    assert counted == [1]
    client.post(f"/jobs/{job_id}/run")
    assert '"events.lost"' in world.log.getvalue()


def test_an_apply_names_the_one_who_changes_a_calendar(world: World) -> None:
    client = as_(world, username="ann")
    assert client.post("/apply", {"manifest": "m", "calendars": {"a": DAYS}}).status == 200

    (made,) = client.get("/changes", calendar="a").json["items"]
    assert (made["by"]["name"], made["via"]) == ("ann", "apply")


def test_an_adoption_without_another_difference_is_told_at_its_time(
    client: Client, world: World
) -> None:
    """Not at that of the change before it: who looks at what was done since would not see it."""
    job_id = create(client, schedule=SPEC["schedule"])["job_id"]
    world.clock.advance(7200)
    body = {"manifest": "m", "jobs": {REPORT: SPEC}, "adopt": True}
    assert client.post("/apply", body).json["counts"] == {"change": 1}

    (adopted,) = client.get("/changes", **{"from": "2026-03-01T13:00:00Z"}).json["items"]
    assert (adopted["at"], adopted["source"]) == ("2026-03-01T14:00:00.250Z", "manifest/m")
    assert client.get(f"/jobs/{job_id}").json["updated_at"] == adopted["at"]


def test_a_change_of_a_calendar_whose_process_died_is_read(client: Client, world: World) -> None:
    assert client.put("/calendars/a", DAYS).status == 201
    world.changes = MemoryChangeStore()  # its row was never put
    again = Client(world.api())

    assert len(again.get("/changes", calendar="a").json["items"]) == 1
    assert len(again.get("/changes").json["items"]) == 1
    both = again.get("/changes", calendar="a", notification="b")
    assert (both.status, both.fields) == (422, ["job"])


def test_members_of_a_team_are_told_apart(world: World) -> None:
    """The owner is the team; who did it is the member."""
    headers = {"Carillon-Team": "billing"}
    ann, bob = (
        as_(world, sub, username=name, **{"cognito:groups": "[billing:editor]"})
        for sub, name in (("1", "ann"), ("2", "bob"))
    )
    made = ann.send("POST", "/jobs", BODY, headers=headers)
    assert made.status == 201, made.text
    job_id = made.json["job_id"]
    assert bob.send("POST", f"/jobs/{job_id}/pause", headers=headers).status == 200

    for path in ("/changes", f"/jobs/{job_id}/changes"):
        items = ann.send("GET", path, headers=headers).json["items"]
        assert [each["by"]["name"] for each in items] == ["bob", "ann"]
    assert ann.get("/changes").json["items"] == []


def test_a_rename_is_told_of_both_names(world: World) -> None:
    client = as_(world, username="ann")
    job_id = create(client)["job_id"]
    body = {"manifest": "m", "jobs": {"new": SPEC | {"was": REPORT}}, "adopt": True}
    assert client.post("/apply", body).status == 200
    new_id = job_id_of(OWNER, "new")

    assert [each["action"] for each in changes_of(client, job_id)] == ["rename", "create"]
    (made,) = changes_of(client, new_id)
    assert (made["action"], made["note"], made["source"]) == (
        "rename",
        f"from job {job_id}",
        "manifest/m",
    )


def test_persons_machines_and_carillon_itself_are_told_apart(world: World) -> None:
    """So are the ways by which changes come, an apply's, and an automatic pause."""
    world.settings = replace(world.settings, machine_names={"c1": "ci"})
    person = member(world, ["billing:admin"], username="ann")
    job_id = create(person)["job_id"]
    machine = member(world, None, "c1", client_id="c1", scope="carillon/billing:admin")
    machine.send("POST", f"/jobs/{job_id}/pause", headers={"User-Agent": "carillon-cli/1"})
    machine.post("/apply", {"manifest": "m", "jobs": {REPORT: SPEC}, "adopt": True})
    recorded = RecordedJobs(
        world.jobs,
        world.changes,
        ChangeEvents(world.events),
        GenerationRecords(world.chunks, timedelta(days=30)),
    )
    resume = world.jobs.get("team/billing", job_id)
    assert resume is not None
    person.post(f"/jobs/{job_id}/resume")
    active = world.jobs.get("team/billing", job_id)
    assert active is not None
    paused = active.paused(NOW + timedelta(seconds=2), "3 runs failed in a row")
    assert recorded.replace(paused, active.revision)

    assert [
        (each["action"], each["by"]["kind"], each["by"]["name"], each["via"], each["note"])
        for each in changes_of(person, job_id)
    ] == [
        ("pause", "system", "", "system", "3 runs failed in a row"),
        ("resume", "person", "ann", "api", None),
        ("change", "machine", "ci", "apply", None),
        ("pause", "machine", "ci", "cli", None),
        ("create", "person", "ann", "api", None),
    ]


def test_a_change_says_what_differed(client: Client) -> None:
    job_id = create(client)["job_id"]
    body = {"schedule": "every 6m", "payload": {"key": "sesame"}, "timeout_seconds": 7}
    assert client.patch(f"/jobs/{job_id}", body, "*").status == 200

    newest, created = changes_of(client, job_id)
    shown = {each["path"]: (each["before"], each["after"]) for each in newest["changed"]}
    assert shown.pop("payload")[1].startswith("sha256:")
    assert shown == {"schedule": ("every 5m", "every 6m"), "timeout_seconds": (None, 7)}
    assert created["changed"] == []


def test_filters_and_pages(client: Client, world: World) -> None:
    ids = [create(client, key=str(number))["job_id"] for number in range(3)]
    world.clock.advance(60)
    client.post(f"/jobs/{ids[0]}/pause")

    def found(**query: str) -> list[str]:
        answer = client.get("/changes", **query)
        assert answer.status == 200, answer.text
        return [each["action"] for each in answer.json["items"]]

    assert found() == ["pause", *["create"] * 3]
    assert found(action="pause") == ["pause"]
    assert found(by="owner-1", **{"from": "2026-03-01T12:00:30Z"}) == ["pause"]
    assert found(to="2026-03-01T12:00:30Z") == ["create"] * 3
    assert found(by="somebody") == []
    first = client.get("/changes", limit="3").json
    rest = client.get("/changes", limit="3", cursor=first["next_cursor"]).json
    assert [len(page["items"]) for page in (first, rest)] == [3, 1]
    assert rest["next_cursor"] is None
    bad = client.get("/changes", action="sing")
    assert (bad.status, bad.fields) == (422, ["action"])


def test_they_are_their_owners(client: Client, stranger: Client, world: World) -> None:
    job_id = create(client)["job_id"]

    assert stranger.get(f"/jobs/{job_id}/changes").status == 404
    assert stranger.get("/changes", job=job_id).status == 404
    assert stranger.get("/changes").json["items"] == []
    assert client.get("/jobs/nothing/changes").status == 404
    client.delete(f"/jobs/{job_id}")
    assert [each["action"] for each in changes_of(client, job_id)] == ["delete", "create"]


def test_a_job_whose_row_has_expired_is_known_by_any_of_its_changes(
    client: Client, world: World
) -> None:
    """A filter that chooses none of them is no reason to call it unknown."""
    job_id = create(client)["job_id"]
    del world.jobs._rows[job_id]

    assert changes_of(client, job_id, action="pause") == []
    assert [each["action"] for each in changes_of(client, job_id)] == ["create"]
    assert client.get(f"/jobs/{'0' * 26}/changes", action="pause").status == 404
