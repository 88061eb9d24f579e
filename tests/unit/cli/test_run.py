"""`carillon run ...`: one run, named by its id alone."""

import json
from typing import Any

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

    assert signed_in("runs", "show", RUN_ID).stdout.splitlines() == [
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
    assert json.loads(signed_in("runs", "show", RUN_ID, "--json").stdout) == RUN


def test_cancel(signed_in: Run, api: FakeApi) -> None:
    api.answer("POST", f"{PATH}/cancel", {**RUN, "status": "cancelled"})

    answer = json.loads(signed_in("runs", "cancel", RUN_ID, "--json").stdout)

    assert answer["status"] == "cancelled"
