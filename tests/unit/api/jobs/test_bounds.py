"""Jobs that end, spread, combine or override the rule for clock changes."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from carillon.domain.job import JobState, fraction_of
from carillon.domain.policies import OnComplete
from carillon.domain.wheel.entry import minute_of, slots_of_minute
from carillon.schedules import Fold, Gap
from tests.unit.api.conftest import BODY, NOW, World, change, create, without_report
from tests.unit.api.gateway import Client, Json
from tests.unit.api.jobs.test_jobs import row
from tests.unit.api.runs.test_runs import SECOND, make_run, put


def upcoming(client: Client, job: Any) -> list[str]:
    items = client.get(f"/jobs/{job['job_id']}/upcoming", count="100").json["items"]
    return [item["fire_at"] for item in items]


def test_an_end_is_inclusive_and_local_without_an_offset(client: Client) -> None:
    # Riga was two hours ahead of UTC.
    job = create(client, schedule="0 * * * *", timezone="Europe/Riga", end_at="2026-03-01T17:00:00")

    assert job["end_at"] == "2026-03-01T15:00:00Z"
    assert job["ends_at"] == "2026-03-01T15:00:00Z"
    assert [at[11:16] for at in upcoming(client, job)] == ["13:00", "14:00", "15:00"]


def test_max_runs_becomes_an_end(client: Client, world: World) -> None:
    job = create(client, schedule="every 10m", max_runs=3)

    assert (job["max_runs"], job["end_at"]) == (3, None)
    assert job["ends_at"] == "2026-03-01T12:30:00Z"
    assert [at[11:16] for at in upcoming(client, job)] == ["12:10", "12:20", "12:30"]
    stored = row(world, job["job_id"])
    assert stored.schedule.end_at == datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
    assert (stored.spec.end_at, stored.spec.max_runs) == (None, 3)


def test_no_end_is_kept_that_new_rules_of_the_zone_could_move_the_last_run_behind(
    client: Client, world: World
) -> None:
    """Its row could not be read any more."""
    at = "at 2027-07-01T09:00:00"
    job = create(client, schedule=at, timezone="Europe/Riga", max_runs=1)
    assert job["ends_at"] == "2027-07-01T06:00:00Z"
    assert row(world, job["job_id"]).schedule.end_at is None


@pytest.mark.parametrize(
    ("end_at", "last"),
    [("2026-03-01T12:25:00Z", "12:20"), ("2026-03-01T12:55:00Z", "12:30")],
)
def test_the_earlier_of_both_ends_counts(client: Client, end_at: str, last: str) -> None:
    job = create(client, schedule="every 10m", max_runs=3, end_at=end_at)

    assert job["end_at"] == end_at
    assert job["ends_at"] == f"2026-03-01T{last}:00Z"


@pytest.mark.parametrize(
    ("schedule", "last"),
    [
        ("at 2026-03-02T09:00:00Z", "2026-03-02T09:00:00Z"),
        (["0 9 * * *", "0 9,12 * * *"], "2026-03-06T09:00:00Z"),
        ("0 0 29 2 *", "2060-02-29T00:00:00Z"),
        ("cron(0 9 1 1 ? 2027-2030)", "2030-01-01T09:00:00Z"),
    ],
)
def test_max_runs_counts_occurrences_of_every_kind(
    client: Client, schedule: Any, last: str
) -> None:
    assert create(client, schedule=schedule, max_runs=9)["ends_at"] == last


def test_runs_are_not_counted_into_the_next_centuries(client: Client) -> None:
    job = create(client, schedule="0 0 29 2 *", max_runs=10_000)

    assert (job["max_runs"], job["ends_at"]) == (10_000, None)


def test_counting_begins_behind_start_at(client: Client) -> None:
    job = create(client, schedule="0 9 * * *", start_at="2026-06-01T09:00:00Z", max_runs=1)

    assert upcoming(client, job) == ["2026-06-01T09:00:00Z"]


def test_a_job_with_nothing_left_shows_as_completed(client: Client, world: World) -> None:
    job = create(client, schedule="every 10m", max_runs=2)
    path = f"/jobs/{job['job_id']}"
    world.clock.set(datetime(2026, 3, 1, 12, 19, 59, tzinfo=UTC))
    assert client.get(path).json["state"] == "active"
    world.clock.advance(1)

    done = without_report(client.get(path).json)

    assert (done["state"], done["next_fire_at"], done["revision"]) == ("completed", None, 1)
    assert done["ends_at"] == "2026-03-01T12:20:00Z"
    assert client.get("/jobs").json["items"] == [done]
    assert client.post(f"{path}/pause").json["state"] == "paused"
    assert client.post(f"{path}/resume").json["state"] == "completed"


def test_a_window_holds_completion_back_until_the_last_effective_time(
    client: Client, world: World
) -> None:
    job = create(client, schedule="every 10m", window="100%", max_runs=1)
    path = f"/jobs/{job['job_id']}"
    effective_at = datetime.fromisoformat(job["next_effective_at"])
    assert effective_at > datetime(2026, 3, 1, 12, 10, tzinfo=UTC)
    world.clock.set(effective_at - timedelta(seconds=1))
    assert client.get(path).json["state"] == "active"
    world.clock.set(effective_at)
    assert client.get(path).json["state"] == "completed"


def test_what_is_counted_anew(client: Client, world: World) -> None:
    job = create(client, schedule="every 10m", max_runs=3)
    world.clock.advance(15 * 60)

    kept = change(client, job, description="renamed", payload=1)
    assert kept["ends_at"] == "2026-03-01T12:30:00Z"
    same = change(client, job, schedule="every 600s", max_runs=3, **{"except": []})
    assert same["ends_at"] == "2026-03-01T12:30:00Z"
    assert same["revision"] == kept["revision"]
    anew = change(client, job, max_runs=2)
    assert anew["ends_at"] == "2026-03-01T12:30:00Z"
    anew = change(client, job, schedule="every 5m")
    assert anew["ends_at"] == "2026-03-01T12:25:00Z"
    assert change(client, job, max_runs=None)["ends_at"] is None


def test_pausing_does_not_move_the_end(client: Client, world: World) -> None:
    job = create(client, schedule="every 10m", max_runs=3)
    client.post(f"/jobs/{job['job_id']}/pause")
    world.clock.advance(15 * 60)

    resumed = client.post(f"/jobs/{job['job_id']}/resume").json

    assert resumed["ends_at"] == "2026-03-01T12:30:00Z"
    assert [at[11:16] for at in upcoming(client, job)] == ["12:20", "12:30"]


def test_a_completed_job_can_be_given_more(client: Client, world: World) -> None:
    job = create(client, schedule="every 10m", max_runs=1)
    world.clock.advance(3600)
    assert client.patch(f"/jobs/{job['job_id']}", {"description": "done"}, "*").status == 200

    more = change(client, job, max_runs=2)

    assert (more["state"], more["next_fire_at"]) == ("active", "2026-03-01T13:10:00Z")


def test_a_change_to_what_is_past_is_refused(client: Client, world: World) -> None:
    job = create(client, schedule="every 10m")
    world.clock.advance(3600)

    answer = client.patch(f"/jobs/{job['job_id']}", {"end_at": "2026-03-01T12:30:00Z"}, 1)

    assert (answer.status, answer.fields) == (422, ["end_at"])


def test_tombstones_of_completed_jobs_are_not_found_and_hold_their_keys(
    client: Client, world: World
) -> None:
    body = BODY | {"schedule": "at 2026-03-01T12:01:00Z", "on_complete": "delete"}
    job = client.post("/jobs", body, key="k").json
    assert job["on_complete"] == "delete"
    stored = row(world, job["job_id"])
    assert stored.spec.on_complete is OnComplete.DELETE
    assert world.jobs.replace(stored.completed(NOW, NOW + timedelta(days=30)), 1)
    put(world, make_run(job["job_id"], SECOND))
    path = f"/jobs/{job['job_id']}"

    assert row(world, job["job_id"]).state is JobState.COMPLETED
    for answer in (
        client.get(path),
        client.patch(path, {"description": "x"}, "*"),
        client.delete(path),
        client.post(f"{path}/pause"),
        client.post(f"{path}/resume"),
        client.post(f"{path}/run"),
        client.get(f"{path}/upcoming"),
    ):
        assert answer.status == 404
    assert client.get("/jobs").json["items"] == []
    assert len(client.get(f"{path}/runs").json["items"]) == 1
    again = client.post("/jobs", body, key="k")
    assert (again.status, again.fields) == (410, ["Idempotency-Key"])
    assert "has completed" in again.json["detail"]


def test_a_window_gives_each_job_an_offset_of_its_own(client: Client, world: World) -> None:
    jobs = [client.post("/jobs", BODY | {"window": "PT2M"}, key=str(n)).json for n in range(20)]

    for job in jobs:
        expected = int(fraction_of(job["job_id"]) * 120)
        assert (job["window"], job["spread_seconds"]) == ("2m", expected)
        nominal = datetime.fromisoformat(job["next_fire_at"])
        effective = datetime.fromisoformat(job["next_effective_at"])
        assert (effective - nominal).total_seconds() == expected
    assert len({job["spread_seconds"] for job in jobs}) > 10


def test_a_window_never_reaches_the_next_occurrence(client: Client) -> None:
    for n in range(20):
        body = BODY | {"schedule": "*/10 * * * * *", "window": "1h"}
        assert client.post("/jobs", body, key=str(n)).json["spread_seconds"] < 10


def test_a_change_of_window_is_a_new_filing_if_it_moves_the_job(
    client: Client, world: World
) -> None:
    job = create(client, window="5m")
    generation = row(world, job["job_id"]).generation
    world.clock.advance(60)
    same = change(client, job, window="300s")
    assert (same["window"], same["revision"]) == ("5m", 1)
    assert row(world, job["job_id"]).generation == generation

    changed = change(client, job, window=None)

    assert (changed["window"], changed["spread_seconds"]) == (None, 0)
    assert row(world, job["job_id"]).generation != generation


def test_a_change_of_schedule_measures_the_window_anew(client: Client) -> None:
    job = create(client, schedule="every 1h", window="50%")

    changed = change(client, job, schedule="every 10s")

    assert changed["spread_seconds"] == int(fraction_of(job["job_id"]) * 5)
    answer = client.patch(f"/jobs/{job['job_id']}", {"schedule": "at 2026-04-01T00:00:00Z"}, "*")
    assert answer.fields == ["window"]


def test_schedule_and_exceptions_change_apart_from_each_other(client: Client) -> None:
    members: Json = {"schedule": ["0 9 * * 1-5", "0 12 * * 6"], "except": ["* * 25 12 *"]}
    job = create(client, **members)

    changed = change(client, job, schedule="0 10 * * *")
    assert (changed["schedule"], changed["except"]) == ("0 10 * * *", ["* * 25 12 *"])
    changed = change(client, job, **{"except": ["* * 24 12 *"]})
    assert (changed["schedule"], changed["except"]) == ("0 10 * * *", ["* * 24 12 *"])
    changed = change(client, job, **{"except": None})
    assert (changed["schedule"], changed["except"]) == ("0 10 * * *", [])


def test_a_rule_for_clock_changes_is_stored_and_merged(client: Client, world: World) -> None:
    job = create(client, schedule="30 2 * * *", dst={"gap": "skip"})
    assert job["dst"] == {"gap": "skip", "fold": None}
    generation = row(world, job["job_id"]).generation
    world.clock.advance(60)

    changed = change(client, job, dst={"fold": "both"})

    assert changed["dst"] == {"gap": "skip", "fold": "both"}
    stored = row(world, job["job_id"])
    assert (stored.schedule.dst.gap, stored.schedule.dst.fold) == (Gap.SKIP, Fold.BOTH)
    assert stored.generation != generation
    assert change(client, job, dst=None)["dst"] == {"gap": None, "fold": None}


def test_creation_and_change_tell_what_clock_changes_do(client: Client) -> None:
    """New York skips 02:00 to 03:00 on 2026-03-08 and repeats 01:00 to 02:00 on 2026-11-01."""
    job = create(client, schedule="30 2 * * *", timezone="America/New_York")

    (gap,) = job["transitions"]
    assert (gap["transition_at"], gap["kind"], gap["count"]) == ("2026-03-08T07:00:00Z", "gap", 1)
    assert (gap["local_from"], gap["local_until"]) == ("2026-03-08T02:00:00", "2026-03-08T03:00:00")
    assert [warning["code"] for warning in job["warnings"]] == ["dst"]
    changed = change(client, job, schedule="30 1 * * *")
    assert [entry["kind"] for entry in changed["transitions"]] == ["fold"]
    assert "transitions" not in client.get(f"/jobs/{job['job_id']}").json


def test_a_repetition_under_the_key_is_told_the_same(client: Client) -> None:
    body = BODY | {"schedule": "30 2 * * *", "timezone": "America/New_York", "max_runs": 9}
    first = client.post("/jobs", body, key="k")
    again = client.post("/jobs", body, key="k")

    assert (first.status, again.status, again.json) == (201, 200, first.json)


def test_the_entry_stands_where_the_effective_time_is(client: Client, world: World) -> None:
    body = BODY | {"schedule": "0 9 * * *", "window": "12h"}
    job = row(world, client.post("/jobs", body, key="k").json["job_id"])
    effective_at = datetime(2026, 3, 2, 9, tzinfo=UTC) + timedelta(seconds=job.spread_seconds)
    assert job.spread_seconds > 60

    _, daily, _ = slots_of_minute(minute_of(effective_at))

    (entry,) = world.wheel.query(job.segment, daily).items
    assert (entry.job_id, entry.spread_seconds) == (job.job_id, job.spread_seconds)
