"""`carillon forecast`: the answer as it is, and drawn."""

import json
import shutil
import sys
from typing import Any

import pytest

from carillon.cli.commands.overview import _write
from carillon.cli.display.charts import ASCII, BLOCKS, bars, columns_of
from tests.unit.cli.conftest import FakeApi, Run
from tests.unit.cli.test_output import Terminal

FORECAST: dict[str, Any] = {
    "from": "2026-12-01T00:00:00Z",
    "to": "2026-12-01T02:00:00Z",
    "complete": True,
    "total": 1_212,
    "peaks": [
        {"minute": "2026-12-01T01:00:00Z", "fires": 1_200, "jobs": ["nightly", "re\x1bport"]},
        {"minute": "2026-12-01T00:10:00Z", "fires": 12, "jobs": ["hourly"]},
    ],
    "minutes": [
        {"minute": "2026-12-01T00:10:00Z", "fires": 12},
        {"minute": "2026-12-01T01:00:00Z", "fires": 1_200},
    ],
}


def test_json_is_the_answer(signed_in: Run, api: FakeApi) -> None:
    api.answer("GET", "/forecast", FORECAST)

    result = signed_in(
        "forecast", "--from", "2026-12-01", "--to", "2026-12-01T04:00:00+02:00", "--json"
    )

    assert (json.loads(result.stdout), result.stderr) == (FORECAST, "")
    assert api.requests[0].query == {"from": "2026-12-01T00:00:00Z", "to": "2026-12-01T02:00:00Z"}


def test_the_span_is_the_apis_unless_given(signed_in: Run, api: FakeApi) -> None:
    api.answer("GET", "/forecast", {**FORECAST, "complete": False})

    result = signed_in("forecast")

    assert api.requests[0].query == {}
    assert "not all of your jobs" in result.stderr


def test_off_a_terminal_the_chart_is_plain(signed_in: Run, api: FakeApi) -> None:
    api.answer("GET", "/forecast", FORECAST)

    lines = signed_in("forecast").stdout.splitlines()

    # 121 minutes in 73 columns: two each, so that minutes 10 and 60 stand in columns 5 and 30.
    assert lines[0] == "1,212 fires from 2026-12-01T00:00:00Z to 2026-12-01T02:00:00Z"
    assert lines[2] == " " * 6 + " " * 5 + "b" + " " * 24 + "a"
    assert lines[3] == "1,200 " + " " * 30 + "#"
    assert lines[4] == " " * 36 + "#"
    assert lines[10] == " " * 11 + "#" + " " * 24 + "#"
    assert lines[11] == " " * 6 + "2026-12-01T00:00:00Z" + " " * 21 + "2026-12-01T02:00:00Z"
    assert lines[12].endswith("each column is the busiest of 2 minutes")
    assert [line.split() for line in lines[14:]] == [
        ["peak", "minute", "fires", "name"],
        ["a", "2026-12-01T01:00:00Z", "1200", "nightly"],
        [r"re\x1bport"],
        ["b", "2026-12-01T00:10:00Z", "12", "hourly"],
    ]
    assert max(map(len, lines)) <= 80


def test_on_a_terminal_the_chart_has_its_width(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("COLUMNS", "140")
    assert shutil.get_terminal_size().columns == 140

    _write(FORECAST)

    printed = terminal.getvalue()
    assert "█" in printed
    assert "▁" in printed
    assert "each column is a minute" in printed


def test_nothing_to_come(signed_in: Run, api: FakeApi) -> None:
    api.answer("GET", "/forecast", {**FORECAST, "total": 0, "peaks": [], "minutes": []})

    result = signed_in("forecast")

    assert result.stdout == "0 fires from 2026-12-01T00:00:00Z to 2026-12-01T02:00:00Z\n"


@pytest.mark.parametrize(
    "wrong",
    [
        {"minutes": None},
        {"peaks": [{"minute": "soon"}]},
        {"minutes": [{"minute": "2025-01-01T00:00:00Z", "fires": 1}]},
        {"minutes": [{"minute": "2027-01-01T00:00:00Z", "fires": 1}]},
    ],
)
def test_an_answer_that_is_no_forecast_is_unexpected(
    signed_in: Run, api: FakeApi, wrong: dict[str, Any]
) -> None:
    api.answer("GET", "/forecast", FORECAST | wrong)

    assert signed_in("forecast").exit_code == 1


@pytest.mark.parametrize(
    ("values", "width", "expected"),
    [
        ([1, 2, 3], 3, (1, [1, 2, 3])),
        ([1, 2, 3], 10, (1, [1, 2, 3])),
        ([1, 5, 3], 2, (2, [5, 3])),
        ([1, 5, 3, 2, 9], 2, (3, [5, 9])),
        ([], 5, (1, [])),
    ],
)
def test_a_column_shows_its_busiest_value(
    values: list[int], width: int, expected: tuple[int, list[int]]
) -> None:
    assert columns_of(values, width) == expected


def test_bars_of_eighths_and_of_wholes() -> None:
    assert bars([0, 1, 4, 8, 16], 2, BLOCKS) == ["    █", " ▁▄██"]
    # Whatever is not zero shows.
    assert bars([0, 1, 1_000], 3, ASCII) == ["  #", "  #", " ##"]
    assert bars([0, 0], 1, ASCII) == ["  "]
