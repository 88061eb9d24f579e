"""Every command's table at 80 and 120 columns: ids and names stand whole, on one line each."""

import shutil
from typing import Any

import pytest
import typer.testing

from tests.unit.cli.conftest import FakeApi, Run

JOB_ID = "e5vqzve7xs7cfr6w7dlxrjm3pj"
RUN_ID = f"{JOB_ID}_20260101T110000Z_scheduled_0"
MANUAL = f"{JOB_ID}_20260101T110000Z_manual-2k7d3hxqe0c4n5m6p7r8s9t0va_0"
NAME = "nightly report of the whole of northern Europe"
OPERATION_ID = "01ktpx4cq8g1v2z9e7m5b3n6ha"
LONG = "connection refused by upstream " * 9
AT = "2026-01-01T11:00:00Z"

JOB = {
    "job_id": JOB_ID, "name": NAME, "state": "active", "schedule": "0 9 * * 1-5 | every 90m",
    "timezone": "America/Argentina/ComodRivadavia", "next_fire_at": AT, "tags": {"team": "billing"},
}  # fmt: skip
RUN = {
    "run_id": RUN_ID, "job_name": NAME, "fire_at": AT, "effective_at": "2026-01-01T11:00:03Z",
    "kind": "scheduled", "status": "timed_out", "attempt": 3, "lag_seconds": 12.345,
    "duration_seconds": 3.2, "error": {"kind": "http_503", "message": LONG}, "result": None,
    "finished_at": AT, "at": AT, "reason": "exhausted", "job_id": JOB_ID,
}  # fmt: skip
OPERATION = {
    "operation_id": OPERATION_ID, "kind": "redrive", "state": "succeeded", "job_id": JOB_ID,
    "done": 12_000, "passed_over": 3, "reached": AT, "created_at": AT, "note": LONG,
}  # fmt: skip
OCCURRENCE = {
    "job_id": JOB_ID, "name": NAME, "fire_at": AT, "local": "2026-01-01T13:00:00+02:00",
    "effective_at": None, "note": "moved from 2025-12-31",
}  # fmt: skip
CALENDAR = {
    "name": "latvia-and-estonia-bank-holidays", "weekdays": ["sat", "sun"], "dates": ["x"] * 30,
    "ranges": [], "description": LONG, "updated_at": AT,
}  # fmt: skip
NOTIFICATION = {
    "name": "latvia-and-estonia-on-call-of-the-week", "jobs": f"{NAME}*", "at_most_every": "15m",
    "on": ["run.dead", "run.missed", "job.paused", "run.recovered", "quota.exceeded"],
    "to": {"type": "slack"}, "last_delivery": {"status": "timed_out", "error_kind": "http_503"},
}  # fmt: skip
SEGMENT = {
    "segment": 3, "watermark_at": AT, "lag_minutes": 1, "backlog_minutes": 0, "horizon_at": AT,
    "lease_until": AT, "unreadable": LONG,
}  # fmt: skip
LANES = [{"lane": "normal", "waiting": 12_000, "in_flight": 300, "dead_letters": 1}]
TABLES: dict[str, tuple[str, Any, list[str]]] = {
    "jobs list": ("/jobs", {"items": [JOB]}, [NAME]),
    "runs list": ("/runs", {"items": [RUN, RUN | {"run_id": MANUAL}]}, [RUN_ID, MANUAL, NAME]),
    "runs list j1": ("/jobs/j1/runs", {"items": [RUN, RUN | {"run_id": MANUAL}]}, [RUN_ID, MANUAL]),
    "dead-letters list": ("/dead-letters", {"items": [RUN]}, [RUN_ID, NAME]),
    "operations list": ("/operations", {"items": [OPERATION]}, [OPERATION_ID]),
    "jobs missed j1": ("/jobs/j1/missed", {"items": [RUN]}, [RUN_ID]),
    "upcoming": ("/upcoming", {"items": [OCCURRENCE]}, [NAME]),
    "calendars list": ("/calendars", {"items": [CALENDAR]}, [str(CALENDAR["name"])]),
    "notifications list": (
        "/notifications", {"items": [NOTIFICATION]}, [str(NOTIFICATION["name"])]
    ),
    "status": ("/status", {"as_of": AT, "segments": [SEGMENT], "lanes": LANES}, []),
    "tasks": ("/deployment", {"tasks": [NAME.replace(" ", "_")]}, [NAME.replace(" ", "_")]),
    "logs " + RUN_ID: (
        f"/runs/{RUN_ID}/logs", {"items": [{"at": AT, "level": "INFO", "message": LONG}]}, []
    ),
}  # fmt: skip
CUT = ("runs list j1", "dead-letters list", "operations list", "calendars list")
RECORDS: dict[str, tuple[str, Any, list[str]]] = {
    "runs show " + RUN_ID: (f"/jobs/{JOB_ID}/runs/{RUN_ID}", RUN | {"attempts": [RUN]}, [RUN_ID]),
    "jobs show j1": ("/jobs/j1", JOB, [JOB_ID, NAME]),
    "operations show o1": ("/operations/o1", OPERATION, [OPERATION_ID, JOB_ID]),
}


@pytest.fixture(params=[80, 120])
def width(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """The width of a terminal that stdout is, without colours."""
    wide: int = request.param
    monkeypatch.setenv("COLUMNS", str(wide))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    stream = typer.testing._NamedTextIOWrapper
    monkeypatch.setattr(stream, "isatty", lambda self: self.name == "<stdout>")
    assert shutil.get_terminal_size().columns == wide
    return wide


@pytest.mark.parametrize("command", [*TABLES, *RECORDS])
def test_each_id_and_name_is_whole_on_one_line(
    signed_in: Run, api: FakeApi, width: int, command: str
) -> None:
    path, answer, whole = (TABLES | RECORDS)[command]
    api.answer("GET", "/jobs", {"items": [JOB], "next_cursor": None})
    api.answer("GET", path, {"next_cursor": None, **answer})

    result = signed_in(*command.split(" "))

    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    for text in whole:
        assert any(text in line for line in lines), (text, result.stdout)
    if command in TABLES:
        # An id that is longer than the terminal is wide has a line of its own, which wraps.
        assert all(len(line) <= width or line.strip() in whole for line in lines), result.stdout


@pytest.mark.parametrize("command", TABLES)
def test_wide_shows_all_of_it(signed_in: Run, api: FakeApi, width: int, command: str) -> None:
    path, answer, whole = TABLES[command]
    api.answer("GET", "/jobs", {"items": [JOB], "next_cursor": None})
    api.answer("GET", path, {"next_cursor": None, **answer})

    told = signed_in(*command.split(" "), "--wide").stdout

    assert "…" not in told
    assert all(text in told for text in whole)
    assert LONG.strip() in told or command not in CUT


def test_off_a_terminal_columns_are_plain_and_times_iso(signed_in: Run, api: FakeApi) -> None:
    api.answer("GET", "/dead-letters", {"items": [RUN], "next_cursor": None})

    told = signed_in("dead-letters", "list").stdout

    assert (AT in told, LONG.strip() in told, "\x1b" in told) == (True, True, False)
