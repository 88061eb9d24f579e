"""`carillon calendars ...` against an API that records what it is sent."""

import json
from pathlib import Path
from typing import Any

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


def test_delete(signed_in: Run, api: FakeApi) -> None:
    api.answer("DELETE", "/calendars/a", status=204)

    assert signed_in("calendars", "delete", "a").stdout == "deleted a\n"
    answer = json.loads(signed_in("calendars", "delete", "a", "--json").stdout)
    assert answer == {"name": "a", "state": "deleted"}
