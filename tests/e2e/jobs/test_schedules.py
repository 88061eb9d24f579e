"""Schedules of every kind on the deployed stack: calendars, windows, ends, unions, delays."""

from datetime import UTC, datetime, timedelta
from statistics import median
from time import sleep

import pytest

from tests.e2e.conftest import LAG_LIMIT_SECONDS, Json, Person, instant, seconds_ahead, until

pytestmark = pytest.mark.e2e


ALL_DAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]


@pytest.fixture(scope="module", autouse=True)
def resting(alice: Person) -> Json:
    """Paused for a little more than a minute, and looked at by the last test."""
    job = alice.create("every 5s", name="resting")
    answer = alice.http.post(
        f"/jobs/{job['job_id']}/pause", json={"until": seconds_ahead(65).removeprefix("at ") + "Z"}
    )
    assert answer.status_code == 200, answer.text
    paused: Json = answer.json()
    return paused


def put_calendar(person: Person, name: str, **closed: object) -> None:
    response = person.http.put(f"/calendars/{name}", json=closed)
    assert response.status_code in (200, 201), response.text


def test_a_window_moves_the_start_to_the_second_and_both_times_are_told(alice: Person) -> None:
    job = alice.create("every 10s", window="9s", name="spread")
    offset = (instant(job["next_effective_at"]) - instant(job["next_fire_at"])).total_seconds()
    runs = alice.ended_runs(job, 3)
    alice.delete(job)
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
    assert now["ends_at"] == runs[-1]["fire_at"]


def test_a_job_that_is_to_go_when_complete_goes(alice: Person) -> None:
    job = alice.create(seconds_ahead(3), on_complete="delete")
    until(lambda: alice.http.get(f"/jobs/{job['job_id']}").status_code == 404)
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
    until(lambda: any(run["status"] == "succeeded" for run in alice.runs(job)))
    after = [run for run in alice.runs(job) if instant(run["fire_at"]) > changed_at]
    assert {run["status"] for run in after} <= {"succeeded", "running"}
    answer = alice.http.delete("/calendars/shut")
    assert answer.status_code == 409, "a job follows it"
    alice.delete(job)
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
    ran = until(lambda: [run for run in alice.runs(job) if run["status"] == "succeeded"])
    # The tick reads the calendar, and so does the executor at the last moment.
    assert instant(ran[-1]["fire_at"]) <= changed_at + timedelta(seconds=20)
    shown = alice.http.get(f"/jobs/{job['job_id']}").json()
    assert shown["revision"] == job["revision"]
    alice.delete(job)


def test_a_pause_has_ended_at_its_instant(alice: Person, resting: Json) -> None:
    wanted = instant(resting["resume_at"])

    def ran() -> list[datetime]:
        runs = (run for run in alice.runs(resting) if run["status"] == "succeeded")
        return sorted(at for at in (instant(run["fire_at"]) for run in runs) if at >= wanted)[:3]

    until(lambda: len(ran()) == 3, 120)
    first = wanted + timedelta(seconds=-wanted.timestamp() % 5)
    assert ran() == [first + timedelta(seconds=5 * number) for number in range(3)]
    found = alice.http.get(f"/jobs/{resting['job_id']}").json()
    assert (found["state"], found["resume_at"]) == ("active", None)
    meanwhile = [
        run for run in alice.runs(resting) if run["status"] == "succeeded" and run["reason"] is None
    ]
    paused_at = instant(resting["updated_at"])
    assert not [r for r in meanwhile if paused_at < instant(r["started_at"]) < wanted]
