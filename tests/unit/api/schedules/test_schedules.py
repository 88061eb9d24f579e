"""Preview, and what fires next."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from carillon.api.jobs.service import MOST_PAGES, PAGE_SIZE
from carillon.domain.run import RunStatus
from carillon.schedules.insight.cost import dollars_of_fires
from tests.unit.api.conftest import BODY, NOW, World
from tests.unit.api.gateway import Client, Json
from tests.unit.api.jobs.test_jobs import row
from tests.unit.api.runs.test_runs import make_run, put


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
        "except": [],
        "timezone": "Europe/Riga",
        "start_at": None,
        "end_at": None,
        "max_runs": None,
        "dst": {"gap": None, "fold": None},
        "window": None,
        "window_seconds": 0,
        "description": "every hour at minute 17 in Europe/Riga",
        "occurrences": [
            {
                "fire_at": "2026-03-29T00:17:00Z",
                "local": "2026-03-29T02:17:00+02:00",
                "effective_at": "2026-03-29T00:17:00Z",
                "note": None,
            },
            {
                "fire_at": "2026-03-29T01:17:00Z",
                "local": "2026-03-29T04:17:00+03:00",
                "effective_at": "2026-03-29T01:17:00Z",
                "note": None,
            },
        ],
        "skipped": [],
        "ends_at": None,
        "warnings": [],
        "transitions": answer.json["transitions"],
        "slots": {"kind": "hourly", "count": 1},
        "fires_per_month": 720,
        "dollars_per_month": dollars_of_fires(720),
    }
    # Within the year after it: the same morning, 2026-10-25 and 2027-03-28.
    assert [found["kind"] for found in answer.json["transitions"]] == ["gap", "fold", "gap"]
    assert answer.json["transitions"][0] | {"effect": ...} == {
        "transition_at": "2026-03-29T01:00:00Z",
        "kind": "gap",
        "local_from": "2026-03-29T03:00:00",
        "local_until": "2026-03-29T04:00:00",
        "count": 1,
        "first_local": "2026-03-29T03:17:00",
        "effect": ...,
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


def test_preview_of_the_last_second_in_any_zone(client: Client) -> None:
    for timezone in ("America/New_York", "Pacific/Kiritimati"):
        found = preview(
            client, schedule="30 2 * * *", timezone=timezone, after="9997-12-31T23:59:59Z"
        )
        assert len(found["occurrences"]) == 5


@pytest.mark.parametrize(
    ("schedule", "last"),
    [
        ({"schedule": "at 2300-01-01T00:00:00Z"}, "2300-01-01T00:00:00Z"),
        ({"schedule": "0 9 * * *", "end_at": "2500-06-30T00:00:00Z"}, "2500-06-29T09:00:00Z"),
        ({"schedule": "cron(0 9 1 1 ? 2030)"}, "2030-01-01T09:00:00Z"),
        ({"schedule": "cron(0 9 1 1 ? *)"}, None),
        ({"schedule": "0 9 * * *"}, None),
    ],
)
def test_the_last_occurrence_is_told_however_late(
    client: Client, schedule: Json, last: str | None
) -> None:
    assert preview(client, **schedule)["ends_at"] == last


def preview(client: Client, **body: Any) -> Any:
    answer = client.post("/schedules/preview", body)
    assert answer.status == 200, answer.text
    return answer.json


def days(listed: list[Json]) -> list[str]:
    return [found["fire_at"][:10] for found in listed]


def test_preview_under_a_calendar_tells_what_is_skipped(client: Client) -> None:
    """NOW is Sunday, 2026-03-01."""
    closed = {"weekdays": ["sat", "sun"], "dates": ["2026-03-04"]}
    client.put("/calendars/holidays", closed)
    inline = preview(client, schedule="0 9 * * *", calendar=closed, count=5)
    named = preview(client, schedule="0 9 * * *", calendar={"name": "holidays"}, count=5)

    expected = ["2026-03-02", "2026-03-03", "2026-03-05", "2026-03-06", "2026-03-09"]
    assert days(inline["occurrences"]) == days(named["occurrences"]) == expected
    assert days(named["skipped"]) == ["2026-03-04", "2026-03-07", "2026-03-08"]
    assert named["skipped"][0]["note"] == "2026-03-04 is closed in calendar holidays"
    assert inline["skipped"][0]["note"] == "2026-03-04 is closed in the calendar"
    assert named["description"].endswith("not on days closed in calendar holidays")
    # Thirty days from the 1st: 22 weekdays, less one.
    assert named["fires_per_month"] == 21


def test_preview_under_a_calendar_that_closes_every_day(client: Client) -> None:
    every_day = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
    found = preview(client, schedule="* * * * *", calendar={"weekdays": every_day})

    assert (found["occurrences"], found["fires_per_month"]) == ([], 0)
    assert len(found["skipped"]) == 10
    assert "far_away" in {warning["code"] for warning in found["warnings"]}


def test_preview_tells_from_where_an_occurrence_was_moved(client: Client) -> None:
    calendar = {"weekdays": ["sun", "mon"], "rule": "previous_business_day"}
    found = preview(client, schedule="0 9 9 * *", calendar=calendar, count=1)

    assert found["occurrences"] == [
        {
            "fire_at": "2026-03-07T09:00:00Z",
            "local": "2026-03-07T09:00:00+00:00",
            "effective_at": "2026-03-07T09:00:00Z",
            "note": "moved from 2026-03-09 by the calendar",
        }
    ]
    assert found["skipped"] == []


def test_preview_of_a_window_knows_the_largest_offset_only(client: Client) -> None:
    found = preview(client, schedule="0 9 * * *", window="PT15M")

    assert (found["window"], found["window_seconds"]) == ("15m", 899)
    assert {occurrence["effective_at"] for occurrence in found["occurrences"]} == {None}
    # Entries stand by effective times, of which there may be more than one minute's.
    assert found["slots"]["kind"] == "daily"
    assert preview(client, schedule="every 10m", window="50%")["window_seconds"] == 299
    assert preview(client, schedule="every 10m", window="1h")["window_seconds"] == 599


def test_preview_counts_runs_from_after(client: Client) -> None:
    body = {"schedule": "0 9 * * *", "after": "2026-06-01T00:00:00Z", "max_runs": 3}
    found = preview(client, **body)

    assert days(found["occurrences"]) == ["2026-06-01", "2026-06-02", "2026-06-03"]
    assert (found["max_runs"], found["ends_at"]) == (3, "2026-06-03T09:00:00Z")


def test_preview_of_a_combination(client: Client) -> None:
    found = preview(
        client,
        schedule=["0 9 * * *", {"cron": "0 9,12 * * 1"}],
        **{"except": ["* * 3 * *"]},
        count=5,
    )

    assert found["schedule"] == ["0 9 * * *", "0 9,12 * * 1"]
    assert found["except"] == ["* * 3 * *"]
    assert [at["fire_at"][8:13] for at in found["occurrences"]] == [
        "02T09",
        "02T12",
        "04T09",
        "05T09",
        "06T09",
    ]


def test_preview_of_a_fixed_delay_says_that_all_but_the_first_follow(client: Client) -> None:
    found = preview(client, schedule="every 10m after finish", count=2)

    first, second = found["occurrences"]
    assert (first["fire_at"], first["note"]) == ("2026-03-01T12:10:00Z", None)
    assert second["note"].startswith("at the earliest")
    assert found["slots"] == {"kind": "dated", "count": 1}


def test_preview_warns(client: Client) -> None:
    found = preview(client, schedule="30 2 * * *", timezone="America/New_York")

    assert [entry["kind"] for entry in found["transitions"]] == ["gap"]
    assert found["transitions"][0]["first_local"] == "2026-03-08T02:30:00"
    assert [warning["code"] for warning in found["warnings"]] == ["dst"]
    (skipping,) = preview(
        client, schedule="30 2 * * *", timezone="America/New_York", dst={"gap": "skip"}
    )["transitions"]
    assert skipping["effect"] != found["transitions"][0]["effect"]


def test_upcoming_of_a_job(client: Client, job: Json) -> None:
    path = f"/jobs/{job['job_id']}/upcoming"
    answer = client.get(path, count="2")

    assert answer.json["items"][0] == {
        "fire_at": "2026-03-01T12:05:00Z",
        "local": "2026-03-01T12:05:00+00:00",
        "effective_at": "2026-03-01T12:05:00Z",
        "effective_local": "2026-03-01T12:05:00+00:00",
        "note": None,
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


def test_upcoming_shows_both_times_of_a_window(client: Client, world: World) -> None:
    job = client.post("/jobs", BODY | {"schedule": "every 10m", "window": "100%"}).json
    offset = timedelta(seconds=job["spread_seconds"])
    path = f"/jobs/{job['job_id']}/upcoming"

    assert 0 < job["spread_seconds"] < 600
    assert job["next_fire_at"] == "2026-03-01T12:10:00Z"
    for found in client.get(path).json["items"] + client.get("/upcoming").json["items"]:
        nominal = datetime.fromisoformat(found["fire_at"])
        assert datetime.fromisoformat(found["effective_at"]) == nominal + offset
        assert datetime.fromisoformat(found["local"]) == nominal
        assert datetime.fromisoformat(found["effective_local"]) == nominal + offset
    # Between the nominal time and its effective one it is still to come.
    world.clock.set(datetime(2026, 3, 1, 12, 10, 0, tzinfo=UTC) + offset - timedelta(seconds=1))
    assert fire_times(client.get(path, count="1")) == ["2026-03-01T12:10:00Z"]
    assert client.get(f"/jobs/{job['job_id']}").json["next_fire_at"] == "2026-03-01T12:10:00Z"
    world.clock.advance(1)
    assert fire_times(client.get(path, count="1")) == ["2026-03-01T12:20:00Z"]
    assert client.get(f"/jobs/{job['job_id']}").json["next_fire_at"] == "2026-03-01T12:20:00Z"


def test_upcoming_until_counts_effective_times(client: Client) -> None:
    job = client.post("/jobs", BODY | {"schedule": "every 10m", "window": "100%"}).json
    effective_at = datetime.fromisoformat(job["next_effective_at"])

    just_before = f"{effective_at - timedelta(seconds=1):%Y-%m-%dT%H:%M:%SZ}"
    assert fire_times(client.get("/upcoming", until=just_before)) == []
    assert len(fire_times(client.get("/upcoming", until=f"{effective_at:%Y-%m-%dT%H:%M:%SZ}"))) == 1


def test_upcoming_of_a_fixed_delay_follows_its_newest_run(client: Client, world: World) -> None:
    job = client.post("/jobs", BODY | {"schedule": "every 10m after finish"}).json
    path = f"/jobs/{job['job_id']}/upcoming"
    assert (job["state"], job["next_fire_at"]) == ("active", None)
    assert fire_times(client.get(path)) == ["2026-03-01T12:10:00Z"]
    assert fire_times(client.get("/upcoming")) == []
    generation_id = row(world, job["job_id"]).generation.generation_id
    fire_at = datetime(2026, 3, 1, 12, 10, tzinfo=UTC)
    world.clock.set(fire_at + timedelta(seconds=5))
    assert fire_times(client.get(path)) == [], "due, and about to be recorded"
    run = put(
        world,
        make_run(job["job_id"], fire_at, status=RunStatus.RUNNING, generation_id=generation_id),
    )
    client.post(f"/jobs/{job['job_id']}/run")
    assert fire_times(client.get(path)) == [], "while it runs"
    ended = replace(run, status=RunStatus.SUCCEEDED, finished_at=fire_at + timedelta(seconds=4.2))
    assert world.runs.finish(ended)
    assert fire_times(client.get(path)) == ["2026-03-01T12:20:05Z"]
    client.post(f"/jobs/{job['job_id']}/pause")
    assert fire_times(client.get(path)) == []


def test_a_run_of_an_earlier_filing_does_not_count(client: Client, world: World) -> None:
    job = client.post("/jobs", BODY | {"schedule": "every 10m after finish"}).json
    put(world, make_run(job["job_id"], NOW.replace(microsecond=0), status=RunStatus.RUNNING))

    upcoming = client.get(f"/jobs/{job['job_id']}/upcoming")
    assert fire_times(upcoming) == ["2026-03-01T12:10:00Z"]


def test_upcoming_looks_at_a_thousand_jobs_and_says_so(client: Client) -> None:
    for n in range(MOST_PAGES * PAGE_SIZE):
        assert client.post("/jobs", BODY, key=str(n)).status == 201
    assert client.get("/upcoming").json["complete"] is True

    client.post("/jobs", BODY, key="one more")

    answer = client.get("/upcoming", count="100").json
    assert (len(answer["items"]), answer["complete"]) == (100, False)
