"""GET /forecast: how many runs start in each minute to come."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from carillon.api.jobs.service import MOST_PAGES, PAGE_SIZE
from carillon.api.schedules import upcoming as forecasts
from carillon.clock import ManualClock
from tests.unit.api.conftest import BODY, World
from tests.unit.api.gateway import Client

FROM = "2026-03-02T00:00:00Z"
TO = "2026-03-03T00:00:00Z"


def create(client: Client, name: str, schedule: Any, **values: Any) -> Any:
    answer = client.post("/jobs", BODY | {"name": name, "schedule": schedule} | values)
    assert answer.status == 201, answer.text
    return answer.json


def forecast(client: Client, from_: str = FROM, to: str = TO) -> Any:
    answer = client.get("/forecast", **{"from": from_, "to": to})
    assert answer.status == 200, answer.text
    return answer.json


def fires(answer: Any) -> dict[str, int]:
    return {entry["minute"][11:16]: entry["fires"] for entry in answer["minutes"]}


def test_without_jobs_there_is_nothing_to_expect(client: Client) -> None:
    assert client.get("/forecast").json == {
        "from": "2026-03-01T12:00:00.250Z",
        "to": "2026-03-02T12:00:00.250Z",
        "complete": True,
        "jobs_counted": 0,
        "jobs_after_finish": 0,
        "total": 0,
        "peaks": [],
        "minutes": [],
        "hours": [],
    }


def test_the_fires_of_all_jobs_are_added_up(client: Client, stranger: Client) -> None:
    for n in range(3):
        create(client, f"noon {n}", "0 12 * * *")
    create(client, "half past", "30 11,12 * * *")
    create(client, "seconds", "*/20 0 12 * * *")
    create(client, "once", "at 2026-03-02T11:30:59Z")
    create(stranger, "theirs", "0 12 * * *")

    answer = forecast(client)

    assert fires(answer) == {"11:30": 2, "12:00": 6, "12:30": 1}
    assert (answer["total"], answer["jobs_counted"], answer["complete"]) == (9, 6, True)
    assert answer["peaks"][0] == {
        "minute": "2026-03-02T12:00:00Z",
        "fires": 6,
        "jobs": ["seconds", "noon 0", "noon 1", "noon 2"],
    }
    assert [peak["fires"] for peak in answer["peaks"]] == [6, 2, 1]


def test_a_peak_names_five_jobs_and_five_peaks_are_told(client: Client) -> None:
    for n in range(7):
        create(client, f"job {n}", "0 12 * * *")
    create(client, "minutely", "* * * * *")

    answer = forecast(client)

    assert answer["peaks"][0]["jobs"] == [f"job {n}" for n in range(5)]
    assert [peak["minute"][11:16] for peak in answer["peaks"]] == [
        "12:00",
        "00:00",
        "00:01",
        "00:02",
        "00:03",
    ]
    assert answer["total"] == 7 + 1440


def test_the_span_takes_its_beginning_and_not_its_end(client: Client) -> None:
    create(client, "hourly", "0 * * * *")

    assert list(fires(forecast(client, "2026-03-02T01:00:00Z", "2026-03-02T03:00:00Z"))) == [
        "01:00",
        "02:00",
    ]
    answer = forecast(client, "2026-03-02T01:00:01Z", "2026-03-02T02:00:01Z")
    assert list(fires(answer)) == ["02:00"]


@pytest.mark.parametrize("schedule", ["*/10 * * * *", "0 * * * *"])
def test_windows_move_fires_to_their_effective_minutes(client: Client, schedule: str) -> None:
    """Of dense and of sparse schedules, which are counted in different ways."""
    job = create(client, "spread out", schedule, window="100%")
    effective_at = datetime.fromisoformat(job["next_effective_at"])
    assert job["spread_seconds"] > 60
    begin = effective_at.replace(second=0)

    one = forecast(client, f"{begin:%FT%TZ}", f"{begin + timedelta(minutes=1):%FT%TZ}")

    assert [entry["minute"] for entry in one["minutes"]] == [f"{begin:%FT%TZ}"]
    assert one["peaks"][0]["jobs"] == ["spread out"]
    interval = 600 if schedule.startswith("*/10") else 3600
    assert forecast(client)["total"] == 86_400 // interval


def test_jobs_of_one_schedule_and_different_windows_are_counted_each(client: Client) -> None:
    jobs = [create(client, f"job {n}", "0 12 * * *", window="1h") for n in range(10)]
    expected: dict[str, int] = {}
    for job in jobs:
        minute = job["next_effective_at"][11:16]
        expected[minute] = expected.get(minute, 0) + 1

    assert len(expected) > 5
    assert fires(forecast(client)) == dict(sorted(expected.items()))


def test_calendars_are_followed(client: Client) -> None:
    client.put("/calendars/holidays", {"dates": ["2026-03-02"]})
    for rule in ("skip", "next_business_day", "previous_business_day"):
        create(client, rule, "0 12 * * *", calendar={"name": "holidays", "rule": rule})

    assert forecast(client)["total"] == 0
    after = forecast(client, "2026-03-03T00:00:00Z", "2026-03-04T00:00:00Z")
    assert fires(after) == {"12:00": 3}, "moved ones meet what is there"


def test_paused_and_finished_jobs_do_not_count(client: Client) -> None:
    paused = create(client, "paused", "* * * * *")
    client.post(f"/jobs/{paused['job_id']}/pause")
    create(client, "ended", "* * * * *", max_runs=2)
    create(client, "two", "* * * * *", end_at="2026-03-02T00:01:00Z")

    answer = forecast(client)

    assert (answer["total"], fires(answer)) == (2, {"00:00": 1, "00:01": 1})


def test_fixed_delays_are_told_apart(client: Client) -> None:
    create(client, "delay", "every 10m after finish")

    answer = forecast(client)

    assert (answer["total"], answer["jobs_after_finish"], answer["complete"]) == (0, 1, True)


def test_nothing_before_the_filing_counts(client: Client) -> None:
    create(client, "minutely", "* * * * *")

    assert list(fires(forecast(client, "2026-03-01T11:58:00Z", "2026-03-01T12:03:00Z"))) == [
        "12:01",
        "12:02",
    ]


def test_a_thousand_jobs_are_looked_at_and_it_says_so(client: Client) -> None:
    for n in range(MOST_PAGES * PAGE_SIZE):
        assert client.post("/jobs", BODY | {"schedule": "0 12 * * *"}, key=str(n)).status == 201
    assert forecast(client)["complete"] is True
    client.post("/jobs", BODY | {"schedule": "0 12 * * *"}, key="one more")

    answer = forecast(client)

    assert (answer["total"], answer["jobs_counted"]) == (1000, 1000)
    assert answer["complete"] is False


def test_counting_ends_when_it_takes_too_many_steps(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(4):
        create(client, f"job {n}", f"every {n + 1}m")
    monkeypatch.setattr(forecasts, "MOST_STEPS", 2_000)

    answer = forecast(client)

    assert answer["complete"] is False
    assert 0 < answer["jobs_counted"] < 4
    assert sum(entry["fires"] for entry in answer["minutes"]) == answer["total"] > 0


def test_counting_ends_when_it_takes_too_long(world: World) -> None:
    class Slow(ManualClock):
        """Every look at it takes six seconds."""

        def now(self) -> datetime:
            self.advance(6)
            return super().now()

    client = Client(world.api())
    for n in range(5):
        create(client, f"job {n}", f"{n} 12 * * *")
    slow = Client(world.api(clock=Slow(world.clock.now())))

    answer = forecast(slow)

    assert (answer["jobs_counted"], answer["complete"]) == (1, False)


def test_a_week_of_a_dense_job_is_counted_exactly(client: Client) -> None:
    create(client, "every second", "* * * * * *")
    create(client, "every two", "every 2s")

    answer = forecast(client, "2026-03-02T00:00:00Z", "2026-03-09T00:00:00Z")

    assert answer["total"] == 7 * 86_400 * 3 // 2
    assert {entry["fires"] for entry in answer["minutes"]} == {90}


def test_instants_of_other_offsets_are_taken(client: Client) -> None:
    create(client, "noon", "0 12 * * *")
    answer = forecast(client, "2026-03-02T14:00:00+02:00", "2026-03-02T14:01:00+02:00")

    assert (answer["from"], answer["total"]) == ("2026-03-02T12:00:00Z", 1)
    assert datetime.fromisoformat(answer["to"]) == datetime(2026, 3, 2, 12, 1, tzinfo=UTC)


def test_the_jobs_of_a_minute_are_named_and_a_window_takes_them_elsewhere(
    client: Client, stranger: Client
) -> None:
    herd = [create(client, f"herd {n}", "0 12 * * *") for n in range(3)]
    often = create(client, "often", "*/20 * 12 * * *")
    create(client, "later", "1 12 * * *")
    create(stranger, "theirs", "0 12 * * *")

    def in_minute(job: Any, fires: int, most: int) -> Any:
        own = {"job_id": job["job_id"], "name": job["name"]}
        return own | {"fires": fires, "most_per_day": most, "window": None}

    def who(minute: str) -> Any:
        answer = client.get("/forecast/jobs", minute=f"2026-03-02T{minute}Z")
        assert answer.status == 200, answer.text
        return answer.json

    assert who("12:00:30") == {
        "minute": "2026-03-02T12:00:00Z",
        "items": [
            in_minute(often, 3, 180),
            *(in_minute(job, 1, 1) for job in herd),
        ],
        "complete": True,
    }
    for job in herd:
        path = f"/jobs/{job['job_id']}"
        assert client.patch(path, {"window": "30m"}, "*").status == 200
    named = [each["name"] for each in who("12:00:30")["items"]]
    assert named[0] == "often"
    assert len(named) < 4
    later = forecast(client)["minutes"]
    spread = {name for minute in later for name in _names(who(minute["minute"][11:-1]))}
    assert spread == {"often", "later", "herd 0", "herd 1", "herd 2"}


def _names(answer: Any) -> list[str]:
    return [each["name"] for each in answer["items"]]


def test_a_day_by_the_hour(client: Client) -> None:
    create(client, "quarterly", "*/15 9-10 * * *")
    create(client, "noon", "0 12 * * *")
    answer = client.get("/forecast", **{"from": FROM, "to": TO, "by": "hour"}).json
    assert len(answer["hours"]) == 24
    found = {each["hour"][11:13]: each["fires"] for each in answer["hours"] if each["fires"]}
    assert found == {"09": 4, "10": 4, "12": 1}
    assert (answer["minutes"], answer["total"]) == ([], 9)
    part = client.get(
        "/forecast", **{"from": "2026-03-02T09:30:00Z", "to": "2026-03-02T10:01:00Z", "by": "hour"}
    ).json
    assert [each["fires"] for each in part["hours"]] == [2, 1]
