"""`carillon run ...`: one run, named by its id alone."""

import json
from typing import Any

import pytest

from tests.unit.cli.conftest import FakeApi, Run

RUN_ID = "j1_20260101T000000Z_scheduled_0"
PATH = f"/jobs/j1/runs/{RUN_ID}"
RUN: dict[str, Any] = {
    "run_id": RUN_ID,
    "status": "dead",
    "attempt": 2,
    "error": {"kind": "http_503", "message": "busy\x1b", "permanent": False},
    "reason": "exhausted",
    "note": "moved from 2025-12-31",
    "settled": "redriven",
    "attempts": [
        {
            "attempt": 1,
            "started_at": "2026-01-01T00:00:00Z",
            "finished_at": "2026-01-01T00:00:01Z",
            "error": {"kind": "timeout", "message": "10 s", "permanent": False},
        },
        {
            "attempt": 2,
            "started_at": "2026-01-01T00:00:05Z",
            "finished_at": None,
            "error": None,
        },
    ],
}


def test_show_tells_the_run_and_each_attempt(signed_in: Run, api: FakeApi) -> None:
    api.answer("GET", PATH, RUN)

    assert signed_in("run", "show", RUN_ID).stdout.splitlines() == [
        f"run_id   {RUN_ID}",
        "status   dead",
        "attempt  2",
        r"error    http_503: busy\x1b",
        "reason   exhausted",
        "note     moved from 2025-12-31",
        "settled  redriven",
        "",
        "attempt  started_at            finished_at           error",
        "1        2026-01-01T00:00:00Z  2026-01-01T00:00:01Z  timeout: 10 s",
        "2        2026-01-01T00:00:05Z  -                     -",
    ]
    assert json.loads(signed_in("run", "show", RUN_ID, "--json").stdout) == RUN


def test_cancel(signed_in: Run, api: FakeApi) -> None:
    api.answer("POST", f"{PATH}/cancel", {**RUN, "status": "cancelled"})

    answer = json.loads(signed_in("run", "cancel", RUN_ID, "--json").stdout)

    assert answer["status"] == "cancelled"


def test_a_run_under_way_is_a_conflict(signed_in: Run, api: FakeApi) -> None:
    problem = {"title": "Not cancellable", "status": 409, "detail": "it is running"}
    api.answer("POST", f"{PATH}/cancel", problem, status=409)

    result = signed_in("run", "cancel", RUN_ID)

    assert (result.exit_code, result.stderr) == (6, "Error: Not cancellable (409): it is running\n")


@pytest.mark.parametrize("command", ["show", "cancel"])
@pytest.mark.parametrize("run_id", ["j1", "", "_x", ".._x"])
def test_what_is_no_run_id_is_refused_here(
    signed_in: Run, api: FakeApi, command: str, run_id: str
) -> None:
    assert signed_in("run", command, run_id).exit_code == 3
    assert api.requests == []
