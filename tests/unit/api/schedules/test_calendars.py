"""PUT, GET and DELETE of calendars, and jobs that follow them."""

from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from carillon.api.calendars.models import MOST_RANGES
from carillon.api.calendars.service import PAGE_RANGES
from carillon.domain.calendar import Calendar
from carillon.stores.memory import MemoryVersionedRows
from carillon.stores.ports import CALENDARS
from tests.unit.api.conftest import BODY, World
from tests.unit.api.gateway import OWNER, Client, Json
from tests.unit.api.jobs.test_jobs import row

HOLIDAYS: Json = {
    "description": "days off",
    "weekdays": ["Sunday", "sat", "SAT"],
    "dates": ["2026-12-25", "2026-03-03", "2026-12-25"],
    "ranges": [
        {"from": "2026-12-30", "to": "2027-01-02"},
        {"from": "2026-05-01", "to": "2026-05-01"},
    ],
}
EVERY_DAY = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]


def put(client: Client, name: str = "holidays", **days: Any) -> Any:
    answer = client.put(f"/calendars/{name}", days)
    assert answer.status in (200, 201), answer.text
    return answer.json


def following(client: Client, **values: Any) -> Any:
    answer = client.post("/jobs", BODY | {"calendar": {"name": "holidays"}} | values)
    assert answer.status == 201, answer.text
    return answer.json


def test_a_calendar_is_answered_in_order_and_each_day_once(client: Client) -> None:
    answer = client.put("/calendars/holidays", HOLIDAYS)

    assert (answer.status, answer.headers["etag"]) == (201, '"1"')
    assert answer.json == {
        "name": "holidays",
        "revision": 1,
        "description": "days off",
        "weekdays": ["sat", "sun"],
        "dates": ["2026-03-03", "2026-05-01", "2026-12-25"],
        "ranges": [{"from": "2026-12-30", "to": "2027-01-02"}],
        "created_at": "2026-03-01T12:00:00.250Z",
        "updated_at": "2026-03-01T12:00:00.250Z",
    }
    read = client.get("/calendars/holidays")
    assert (read.status, read.json, read.headers["etag"]) == (200, answer.json, '"1"')


def test_a_calendar_is_replaced_whole(client: Client, world: World) -> None:
    put(client, **HOLIDAYS)
    world.clock.advance(60)

    answer = client.put("/calendars/holidays", {"weekdays": ["mon"]})

    assert (answer.status, answer.headers["etag"]) == (200, '"2"')
    assert (answer.json["weekdays"], answer.json["dates"]) == (["mon"], [])
    assert (answer.json["ranges"], answer.json["description"]) == ([], "")
    assert answer.json["created_at"] == "2026-03-01T12:00:00.250Z"
    assert answer.json["updated_at"] == "2026-03-01T12:01:00.250Z"


def test_a_calendar_that_says_the_same_stays(client: Client, world: World) -> None:
    first = put(client, **HOLIDAYS)
    world.clock.advance(60)

    again = client.put("/calendars/holidays", HOLIDAYS)

    assert (again.status, again.json) == (200, first)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"if_match": '"1"'}, 200),
        ({"if_match": "*"}, 200),
        ({"if_match": '"2"'}, 412),
        ({"if_match": "one"}, 400),
        ({"if_none_match": "*"}, 412),
        ({"if_none_match": '"1"'}, 400),
    ],
)
def test_preconditions_of_a_change(client: Client, headers: dict[str, str], status: int) -> None:
    put(client, weekdays=["sat"])

    answer = client.put("/calendars/holidays", {"weekdays": ["sun"]}, **headers)

    assert answer.status == status, answer.text
    if status == 412:
        names = {"if_match": "If-Match", "if_none_match": "If-None-Match"}
        assert answer.fields == [names[name] for name in headers]
        assert "at revision 1" in answer.json["detail"]
    expected = ["sun"] if status == 200 else ["sat"]
    assert client.get("/calendars/holidays").json["weekdays"] == expected


