"""`carillon preview` for one schedule."""

import json

import pytest

from tests.unit.cli.conftest import Run


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


def test_table_off_a_terminal_is_plain_columns(run: Run) -> None:
    result = run("preview", "0 9 * * *", "--after", "2026-01-01T00:00:00Z", "--count", "1")

    assert result.stdout.splitlines() == [
        "fire_at               local",
        "2026-01-01T09:00:00Z  2026-01-01T09:00:00+00:00",
    ]


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


def test_a_schedule_that_is_over_yields_an_empty_array(run: Run) -> None:
    result = run("preview", "at 2020-01-01T00:00:00", "--json")

    assert (result.exit_code, json.loads(result.stdout)) == (0, [])


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (["61 * * * *"], "schedule"),
        (['{"every": "0s"}'], "schedule.every"),
        (['{"every": '], "schedule"),
        (["0 * * * *", "--timezone", "Europe/Rigga"], "timezone"),
        (["0 * * * *", "--after", "yesterday"], "after"),
        (["0 * * * *", "--after", "0001-01-01T00:00:00+05:00"], "after"),
        (["0 * * * *", "--start-at", "2026-13-01"], "start_at"),
    ],
)
def test_bad_input_is_named_by_field(run: Run, arguments: list[str], field: str) -> None:
    plain = run("preview", *arguments)
    as_json = run("preview", *arguments, "--json")

    assert (plain.exit_code, as_json.exit_code) == (3, 3)
    assert plain.stdout == as_json.stdout == ""
    assert plain.stderr.splitlines()[1].startswith(f"  {field}: ")
    assert [error["field"] for error in json.loads(as_json.stderr)["errors"]] == [field]


@pytest.mark.parametrize(
    "arguments",
    [[], ["0 * * * *", "--batch"], ["0 * * * *", "--count", "0"], ["0 * * * *", "--cuont", "1"]],
)
def test_a_wrong_command_line_ends_with_2(run: Run, arguments: list[str]) -> None:
    assert run("preview", *arguments).exit_code == 2
