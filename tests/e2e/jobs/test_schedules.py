"""Schedules of every kind on the deployed stack: calendars, windows, ends, unions, delays."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from statistics import median
from time import monotonic, sleep

import pytest

from tests.e2e.conftest import Json, Person

pytestmark = pytest.mark.e2e

LAG_LIMIT_SECONDS = 1.5
ALL_DAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]


def instant(text: str) -> datetime:
    return datetime.fromisoformat(text)


def put_calendar(person: Person, name: str, **closed: object) -> None:
    response = person.http.put(f"/calendars/{name}", json=closed)
    assert response.status_code in (200, 201), response.text


def delete(person: Person, job: Json) -> None:
    assert person.http.delete(f"/jobs/{job['job_id']}").status_code == 204


def test_a_window_moves_the_start_to_the_second_and_both_times_are_told(alice: Person) -> None:
    job = alice.create("every 10s", window="9s", name="spread")
    offset = (instant(job["next_effective_at"]) - instant(job["next_fire_at"])).total_seconds()
    runs = alice.ended_runs(job, 3)
    delete(alice, job)
    for run in runs:
        nominal, effective = instant(run["fire_at"]), instant(run["effective_at"])
        assert nominal.timestamp() % 10 == 0
        assert (effective - nominal).total_seconds() == offset < 9
        assert instant(run["started_at"]) >= effective
    assert median(run["lag_seconds"] for run in runs) <= LAG_LIMIT_SECONDS


def test_a_job_with_max_runs_completes(alice: Person) -> None:
    job = alice.create("every 2s", max_runs=3, name="three")
    runs = alice.ended_runs(job, 3)
    assert [run["status"] for run in runs] == ["succeeded"] * 3
    sleep(5)
    assert len(alice.runs(job)) == 3
    now = alice.http.get(f"/jobs/{job['job_id']}").json()
    assert (now["state"], now["next_fire_at"]) == ("completed", None)
    assert now["last_fire_at"] == runs[-1]["fire_at"]


def test_a_job_that_is_to_go_when_complete_goes(alice: Person) -> None:
    at = f"at {datetime.now(UTC) + timedelta(seconds=3):%Y-%m-%dT%H:%M:%S}"
    job = alice.create(at, on_complete="delete")
    deadline = monotonic() + 30
    while alice.http.get(f"/jobs/{job['job_id']}").status_code != 404:
        assert monotonic() < deadline
        sleep(0.5)
    (run,) = alice.runs(job)
    assert run["status"] == "succeeded"


def test_a_closed_day_is_skipped_and_an_opened_one_is_not(alice: Person) -> None:
    put_calendar(alice, "shut", weekdays=ALL_DAYS)
    job = alice.create("every 3s", calendar={"name": "shut", "rule": "skip"})
    (skipped,) = alice.ended_runs(job, 1)[:1]
    assert (skipped["status"], skipped["reason"]) == ("skipped", "calendar")
    assert "shut" in skipped["note"]
    put_calendar(alice, "shut", weekdays=[])
    changed_at = datetime.now(UTC)
    deadline = monotonic() + 30
    while not any(run["status"] == "succeeded" for run in alice.runs(job)):
        assert monotonic() < deadline
        sleep(0.5)
    after = [run for run in alice.runs(job) if instant(run["fire_at"]) > changed_at]
    assert {run["status"] for run in after} <= {"succeeded", "running"}
    answer = alice.http.delete("/calendars/shut")
    assert answer.status_code == 409, "a job follows it"
    delete(alice, job)
    assert alice.http.delete("/calendars/shut").status_code == 204


@pytest.mark.parametrize("rule", ["next_business_day", "previous_business_day"])
def test_a_calendar_change_holds_without_a_touch_of_the_job(alice: Person, rule: str) -> None:
    """Where no day is open nothing can be moved anywhere; once opened, the next ones run."""
    name = rule.partition("_")[0]
    put_calendar(alice, name, weekdays=ALL_DAYS)
    job = alice.create("every 5s", calendar={"name": name, "rule": rule}, name="shifted")
    sleep(12)
    assert {run["status"] for run in alice.runs(job)} <= {"skipped", "running"}
    put_calendar(alice, name, weekdays=[])
    changed_at = datetime.now(UTC)
    deadline = monotonic() + 30
    while not (ran := [run for run in alice.runs(job) if run["status"] == "succeeded"]):
        assert monotonic() < deadline
        sleep(0.5)
    # The tick reads the calendar, and so does the executor at the last moment.
    assert instant(ran[-1]["fire_at"]) <= changed_at + timedelta(seconds=20)
    shown = alice.http.get(f"/jobs/{job['job_id']}").json()
    assert shown["revision"] == job["revision"]
    delete(alice, job)


def test_a_list_fires_once_an_instant_and_not_at_the_exceptions(alice: Person) -> None:
    job = alice.create(
        ["*/2 * * * * *", "*/4 * * * * *"], **{"except": ["0-59/10 * * * * *"]}, name="union"
    )
    runs = alice.ended_runs(job, 6)
    delete(alice, job)
    seconds = [instant(run["fire_at"]).second for run in runs]
    assert len({run["fire_at"] for run in runs}) == len(runs)
    assert all(second % 2 == 0 and second % 10 != 0 for second in seconds)


def test_a_fixed_delay_counts_from_the_end_of_the_run(alice: Person) -> None:
    job = alice.create(
        "every 2s after finish", target={"type": "task", "name": "sleep"}, payload=1.5
    )
    runs = alice.ended_runs(job, 3)
    delete(alice, job)
    assert {run["status"] for run in runs} == {"succeeded"}
    for run, following in pairwise(runs):
        pause = (instant(following["fire_at"]) - instant(run["finished_at"])).total_seconds()
        assert 2 <= pause < 3.01


def test_creation_tells_what_the_clocks_will_do(alice: Person) -> None:
    job = alice.create("30 2 * * *", timezone="America/New_York")
    assert job["sentence"] == "every day at 02:30 in America/New_York"
    assert [entry["kind"] for entry in job["transitions"]].count("gap") == 1
    assert "dst" in {warning["code"] for warning in job["warnings"]}
    delete(alice, job)


def test_a_preview_explains_the_schedule(alice: Person) -> None:
    body = {
        "schedule": "cron(0 9 ? * MON-FRI *)",
        "timezone": "Europe/Riga",
        "after": "2026-12-24T00:00:00Z",
        "count": 2,
        "calendar": {"rule": "skip", "dates": ["2026-12-24", "2026-12-25"]},
    }
    answer = alice.http.post("/schedules/preview", json=body)
    assert answer.status_code == 200, answer.text
    preview = answer.json()
    assert [at["fire_at"] for at in preview["occurrences"]] == [
        "2026-12-28T07:00:00Z",
        "2026-12-29T07:00:00Z",
    ]
    assert preview["description"].startswith("every weekday at 09:00 in Europe/Riga")
    assert preview["slots"]["count"] >= 1
    assert preview["fires_per_month"] > 0
    assert preview["dollars_per_month"] > 0


def test_the_forecast_adds_up_the_jobs_of_an_owner(bob: Person) -> None:
    jobs = [bob.create("0 12 * * *", name=f"noon-{number}") for number in range(3)]
    jobs.append(bob.create("30 12 * * *", name="later"))
    answer = bob.http.get("/forecast")
    assert answer.status_code == 200, answer.text
    forecast = answer.json()
    noon = [peak for peak in forecast["peaks"] if peak["fires"] >= 3]
    assert noon
    assert noon[0]["minute"].endswith("T12:00:00Z")
    shown = bob.carillon("forecast")
    assert shown.returncode == 0, shown.stderr
    assert "12:00" in shown.stdout
    for job in jobs:
        delete(bob, job)


def test_calendars_are_their_owners_own(alice: Person, bob: Person) -> None:
    put_calendar(alice, "private", dates=["2026-12-25"])
    assert bob.http.get("/calendars/private").status_code == 404
    assert bob.http.get("/calendars").json()["items"] == []
    shown = alice.carillon("calendars", "show", "private", "--json")
    assert shown.returncode == 0, shown.stderr
    assert "2026-12-25" in shown.stdout
    assert alice.http.delete("/calendars/private").status_code == 204
