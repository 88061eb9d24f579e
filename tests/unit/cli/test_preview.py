"""`carillon preview` for one schedule."""

import json
from pathlib import Path

import pytest

from tests.unit.cli.conftest import FakeApi, Run


# Europe/Riga puts its clocks forward at 2026-03-29T01:00:00Z: 03:00 becomes 04:00.
def test_json_is_an_array_of_utc_and_local_times(run: Run) -> None:
    result = run(
        "preview", "17 * * * *", "--timezone", "Europe/Riga",
        "--after", "2026-03-29T00:00:00Z", "--count", "5", "--json",
    )  # fmt: skip

    assert result.exit_code == 0
    assert json.loads(result.stdout) == [
        {"fire_at": "2026-03-29T00:17:00Z", "local": "2026-03-29T02:17:00+02:00"},
        {"fire_at": "2026-03-29T01:17:00Z", "local": "2026-03-29T04:17:00+03:00"},
        {"fire_at": "2026-03-29T02:17:00Z", "local": "2026-03-29T05:17:00+03:00"},
        {"fire_at": "2026-03-29T03:17:00Z", "local": "2026-03-29T06:17:00+03:00"},
        {"fire_at": "2026-03-29T04:17:00Z", "local": "2026-03-29T07:17:00+03:00"},
    ]


def test_people_get_the_sentence_the_table_and_the_cost(run: Run) -> None:
    result = run(
        "preview", "0 9 * * MON-FRI", "--timezone", "Europe/Riga", "--after",
        "2026-01-01T00:00:00Z", "--count", "2",
    )  # fmt: skip

    lines = result.stdout.splitlines()
    assert (result.exit_code, result.stderr) == (0, "")
    assert lines[:6] == [
        "every weekday at 09:00 in Europe/Riga",
        "",
        "fire_at               local",
        "2026-01-01T07:00:00Z  2026-01-01T09:00:00+02:00",
        "2026-01-02T07:00:00Z  2026-01-02T09:00:00+02:00",
        "",
    ]
    # Under both of the zone's offsets; 22 weekdays among the 30 days from 1 January on.
    assert lines[-3:] == [
        "on the wheel      2 entries (daily)",
        "fires per month   22",
        "cost per month    less than $0.01",
    ]


# Europe/Riga puts its clocks forward at 2026-03-29T01:00:00Z: 03:00 becomes 04:00.
def test_the_explanation_tells_what_the_clocks_do(run: Run) -> None:
    arguments = (
        "preview", "30 3 * * *", "--timezone", "Europe/Riga", "--after", "2026-03-28T12:00:00Z",
        "--count", "1",
    )  # fmt: skip
    told = json.loads(run(*arguments, "--explain", "--json").stdout)
    shown = run(*arguments).stdout

    assert list(told) == [
        "description", "occurrences", "warnings", "transitions", "slots", "fires_per_month",
        "dollars_per_month", "window_seconds",
    ]  # fmt: skip
    assert told["occurrences"] == [
        {"fire_at": "2026-03-29T01:00:00Z", "local": "2026-03-29T04:00:00+03:00"}
    ]
    assert told["slots"]["kind"] == "daily"
    assert told["fires_per_month"] == 30
    assert 0 < told["dollars_per_month"] < 0.001
    assert told["window_seconds"] is None
    spring, autumn, next_spring = told["transitions"]
    assert {name: spring[name] for name in spring if name != "effect"} == {
        "transition_at": "2026-03-29T01:00:00Z",
        "kind": "gap",
        "local_from": "2026-03-29T03:00:00",
        "local_until": "2026-03-29T04:00:00",
        "count": 1,
        "first_local": "2026-03-29T03:30:00",
    }
    assert (autumn["transition_at"], autumn["kind"]) == ("2026-10-25T01:00:00Z", "fold")
    assert next_spring["transition_at"] == "2027-03-28T01:00:00Z"
    assert [warning["code"] for warning in told["warnings"]] == ["dst"]
    for transition in told["transitions"]:
        assert f"Clock change {transition['transition_at']}: {transition['effect']}\n" in shown
    # It says nothing that the transitions do not.
    assert "Warning" not in shown


def test_warnings_that_are_not_of_the_clocks_are_shown(run: Run) -> None:
    shown = run("preview", "30 3 13 * 5", "--timezone", "Europe/Riga").stdout

    assert "\nWarning: Day-of-month 13 and day-of-week 5 both restrict" in shown


