"""`carillon operations ...`, `jobs backfill`, `jobs missed`, and waiting for an operation's end."""

import io
import json
import sys
from typing import Any

import pytest
import typer

from carillon.cli.client import ApiClient
from carillon.cli.exits import CliError
from carillon.cli.polling import finish, fraction_of
from tests.unit.cli.conftest import SENT, FakeApi, Run

RUNNING: dict[str, Any] = {
    "operation_id": "o1",
    "kind": "backfill",
    "state": "running",
    "job_id": "j1",
    "from": "2026-01-01T00:00:00Z",
    "to": "2026-01-02T00:00:00Z",
    "reached": "2026-01-01T06:00:00Z",
    "done": 6,
    "passed_over": 0,
}
SUCCEEDED = {**RUNNING, "state": "succeeded", "done": 24, "reached": "2026-01-02T00:00:00Z"}
BUSY = {"message": "Service Unavailable"}


def test_list_as_table_and_json(signed_in: Run, api: FakeApi) -> None:
    api.answer("GET", "/operations", {"items": [RUNNING], "next_cursor": None})

    header, row = signed_in("operations", "list").stdout.splitlines()

    assert header.split() == [
        "operation_id", "kind", "state", "job_id", "done", "passed_over", "reached", "created_at",
        "note",
    ]  # fmt: skip
    assert row.split() == [
        "o1", "backfill", "running", "j1", "6", "0", "2026-01-01T06:00:00Z", "-", "-"
    ]  # fmt: skip
    assert json.loads(signed_in("operations", "list", "--json").stdout) == [RUNNING]


def test_show_and_cancel(signed_in: Run, api: FakeApi) -> None:
    api.answer("GET", "/operations/o1", RUNNING)
    api.answer("POST", "/operations/o1/cancel", {**RUNNING, "state": "cancelled"})

    shown = signed_in("operations", "show", "o1")
    cancelled = signed_in("operations", "cancel", "o1", "--json")

    # One that is still under way was not waited for: this is no failure.
    assert (shown.exit_code, len(shown.stdout.splitlines())) == (0, len(RUNNING))
    assert json.loads(cancelled.stdout)["state"] == "cancelled"
    assert cancelled.exit_code == 0


@pytest.mark.parametrize(
    ("options", "more"),
    [([], {"only": "all"}), (["--only", "missed", "--per-minute", "6"],
                             {"only": "missed", "per_minute": 6})],
)  # fmt: skip
def test_backfill_sends_its_span(
    signed_in: Run, api: FakeApi, options: list[str], more: dict[str, Any]
) -> None:
    api.answer("POST", "/jobs/j1/backfill", RUNNING, status=202)

    result = signed_in(
        "jobs", "backfill", "j1", "--from", "2026-01-01", "--to", "2026-01-02",
        "--idempotency-key", "k", *options, "--json",
    )  # fmt: skip

    assert (result.exit_code, json.loads(result.stdout)) == (0, RUNNING)
    (request,) = api.requests
    span = {"from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z"}
    assert request.body == {**span, **more}
    assert request.headers["idempotency-key"] == "k"


def test_missed_lists_what_has_no_success(signed_in: Run, api: FakeApi) -> None:
    item = {
        "fire_at": "2026-01-01T00:00:00Z", "status": "skipped", "reason": "paused", "run_id": "r",
    }  # fmt: skip
    never = {"fire_at": "2026-01-02T00:00:00Z", "status": None, "reason": None, "run_id": None}
    api.answer("GET", "/jobs/j1/missed", {"items": [item, never], "complete": True})
    api.then("GET", "/jobs/j1/missed", {"items": [item], "complete": False, "from": "2026-01-01"})

    table = signed_in("jobs", "missed", "j1")
    cut_off = signed_in("jobs", "missed", "j1", "--from", "2026-01-01", "--limit", "1", "--json")

    assert [row.split() for row in table.stdout.splitlines()] == [
        ["fire_at", "status", "reason", "run_id"],
        ["2026-01-01T00:00:00Z", "skipped", "paused", "r"],
        ["2026-01-02T00:00:00Z", "-", "-", "-"],
    ]
    assert table.stderr == ""
    assert json.loads(cut_off.stdout) == [item]
    assert "since 2026-01-01; give an earlier --to" in cut_off.stderr
    assert [request.query for request in api.requests] == [
        {"limit": "100"},
        {"from": "2026-01-01T00:00:00Z", "limit": "1"},
    ]


def test_missed_names_a_command_that_takes_its_options(signed_in: Run, api: FakeApi) -> None:
    api.answer("POST", "/jobs/j1/backfill", RUNNING, status=202)
    told = " ".join(signed_in("jobs", "missed", "--help").stdout.split())
    command = told.partition("`carillon ")[2].partition("`")[0]
    words = command.replace("JOB", "j1").replace("...", "2026-01-01").split()

    assert words[:2] == ["jobs", "backfill"]
    assert signed_in(*words).exit_code == 0


