"""POST /apply: a manifest's jobs and calendars become what it says, and nothing is half-written."""

import json
import threading
import time
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from carillon.api.apply import routes
from carillon.domain.calendar import Calendar
from carillon.domain.job import Job, JobState
from carillon.domain.spec.names import job_id_of
from carillon.errors import StoreUnavailableError
from carillon.stores.memory import MemoryJobStore, MemoryVersionedRows
from carillon.stores.ports import CALENDARS
from tests.unit.api.conftest import NOW, World
from tests.unit.api.gateway import OWNER, Client, Json

TASK = {"type": "task", "name": "echo"}
JOBS = {
    "report": {"schedule": "0 6 * * 1-5", "timezone": "Europe/Riga", "target": TASK},
    "sync": {"schedule": "every 5m", "target": TASK},
}


@pytest.fixture
def client(world: World) -> Client:
    return Client(world.api())


def apply(client: Client, jobs: Json = JOBS, **more: Any) -> Json:
    answer = client.post("/apply", {"manifest": "billing", "jobs": jobs, **more})
    assert answer.status == 200, answer.text
    found: Json = answer.json
    return found


def prune(client: Client, *keep: str, **more: Any) -> Json:
    answer = client.post("/apply", {"manifest": "billing", "keep": keep, **more})
    assert answer.status == 200, answer.text
    found: Json = answer.json
    return found


def actions(answer: Json) -> dict[str, str]:
    return {item["name"]: item["action"] for item in answer["items"]}


def named(client: Client, name: str) -> Json:
    found: Json = client.get(f"/jobs/named/{name}").json
    return found


def changed(**changes: Any) -> Json:
    return {**JOBS, "sync": {**JOBS["sync"], **changes}}


def test_a_manifest_is_planned_applied_and_then_nothing_is_left_to_do(client: Client) -> None:
    plan = apply(client, dry_run=True)
    assert (plan["written"], actions(plan)) == (False, {"report": "create", "sync": "create"})
    assert client.get("/jobs").json["items"] == []

    done = apply(client, expect=plan["digest"])
    assert (done["written"], done["complete"], done["counts"]) == (True, True, {"create": 2})
    assert [item["next_fire_at"] for item in done["items"]] == [
        "2026-03-02T04:00:00Z",
        "2026-03-01T12:05:00Z",
    ]
    job = named(client, "sync")
    assert (job["managed_by"], job["revision"]) == ("manifest/billing", 1)
    assert job["changed_by"] == {"kind": "person", "id": "owner-1", "name": "", "via": "apply"}

    again = apply(client)
    assert (actions(again), again["counts"]) == ({"report": "none", "sync": "none"}, {"none": 2})
    assert named(client, "sync")["revision"] == 1


def test_a_change_is_told_member_by_member(client: Client) -> None:
    apply(client)

    items = apply(client, changed(timeout_seconds=5, payload="x" * 500))["items"]

    assert items[1]["action"] == "change"
    assert items[1]["changes"] == [
        {"path": "payload", "before": None, "after": '"' + "x" * 199 + "…"},
        {"path": "timeout_seconds", "before": None, "after": 5},
    ]
    assert (items[1]["reindexes"], items[1]["next_fire_at"]) == (False, None)
    assert named(client, "sync")["revision"] == 2


def test_a_paused_job_stays_paused(client: Client) -> None:
    apply(client)
    client.post(f"/jobs/{named(client, 'sync')['job_id']}/pause")

    apply(client, changed(schedule="every 7m"))

    assert (named(client, "sync")["state"], named(client, "sync")["schedule"]) == (
        "paused",
        "every 7m",
    )


def test_a_job_may_begin_paused(client: Client, world: World) -> None:
    apply(client, {"sync": {**JOBS["sync"], "initial_state": "paused"}})

    assert named(client, "sync")["state"] == "paused"
    assert not world.wheel._slots
    client.post(f"/jobs/{named(client, 'sync')['job_id']}/resume")
    assert named(client, "sync")["next_fire_at"] == "2026-03-01T12:05:00Z"
    assert actions(apply(client, {"sync": {**JOBS["sync"], "initial_state": "paused"}})) == {
        "sync": "none"
    }, "it counts at the beginning only"


