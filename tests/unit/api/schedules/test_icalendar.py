"""Import of iCalendar files: which days they close, and what is refused in bounded time."""

import subprocess
import sys
from datetime import date, timedelta
from threading import Thread
from time import monotonic
from typing import Any

import pytest

from carillon.api.calendars import icalendar as icalendar_days
from carillon.api.calendars.icalendar import closed_ranges
from carillon.api.calendars.models import LARGEST_ICALENDAR_BYTES
from carillon.errors import InvalidFieldError
from tests.unit.api.conftest import NOW
from tests.unit.api.gateway import Client


def event(*lines: str, uid: str = "1") -> str:
    return "".join(f"{line}\r\n" for line in ("BEGIN:VEVENT", f"UID:{uid}", *lines, "END:VEVENT"))


def calendar(*events: str) -> str:
    head = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//test//EN\r\n"
    return head + "".join(events) + "END:VCALENDAR\r\n"


def zone(name: str, offset: str) -> str:
    """The definition of a time zone that is always as far from UTC."""
    lines = ("DTSTART:19700101T000000", f"TZOFFSETFROM:{offset}", f"TZOFFSETTO:{offset}")
    inside = ("BEGIN:STANDARD", *lines, "END:STANDARD")
    whole = ("BEGIN:VTIMEZONE", f"TZID:{name}", *inside, "END:VTIMEZONE")
    return "".join(f"{line}\r\n" for line in whole)


def closed(*lines: str) -> list[str]:
    """The days that an event closes, as `first..last`."""
    ranges = closed_ranges(calendar(event(*lines)), NOW)
    return [str(first) if first == last else f"{first}..{last}" for first, last in ranges]


@pytest.mark.parametrize(
    ("lines", "days"),
    [
        # RFC 5545, 3.6.1: DTEND is exclusive; without it an event of a date lasts that day.
        (["DTSTART;VALUE=DATE:20261224"], ["2026-12-24"]),
        (["DTSTART;VALUE=DATE:20261224", "DTEND;VALUE=DATE:20261225"], ["2026-12-24"]),
        (["DTSTART;VALUE=DATE:20261224", "DTEND;VALUE=DATE:20261227"], ["2026-12-24..2026-12-26"]),
        (["DTSTART;VALUE=DATE:20261224", "DURATION:P2D"], ["2026-12-24..2026-12-25"]),
        (["DTSTART:20261224T090000Z"], ["2026-12-24"]),
        (["DTSTART:20261224T090000Z", "DTEND;VALUE=DATE:20261225"], ["2026-12-24"]),
        (["DTSTART:20261224T090000Z", "DTEND:20261224T100000Z"], ["2026-12-24"]),
        (["DTSTART:20261224T230000Z", "DTEND:20261225T000000Z"], ["2026-12-24"]),
        (["DTSTART:20261224T230000Z", "DTEND:20261225T000001Z"], ["2026-12-24..2026-12-25"]),
        (
            ["DTSTART;TZID=Europe/Riga:20261224T000000", "DTEND;TZID=Europe/Riga:20261225T000000"],
            ["2026-12-24"],
        ),
        (["DTSTART;VALUE=DATE:20261224", "STATUS:CANCELLED"], []),
        (["DTSTART;VALUE=DATE:20261224", "STATUS:TENTATIVE"], ["2026-12-24"]),
        (["DTSTART;VALUE=DATE:20261224", "TRANSP:TRANSPARENT"], ["2026-12-24"]),
        (
            ["DTSTART;VALUE=DATE:20261223", "RDATE;VALUE=DATE:20261229"],
            ["2026-12-23", "2026-12-29"],
        ),
        # Last year's first day to the last of the fifth year from now: 2025-01-01 to 2031-12-31.
        (["DTSTART;VALUE=DATE:20241231"], []),
        (["DTSTART;VALUE=DATE:20250101"], ["2025-01-01"]),
        (["DTSTART;VALUE=DATE:20311231"], ["2031-12-31"]),
        (["DTSTART;VALUE=DATE:20320101"], []),
        (["DTSTART;VALUE=DATE:20200101", "DTEND;VALUE=DATE:20400101"], ["2025-01-01..2031-12-31"]),
        (["DTSTART;VALUE=DATE:19000101", "RRULE:FREQ=DAILY"], ["2025-01-01..2031-12-31"]),
        (
            ["DTSTART;VALUE=DATE:19701225", "RRULE:FREQ=YEARLY"],
            [f"{year}-12-25" for year in range(2025, 2032)],
        ),
        (
            # Thanksgiving.
            ["DTSTART;VALUE=DATE:20261126", "RRULE:FREQ=YEARLY;BYMONTH=11;BYDAY=4TH;COUNT=3"],
            ["2026-11-26", "2027-11-25", "2028-11-23"],
        ),
        (
            [
                "DTSTART;VALUE=DATE:20260105",
                "RRULE:FREQ=WEEKLY;UNTIL=20260126",
                "EXDATE;VALUE=DATE:20260112",
            ],
            ["2026-01-05", "2026-01-19", "2026-01-26"],
        ),
        (
            ["DTSTART:20260131T120000Z", "RRULE:FREQ=MONTHLY;BYMONTHDAY=-1;COUNT=2"],
            ["2026-01-31", "2026-02-28"],
        ),
    ],
)
def test_which_days_an_event_closes(lines: list[str], days: list[str]) -> None:
    assert closed(*lines) == days