def test_a_clock_change_of_many_times_is_told_once(run: Run) -> None:
    shown = run(
        "preview", "*/10 * * * *", "--timezone", "America/New_York", "--after",
        "2027-03-14T06:00:00Z", "--count", "1",
    ).stdout  # fmt: skip

    line = next(line for line in shown.splitlines() if line.startswith("Clock change"))
    assert line == (
        "Clock change 2027-03-14T07:00:00Z: 02:00 to 02:50 (6 times) do not exist on 2027-03-14: "
        "are left out"
    )


def test_bounds_exceptions_and_the_dst_rule(run: Run) -> None:
    def fires(*more: str) -> list[str]:
        result = run(
            "preview", "30 3 * * * | 0 12 * * *", "--timezone", "Europe/Riga", "--after",
            "2026-03-28T12:00:00Z", "--json", "--count", "3", *more,
        )  # fmt: skip
        assert result.exit_code == 0
        return [row["fire_at"] for row in json.loads(result.stdout)]

    gap, noon, night = "2026-03-29T01:00:00Z", "2026-03-29T09:00:00Z", "2026-03-30T00:30:00Z"
    assert fires() == [gap, noon, night]
    assert fires("--dst-gap", "skip") == [noon, night, "2026-03-30T09:00:00Z"]
    assert fires("--max-runs", "2") == [gap, noon]
    assert fires("--end-at", "2026-03-29T12:00:00") == [gap, noon]
    assert fires("--except", "* * * * SUN", "--max-runs", "1") == [night]
    assert fires("--start-at", "2026-03-30T00:00:00", "--max-runs", "1") == [night]


def test_max_runs_ends_what_is_explained(run: Run) -> None:
    result = run(
        "preview", "0 9 * * *", "--after", "2026-01-01T00:00:00Z", "--max-runs", "3", "--explain",
        "--json",
    )  # fmt: skip

    told = json.loads(result.stdout)
    assert len(told["occurrences"]) == told["fires_per_month"] == 3
    assert "2026-01-03" in told["description"]


def test_a_window_shows_the_largest_offset(run: Run) -> None:
    arguments = ("preview", "every 1h", "--window", "50%")

    told = json.loads(run(*arguments, "--explain", "--json").stdout)

    assert told["window_seconds"] == 1799
    assert "starts at most 1799 s later" in run(*arguments).stdout


@pytest.mark.parametrize(
    ("rule", "fire_at", "note"),
    [
        ("skip", "2026-12-29T09:00:00Z", None),
        ("next_business_day", "2026-12-29T09:00:00Z", "moved from 2026-12-25"),
        ("previous_business_day", "2026-12-23T09:00:00Z", "moved from 2026-12-25"),
    ],
)
def test_a_calendar_in_a_file(
    run: Run, tmp_path: Path, rule: str, fire_at: str, note: str | None
) -> None:
    file = tmp_path / "holidays.json"
    closed = {
        "weekdays": ["sat", "Sunday"],
        "dates": ["2026-12-28"],
        "ranges": [{"from": "2026-12-24", "to": "2026-12-25"}],
    }
    file.write_text(json.dumps(closed))
    # 25 December is a Friday.
    arguments = (
        "preview", "0 9 25,29 12 *", "--after", "2026-12-01T00:00:00Z", "--count", "1",
        "--calendar-file", str(file), "--calendar-rule", rule,
    )  # fmt: skip

    bare = json.loads(run(*arguments, "--json").stdout)
    told = json.loads(run(*arguments, "--explain", "--json").stdout)
    shown = run(*arguments).stdout

    assert bare == [{"fire_at": fire_at, "local": fire_at.replace("Z", "+00:00")}]
    assert told["occurrences"] == [bare[0] | ({} if note is None else {"note": note})]
    assert "calendar holidays" in told["description"]
    assert (f"  {note}\n" in shown) == (note is not None)


# The clocks of New York jump on Sunday 2027-03-14 at 07:00 UTC.
@pytest.mark.parametrize(
    ("weekdays", "codes", "changes"),
    [
        (["sat"], ["dst"], ["2027-03-14T07:00:00Z"]),
        (["sun"], [], []),
        (["mon", "tue", "wed", "thu", "fri", "sat", "sun"], ["far_away"], []),
    ],
)
def test_what_a_calendar_leaves_out_is_not_explained(
    run: Run, tmp_path: Path, weekdays: list[str], codes: list[str], changes: list[str]
) -> None:
    file = tmp_path / "closed.json"
    file.write_text(json.dumps({"weekdays": weekdays}))

    result = run(
        "preview", "30 2 * * *", "--timezone", "America/New_York", "--after",
        "2027-03-10T12:00:00Z", "--calendar-file", str(file), "--explain", "--json",
    )  # fmt: skip

    told = json.loads(result.stdout)
    assert [warning["code"] for warning in told["warnings"]] == codes
    assert [transition["transition_at"] for transition in told["transitions"]] == changes