def test_calendars_come_before_the_jobs_that_follow_them(client: Client) -> None:
    jobs = {"sync": {**JOBS["sync"], "calendar": {"name": "holidays"}}}
    calendars = {"holidays": {"weekdays": ["sun"]}}

    assert actions(apply(client, jobs, calendars=calendars)) == {
        "holidays": "create",
        "sync": "create",
    }
    assert actions(apply(client, jobs, calendars=calendars))["holidays"] == "none"
    calendars = {"holidays": {"weekdays": ["sun"], "dates": ["2026-12-25"]}}
    (item, _) = apply(client, jobs, calendars=calendars)["items"]
    assert item["changes"] == [{"path": "dates", "before": [], "after": ["2026-12-25"]}]
    missing = apply(client, {"other": {**JOBS["sync"], "calendar": {"name": "nowhere"}}})
    assert missing["items"][0]["problem"]["errors"][0]["field"] == "calendar.name"


def test_no_job_is_written_before_its_calendar(client: Client, world: World) -> None:
    """It would follow one that is not there, as if every day were open."""
    jobs = {"sync": {**JOBS["sync"], "calendar": {"name": "holidays"}}}
    calendars = {"holidays": {"weekdays": ["sun"]}}

    class Failing(MemoryVersionedRows[Calendar]):
        def put(self, row: Calendar, over_revision: int | None) -> bool:
            raise StoreUnavailableError("down")

    failed = apply(Client(world.api(calendars=Failing(CALENDARS))), jobs, calendars=calendars)

    assert (failed["complete"], actions(failed)) == (
        False,
        {"holidays": "unavailable", "sync": "unavailable"},
    )
    assert client.get("/jobs").json["items"] == []
    assert actions(apply(client, jobs, calendars=calendars)) == {
        "holidays": "create",
        "sync": "create",
    }


def test_a_plan_tells_the_next_time_under_the_calendars_that_it_brings(client: Client) -> None:
    job = {**JOBS["report"], "calendar": {"name": "holidays"}}
    for name, closed, following in (
        ("new", ["2026-03-02"], "2026-03-03T04:00:00Z"),
        ("changed", ["2026-03-02", "2026-03-03"], "2026-03-04T04:00:00Z"),
    ):
        jobs = {name: job}
        more = {"calendars": {"holidays": {"dates": closed}}}
        plan = apply(client, jobs, dry_run=True, **more)
        done = apply(client, jobs, **more)
        assert [each["items"][1]["next_fire_at"] for each in (plan, done)] == [following] * 2


@pytest.mark.parametrize(
    ("jobs", "field"),
    [
        (changed(schedule="every 5x"), "schedule"),
        (changed(colour="red"), "colour"),
        (changed(name="other"), "name"),
        (changed(calendar={"name": "nowhere"}), "calendar.name"),
        ({**JOBS, "SYNC": JOBS["sync"]}, "name"),
        ({**JOBS, "a/b": JOBS["sync"]}, "name"),
    ],
)
def test_one_refused_item_and_nothing_is_written(client: Client, jobs: Json, field: str) -> None:
    answer = apply(client, jobs, calendars={"days": {"weekdays": ["sun"]}})

    assert (answer["written"], answer["complete"]) == (False, True)
    refused = [item for item in answer["items"] if item["action"] == "refused"]
    assert {error["field"] for item in refused for error in item["problem"]["errors"]} == {field}
    assert client.get("/jobs").json["items"] == client.get("/calendars").json["items"] == []


