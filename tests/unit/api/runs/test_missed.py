"""What of a job was missed."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from carillon.domain.run import Resolution, Run, RunKind, RunStatus
from carillon.services import missed_search as missing
from tests.unit.api.conftest import BODY, World
from tests.unit.api.gateway import Client, Json
from tests.unit.api.runs.test_runs import SECOND, make_run, put

EVERY = timedelta(minutes=5)
"""Of BODY's schedule."""


@pytest.fixture
def later(world: World, job: Json) -> Json:
    """The job an hour and some seconds after its creation: twelve occurrences."""
    world.clock.advance(3600 + 120)
    return job


def at(number: int) -> datetime:
    """The n-th occurrence after the creation, from 1."""
    return SECOND + number * EVERY


def missed(client: Client, job: Json, **query: str) -> dict[int, Json]:
    """What was missed, by the number of the occurrence, in the order of the answer."""
    answer = client.get(f"/jobs/{job['job_id']}/missed", **query)
    assert answer.status == 200, answer.text
    found = {}
    for item in answer.json["items"]:
        fire_at = datetime.fromisoformat(item["fire_at"])
        found[(fire_at - SECOND) // EVERY] = item
    return found


def test_what_was_never_sent_is_missed_newest_first(client: Client, later: Json) -> None:
    found = missed(client, later)

    assert list(found) == list(range(12, 0, -1))
    assert found[12] == {
        "fire_at": "2026-03-01T13:00:00Z",
        "status": None,
        "reason": None,
        "run_id": None,
    }


def test_an_answer_says_how_far_it_looked(client: Client, later: Json) -> None:
    path = f"/jobs/{later['job_id']}/missed"
    whole = client.get(path).json
    assert (whole["complete"], whole["from"]) == (True, "2026-03-01T12:00:00.250Z")
    part = client.get(path, limit="5").json
    assert (part["complete"], len(part["items"])) == (False, 5)
    assert part["from"] == part["items"][-1]["fire_at"]
    before = datetime.fromisoformat(part["from"]) - timedelta(seconds=1)
    rest = client.get(path, to=before.isoformat()).json
    assert part["items"] + rest["items"] == whole["items"]


def row(world: World, job: Json, number: int, **values: Any) -> Run:
    return put(world, make_run(job["job_id"], at(number), **values))


def test_success_and_what_is_under_way_are_not_missed(
    client: Client, world: World, later: Json
) -> None:
    row(world, later, 1, status=RunStatus.SUCCEEDED)
    row(world, later, 2, status=RunStatus.RUNNING)
    row(world, later, 3, status=RunStatus.RETRYING)
    row(world, later, 4, status=RunStatus.SCHEDULED)
    row(world, later, 5, status=RunStatus.CANCELLED)
    row(world, later, 6, status=RunStatus.DEAD, settled=Resolution.DISCARDED)
    dead = row(world, later, 7, status=RunStatus.DEAD, reason="exhausted")
    row(world, later, 8, status=RunStatus.SKIPPED, reason="overlap")

    found = missed(client, later)

    assert set(found) == {7, 8, 9, 10, 11, 12}
    shown = found[7]["status"], found[7]["reason"], found[7]["run_id"]
    assert shown == ("dead", "exhausted", dead.key.run_id)
    assert (found[8]["status"], found[8]["reason"]) == ("skipped", "overlap")


def test_any_run_of_an_occurrence_may_be_its_success(
    client: Client, world: World, later: Json
) -> None:
    for number in (1, 2, 3):
        dead = row(world, later, number, status=RunStatus.DEAD, settled=Resolution.REDRIVEN)
        if number == 1:
            put(world, replace(dead, key=dead.key.redriven, status=RunStatus.SUCCEEDED))
        if number == 2:
            key = replace(dead.key, kind=RunKind.BACKFILL, request_id="operation")
            put(world, replace(dead, key=key, status=RunStatus.SUCCEEDED, settled=None))
    again = make_run(
        later["job_id"], at(3), status=RunStatus.DEAD, updated_at=at(3) + timedelta(seconds=1)
    )
    put(world, replace(again, key=again.key.redriven))
    manual = make_run(later["job_id"], at(4))
    put(world, replace(manual, key=replace(manual.key, kind=RunKind.MANUAL, request_id="r")))
    watched = make_run(later["job_id"], at(5), status=RunStatus.MISSED)
    put(world, replace(watched, key=replace(watched.key, kind=RunKind.WATCH)))

    found = missed(client, later)

    assert {1, 2}.isdisjoint(found)
    assert found[3]["run_id"] == again.key.redriven.run_id, "the newest run of it"
    assert found[4]["run_id"] is None, "a manual run is of no occurrence"
    assert found[5]["status"] is None, "nor is a row of the watch"


def test_what_a_catch_up_passed_over_is_missed(
    client: Client, world: World, later: Json, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its row covers occurrences far before its own fire time."""
    monkeypatch.setattr(missing, "CHUNK", 3)
    covering = make_run(
        later["job_id"],
        at(10),
        status=RunStatus.SKIPPED,
        reason="catch_up",
        covers_from=at(2),
        covers_count=9,
    )
    key = replace(covering.key, kind=RunKind.MISSED, request_id="generation")
    put(world, replace(covering, key=key))
    row(world, later, 5, status=RunStatus.SUCCEEDED)

    found = missed(client, later)

    assert list(found) == [12, 11, 10, 9, 8, 7, 6, 4, 3, 2, 1]
    assert {number: found[number]["reason"] for number in (11, 10, 4, 2, 1)} == {
        11: None,
        10: "catch_up",
        4: "catch_up",
        2: "catch_up",
        1: None,
    }
    assert found[2]["run_id"] == key.run_id
    assert missed(client, later, to=at(9).isoformat())[9] == found[9], "as a next page asks"


def test_an_occurrence_that_has_just_come_is_not_missed_yet(
    client: Client, world: World, job: Json
) -> None:
    world.clock.set(at(1) + timedelta(seconds=59))
    assert missed(client, job) == {}
    world.clock.set(at(1) + timedelta(seconds=60))
    assert set(missed(client, job)) == {1}
    row(world, job, 1, status=RunStatus.SKIPPED, reason="overlap")
    world.clock.set(at(1) + timedelta(seconds=1))
    assert set(missed(client, job)) == {1}, "its row says so already"


def test_a_pause_is_where_it_begins(client: Client, world: World, job: Json) -> None:
    path = f"/jobs/{job['job_id']}"
    world.clock.set(at(3) + timedelta(seconds=1))
    client.post(f"{path}/pause")
    world.clock.set(at(6) + timedelta(minutes=2))
    assert set(missed(client, job)) == {4, 5, 6}
    client.post(f"{path}/resume")
    world.clock.set(at(8) + timedelta(minutes=2))
    row(world, job, 7)
    assert set(missed(client, job)) == {4, 5, 6, 8}
    assert set(missed(client, job, **{"from": at(1).isoformat()})) == {1, 2, 3, 4, 5, 6, 8}
    span = {"from": at(4).isoformat(), "to": at(5).isoformat()}
    assert set(missed(client, job, **span)) == {4, 5}


def test_what_a_pause_keeps_from_running_is_missed_at_once(
    client: Client, world: World, job: Json
) -> None:
    path = f"/jobs/{job['job_id']}"
    world.clock.set(at(3) - timedelta(seconds=5))
    client.post(f"{path}/pause")
    world.clock.set(at(3) + timedelta(seconds=1))
    assert set(missed(client, job)) == {3}
    client.post(f"{path}/resume")
    world.clock.set(at(3) + timedelta(seconds=2))
    assert set(missed(client, job)) == {3}
    world.clock.set(at(4) + timedelta(seconds=1))
    assert set(missed(client, job)) == {3}, "the fourth may yet run"


def test_without_a_pause_it_looks_back_a_day(client: Client, world: World, job: Json) -> None:
    world.clock.set(SECOND + timedelta(days=3))
    told = client.get(f"/jobs/{job['job_id']}/missed", limit="1000").json
    assert (told["from"], told["complete"]) == ("2026-03-03T12:00:00Z", True)
    assert len(told["items"]) == 288  # the last one has only just come


def test_closed_days_are_not_missed(client: Client, world: World) -> None:
    client.put("/calendars/holidays", {"dates": ["2026-03-03"]})
    body = BODY | {"schedule": "0 9 * * *", "calendar": {"name": "holidays", "rule": "skip"}}
    made = client.post("/jobs", body).json
    world.clock.set(SECOND + timedelta(days=4))

    items = client.get(f"/jobs/{made['job_id']}/missed", **{"from": SECOND.isoformat()}).json

    assert [item["fire_at"][8:10] for item in items["items"]] == ["05", "04", "02"]


def test_a_search_is_bounded(client: Client, world: World) -> None:
    made = client.post("/jobs", BODY | {"schedule": "every 1s"}).json
    world.clock.advance(7200 * 3)

    path = f"/jobs/{made['job_id']}/missed"
    for second in range(missing.MOST_READ + missing.CHUNK + 120):
        fire_at = world.clock.now().replace(microsecond=0) - timedelta(seconds=second)
        put(world, make_run(made["job_id"], fire_at))
    told = client.get(path).json

    assert (told["items"], told["complete"]) == ([], False)
    looked_at = world.clock.now() - datetime.fromisoformat(told["from"])
    assert looked_at.total_seconds() == pytest.approx(missing.MOST_READ, abs=missing.CHUNK)


def test_a_long_pause_is_looked_at_for_a_year(client: Client, world: World, job: Json) -> None:
    client.post(f"/jobs/{job['job_id']}/pause")
    world.clock.advance(timedelta(days=400).total_seconds())

    told = client.get(f"/jobs/{job['job_id']}/missed", limit="1").json

    assert [item["fire_at"] for item in told["items"]] == ["2027-04-05T12:00:00Z"]


def test_what_ran_so_long_ago_that_no_row_is_left_is_not_missed(
    client: Client, world: World, job: Json
) -> None:
    path = f"/jobs/{job['job_id']}"
    world.clock.set(at(3) + timedelta(seconds=1))
    client.post(f"{path}/pause")
    world.clock.set(at(6) + timedelta(seconds=1))
    client.post(f"{path}/resume")
    span = {"from": at(1).isoformat(), "to": at(9).isoformat()}
    kept = world.settings.run_lifetime

    world.clock.set(at(6) + kept)
    assert set(missed(client, job, **span)) == {4, 5, 6, 7, 8, 9}, "none of 4 to 6 ran before 6"
    world.clock.set(at(8) + kept)
    assert set(missed(client, job, **span)) == {8, 9}
    told = client.get(f"{path}/missed", **span).json
    assert (told["from"], told["complete"]) == (at(8).strftime("%Y-%m-%dT%H:%M:%SZ"), True)
    world.clock.set(at(9) + timedelta(days=60))
    assert missed(client, job, **span) == {}
    assert min(missed(client, job, limit="1000")) > 1000, "nor since a pause that is long over"


def test_what_a_calendar_moves_from_before_the_job_was_made_is_not_missed(
    client: Client, world: World
) -> None:
    """It is a Sunday, and noon: 09:00 is over, and 15:00 is moved to Monday. No tick sends the
    other, and summaries do not count it."""
    client.put("/calendars/sundays", {"weekdays": ["sun"]})
    use = {"name": "sundays", "rule": "next_business_day"}
    timing = {"schedule": "0 9,15 * * 0", "timezone": "UTC", "calendar": use}
    job = client.post("/jobs", BODY | {"name": "by calendar", **timing}).json
    world.clock.advance(86_400 + 4 * 3600)

    found = client.get(f"/jobs/{job['job_id']}/missed", **{"from": job["created_at"]}).json

    assert [item["fire_at"] for item in found["items"]] == ["2026-03-02T15:00:00Z"]


def test_a_long_span_is_refused(client: Client, world: World, job: Json) -> None:
    world.clock.advance(timedelta(days=400).total_seconds())
    answer = client.get(f"/jobs/{job['job_id']}/missed", **{"from": "2026-03-01T00:00:00Z"})
    assert (answer.status, answer.fields) == (422, ["from"])
