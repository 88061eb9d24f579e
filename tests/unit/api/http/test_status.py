"""GET /status."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from carillon.domain.run import Resolution, RunStatus
from carillon.domain.spec.names import job_id_of
from carillon.domain.wheel.segment import acquired, first_control
from tests.support.jobs import job_with
from tests.unit.api.conftest import BODY, NOW, World
from tests.unit.api.gateway import OWNER, Client, Json
from tests.unit.api.runs.test_runs import SECOND, make_run, put


def test_an_owner_without_jobs_is_idle(client: Client) -> None:
    assert client.get("/status").json == {
        "state": "idle",
        "as_of": "2026-03-01T12:00:00.250Z",
        "active_jobs": 0,
        "paused_jobs": 0,
        "completed_jobs": 0,
        "waiting_runs": 0,
        "retrying_runs": 0,
        "dead_letters": 0,
        "complete": True,
        "unreadable_jobs": 0,
        "segments": None,
    }


@pytest.mark.parametrize(
    ("row", "state", "counted"),
    [
        ({"status": RunStatus.SCHEDULED, "waits": 1}, "processing", "waiting_runs"),
        ({"status": RunStatus.RETRYING}, "processing", "retrying_runs"),
        ({"status": RunStatus.DEAD}, "idle", "dead_letters"),
        ({"status": RunStatus.TIMED_OUT}, "idle", "dead_letters"),
        ({"status": RunStatus.DEAD, "settled": Resolution.DISCARDED}, "idle", None),
        ({"status": RunStatus.SCHEDULED}, "idle", None),
        ({"status": RunStatus.RUNNING, "waits": 1}, "idle", None),
        ({"status": RunStatus.SUCCEEDED}, "idle", None),
    ],
)
def test_runs_that_need_attention_are_counted(
    client: Client, stranger: Client, world: World, job: Json, row: Json, state: str, counted: str
) -> None:
    put(world, make_run(job["job_id"], SECOND, **row))

    answer = client.get("/status").json

    assert answer["state"] == state
    numbers = {name: answer[name] for name in ("waiting_runs", "retrying_runs", "dead_letters")}
    assert {name for name, number in numbers.items() if number} == ({counted} - {None})
    assert stranger.get("/status").json["dead_letters"] == 0


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


def test_a_thousand_jobs_are_counted_in_four_requests(
    client: Client, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One for the jobs, one for each kind of runs: none a job, and none a run."""
    first = world.jobs.get(OWNER, client.post("/jobs", BODY).json["job_id"])
    assert first is not None
    for number in range(999):
        name = f"job {number}"
        job_id = job_id_of(OWNER, name)
        assert world.jobs.create(job_with(replace(first, job_id=job_id), name=name))
    asked: list[str] = []
    for store in (world.runs, world.calendars, world.jobs):
        for method in ("get", "list", "tally", "count", "dead_letters"):
            if real := getattr(store, method, None):
                monkeypatch.setattr(store, method, _noting(asked, method, real))

    answer = client.get("/status").json

    assert (answer["active_jobs"], answer["complete"]) == (1000, True)
    assert sorted(asked) == [
        "count",
        "count",
        "count",
        "list",
        "tally",
    ]  # the tally in memory lists


def _noting(asked: list[str], method: str, real: Callable[..., Any]) -> Callable[..., Any]:
    def noted(*args: Any) -> Any:
        asked.append(method)
        return real(*args)

    return noted


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