@pytest.mark.parametrize("tag", ['"2"', "*", None])
def test_a_calendar_is_deleted_as_it_is_known(client: Client, tag: str | None) -> None:
    put(client, weekdays=["sat"])
    put(client, weekdays=["sun"])
    late = client.delete("/calendars/holidays", if_match='"1"')
    assert (late.status, late.fields) == (412, ["If-Match"])
    assert client.get("/calendars/holidays").json["weekdays"] == ["sun"]
    headers = {} if tag is None else {"if_match": tag}
    assert client.delete("/calendars/holidays", **headers).status == 204


@pytest.mark.parametrize(
    ("headers", "status"), [({"if_none_match": "*"}, 201), ({"if_match": "*"}, 412)]
)
def test_preconditions_of_a_creation(client: Client, headers: dict[str, str], status: int) -> None:
    assert client.put("/calendars/holidays", HOLIDAYS, **headers).status == status
    assert client.get("/calendars/holidays").status == (200 if status == 201 else 404)


def test_the_etag_of_one_that_was_deleted_is_none_of_the_next_of_its_name(client: Client) -> None:
    """Somebody has read it before, and would overwrite what others have made since."""
    for _ in range(2):
        seen = put(client, weekdays=["sat"])["revision"]
        assert client.delete("/calendars/holidays").status == 204
        put(client, weekdays=["sun"])

        late = client.put("/calendars/holidays", {"weekdays": ["mon"]}, if_match=f'"{seen}"')

        assert (late.status, client.get("/calendars/holidays").json["weekdays"]) == (412, ["sun"])
        client.delete("/calendars/holidays")


class Racing(MemoryVersionedRows[Calendar]):
    """Another request puts its own calendar just before each of the first `races` puts."""

    races = 1

    def put(self, calendar: Calendar, over_revision: int | None) -> bool:
        if self.races:
            self.races -= 1
            rival = replace(calendar, description=f"rival {self.races}")
            assert super().put(rival, over_revision)
        return super().put(calendar, over_revision)


@pytest.mark.parametrize(
    ("races", "headers", "status"),
    [(1, {}, 200), (99, {}, 409), (1, {"if_none_match": "*"}, 412)],
)
def test_a_put_that_meets_others(
    world: World, races: int, headers: dict[str, str], status: int
) -> None:
    world.calendars = Racing(CALENDARS)
    world.calendars.races = races

    answer = Client(world.api()).put("/calendars/holidays", HOLIDAYS, **headers)

    assert answer.status == status, answer.text
    stored = world.calendars.get(OWNER, "holidays")
    assert stored is not None
    assert stored.description.startswith("days off" if status == 200 else "rival")


def test_a_range_may_last_as_long_as_there_are_years(client: Client) -> None:
    """What an import made must be taken back, whatever its length."""
    ever = {"from": "1971-01-01", "to": "9997-12-31"}

    assert put(client, ranges=[ever])["ranges"] == [ever]


def test_dates_and_ranges_are_limited_together(client: Client) -> None:
    days = [date.fromordinal(740_000 + 2 * n) for n in range(MOST_RANGES + 1)]
    dates = [str(day) for day in days[1:]]
    ranges = [{"from": str(days[0]), "to": str(date.fromordinal(740_001))}]

    assert len(put(client, "most", dates=dates)["dates"]) == MOST_RANGES
    answer = client.put("/calendars/more", {"dates": dates, "ranges": ranges})
    assert (answer.status, answer.fields) == (422, ["ranges"])
    assert str(MOST_RANGES) in answer.json["detail"]


