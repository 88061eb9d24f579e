"""`carillon logs`, `tasks`, `top`, `completion`, `logout` and `open`; names in a shell."""

import json
import subprocess
import sys
import threading
from collections import Counter
from datetime import UTC, datetime, timedelta
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from carillon.cli import completing
from carillon.cli.client import ApiClient
from carillon.cli.commands.runs.logs import follow_lines
from carillon.cli.commands.runs.top import Looks, drawn, look
from carillon.client.sign_in import Credentials, Refresh, load_credentials, save_credentials
from carillon.console.loopback import Loopback
from tests.unit.cli.conftest import FakeApi, Run

JOB_ID = "e5vqzve7xs7cfr6w7dlxrjm3pj"
RUN_ID = f"{JOB_ID}_20260101T110000Z_scheduled_0"
LOGS = f"/runs/{RUN_ID}/logs"


def _line(second: int, message: str = "said") -> dict[str, Any]:
    return {"at": f"2026-01-01T11:00:{second:02}Z", "level": "INFO", "message": message}


def test_logs_of_a_run_and_of_the_newest_run_of_a_job(signed_in: Run, api: FakeApi) -> None:
    api.answer("GET", LOGS, {"items": [_line(1)], "next_cursor": "c"})
    api.then("GET", LOGS, {"items": [_line(2)], "next_cursor": None})
    callback = {"run_id": f"{JOB_ID}_20260101T110000Z_callback-scheduled-0-_0", "kind": "callback"}
    redriven = {"run_id": f"{JOB_ID}_0", "kind": "scheduled", "settled": "redriven"}
    rows = [callback, redriven, {"run_id": RUN_ID, "kind": "scheduled"}]
    api.answer("GET", "/jobs/nightly/runs", {"items": rows, "next_cursor": None})

    assert json.loads(signed_in("logs", RUN_ID, "--json").stdout) == [_line(1), _line(2)]
    # The API knows no other parameter there.
    assert [request.query for request in api.requests] == [{}, {"cursor": "c"}]
    assert signed_in("logs", "nightly").stdout.splitlines()[1].split() == [
        "2026-01-01T11:00:02Z", "INFO", "said"
    ]  # fmt: skip


def test_a_job_that_has_not_run_has_no_logs(signed_in: Run, api: FakeApi) -> None:
    api.answer("GET", "/jobs/nightly/runs", {"items": [], "next_cursor": None})

    told = signed_in("logs", "nightly")

    assert (told.exit_code, "nightly has not run" in told.stderr) == (4, True)


def test_logs_are_followed_until_the_run_has_ended_and_no_line_is_new(
    api: FakeApi, client: ApiClient, capsys: pytest.CaptureFixture[str]
) -> None:
    slept: list[float] = []
    api.answer("GET", f"/jobs/{JOB_ID}/runs/{RUN_ID}", {"status": "running"})
    api.then("GET", f"/jobs/{JOB_ID}/runs/{RUN_ID}", {"status": "succeeded"})
    api.answer("GET", LOGS, {"items": [_line(2)], "next_cursor": None})
    # One that is late stands before one that was told; a line may be there twice.
    late = {"items": [_line(1), _line(2), _line(2)], "next_cursor": None}
    api.then("GET", LOGS, late)

    follow_lines(client, RUN_ID, as_json=True, sleep=slept.append)

    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines == [_line(2), _line(1), _line(2)]
    assert slept == [5.0, 5.0]


def test_tasks_are_the_registered_names(signed_in: Run, api: FakeApi) -> None:
    api.answer("GET", "/deployment", {"tasks": ["echo", "reports.nightly"]})

    assert signed_in("tasks").stdout.split() == ["name", "echo", "reports.nightly"]
    assert json.loads(signed_in("tasks", "--json").stdout)[0] == {"name": "echo"}


PICTURE = {
    "/status": {"state": "idle", "active_jobs": 3, "paused_jobs": 1},
    "/runs/summary": {
        "buckets": [
            {"counts": {"succeeded": 30, "dead": 1}, "lag": {"p50": 0.1, "p99": 0.5}},
            {"counts": {"succeeded": 12, "dead": 0}, "lag": {"p50": 0.2, "p99": 0.3}},
        ],
        "complete": False,
    },
    "/runs": {
        "items": [
            {
                "run_id": RUN_ID, "job_name": "nightly [red]", "status": "dead", "attempt": 3,
                "at": "2026-01-01T11:00:05Z", "lag_seconds": 0.1, "error_kind": "http_503",
            }
        ]
    },
    "/upcoming": {"items": [{"fire_at": "2026-01-01T11:10:00Z", "name": "sync"}]},
}  # fmt: skip