def test_a_fixed_delay_skips_closed_days(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "sundays.json"
    file.write_text('{"weekdays": ["sun"]}')
    # 1 March 2026 is a Sunday, which begins in Riga at 22:00 UTC.
    arguments = (
        "preview", "every 1h after finish", "--timezone", "Europe/Riga", "--after",
        "2026-02-28T20:00:00Z", "--count", "2", "--calendar-file", str(file),
    )  # fmt: skip

    bare = json.loads(run(*arguments, "--json").stdout)
    told = json.loads(run(*arguments, "--explain", "--json").stdout)

    runs = [
        {"fire_at": "2026-02-28T21:00:00Z", "local": "2026-02-28T23:00:00+02:00"},
        {"fire_at": "2026-03-01T22:00:00Z", "local": "2026-03-02T00:00:00+02:00"},
    ]
    closed = {
        "fire_at": "2026-02-28T22:00:00Z",
        "local": "2026-03-01T00:00:00+02:00",
        "note": "2026-03-01 is closed in calendar sundays",
    }
    assert bare == runs
    assert told["occurrences"] == [runs[0], closed]


def test_a_fixed_delay_without_an_open_day_never_runs(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "closed.json"
    file.write_text('{"weekdays": ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]}')

    result = run("preview", "every 1h after finish", "--calendar-file", str(file), "--json")

    assert (result.exit_code, json.loads(result.stdout)) == (0, [])


def test_a_window_ends_before_what_a_calendar_moves_near(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "weekend.json"
    file.write_text('{"weekdays": ["sat", "sun"]}')

    def largest(rule: str) -> int:
        result = run(
            "preview", "0 9 * * 6 | 30 9 * * 1", "--window", "24h", "--calendar-file", str(file),
            "--calendar-rule", rule, "--explain", "--json",
        )  # fmt: skip
        return int(json.loads(result.stdout)["window_seconds"])

    # Saturday's at 09:00 moves to Monday, half an hour before Monday's own.
    assert largest("next_business_day") == 30 * 60 - 1
    assert largest("skip") == 24 * 3600 - 1


@pytest.mark.parametrize("schedule", ["every 25m offset 2m", '{"every": "25m", "offset": "2m"}'])
def test_text_and_json_forms_count_from_start_at(run: Run, schedule: str) -> None:
    result = run(
        "preview", schedule, "--timezone", "Europe/Riga", "--start-at", "2026-01-10T00:00:00",
        "--after", "2026-01-01", "--count", "2", "--json",
    )  # fmt: skip

    # Midnight of the start is Riga's, since it has no offset: 22:00 UTC of the day before.
    assert [row["local"] for row in json.loads(result.stdout)] == [
        "2026-01-10T00:27:00+02:00",
        "2026-01-10T00:52:00+02:00",
    ]


def test_after_without_offset_is_local_time_of_the_zone(run: Run) -> None:
    result = run(
        "preview", "0 * * * *", "--timezone", "America/New_York",
        "--after", "2026-01-01T10:30", "--count", "1", "--json",
    )  # fmt: skip

    assert json.loads(result.stdout)[0]["local"] == "2026-01-01T11:00:00-05:00"


@pytest.mark.parametrize("moment", ["1971-01-01T00:00:00-12:00", "9997-12-31T18:59:59"])
def test_the_first_and_the_last_year(run: Run, moment: str) -> None:
    result = run("preview", "30 2 * * *", "--timezone", "America/New_York", "--after", moment)

    assert (result.exit_code, result.stderr) == (0, "")
    assert "every day at 02:30 in America/New_York" in result.stdout


def test_a_schedule_that_is_over_yields_an_empty_array(run: Run) -> None:
    result = run("preview", "at 2020-01-01T00:00:00", "--json")

    assert (result.exit_code, json.loads(result.stdout)) == (0, [])
    assert "No occurrence is left.\n" in run("preview", "at 2020-01-01T00:00:00").stdout


def test_a_stored_calendar_is_asked_for(signed_in: Run, api: FakeApi) -> None:
    stored = {"name": "latvia", "weekdays": ["sat", "sun"], "dates": ["2026-12-25"], "ranges": []}
    api.answer("GET", "/calendars/latvia", stored)
    given = ["0 9 * * *", "--after", "2026-12-24T12:00:00Z", "--count", "1", "--json"]

    told = signed_in("preview", *given, "--calendar", "latvia")

    assert [coming["fire_at"] for coming in json.loads(told.stdout)] == ["2026-12-28T09:00:00Z"]
    assert signed_in("preview", *given, "--calendar", "a", "--calendar-file", "b").exit_code == 2
    assert signed_in("preview", *given, "--calendar", "none").exit_code == 4
