"""Every command on a terminal of 80 and of 120 columns, and off one: ids and names stand whole."""

import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
import typer.testing
from rich.console import Console
from typer.main import get_command

from carillon.cli.commands.runs.top import Picture, drawn
from carillon.cli.tree import app
from tests.unit.cli.conftest import FakeApi, Run
from tests.unit.cli.rendered import (
    AT,
    ELSEWHERE,
    JOB,
    LONG,
    LONGEST,
    NAME,
    OCCURRENCE,
    RECORDS,
    RUN,
    TABLES,
)

CUT = ("runs list j1", "dead-letters list", "operations list", "calendars list")
CASES = TABLES | RECORDS


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


def _commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[str]:
    """Each command of the tree, by its whole name."""
    below = getattr(command, "commands", None)
    if below is None:
        yield " ".join(path)
    for name, each in (below or {}).items():
        yield from _commands(each, (*path, name))


def test_no_command_is_forgotten() -> None:
    commands = set(_commands(get_command(app)))
    shown = {name for name in commands if any(f"{case} ".startswith(f"{name} ") for case in CASES)}

    assert shown | ELSEWHERE == commands
    assert not shown & ELSEWHERE


def _told(signed_in: Run, api: FakeApi, command: str, *more: str) -> str:
    request, answer, _ = CASES[command]
    api.answer("GET", "/jobs", {"items": [JOB], "next_cursor": None})
    if command == "top":
        api.answer("GET", "/status", {"state": "idle", "active_jobs": 3})
        api.answer("GET", "/runs/summary", {"buckets": []})
        api.answer("GET", "/upcoming", {"items": [OCCURRENCE]})
    method, _, path = request.rpartition(" ")
    api.answer(method or "GET", path, {"next_cursor": None, **answer})
    result = signed_in(*command.split(" "), *more)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.parametrize("command", [case for case in CASES if case != "top"])
def test_each_id_and_name_is_whole_on_one_line(
    signed_in: Run, api: FakeApi, width: int, command: str
) -> None:
    told = _told(signed_in, api, command)

    whole, lines = CASES[command][2], told.splitlines()
    for text in whole:
        assert any(text in line for line in lines), (text, told)
    if command in TABLES:
        # What is longer than the terminal is wide has a line of its own, which the terminal wraps.
        assert all(len(line) <= width or line in whole for line in lines), told


@pytest.mark.parametrize("command", CASES)
def test_off_a_terminal_columns_are_plain_and_times_iso(
    signed_in: Run, api: FakeApi, command: str
) -> None:
    told = _told(signed_in, api, command)

    assert all(text in told for text in CASES[command][2])
    assert not [sign for sign in ("\x1b", "…", " ago", "in 0 s") if sign in told]
    assert LONG.strip() in told or command not in CUT
    assert AT in told or AT not in str(CASES[command][1]) or command in UNTIMED


UNTIMED = ("jobs list", "report --by job", "notifications test n-1")
"""These tell no instant."""


@pytest.mark.parametrize("command", [case for case in TABLES if case != "top"])
def test_wide_shows_all_of_it(signed_in: Run, api: FakeApi, width: int, command: str) -> None:
    told = _told(signed_in, api, command, "--wide")

    assert "…" not in told
    assert all(text in told for text in CASES[command][2])
    assert LONG.strip() in told or command not in CUT


@pytest.mark.parametrize("wide", [80, 120])
@pytest.mark.parametrize("high", [12, 24])
def test_top_draws_whole_names_and_what_comes_next(wide: int, high: int) -> None:
    console = Console(width=wide, height=high, force_terminal=False)
    runs = [RUN | {"job_name": NAME, "outcome": LONG}] * 10
    now = datetime(2026, 1, 1, 11, 7, tzinfo=UTC)
    picture = Picture({"active_jobs": 3}, {"dead": 1}, None, True, runs, [OCCURRENCE])

    with console.capture() as got:
        console.print(drawn(picture, now, wide, high))

    *_, above, title, coming = lines = got.get().splitlines()
    assert (above.strip(), title.strip(), NAME in coming) == ("", "next", True)
    assert any(NAME in line for line in lines[:-1])
    assert len(lines) <= high
    assert all(len(line) <= wide for line in lines)


def test_the_longest_id_is_among_the_cases() -> None:
    # Only a scheduled, manual or backfill run starts another job's, and that one none.
    assert len(LONGEST) == 127
