"""`carillon calendars ...` against an API that records what it is sent."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.conftest import FakeApi, Run

CALENDAR: dict[str, Any] = {
    "name": "holidays",
    "revision": 2,
    "description": "Latvia",
    "weekdays": ["saturday", "sunday"],
    "dates": ["2026-12-25", "2026-12-26"],
    "ranges": [{"from": "2026-12-30", "to": "2027-01-01"}],
    "updated_at": "2026-11-20T00:00:00Z",
}


def test_put_sends_the_days_given_as_options(signed_in: Run, api: FakeApi) -> None:
    api.answer("PUT", "/calendars/holidays", CALENDAR, status=201)

    result = signed_in(
        "calendars", "put", "holidays", "--weekday", "sat", "--weekday", "sun",
        "--date", "2026-12-25", "--range", "2026-12-30..2027-01-01", "--description", "Latvia",
        "--json",
    )  # fmt: skip

    assert (result.exit_code, json.loads(result.stdout)) == (0, CALENDAR)
    assert api.requests[0].body == {
        "weekdays": ["sat", "sun"],
        "dates": ["2026-12-25"],
        "ranges": [{"from": "2026-12-30", "to": "2027-01-01"}],
        "description": "Latvia",
    }


def test_put_sends_files_with_the_options_over_them(
    signed_in: Run, api: FakeApi, tmp_path: Path
) -> None:
    api.answer("PUT", "/calendars/holidays", CALENDAR)
    ics = tmp_path / "latvia.ics"
    ics.write_bytes("\ufeffBEGIN:VCALENDAR\r\nSUMMARY:Jāņi\r\n".encode())
    body = {"weekdays": ["sat"], "dates": ["2026-06-24"]}

    result = signed_in(
        "calendars", "put", "holidays", "--file", "-", "--ics", str(ics), "--weekday", "sun",
        stdin=json.dumps(body),
    )  # fmt: skip

    assert result.exit_code == 0
    assert api.requests[0].body == {
        "weekdays": ["sun"],
        "dates": ["2026-06-24"],
        "icalendar": "BEGIN:VCALENDAR\r\nSUMMARY:Jāņi\r\n",
    }
    assert [line.split()[0] for line in result.stdout.splitlines()] == list(CALENDAR)


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (["--range", "2026-12-30"], "ranges[0]"),
        (["--ics", "/nowhere/at/all"], "icalendar"),
        (["--ics", "-"], "icalendar"),
        (["--file", "-"], "file"),
    ],
)
def test_what_cannot_be_sent_is_refused_here(
    signed_in: Run, api: FakeApi, arguments: list[str], field: str
) -> None:
    result = signed_in("calendars", "put", "a", *arguments, "--json", stdin=b"\xff")

    assert result.exit_code == 3
    assert [error["field"] for error in json.loads(result.stderr)["errors"]] == [field]
    assert api.requests == []


@pytest.mark.parametrize("arguments", [[], ["--file", "-", "--ics", "-"]])
def test_nothing_to_put_is_a_wrong_command_line(
    signed_in: Run, api: FakeApi, arguments: list[str]
) -> None:
    assert signed_in("calendars", "put", "a", *arguments).exit_code == 2
    assert api.requests == []


def test_list_reads_every_page(signed_in: Run, api: FakeApi) -> None:
    api.answer("GET", "/calendars", {"items": [CALENDAR], "next_cursor": "c"})
    api.then("GET", "/calendars", {"items": [{"name": "none"}], "next_cursor": None})
    table = signed_in("calendars", "list").stdout.splitlines()
    api.answer("GET", "/calendars", {"items": [CALENDAR], "next_cursor": None})
    as_json = signed_in("calendars", "list", "--json").stdout

    assert [row.split() for row in table] == [
        ["name", "weekdays", "dates", "ranges", "description", "updated_at"],
        ["holidays", "saturday", "sunday", "2", "1", "Latvia", "2026-11-20T00:00:00Z"],
        ["none", "-", "0", "0", "-", "-"],
    ]
    assert json.loads(as_json) == [CALENDAR]


def test_show_prints_every_field(signed_in: Run, api: FakeApi) -> None:
    api.answer("GET", "/calendars/holidays", CALENDAR)

    lines = signed_in("calendars", "show", "holidays").stdout.splitlines()

    assert [line.split()[0] for line in lines] == list(CALENDAR)


def test_delete(signed_in: Run, api: FakeApi) -> None:
    api.answer("DELETE", "/calendars/a", status=204)

    assert signed_in("calendars", "delete", "a").stdout == "deleted a\n"
    answer = json.loads(signed_in("calendars", "delete", "a", "--json").stdout)
    assert answer == {"name": "a", "state": "deleted"}


def test_a_calendar_in_use_is_a_conflict(signed_in: Run, api: FakeApi) -> None:
    problem = {"title": "Conflict", "status": 409, "detail": "jobs use it: j1, j2"}
    api.answer("DELETE", "/calendars/a", problem, status=409)

    result = signed_in("calendars", "delete", "a")

    assert result.exit_code == 6
    assert "j1, j2" in result.stderr


@pytest.mark.parametrize("command", ["show", "delete"])
def test_a_name_is_one_part_of_the_path(signed_in: Run, api: FakeApi, command: str) -> None:
    assert signed_in("calendars", command, "..").exit_code == 3
    assert api.requests == []
    assert signed_in("calendars", command, "a/b").exit_code == 4
    assert [request.path for request in api.requests] == ["/calendars/a%2Fb"]
