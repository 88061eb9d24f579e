"""What a calendar does to windows and to fixed delays, in jobs and in previews."""

from typing import Any

import pytest

from carillon.domain.job import fraction_of
from tests.unit.api.conftest import World, create
from tests.unit.api.gateway import OWNER, Client
from tests.unit.api.jobs.test_jobs import row

PREVIEW = "/schedules/preview"
NEXT = {"name": "weekend", "rule": "next_business_day"}
SKIP = {"name": "weekend", "rule": "skip"}
MEETING = ["0 9 * * 6", "30 9 * * 1"]
"""Saturday's occurrence moves to Monday, half an hour before the other one."""


@pytest.fixture(autouse=True)
def _weekend(client: Client) -> None:
    assert client.put("/calendars/weekend", {"weekdays": ["sat", "sun"]}).status == 201


def test_a_window_never_reaches_the_next_occurrence_that_a_calendar_moves(client: Client) -> None:
    for _ in range(5):
        job = create(client, schedule=MEETING, window="24h", calendar=NEXT)
        assert job["spread_seconds"] == int(fraction_of(job["job_id"]) * 1800)
    preview = {"schedule": MEETING, "window": "24h", "calendar": NEXT}
    assert client.post(PREVIEW, preview).json["window_seconds"] == 1799


def test_a_window_is_measured_anew_when_a_calendar_starts_or_stops_moving(
    client: Client, world: World
) -> None:
    job = create(client, schedule=MEETING, window="24h", calendar=SKIP)
    path, fraction = f"/jobs/{job['job_id']}", fraction_of(job["job_id"])
    generation = row(world, job["job_id"]).generation
    world.clock.advance(60)

    changes: list[Any] = [{"calendar": NEXT}, {"calendar": {"rule": "skip"}}, {"calendar": NEXT}]
    offsets = [
        client.patch(path, change, "*").json["spread_seconds"]
        for change in [*changes, {"description": "x"}, {"calendar": None}]
    ]

    small, large = int(fraction * 1800), int(fraction * 86_400)
    assert job["spread_seconds"] == large
    assert offsets == [small, large, small, small, large]
    assert row(world, job["job_id"]).generation != generation


def test_a_fixed_delay_tells_that_its_next_occurrence_is_skipped(
    client: Client, world: World
) -> None:
    """NOW is a Sunday."""
    skipped = create(client, schedule="every 1h after finish", calendar=SKIP)
    moved = create(client, schedule="every 1h after finish", calendar=NEXT)
    monday = create(client, schedule="every 12h after finish", calendar=SKIP)

    def upcoming(job: Any) -> list[tuple[str, str | None]]:
        items = client.get(f"/jobs/{job['job_id']}/upcoming").json["items"]
        return [(item["fire_at"], item["note"]) for item in items]

    closed = "2026-03-01 is closed in calendar weekend"
    assert upcoming(skipped) == [("2026-03-01T13:00:00Z", closed)]
    assert upcoming(monday) == [("2026-03-02T00:00:00Z", None)]
    assert [note for _, note in upcoming(moved)] == [None]
    assert world.calendars.delete(OWNER, "weekend", 1)
    assert upcoming(skipped) == [("2026-03-01T13:00:00Z", None)]


def test_a_preview_of_a_fixed_delay_tells_which_are_skipped(client: Client) -> None:
    body = {
        "schedule": "every 6h after finish",
        "timezone": "Europe/Riga",
        "count": 3,
        "calendar": {"weekdays": ["sun"]},
    }
    occurrences = client.post(PREVIEW, body).json["occurrences"]

    earliest = "at the earliest: it counts from the end of the run before"
    assert [(item["local"], item["note"]) for item in occurrences] == [
        ("2026-03-01T20:00:00+02:00", "2026-03-01 is closed in the calendar"),
        ("2026-03-02T02:00:00+02:00", earliest),
        ("2026-03-02T08:00:00+02:00", earliest),
    ]
    body |= {"after": "2026-03-01T00:00:00Z"}
    second = client.post(PREVIEW, body).json["occurrences"][1]
    assert second["note"] == f"{earliest}; 2026-03-01 is closed in the calendar"


def test_what_a_calendar_moves_from_before_the_job_was_made_is_not_to_come(
    client: Client,
) -> None:
    """It is a Sunday, and noon: 09:00 is over, and 15:00 is moved to Monday. No tick sends the
    other."""
    job = create(client, schedule="0 9,15 * * 0", calendar=NEXT)

    items = client.get(f"/jobs/{job['job_id']}/upcoming", count="2").json["items"]

    expected = ["2026-03-02T15:00:00Z", "2026-03-09T09:00:00Z"]
    assert [item["fire_at"] for item in items] == expected
    assert job["next_fire_at"] == expected[0]


def test_nor_is_what_it_moves_from_a_pause(client: Client, world: World) -> None:
    """What was due before a pause goes on its way."""
    jobs = [create(client, schedule="0 15 * * 0", calendar=NEXT) for _ in range(2)]
    paused, resumed = (f"/jobs/{job['job_id']}" for job in jobs)
    client.post(f"{paused}/pause")
    world.clock.advance(4 * 3600)
    client.post(f"{resumed}/pause")
    for path in (paused, resumed):
        client.post(f"{path}/resume")

    upcoming = [client.get(f"{path}/upcoming").json["items"][0] for path in (paused, resumed)]

    expected = ["2026-03-09T15:00:00Z", "2026-03-02T15:00:00Z"]
    assert [item["fire_at"] for item in upcoming] == expected
