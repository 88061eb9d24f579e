"""A row that cannot be read hides no other, and its owner can delete it."""

import pytest

from carillon.domain.job import JobState
from carillon.errors import UnreadableRowError
from tests.unit.api.conftest import BODY, World
from tests.unit.api.gateway import OWNER, Client
from tests.unit.api.jobs.test_jobs import row


@pytest.fixture
def jobs(client: Client, world: World) -> tuple[str, str]:
    """The ids of a job that can be read, and of one that cannot."""
    good = client.post("/jobs", BODY, key="good").json["job_id"]
    bad = client.post("/jobs", BODY, key="bad").json["job_id"]
    world.jobs.spoil(bad)
    return good, bad


def test_a_list_leaves_the_row_out_and_says_so(client: Client, jobs: tuple[str, str]) -> None:
    good, bad = jobs
    answer = client.get("/jobs")
    assert answer.status == 200
    assert [job["job_id"] for job in answer.json["items"]] == [good]
    assert answer.json["unreadable"] == [{"id": bad, "reason": f"job {bad}: spoilt"}]


def test_a_page_of_one_still_comes_to_the_others(client: Client, jobs: tuple[str, str]) -> None:
    seen, bad, cursor = [], [], ""
    for _ in range(3):
        page = client.get("/jobs", limit="1", **({"cursor": cursor} if cursor else {})).json
        seen += [job["job_id"] for job in page["items"]]
        bad += [row["id"] for row in page["unreadable"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert (seen, bad) == ([jobs[0]], [jobs[1]])


@pytest.mark.parametrize("is_on_last_page", [True, False])
@pytest.mark.parametrize(
    "path",
    [
        "/status",
        "/upcoming",
        "/forecast",
        "/forecast/jobs",
        "/runs/summary",
    ],
)
def test_what_concerns_all_jobs_goes_on_without_it_and_says_so(
    client: Client,
    world: World,
    jobs: tuple[str, str],
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    is_on_last_page: bool,
) -> None:
    monkeypatch.setattr("carillon.api.jobs.service.PAGE_SIZE", 1)
    if not is_on_last_page:
        assert client.post("/jobs", BODY | {"name": "zz"}).status == 201
    query = {"minute": "2026-03-01T12:00:00Z"} if path == "/forecast/jobs" else {}
    answer = client.get(path, **query)
    assert answer.status == 200
    if path == "/status":
        assert answer.json["unreadable_jobs"] == 1
    else:
        assert answer.json["complete"] is False


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/jobs/pause"), ("POST", "/jobs/resume"), ("DELETE", "/jobs")]
)
def test_what_was_to_change_it_too_changes_all_others_and_names_it(
    client: Client, world: World, method: str, path: str
) -> None:
    """Its owner would take it for paused."""
    named = BODY | {"parent": "p"}
    good, bad = (client.post("/jobs", named | {"name": each}).json["job_id"] for each in "ab")
    chosen = {"parent": "p"}
    if path == "/jobs/resume":
        assert client.send("POST", "/jobs/pause", query=chosen).json["changed"] == 2
    before = row(world, good).revision
    world.jobs.spoil(bad)
    answer = client.send(method, path, query=chosen)
    assert (answer.status, answer.json["detail"]) == (503, f"job {bad}: spoilt")
    assert row(world, good).revision == before + 1


def test_a_calendar_that_cannot_be_read_hides_no_other_job(
    client: Client, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would take an owner's whole lists along, and the console with them."""
    assert client.put("/calendars/bad", {"weekdays": ["sun"]}).status == 201
    use = {"calendar": {"name": "bad"}}
    follower = client.post("/jobs", BODY | {"name": "follower"} | use).json
    client.post("/jobs", BODY | {"name": "once", "schedule": "at 2026-03-02T12:00:00Z"} | use)
    client.post("/jobs", BODY | {"name": "other"})

    def spoilt(owner: str, key: str) -> None:
        raise UnreadableRowError(f"calendar {key}: spoilt")

    monkeypatch.setattr(world.calendars, "get", spoilt)
    for view in ("full", "summary"):
        page = client.get("/jobs", view=view).json["items"]
        nexts = {job["name"]: job["next_fire_at"] for job in page}
        assert nexts == {"follower": None, "once": None, "other": "2026-03-01T12:05:00Z"}
    assert client.get(f"/jobs/{follower['job_id']}").json["state"] == "active"
    upcoming, forecast = client.get("/upcoming").json, client.get("/forecast").json
    assert {each["name"] for each in upcoming["items"]} == {"other"}
    assert forecast["peaks"][0]["jobs"] == ["other"]
    world.clock.advance(86_400)
    sums = client.get("/runs/summary").json
    assert [each["complete"] for each in (upcoming, forecast, sums)] == [False] * 3
    assert client.get("/status").json["active_jobs"] == 2


def test_its_owner_deletes_it(client: Client, jobs: tuple[str, str], world: World) -> None:
    good, bad = jobs
    world.clock.advance(1)
    assert client.get(f"/jobs/{bad}").status == 503
    assert client.delete(f"/jobs/{bad}").status == 204
    assert client.delete(f"/jobs/{bad}").status == 404
    answer = client.get("/jobs").json
    assert [job["job_id"] for job in answer["items"]] == [good]
    assert answer["unreadable"] == []
    newest, created = client.get(f"/jobs/{bad}/changes").json["items"]
    assert (newest["action"], newest["by"]["id"]) == ("delete", "owner-1")
    assert (newest["note"], created["action"]) == ("its row could not be read", "create")
    assert client.post("/jobs", BODY, key="bad").status == 201, "its key is free again"


def test_only_a_row_that_cannot_be_read_is_removed_so(
    client: Client, jobs: tuple[str, str], world: World
) -> None:
    assert not world.jobs.remove_unreadable(OWNER, jobs[0])
    assert not world.jobs.remove_unreadable("somebody-else", jobs[1])
    assert not world.jobs.remove_unreadable(OWNER, "0" * 26)


def test_a_segment_that_cannot_be_read_holds_up_no_other_job_of_a_resume(
    client: Client, world: World
) -> None:
    made = [client.post("/jobs", BODY | {"name": f"job {n}"}).json for n in range(16)]
    assert client.send("POST", "/jobs/pause", query={"all": "true"}).json["changed"] == 16
    bad = row(world, made[0]["job_id"]).segment
    world.wheel.spoil_control(bad, ["token"])

    answer = client.send("POST", "/jobs/resume", query={"all": "true"})
    assert answer.status == 503
    assert f"the control item of segment {bad}" in answer.json["detail"]
    rows = [row(world, job["job_id"]) for job in made]
    assert {job.segment for job in rows if job.state is JobState.PAUSED} == {bad}
    assert {job.state for job in rows if job.segment != bad} == {JobState.ACTIVE}


def test_a_job_of_a_segment_that_cannot_be_read_is_not_created(
    client: Client, world: World
) -> None:
    job = client.post("/jobs", BODY, key="first").json
    stored = world.jobs.get(OWNER, job["job_id"])
    assert stored is not None
    world.wheel.spoil_control(stored.segment, ["token"])
    answers = [client.post("/jobs", BODY, key=str(number)) for number in range(16)]
    refused = [answer for answer in answers if answer.status != 201]
    assert {answer.status for answer in refused} == {503}
    assert f"the control item of segment {stored.segment}" in refused[0].json["detail"]
    assert len(refused) < 16, "the others' segments go on"
    segments = Client(world.api(), groups=["operators"]).get("/status").json["segments"]
    told = {segment["segment"] for segment in segments if segment["unreadable"]}
    assert told == {stored.segment}