def test_top_off_a_terminal_is_one_picture(signed_in: Run, api: FakeApi) -> None:
    for path, answer in PICTURE.items():
        api.answer("GET", path, answer)

    result = signed_in("top")
    told = result.stdout

    assert "42 succeeded  1 dead" in told
    assert "jobs  3 active  1 paused" in told
    assert "lag in the worst minute  p50 0.20 s  p99 0.50 s" in told
    assert "not all is counted" in result.stderr
    assert "http_503" in told
    assert json.loads(signed_in("top", "--json").stdout)["counts"] == {"succeeded": 42, "dead": 1}


def test_top_asks_for_sums_once_a_minute(api: FakeApi, client: ApiClient) -> None:
    for path, answer in PICTURE.items():
        api.answer("GET", path, answer)
    pictures, began = Looks(client), datetime(2026, 1, 1, 11, 7, tzinfo=UTC)
    for seconds in range(0, 61, 3):
        pictures.at(began + timedelta(seconds=seconds))
    asked = Counter(request.path.partition("?")[0] for request in api.requests)
    assert asked == {"/runs": 21, "/runs/summary": 2, "/status": 2, "/upcoming": 2}


def test_top_sums_up_the_last_hour_and_no_part_of_the_one_before(
    api: FakeApi, client: ApiClient
) -> None:
    """By the hour a sum begins with the whole hour in which the span does."""
    for path, answer in PICTURE.items():
        api.answer("GET", path, answer)
    look(client, datetime(2026, 1, 1, 11, 59, tzinfo=UTC))
    (query,) = [each.query for each in api.requests if each.path.startswith("/runs/summary")]
    assert (query["from"], query["by"]) == ("2026-01-01T10:59:00Z", "minute")


def test_top_shows_what_is_to_start_later_in_its_window(api: FakeApi, client: ApiClient) -> None:
    for path, answer in PICTURE.items():
        api.answer("GET", path, answer)
    coming = {"fire_at": "2026-01-01T11:07:00Z", "effective_at": "2026-01-01T11:09:00Z"}
    api.answer("GET", "/upcoming", {"items": [{**coming, "name": "sync"}]})
    pictures, began = Looks(client), datetime(2026, 1, 1, 11, 6, 59, tzinfo=UTC)
    shown = [len(pictures.at(began + timedelta(seconds=each)).upcoming) for each in (0, 3)]
    assert shown == [1, 1]


def test_top_is_drawn_for_people(api: FakeApi, client: ApiClient) -> None:
    from rich.console import Console

    for path, answer in PICTURE.items():
        api.answer("GET", path, answer)
    now = datetime(2026, 1, 1, 11, 7, tzinfo=UTC)
    console = Console(width=60, record=True, force_terminal=False)

    with console.capture() as got:
        console.print(drawn(look(client, now), now, 60, 24))

    lines = got.get().splitlines()
    assert lines[0].startswith("carillon top   11:07:00 UTC")
    assert "11:00:05  dead    nightly [red]  http_503" in [line.rstrip() for line in lines]
    assert "in 3 min  sync" in [line.rstrip() for line in lines]
    assert "a limit was reached: not all is counted" in [line.rstrip() for line in lines]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_for_each_shell(run: Run, shell: str) -> None:
    told = run("completion", shell)

    assert (told.exit_code, f"_CARILLON_COMPLETE=complete_{shell}" in told.stdout) == (0, True)


@pytest.mark.parametrize(
    ("typed", "completed"), [("ni", r"nightly\ report"), ("'ni", "nightly report")]
)
def test_bash_gets_a_name_with_a_space_as_one_word(
    run: Run, tmp_path: Path, typed: str, completed: str
) -> None:
    script, program = tmp_path / "script", tmp_path / "carillon"
    script.write_text(run("completion", "bash").stdout)
    program.write_text("#!/bin/sh\necho nightly report\n")
    program.chmod(0o700)
    ask = 'source "$0"; COMP_WORDS=(carillon logs "$2"); COMP_CWORD=2; _carillon_completion "$1"'

    told = subprocess.run(
        ["bash", "-c", f'{ask}; printf "%s\\n" "${{COMPREPLY[@]}}"', script, program, typed],
        capture_output=True, text=True, check=True,
    )  # fmt: skip

    assert told.stdout == f"{completed}\n"