def test_one_cancelled_day_of_a_series_is_open() -> None:
    series = event("DTSTART;VALUE=DATE:20260105", "RRULE:FREQ=WEEKLY;COUNT=3")
    lines = ("RECURRENCE-ID;VALUE=DATE:20260112", "STATUS:CANCELLED")
    cancelled = event("DTSTART;VALUE=DATE:20260112", *lines)

    ranges = closed_ranges(calendar(series, cancelled), NOW)

    assert [first for first, _ in ranges] == [date(2026, 1, 5), date(2026, 1, 19)]


def test_days_side_by_side_become_one_range() -> None:
    events = [
        event(f"DTSTART;VALUE=DATE:202612{day}", uid=str(n))
        for n, day in enumerate((26, 24, 25, 25))
    ]

    assert closed_ranges(calendar(*events), NOW) == [(date(2026, 12, 24), date(2026, 12, 26))]


def test_the_newer_of_two_revisions_of_an_event_counts() -> None:
    older = event("DTSTART;VALUE=DATE:20260105", "SEQUENCE:1")
    newer = event("DTSTART;VALUE=DATE:20260106", "SEQUENCE:2")

    assert closed_ranges(calendar(newer, older), NOW) == [(date(2026, 1, 6), date(2026, 1, 6))]


def test_a_byte_order_mark_is_no_part_of_the_file() -> None:
    text = "\ufeff" + calendar(event("DTSTART;VALUE=DATE:20260105"))

    assert closed_ranges(text, NOW) == [(date(2026, 1, 5), date(2026, 1, 5))]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "cannot be read"),
        ("hello", "hello"),
        ("\0", "cannot be read"),
        ("BEGIN:VCALENDAR\r\n", "cannot be read"),
        (calendar() + calendar(), "cannot be read"),
        (event("DTSTART;VALUE=DATE:20260105"), "VCALENDAR"),
        (calendar(), "has no events"),
        (calendar("BEGIN:VTODO\r\nUID:1\r\nEND:VTODO\r\n"), "has no events"),
        (calendar(event("DTSTART;VALUE=DATE:2026010")), "line 4: the event that begins here has"),
        (calendar(event("DTSTART;VALUE=DATE:20261345")), "DTSTART"),
        (calendar(event("SUMMARY:x")), "has no DTSTART"),
        (calendar(event("DTSTART;VALUE=DATE:20260105", "nonsense line")), "nonsense line"),
        (calendar(event("DTSTART:20260105T000000Z", "RRULE:FREQ=SECONDLY")), "recurs SECONDLY"),
        (calendar(event("DTSTART:20260105T000000Z", "RRULE:FREQ=HOURLY")), "recurs HOURLY"),
        (calendar(event("DTSTART:20260105T000000Z", "RRULE:FREQ=DAILY;BYSECOND=0")), "BYSECOND"),
        (calendar(event("DTSTART:20260105T000000Z", "RRULE:FREQ=DAILY;INTERVAL=0")), "INTERVAL"),
        (calendar(event("DTSTART:20260105T000000Z", "RRULE:nonsense")), "recurs never"),
        (calendar(event("DTSTART:20260105T000000Z", "RRULE:FREQ=OFTEN")), "RRULE"),
        (calendar(event("DTSTART:20260105T000000Z", "RRULE:FREQ=DAILY;UNTIL=x")), "RRULE"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_reason(text: str, word: str) -> None:
    with pytest.raises(InvalidFieldError) as refused:
        closed_ranges(text, NOW)

    assert refused.value.field == "icalendar"
    assert word in refused.value.message


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (event("SUMMARY:x", uid="2"), "has no DTSTART"),
        (event("DTSTART;VALUE=DATE:20261224"), "has the UID of one before it"),
        (event("DTSTART;VALUE=DATE:99991231", uid="2"), "cannot be read"),
        (event("DTSTART;VALUE=DATE:20261224", "DTSTART:20261225", uid="2"), "twice"),
        (
            event("DTSTART;VALUE=DATE:20261224", "DTEND;VALUE=DATE:20261223", uid="2"),
            "ends before it begins",
        ),
        (
            event("DTSTART:20261224T090000Z", "DTEND:20261224T085959Z", uid="2"),
            "ends before it begins",
        ),
        (event("DTSTART;VALUE=DATE:20261224", "DURATION:-P1D", uid="2"), "ends before it begins"),
        (
            event("DTSTART:20261224T090000Z", "DTEND;VALUE=DATE:20261223", uid="2"),
            "ends before it begins",
        ),
    ],
)
def test_the_line_of_the_bad_event_is_told(bad: str, reason: str) -> None:
    text = calendar(event("DTSTART;VALUE=DATE:20260105"), bad)

    with pytest.raises(InvalidFieldError, match=f"line 8: the event that begins here .*{reason}"):
        closed_ranges(text, NOW)