@pytest.mark.parametrize("name", ["Holidays", "-x", ".x", "a b", "x" * 65, "ž", "a~b", "a:b"])
def test_a_name_that_is_none_is_refused(client: Client, name: str) -> None:
    """Rows of calendars lie beside those of jobs: a name must not be able to reach one."""
    answer = client.put(f"/calendars/{name}", {})

    assert answer.status in (404, 422)
    assert client.get("/calendars").json["items"] == []


@pytest.mark.parametrize("name", ["h", "0", "holidays-2026_lv.b", "x" * 64])
def test_names_of_calendars(client: Client, name: str) -> None:
    assert put(client, name)["name"] == name
    assert client.get(f"/calendars/{name}").status == 200


def test_calendars_are_listed_by_name_in_pages(client: Client) -> None:
    for name in ("c", "a", "b"):
        put(client, name)

    first = client.get("/calendars", limit="2").json
    rest = client.get("/calendars", limit="2", cursor=first["next_cursor"]).json

    names = [calendar["name"] for calendar in first["items"] + rest["items"]]
    assert (names, rest["next_cursor"]) == (["a", "b", "c"], None)
    assert client.get("/calendars", cursor="x").fields == ["cursor"]
    assert client.get("/jobs", cursor=first["next_cursor"]).fields == ["cursor"]