def test_names_are_completed_from_the_api(
    api: FakeApi,
    signed_in: Run,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from carillon.cli.main import main

    api.answer("GET", "/jobs", {"items": [{"name": "nightly-report"}], "next_cursor": None})
    for name, value in (
        ("_CARILLON_COMPLETE", "complete_bash"),
        ("COMP_WORDS", "carillon jobs show ni"),
        ("COMP_CWORD", "3"),
    ):
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "argv", ["carillon"])

    with pytest.raises(SystemExit) as ended:
        main()

    assert (ended.value.code, capsys.readouterr().out.strip()) == (0, "nightly-report")
    assert api.requests[0].query["q"] == "ni"


@pytest.mark.parametrize(
    ("shell", "told"),
    [
        ("bash", "nightly report\nsync: CRM"),
        ("fish", "nightly report\nsync: CRM"),
        # A colon would part a name from its description.
        ("zsh", '_arguments \'*: :(("nightly report"\n"sync\\\\: CRM"))\''),
    ],
)
def test_names_with_spaces_and_colons_are_told_as_each_shell_reads_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], shell: str, told: str
) -> None:
    from carillon.cli.main import main

    monkeypatch.setattr(completing, "_names", lambda path, query: ["nightly report", "sync: CRM"])
    for name, value in (
        ("_CARILLON_COMPLETE", f"complete_{shell}"),
        ("COMP_WORDS", "carillon jobs show "),
        ("COMP_CWORD", "3"),
        ("_TYPER_COMPLETE_ARGS", "carillon jobs show "),
        ("_TYPER_COMPLETE_FISH_ACTION", "get-args"),
    ):
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "argv", ["carillon"])

    with pytest.raises(SystemExit):
        main()

    assert capsys.readouterr().out.strip() == told


def test_completion_is_silent_and_soon_over_where_there_is_no_api(
    signed_in: Run, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert completing.job_names("x") == []  # 404

    never = threading.Event()
    monkeypatch.setattr(completing, "_SECONDS", 0.01)
    monkeypatch.setattr(completing, "_names", lambda path, query: never.wait(5))
    assert completing.job_names("x") == []
    never.set()
    assert capfd.readouterr().err == ""


def test_logout_forgets_and_revokes(run: Run, api: FakeApi, credentials_file: Path) -> None:
    save_credentials(credentials_file, Credentials(api.url, "t", Refresh(api.url, "client", "r")))
    api.answer("POST", "/", {})

    told = run("logout")

    assert (told.exit_code, told.stdout) == (0, f"signed out of {api.url}\n")
    assert load_credentials(credentials_file) is None
    assert api.requests[0].body == {"Token": "r", "ClientId": "client"}
    assert run("logout").stdout == "not signed in\n"


def test_logout_goes_without_cognito(run: Run, api: FakeApi, credentials_file: Path) -> None:
    save_credentials(credentials_file, Credentials(api.url, "t", Refresh(api.url, "client", "r")))

    told = run("logout")

    assert (told.exit_code, "not revoked at Cognito" in told.stderr) == (0, True)
    assert load_credentials(credentials_file) is None


def test_open_shows_the_page_of_a_job(signed_in: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a file that only its owner reads: the command line of a browser is everybody's."""
    shown: list[str] = []

    def show(address: str) -> None:
        file = Path(urlsplit(address).path)
        assert (file.parent.stat().st_mode & 0o077, file.exists()) == (0, True)
        shown.extend([address, unescape(file.read_text())])

    monkeypatch.setattr("webbrowser.open", show)
    monkeypatch.setattr(Loopback, "serve", lambda self: None)

    told = signed_in("open", JOB_ID)

    assert told.stdout.strip().endswith(f"&to=/jobs/{JOB_ID}")
    address, page = shown
    assert "key=" not in address
    assert f'url={told.stdout.strip()}"' in page
    assert not Path(urlsplit(address).path).parent.exists()
    assert signed_in("open", JOB_ID, "--no-browser").exit_code == 0
    assert len(shown) == 2


def test_the_console_acts_for_the_command_s_team(
    signed_in: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Loopback, "serve", lambda self: None)

    opened = signed_in("open", JOB_ID, "--no-browser", "--team", "billing")
    assert opened.stdout.strip().endswith(f"&team=billing&to=/jobs/{JOB_ID}")
    assert signed_in("--team", "billing", "console").stdout.strip().endswith("&team=billing")
