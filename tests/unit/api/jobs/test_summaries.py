"""GET /jobs?view=summary, searches, and what a job's history says of it."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from carillon.domain.run import Resolution, RunError, RunKind, RunStatus
from tests.unit.api.conftest import NOW, World, create
from tests.unit.api.gateway import Client, Json
from tests.unit.api.runs.test_runs import make_run

SUMMARY = {"view": "summary", "limit": "100"}
BOTH = {**SUMMARY, "include": "last_run,recent_runs"}


def put(world: World, job_id: str, minutes: int, status: RunStatus, **changes: Any) -> str:
    """A row of the job's history, so many minutes before now; answers its run id."""
    kind, redrive = changes.pop("kind", RunKind.SCHEDULED), changes.pop("redrive", 0)
    run = make_run(job_id, NOW - timedelta(minutes=minutes), status=status, **changes)
    run = replace(run, key=replace(run.key, kind=kind, redrive=redrive))
    assert world.runs.claim(run, None)
    return run.key.run_id


def items(client: Client, **query: str) -> list[Json]:
    answer = client.get("/jobs", **query)
    assert answer.status == 200, answer.text
    found: list[Json] = answer.json["items"]
    return found


def test_a_summary_has_what_lists_show(client: Client) -> None:
    job = create(
        client, schedule="0 6 * * 1-5", timezone="Europe/Riga", window="10m", tags={"team": "x"}
    )
    shown = items(client, **SUMMARY)

    assert shown == [
        {
            "job_id": job["job_id"],
            "name": job["name"],
            "state": "active",
            "resume_at": None,
            "note": None,
            "schedule": "0 6 * * 1-5",
            "sentence": job["sentence"],
            "timezone": "Europe/Riga",
            "calendar": None,
            "window": "10m",
            "parent": None,
            "tags": {"team": "x"},
            "managed_by": None,
            "next_fire_at": job["next_fire_at"],
            "ends_at": None,
            "last_run": None,
            "recent": None,
        }
    ]


def test_a_summary_includes_the_newest_runs_on_request(client: Client, world: World) -> None:
    job_id = create(client)["job_id"]
    never = create(client, name="never")["job_id"]
    for minutes in range(3, 20):
        put(world, job_id, minutes, RunStatus.SUCCEEDED)
    error = RunError("http_503", "no")
    dead = put(world, job_id, 2, RunStatus.DEAD, error=error, finished_at=NOW)
    put(world, job_id, 1, RunStatus.MISSED, kind=RunKind.WATCH)
    put(world, job_id, 1, RunStatus.SUCCEEDED, kind=RunKind.CALLBACK)

    shown = {job["job_id"]: job for job in items(client, **BOTH)}

    assert (shown[never]["last_run"], shown[never]["recent"]) == (None, [])
    newest, recent = shown[job_id]["last_run"], shown[job_id]["recent"]
    assert (newest["run_id"], newest["status"], newest["error_kind"]) == (dead, "dead", "http_503")
    assert [run["status"] for run in recent[:3]] == ["missed", "dead", "succeeded"]
    assert len(recent) == 9  # of ten rows, one a callback


def test_a_job_says_its_last_run_and_how_many_have_failed_in_a_row(
    client: Client, world: World
) -> None:
    job_id = create(client)["job_id"]
    put(world, job_id, 9, RunStatus.SUCCEEDED)
    put(world, job_id, 8, RunStatus.DEAD)
    put(world, job_id, 7, RunStatus.DEAD, settled=Resolution.REDRIVEN)
    put(world, job_id, 6, RunStatus.SKIPPED)
    put(world, job_id, 5, RunStatus.TIMED_OUT, settled=Resolution.DISCARDED)
    under_way = put(world, job_id, 4, RunStatus.RUNNING)

    for path in (f"/jobs/{job_id}", "/jobs/named/nightly%20report"):
        job = client.get(path).json
        assert job["failures_in_a_row"] == 2
        assert job["last_run"]["run_id"] == under_way

    put(world, job_id, 3, RunStatus.SUCCEEDED)
    assert client.get(f"/jobs/{job_id}").json["failures_in_a_row"] == 0


@pytest.mark.parametrize("redrives", [1, 2, 3])
def test_the_last_run_is_what_runs_a_dead_letter_again(
    client: Client, world: World, redrives: int
) -> None:
    job_id = create(client)["job_id"]
    put(world, job_id, 9, RunStatus.SUCCEEDED)
    for redrive in range(redrives):
        put(world, job_id, 8, RunStatus.DEAD, settled=Resolution.REDRIVEN, redrive=redrive)
    again = put(world, job_id, 8, RunStatus.SUCCEEDED, redrive=redrives)

    (shown,) = items(client, view="summary", include="last_run")
    assert shown["last_run"]["run_id"] == again
    assert client.get(f"/jobs/{job_id}").json["last_run"]["run_id"] == again


def test_a_run_whose_redrive_has_no_row_is_the_last(client: Client, world: World) -> None:
    job_id = create(client)["job_id"]
    put(world, job_id, 9, RunStatus.SUCCEEDED)
    dead = put(world, job_id, 8, RunStatus.DEAD, settled=Resolution.REDRIVEN)
    assert client.get(f"/jobs/{job_id}").json["last_run"]["run_id"] == dead


@pytest.mark.parametrize("view", ["full", "summary"])
def test_lists_are_searched_by_name_id_and_state(client: Client, world: World, view: str) -> None:
    nightly = create(client, name="nightly")["job_id"]
    create(client, name="Nightly report")
    hourly = create(client, name="hourly", schedule="every 10m", max_runs=1)["job_id"]
    assert client.post(f"/jobs/{nightly}/pause").status == 200
    world.clock.advance(3600)

    def names(**query: str) -> list[str]:
        return [job["name"] for job in items(client, view=view, limit="100", **query)]

    assert names(q="NIGHT") == ["nightly", "Nightly report"]
    assert names(q=hourly) == ["hourly"]
    assert names(q="0" * 26) == []
    assert names(state="paused") == ["nightly"]
    assert names(state="active") == ["Nightly report"]
    assert names(state="completed") == ["hourly"]
    assert names(state="active", q="hourly") == []
    create(client, name=f"{'0' * 26} and more")
    assert names(q="0" * 26) == [f"{'0' * 26} and more"], "a name may begin as ids look"


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"include": "last_run"}, "include"),
        ({"include": "result", "view": "summary"}, "include"),
        ({"view": "short"}, "view"),
        ({"state": "deleted"}, "state"),
        ({"q": "a", "name": "b"}, "name"),
    ],
)
def test_a_list_refuses_what_it_does_not_know(client: Client, query: Json, field: str) -> None:
    answer = client.get("/jobs", **query)

    assert (answer.status, answer.fields) == (422, [field])


def test_nobody_sees_anothers_summaries_or_last_runs(
    client: Client, stranger: Client, world: World
) -> None:
    job_id = create(client)["job_id"]
    put(world, job_id, 1, RunStatus.DEAD)

    assert items(stranger, **BOTH) == items(stranger, **SUMMARY, q=job_id) == []
    assert stranger.get(f"/jobs/{job_id}").status == 404
