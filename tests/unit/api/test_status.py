"""GET /status."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from carillon.api.status import JOBS_READ
from carillon.domain.run import RunStatus
from carillon.domain.wheel.segment import acquired, first_control
from tests.unit.api.conftest import BODY, NOW, World
from tests.unit.api.gateway import Client, Json
from tests.unit.api.test_runs import SECOND, make_run, put


def test_an_owner_without_jobs_is_idle(client: Client) -> None:
    assert client.get("/status").json == {
        "state": "idle",
        "active_jobs": 0,
        "paused_jobs": 0,
        "completed_jobs": 0,
        "scheduled_runs": 0,
        "running_runs": 0,
        "retrying_runs": 0,
        "jobs_looked_into": 0,
        "complete": True,
        "unreadable_jobs": 0,
        "segments": None,
    }


@pytest.mark.parametrize(
    ("status", "state"),
    [
        (RunStatus.SCHEDULED, "processing"),
        (RunStatus.RUNNING, "processing"),
        (RunStatus.RETRYING, "processing"),
        (RunStatus.SUCCEEDED, "idle"),
        (RunStatus.DEAD, "idle"),
        (RunStatus.SKIPPED, "idle"),
    ],
)
def test_an_unfinished_run_means_processing(
    client: Client, world: World, job: Json, status: RunStatus, state: str
) -> None:
    put(world, make_run(job["job_id"], SECOND, status=status))

    answer = client.get("/status").json

    assert (answer["state"], answer["active_jobs"]) == (state, 1)


def test_paused_jobs_are_counted_apart(client: Client, job: Json) -> None:
    client.post("/jobs", BODY)
    client.post(f"/jobs/{job['job_id']}/pause")

    answer = client.get("/status").json
    assert (answer["active_jobs"], answer["paused_jobs"]) == (1, 1)


def test_jobs_without_an_occurrence_left_are_completed(client: Client, world: World) -> None:
    client.put("/calendars/weekend", {"weekdays": ["sat", "sun"]})
    monday = {"name": "weekend", "rule": "next_business_day"}
    once = {"schedule": "at 2026-03-01T12:05:00Z"}
    for body in (once, once | {"calendar": monday}, {"schedule": "every 1h after finish"}):
        assert client.post("/jobs", BODY | body).status == 201
    world.clock.advance(600)

    answer = client.get("/status").json

    shown = [job["state"] for job in client.get("/jobs").json["items"]]
    assert sorted(shown) == ["active", "active", "completed"]
    assert (answer["active_jobs"], answer["completed_jobs"]) == (2, 1)


def test_runs_of_a_hundred_jobs_are_looked_at_and_it_says_so(client: Client) -> None:
    for n in range(JOBS_READ):
        client.post("/jobs", BODY, key=str(n))
    assert client.get("/status").json["complete"] is True
    client.post("/jobs", BODY, key="one more")

    answer = client.get("/status").json
    assert (answer["active_jobs"], answer["jobs_looked_into"]) == (101, 100)
    assert answer["complete"] is False


@pytest.mark.parametrize(
    ("groups", "is_operator"),
    [
        (None, False),
        ([], False),
        ("[]", False),
        (["operators"], True),
        (["other", "operators"], True),
        ("[operators]", True),
        ("[other operators]", True),
        ("[operators other]", True),
        ("operators", True),
        ("[nooperators]", False),
        ("[operators-not]", False),
        ("[a,operators]", False),
        ({"operators": True}, False),
    ],
)
def test_segments_are_for_operators(world: World, groups: Any, is_operator: bool) -> None:
    answer = Client(world.api(), groups=groups).get("/status").json

    assert (answer["segments"] is not None) == is_operator


def test_operators_see_segments_beyond_a_lowered_number_of_them(world: World) -> None:
    assert world.wheel.put_control(first_control(4, NOW), None)
    segments = Client(world.api(), groups=["operators"]).get("/status").json["segments"]
    assert [view["segment"] for view in segments] == [0, 1, 2, 3, 4]


def test_operators_see_how_far_each_segment_has_come(world: World) -> None:
    control = first_control(1, NOW - timedelta(minutes=6))
    world.wheel.put_control(control, None)
    # A tick that takes up a gap of five minutes has not dispatched anything yet.
    held = acquired(control, "tick", NOW, look_ahead=2)
    assert held is not None
    world.wheel.put_control(replace(held, cursor=None), control)

    segments = Client(world.api(), groups=["operators"]).get("/status").json["segments"]

    assert [view["segment"] for view in segments] == [0, 1, 2, 3]
    assert segments[1] == {
        "segment": 1,
        "watermark_at": "2026-03-01T11:59:59Z",
        "horizon_at": "2026-03-01T12:02:59Z",
        "lag_minutes": 6,
        "backlog_minutes": 6,
        "lease_until": "2026-03-01T12:00:45.250Z",
        "unreadable": None,
    }
    assert segments[0] == {
        "segment": 0,
        "watermark_at": None,
        "horizon_at": None,
        "lag_minutes": 0,
        "backlog_minutes": 0,
        "lease_until": None,
        "unreadable": None,
    }
