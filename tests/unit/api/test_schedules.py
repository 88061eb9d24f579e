"""Preview, and what fires next."""

from typing import Any

import pytest

from functions.api.occurrences import MOST_PAGES, PAGE_SIZE
from tests.unit.api.conftest import BODY, World
from tests.unit.api.gateway import Client


def fire_times(answer: Any) -> list[str]:
    return [item["fire_at"] for item in answer.json["items"]]


def test_preview_across_a_change_of_clocks(client: Client) -> None:
    # Riga put its clocks forward at 2026-03-29T01:00:00Z, from +02:00 to +03:00.
    body = {
        "schedule": "17 * * * *",
        "timezone": "Europe/Riga",
        "after": "2026-03-29T00:00:00Z",
        "count": 2,
    }
    answer = client.post("/schedules/preview", body)

    assert answer.status == 200
    assert answer.json == {
        "schedule": "17 * * * *",
        "timezone": "Europe/Riga",
        "start_at": None,
        "occurrences": [
            {"fire_at": "2026-03-29T00:17:00Z", "local": "2026-03-29T02:17:00+02:00"},
            {"fire_at": "2026-03-29T01:17:00Z", "local": "2026-03-29T04:17:00+03:00"},
        ],
        "slots": {"kind": "hourly", "count": 1},
    }


def test_preview_starts_now_and_lists_five(client: Client, world: World) -> None:
    answer = client.post("/schedules/preview", {"schedule": {"every": "1s"}})

    listed = [found["fire_at"] for found in answer.json["occurrences"]]
    assert listed == [f"2026-03-01T12:00:0{n}Z" for n in range(1, 6)]
    assert answer.json["slots"] == {"kind": "hourly", "count": 60}
    assert client.get("/jobs").json["items"] == []


def test_preview_may_look_at_what_is_past_or_over(client: Client) -> None:
    body = {"schedule": "at 2020-01-01T00:00:00Z"}

    assert client.post("/schedules/preview", body).json["occurrences"] == []
    past = client.post("/schedules/preview", body | {"after": "2019-01-01T00:00:00+02:00"})
    assert [found["fire_at"] for found in past.json["occurrences"]] == ["2020-01-01T00:00:00Z"]
    assert past.json["slots"] == {"kind": "dated", "count": 1}


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"schedule": "x"}, "schedule"),
        ({"schedule": {"cron": "x"}}, "schedule.cron"),
        ({"timezone": "x"}, "timezone"),
        ({"start_at": "x"}, "start_at"),
        ({"after": "2026-01-01T00:00:00"}, "after"),
        ({"after": "0001-01-01T00:00:00+14:00"}, "after"),
        ({"after": "9999-12-31T23:59:59Z"}, "after"),
        ({"after": 0}, "after"),
        ({"count": 0}, "count"),
        ({"count": 101}, "count"),
        ({"count": "5"}, "count"),
        ({"name": "x"}, "name"),
    ],
)
def test_a_bad_field_of_a_preview_is_named(
    client: Client, changes: dict[str, Any], field: str
) -> None:
    answer = client.post("/schedules/preview", {"schedule": "every 5m"} | changes)

    assert (answer.status, answer.fields) == (422, [field])


def test_upcoming_of_a_job(client: Client, job: dict[str, Any]) -> None:
    path = f"/jobs/{job['job_id']}/upcoming"
    answer = client.get(path, count="2")

    assert answer.json["items"][0] == {
        "fire_at": "2026-03-01T12:05:00Z",
        "local": "2026-03-01T12:05:00+00:00",
        "job_id": job["job_id"],
        "name": "nightly report",
    }
    assert fire_times(answer) == ["2026-03-01T12:05:00Z", "2026-03-01T12:10:00Z"]
    assert len(fire_times(client.get(path))) == 10
    client.post(f"/jobs/{job['job_id']}/pause")
    assert client.get(path).json == {"items": [], "complete": True}


def test_upcoming_across_jobs_is_merged(client: Client) -> None:
    for name, schedule in (
        ("five", "every 5m"),
        ("seven", "every 7m"),
        ("once", "at 2026-03-01T12:05:01Z"),
        ("paused", "every 1s"),
    ):
        created = client.post("/jobs", BODY | {"name": name, "schedule": schedule}).json
    client.post(f"/jobs/{created['job_id']}/pause")

    answer = client.get("/upcoming", count="5")

    found = [(item["fire_at"][14:19], item["name"]) for item in answer.json["items"]]
    assert found == [
        ("05:00", "five"),
        ("05:01", "once"),
        ("07:00", "seven"),
        ("10:00", "five"),
        ("14:00", "seven"),
    ]
    assert answer.json["complete"] is True
    assert fire_times(client.get("/upcoming", until="2026-03-01T12:05:00Z")) == [
        "2026-03-01T12:05:00Z"
    ]
    assert fire_times(client.get("/upcoming", until="2020-01-01T00:00:00Z")) == []


def test_upcoming_looks_at_a_thousand_jobs_and_says_so(client: Client) -> None:
    for n in range(MOST_PAGES * PAGE_SIZE):
        assert client.post("/jobs", BODY, key=str(n)).status == 201
    assert client.get("/upcoming").json["complete"] is True

    client.post("/jobs", BODY, key="one more")

    answer = client.get("/upcoming", count="100").json
    assert (len(answer["items"]), answer["complete"]) == (100, False)


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"count": "0"}, "count"),
        ({"count": "101"}, "count"),
        ({"until": "tomorrow"}, "until"),
        ({"until": "2026-03-01T12:00:00 02:00"}, "until"),
        ({"from": "2026-03-01T12:00:00Z"}, "from"),
    ],
)
def test_a_bad_query_of_upcoming_is_named(
    client: Client, query: dict[str, str], field: str
) -> None:
    answer = client.get("/upcoming", **query)

    assert (answer.status, answer.fields) == (422, [field])