def test_what_the_manifest_does_not_have_any_more_is_pruned_and_comes_back(client: Client) -> None:
    apply(client)
    client.post("/jobs", {"name": "own", **JOBS["sync"]})

    assert actions(prune(client, "REPORT", dry_run=True)) == {"sync": "delete"}
    assert prune(client, "report")["counts"] == {"delete": 1}
    assert [job["name"] for job in client.get("/jobs").json["items"]] == ["own", "report"]
    assert prune(client, "report")["items"] == []
    revived = apply(client)
    assert actions(revived) == {"report": "none", "sync": "revive"}
    assert named(client, "sync")["job_id"] == job_id_of(OWNER, "sync")


def test_a_prune_leaves_what_another_manifest_has_adopted_meanwhile(
    client: Client, world: World
) -> None:
    apply(client)

    class Adopting(MemoryJobStore):
        """The list is behind the row."""

        def list(self, *args: Any, **more: Any) -> Any:
            page = super().list(*args, **more)
            stored = self.get(OWNER, job_id_of(OWNER, "sync"))
            if stored is not None and stored.managed_by == "manifest/billing":
                self.replace(replace(stored, managed_by="manifest/other"), stored.revision)
            return page

    world.jobs.__class__ = Adopting
    assert actions(prune(client, "report")) == {"sync": "none"}
    assert named(client, "sync")["managed_by"] == "manifest/other"