def test_a_page_of_large_calendars_is_shorter_and_loses_none(client: Client) -> None:
    dates = [str(date.fromordinal(740_000 + 2 * n)) for n in range(MOST_RANGES)]
    names = [f"calendar-{n:02}" for n in range(PAGE_RANGES // MOST_RANGES + 2)]
    for name in names:
        put(client, name, dates=dates)

    first = client.get("/calendars", limit="100").json
    rest = client.get("/calendars", limit="100", cursor=first["next_cursor"]).json

    assert len(first["items"]) == PAGE_RANGES // MOST_RANGES
    assert [calendar["name"] for calendar in first["items"] + rest["items"]] == names


def test_a_calendar_is_deleted(client: Client) -> None:
    put(client, **HOLIDAYS)

    answer = client.delete("/calendars/holidays")

    assert (answer.status, answer.text) == (204, "")
    assert client.get("/calendars/holidays").status == 404
    assert client.delete("/calendars/holidays").status == 404


def test_a_calendar_that_jobs_follow_is_not_deleted(client: Client) -> None:
    put(client, **HOLIDAYS)
    put(client, "other")
    ids = [following(client)["job_id"] for _ in range(2)]
    following(client, calendar={"name": "other"})

    answer = client.delete("/calendars/holidays")

    assert answer.status == 409
    assert answer.json["type"] == "urn:carillon:problem:calendar-in-use"
    assert answer.fields == [f"/jobs/{job_id}" for job_id in ids]
    assert client.get("/calendars/holidays").status == 200
    client.delete(f"/jobs/{ids[0]}")
    assert client.patch(f"/jobs/{ids[1]}", {"calendar": None}, "*").status == 200
    assert client.delete("/calendars/holidays").status == 204


def test_calendars_of_others_cannot_be_told_from_none(client: Client, stranger: Client) -> None:
    put(client, **HOLIDAYS)
    theirs = put(stranger, "theirs")

    assert stranger.get("/calendars/holidays").status == 404
    assert stranger.delete("/calendars/holidays").status == 404
    assert stranger.get("/calendars").json["items"] == [theirs]
    answer = stranger.post("/jobs", BODY | {"calendar": {"name": "holidays"}})
    assert answer.fields == ["calendar.name"]
    preview = {"schedule": "every 1d", "calendar": {"name": "holidays"}}
    assert stranger.post("/schedules/preview", preview).fields == ["calendar.name"]
    put(stranger, weekdays=EVERY_DAY)
    assert client.get("/calendars/holidays").json["weekdays"] == ["sat", "sun"]


def test_deleting_one_looks_at_the_owner_s_own_jobs(client: Client, stranger: Client) -> None:
    put(client, **HOLIDAYS)
    put(stranger, **HOLIDAYS)
    following(stranger)

    assert client.delete("/calendars/holidays").status == 204
    assert stranger.delete("/calendars/holidays").status == 409


def test_a_job_s_next_occurrence_is_one_that_runs(client: Client) -> None:
    """NOW is a Sunday, 2026-03-01; Tuesday the 3rd is closed as a date."""
    put(client, **HOLIDAYS)
    job = following(client, schedule="0 9 * * *")
    path = f"/jobs/{job['job_id']}"

    assert job["calendar"] == {"name": "holidays", "rule": "skip"}
    assert job["next_fire_at"] == "2026-03-02T09:00:00Z"
    upcoming = [found["fire_at"][:10] for found in client.get(f"{path}/upcoming").json["items"]]
    assert upcoming[:5] == ["2026-03-02", "2026-03-04", "2026-03-05", "2026-03-06", "2026-03-09"]
    put(client, weekdays=["mon"])
    assert client.get(path).json["next_fire_at"] == "2026-03-03T09:00:00Z"
    (listed,) = client.get("/jobs").json["items"]
    assert listed["next_fire_at"] == "2026-03-03T09:00:00Z"


def test_a_moved_occurrence_says_from_where(client: Client) -> None:
    put(client, **HOLIDAYS)
    rule = {"name": "holidays", "rule": "next_business_day"}
    job = following(client, schedule="0 9 3 * *", calendar=rule)

    assert job["next_fire_at"] == "2026-03-04T09:00:00Z"
    (first, *_) = client.get(f"/jobs/{job['job_id']}/upcoming").json["items"]
    assert first["fire_at"] == "2026-03-04T09:00:00Z"
    assert first["note"] == "moved from 2026-03-03 by calendar holidays"
    assert job["sentence"].endswith("moved to the next business day of calendar holidays")


def test_a_job_whose_calendar_is_closed_throughout_is_not_completed(client: Client) -> None:
    put(client, weekdays=EVERY_DAY)
    job = following(client, schedule="every 1h")

    assert (job["state"], job["next_fire_at"]) == ("active", None)


@pytest.mark.parametrize(
    ("change", "calendar", "in_new_generation"),
    [
        ({"rule": "next_business_day"}, {"name": "holidays", "rule": "next_business_day"}, True),
        ({"name": "other"}, {"name": "other", "rule": "skip"}, True),
        ({"rule": None}, {"name": "holidays", "rule": "skip"}, False),
        (None, None, True),
    ],
)
def test_a_change_of_calendar_is_merged_and_is_a_new_filing(
    client: Client, world: World, change: Any, calendar: Any, in_new_generation: bool
) -> None:
    put(client, **HOLIDAYS)
    put(client, "other")
    job_id = following(client)["job_id"]
    generation = row(world, job_id).generation
    world.clock.advance(60)

    answer = client.patch(f"/jobs/{job_id}", {"calendar": change}, 1)

    assert (answer.status, answer.json["calendar"]) == (200, calendar)
    assert (row(world, job_id).generation != generation) is in_new_generation


def test_a_change_to_a_calendar_that_is_not_there_is_refused(client: Client) -> None:
    put(client, **HOLIDAYS)
    path = f"/jobs/{following(client)['job_id']}"

    answer = client.patch(path, {"calendar": {"name": "nowhere"}}, 1)

    assert (answer.status, answer.fields) == (422, ["calendar.name"])
    assert client.get(path).json["calendar"]["name"] == "holidays"


def test_a_calendar_that_went_closes_no_day_and_does_not_hinder_other_changes(
    client: Client, world: World
) -> None:
    put(client, weekdays=EVERY_DAY)
    path = f"/jobs/{following(client)['job_id']}"
    assert world.calendars.delete(OWNER, "holidays", 1)

    assert client.get(path).json["next_fire_at"] == "2026-03-01T12:05:00Z"
    assert client.patch(path, {"description": "other"}, 1).status == 200