def test_waiting_ends_with_the_operation(
    api: FakeApi, client: ApiClient, capsys: pytest.CaptureFixture[str]
) -> None:
    slept: list[float] = []
    api.answer("GET", "/operations/o1", RUNNING)
    for _ in range(SENT):
        api.then("GET", "/operations/o1", BUSY, status=503)
    api.then("GET", "/operations/o1", SUCCEEDED)
    api.answer("GET", "/operations/o1/outcomes", {"counts": {"running": 4}, "next_cursor": "c"})
    ended = {"counts": {"succeeded": 20}, "next_cursor": None}
    api.then("GET", "/operations/o1/outcomes", ended)
    api.then("GET", "/operations/o1/outcomes", ended)
    api.then("GET", "/operations/o1/outcomes", {"counts": {"succeeded": 24}, "next_cursor": None})

    finish(client, RUNNING, wait=True, as_json=True, sleep=slept.append)

    captured = capsys.readouterr()
    assert json.loads(captured.out) == {**SUCCEEDED, "runs": {"succeeded": 24}}
    assert json.loads(captured.err)["status"] == 503
    # Four were running at first, then four had no row yet.
    assert slept == [2.0, 2.0, 2.0, 2.0, 2.0]
    assert {"cursor": "c"} in [request.query for request in api.requests]


def test_a_large_backfill_is_looked_at_more_rarely(api: FakeApi, client: ApiClient) -> None:
    """Each look reads the rows of all its runs, as many as 50,000 in fifty requests."""
    slept: list[float] = []
    sent = {**SUCCEEDED, "done": 50_000}
    api.answer("GET", "/operations/o1", sent)
    many = {"counts": {"succeeded": 49_000, "running": 1_000}, "next_cursor": None}
    api.answer("GET", "/operations/o1/outcomes", many)
    api.then(
        "GET", "/operations/o1/outcomes", {"counts": {"succeeded": 50_000}, "next_cursor": None}
    )

    finish(client, sent, wait=True, as_json=True, sleep=slept.append)

    assert sum(slept) == 2 + 100 + 2


def test_a_backfill_with_failed_runs_is_an_error(
    api: FakeApi, client: ApiClient, capsys: pytest.CaptureFixture[str]
) -> None:
    api.answer("GET", "/operations/o1", SUCCEEDED)
    counts = {"succeeded": 20, "skipped": 1, "dead": 3}
    api.answer("GET", "/operations/o1/outcomes", {"counts": counts, "next_cursor": None})

    with pytest.raises(typer.Exit) as ended:
        finish(client, SUCCEEDED, wait=True, as_json=True, sleep=lambda seconds: None)

    assert ended.value.exit_code == 1
    assert json.loads(capsys.readouterr().out)["runs"] == counts


@pytest.mark.parametrize("state", ["failed", "cancelled"])
def test_one_that_was_waited_for_and_did_not_succeed_is_an_error(
    api: FakeApi, client: ApiClient, capsys: pytest.CaptureFixture[str], state: str
) -> None:
    api.answer("GET", "/operations/o1", {**RUNNING, "state": state, "note": "gave up"})
    api.answer("GET", "/operations/o1/outcomes", {"counts": {"running": 1}, "next_cursor": None})

    with pytest.raises(typer.Exit) as ended:
        finish(client, RUNNING, wait=True, as_json=False, sleep=lambda seconds: None)

    assert ended.value.exit_code == 1
    assert "gave up" in capsys.readouterr().out


def test_an_api_that_stays_away_ends_the_waiting(api: FakeApi, client: ApiClient) -> None:
    api.answer("GET", "/operations/o1", BUSY, status=503)

    with pytest.raises(CliError):
        finish(client, RUNNING, wait=True, as_json=True, sleep=lambda seconds: None)

    assert len(api.requests) == 10 * SENT


def test_who_stops_waiting_is_told_that_it_goes_on(
    api: FakeApi, client: ApiClient, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(seconds: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        finish(client, RUNNING, wait=True, as_json=False, sleep=interrupt)

    captured = capsys.readouterr()
    assert "carillon operations show o1 --wait" in captured.err
    assert captured.out == ""


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_a_bar(
    api: FakeApi, client: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    api.answer("GET", "/operations/o1", SUCCEEDED)
    api.answer("GET", "/operations/o1/outcomes", {"counts": {"succeeded": 24}, "next_cursor": None})

    operation = {**RUNNING, "kind": "[red]x\x1b[2J"}
    finish(client, operation, wait=True, as_json=True, sleep=lambda seconds: None)

    assert r"[red]x\x1b[2J: 6 done, 0 passed over" in terminal.getvalue()


@pytest.mark.parametrize(
    ("changed", "fraction"),
    [
        ({}, 0.25),
        ({"reached": "2026-01-03T00:00:00Z"}, 1.0),
        ({"reached": "2025-01-03T00:00:00Z"}, 0.0),
        ({"reached": None}, None),
        ({"from": None}, None),
        ({"to": "2026-01-01T00:00:00Z"}, None),
    ],
)
def test_how_far_it_is(changed: dict[str, Any], fraction: float | None) -> None:
    assert fraction_of({**RUNNING, **changed}) == fraction