def test_details_are_given_as_far_as_there_is_time(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thousand jobs with slow calendars must not keep the answer until it is too late."""
    monkeypatch.setattr(routes, "DETAILS_BUDGET", timedelta())

    done = apply(client)

    assert done["written"]
    assert [item["next_fire_at"] for item in done["items"]] == [None, None]
    assert all(item["sentence"] for item in done["items"])


def test_only_the_plan_that_was_reviewed_is_carried_out(client: Client) -> None:
    digest = apply(client, dry_run=True)["digest"]
    client.post("/jobs", {"name": "sync", **JOBS["sync"]})

    answer = client.post(
        "/apply", {"manifest": "billing", "jobs": JOBS, "adopt": True, "expect": digest}
    )

    assert (answer.status, answer.json["type"]) == (409, "urn:carillon:problem:plan-changed")
    assert named(client, "sync")["managed_by"] is None


@pytest.mark.parametrize(
    ("description", "action", "overlap"), [("x", "unavailable", "allow"), (None, "change", "skip")]
)
def test_a_job_that_is_changed_meanwhile_is_planned_again(
    client: Client, world: World, description: str | None, action: str, overlap: str
) -> None:
    """Carried out if the plan is still the same, as after a pause."""
    apply(client)

    class Racing(MemoryJobStore):
        raced = False

        def replace(self, job: Job, revision: int) -> bool:
            if not Racing.raced:
                Racing.raced = True
                stored = self.get(job.owner, job.job_id)
                assert stored is not None
                spec = stored.spec.model_copy(update={"description": description})
                super().replace(replace(stored.paused(NOW), spec=spec), stored.revision)
            return super().replace(job, revision)

    world.jobs.__class__ = Racing
    item = apply(client, changed(overlap="skip"))["items"][1]

    assert (item["action"], named(client, "sync")["overlap"]) == (action, overlap)
    assert named(client, "sync")["state"] == "paused"


def test_a_store_that_fails_hinders_all_and_the_next_apply_goes_on(
    client: Client, world: World
) -> None:
    class Failing(MemoryJobStore):
        def create(self, job: Any) -> bool:
            if job.spec.name == "sync":
                raise StoreUnavailableError("down")
            return super().create(job)

    plain = world.jobs.__class__
    world.jobs.__class__ = Failing
    done = apply(client)
    assert (done["written"], done["complete"]) == (True, False)
    assert actions(done) == {"report": "create", "sync": "unavailable"}
    world.jobs.__class__ = plain
    assert actions(apply(client)) == {"report": "none", "sync": "create"}


def test_what_is_not_reached_in_time_is_told(client: Client, world: World) -> None:
    class Slow(MemoryJobStore):
        def get(self, owner: str, job_id: str) -> Any:
            world.clock.advance(timedelta(seconds=21).total_seconds())
            return super().get(owner, job_id)

    world.jobs.__class__ = Slow
    many = {f"job-{number}": JOBS["sync"] for number in range(40)}
    plan = apply(client, many)
    assert (plan["written"], plan["complete"]) == (False, False)
    assert plan["counts"]["unavailable"] >= 1
    assert client.get("/jobs").json["items"] == []


def test_a_completed_one_shot_stays_gone(client: Client, world: World) -> None:
    once = {"once": {"schedule": "at 2026-03-01T12:10:00", "target": TASK, "on_complete": "delete"}}
    apply(client, once)
    job_id = job_id_of(OWNER, "once")
    job = world.jobs.get(OWNER, job_id)
    assert job is not None
    now = world.clock.now() + timedelta(minutes=11)
    world.clock.set(now)
    world.jobs.replace(job.completed(now, now + timedelta(days=1)), job.revision)

    assert actions(apply(client, once)) == {"once": "none"}
    stored = world.jobs.get(OWNER, job_id)
    assert stored is not None
    assert stored.state is JobState.COMPLETED


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"jobs": JOBS}, "manifest"),
        ({"manifest": "a b"}, "manifest"),
        ({"manifest": "m", "jobs": []}, "jobs"),
        ({"manifest": "m", "jobs": {"a": 1}}, "jobs.a"),
        ({"manifest": "m", "jobs": {f"j{n}": {} for n in range(1001)}}, "jobs"),
        ({"manifest": "m", "keep": [], "jobs": JOBS}, "keep"),
        ({"manifest": "m", "keep": [""]}, "keep[0]"),
        ({"manifest": "m", "expect": "x"}, "expect"),
        ({"manifest": "m", "force": "yes"}, "force"),
    ],
)
def test_a_body_that_cannot_be_read_is_refused(client: Client, body: Json, field: str) -> None:
    answer = client.post("/apply", body)

    assert (answer.status, answer.fields[0]) == (422, field)


def test_a_plan_that_is_not_whole_is_no_other_plan(client: Client, world: World) -> None:
    """What was not reached may be reached the next time: nobody has to review it again."""
    digest = apply(client, dry_run=True)["digest"]

    class Failing(MemoryJobStore):
        def get(self, owner: str, job_id: str) -> Job | None:
            if job_id == job_id_of(OWNER, "sync"):
                raise StoreUnavailableError("down")
            return super().get(owner, job_id)

    plain = world.jobs.__class__
    world.jobs.__class__ = Failing
    answer = apply(client, expect=digest)
    assert (answer["written"], actions(answer)["sync"]) == (False, "unavailable")
    world.jobs.__class__ = plain
    assert apply(client, expect=digest)["written"]


def test_icalendar_texts_are_read_where_their_time_is_limited(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[object] = []

    def closed_ranges(text: str, now: object) -> list[object]:
        threads.append(threading.current_thread())
        return []

    monkeypatch.setattr("carillon.api.calendars.icalendar.closed_ranges", closed_ranges)
    apply(client, calendars={f"c{n}": {"icalendar": "BEGIN:VCALENDAR"} for n in range(3)})
    assert set(threads) == {threading.main_thread()}


def test_a_name_that_is_none_takes_no_time(client: Client) -> None:
    # Accents take quadratic time to be put in order: a mebibyte of them would take minutes.
    endless = "a" + "\u0315\u0300" * 20_000
    started = time.process_time()
    jobs = {
        endless: JOBS["sync"],
        "renamed": {**JOBS["sync"], "was": endless},
        "after": {"target": TASK, "after": endless},
    }
    answer = client.send(
        "POST",
        "/apply",
        json.dumps({"manifest": "billing", "jobs": jobs, "dry_run": True}, ensure_ascii=False),
    )
    assert set(actions(answer.json).values()) == {"refused"}
    assert time.process_time() - started < 1