def test_a_rule_that_never_matches_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """dateutil looks for 30 February until the year 9999: seconds for each such rule."""
    monkeypatch.setattr(icalendar_days, "LONGEST_SECONDS", 0.2)
    rule = ("DTSTART;VALUE=DATE:20260105", "RRULE:FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30")
    started = monotonic()

    with pytest.raises(InvalidFieldError, match="takes too long"):
        closed_ranges(calendar(*(event(*rule, uid=str(n)) for n in range(5))), NOW)

    assert monotonic() - started < 2
    # Nothing of the limit is left behind.
    assert closed("DTSTART;VALUE=DATE:20261224") == ["2026-12-24"]


def test_many_occurrences_are_refused_before_they_are_listed() -> None:
    daily = ("DTSTART;VALUE=DATE:20250101", "RRULE:FREQ=DAILY")
    events = [event(*daily, uid=str(n)) for n in range(9)]

    with pytest.raises(InvalidFieldError, match="more than 20000 occurrences"):
        closed_ranges(calendar(*events), NOW)


def test_a_file_over_the_limit_is_not_even_read() -> None:
    with pytest.raises(InvalidFieldError, match=f"the limit is {LARGEST_ICALENDAR_BYTES} bytes"):
        closed_ranges("ž" * (LARGEST_ICALENDAR_BYTES // 2 + 1), NOW)


def test_it_works_in_any_thread() -> None:
    found: list[Any] = []
    thread = Thread(target=lambda: found.append(closed("DTSTART;VALUE=DATE:20261224")))
    thread.start()
    thread.join()

    assert found == [["2026-12-24"]]


@pytest.mark.parametrize("name", ["Office", "W. Europe Standard Time", "/example.com/Europe/Riga"])
def test_a_zone_that_a_file_defines_is_none_of_the_next_file_s(name: str) -> None:
    """Files may be of different owners, and such names are in many programs' files."""
    nightly = event(
        f"DTSTART;TZID={name}:20260401T003000",
        f"DTEND;TZID={name}:20260401T010000",
        "RRULE:FREQ=DAILY;UNTIL=20260403T223000Z",
        "EXDATE:20260401T223000Z",
    )
    closed_ranges(calendar(zone(name, "-1100"), event("DTSTART;VALUE=DATE:20260101")), NOW)
    days = closed_ranges(calendar(zone(name, "+0200"), nightly), NOW)
    first, third, fourth = (date(2026, 4, day) for day in (1, 3, 4))
    assert days == [(first, first), (third, fourth)]


def test_imported_days_are_merged_with_the_others_and_the_text_is_not_kept(client: Client) -> None:
    text = calendar(
        event("DTSTART;VALUE=DATE:20261224", "DTEND;VALUE=DATE:20261227"),
        event("DTSTART;VALUE=DATE:20260501", uid="2"),
    )
    body = {"icalendar": text, "dates": ["2026-05-01", "2026-01-01"], "weekdays": ["sun"]}

    answer = client.put("/calendars/holidays", body)

    assert (answer.status, "icalendar" in answer.json) == (201, False)
    assert answer.json["weekdays"] == ["sun"]
    assert answer.json["dates"] == ["2026-01-01", "2026-05-01"]
    assert answer.json["ranges"] == [{"from": "2026-12-24", "to": "2026-12-26"}]


def test_a_bad_file_is_named_and_nothing_is_stored(client: Client) -> None:
    answer = client.put("/calendars/holidays", {"icalendar": calendar(event("SUMMARY:x"))})

    assert (answer.status, answer.fields) == (422, ["icalendar"])
    assert client.get("/calendars/holidays").status == 404


def test_more_days_than_a_calendar_takes_are_refused(client: Client) -> None:
    """Every other day of seven years is about 1,280 dates; with as many given it is too much."""
    rule = ("DTSTART;VALUE=DATE:20250101", "RRULE:FREQ=DAILY;INTERVAL=2")
    dates = [str(date(2040, 1, 1) + timedelta(days=2 * n)) for n in range(1_000)]

    answer = client.put("/calendars/x", {"icalendar": calendar(event(*rule)), "dates": dates})

    assert (answer.status, answer.fields) == (422, ["icalendar"])
    assert "2000 are the most" in answer.json["detail"]


def test_the_libraries_are_loaded_only_where_a_file_comes() -> None:
    """They take a third of a second, which every cold start would pay for."""
    code = "import sys, carillon.api.app; print('icalendar' in sys.modules)"

    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert found.stdout.strip() == "False"
