"""`carillon preview --batch`: one answer per line, whatever the lines are."""

import json
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from carillon.cli.preview import local_schedule as occurrences
from carillon.cli.preview.batch import plain_batch
from carillon.cli.preview.local_schedule import PreviewRequest
from carillon.schedules.zones import offsets as zones
from tests.unit.cli.conftest import Run

GOOD: dict[str, Any] = {
    "schedule": "17 * * * *",
    "timezone": "Europe/Riga",
    "after": "2026-03-29T00:00:00Z",
    "count": 2,
}
GOOD_ANSWER = {"fire_at": ["2026-03-29T00:17:00Z", "2026-03-29T01:17:00Z"]}


def _answers(run: Run, *lines: str | bytes) -> list[dict[str, Any]]:
    encoded = [line if isinstance(line, bytes) else line.encode() for line in lines]
    result = run("preview", "--batch", stdin=b"\n".join(encoded))
    assert result.exit_code == 0
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_lines_are_answered_in_order(run: Run) -> None:
    every = {**GOOD, "schedule": {"every": "100m"}, "start_at": "2026-03-29T00:00:00Z"}
    over = {**GOOD, "schedule": "at 2020-01-01T00:00:00"}

    assert _answers(run, json.dumps(GOOD), json.dumps(every), json.dumps(over)) == [
        GOOD_ANSWER,
        {"fire_at": ["2026-03-29T01:40:00Z", "2026-03-29T03:20:00Z"]},
        {"fire_at": []},
    ]


def test_a_bad_line_takes_no_other_with_it(run: Run) -> None:
    bad: list[str | bytes] = [
        "not json",
        "",
        b"\xff\xfe\x00",
        "[" * 100_000,
        "[1]",
        "null",
        json.dumps({**GOOD, "schedule": "61 * * * *"}),
        json.dumps({**GOOD, "schedule": None}),
        json.dumps({**GOOD, "schedule": float("nan")}),
        json.dumps({**GOOD, "timezone": "Mars/Olympus"}),
        json.dumps({**GOOD, "timezone": 7}),
        json.dumps({**GOOD, "after": "soon"}),
        json.dumps({**GOOD, "count": True}),
        json.dumps({**GOOD, "count": 0}),
        json.dumps({**GOOD, "count": 10**9}),
        json.dumps({**GOOD, "start_at": 3}),
        json.dumps({**GOOD, "end_at": "2026-02-30"}),
        json.dumps({**GOOD, "max_runs": 0}),
        json.dumps({**GOOD, "max_runs": "2"}),
        json.dumps({**GOOD, "schedule": "every 5m after finish", "max_runs": 2}),
        json.dumps({**GOOD, "except": "17 * * * *"}),
        json.dumps({**GOOD, "except": [[]]}),
        json.dumps({**GOOD, "dst": "skip"}),
        json.dumps({**GOOD, "dst": {"gap": "leap"}}),
        json.dumps({**GOOD, "dst": {"gap": None}}),
        json.dumps({**GOOD, "dst": {"spring": "skip"}}),
        json.dumps({**GOOD, "time_zone": "UTC"}),
        json.dumps({"timezone": "UTC"}),
    ]
    good = json.dumps(GOOD)
    lines = [line for pair in ((entry, good) for entry in bad) for line in pair]

    answers = _answers(run, *lines)

    assert answers[1::2] == [GOOD_ANSWER] * len(bad)
    for line, answer in zip(bad, answers[::2], strict=True):
        assert list(answer) == ["error"], line
        assert answer["error"], line


def test_an_error_names_the_field(run: Run) -> None:
    names = [
        "schedule", "timezone", "after", "count", "start_at", "end_at", "max_runs", "except", "dst",
        "other",
    ]  # fmt: skip
    lines = [json.dumps({**GOOD, name: "?"}) for name in names]

    named = [answer["error"].partition(":")[0] for answer in _answers(run, *lines)]

    assert named == names


# Europe/Riga puts its clocks forward at 2026-03-29T01:00:00Z (03:00 becomes 04:00) and back at
# 2026-10-25T01:00:00Z (04:00 becomes 03:00).
@pytest.mark.parametrize(
    ("more", "fire_at"),
    [
        ({"end_at": "2026-03-29T00:17:00Z"}, ["2026-03-29T00:17:00Z"]),
        ({"end_at": "2026-03-29T02:17:00"}, ["2026-03-29T00:17:00Z"]),
        ({"max_runs": 1}, ["2026-03-29T00:17:00Z"]),
        ({"max_runs": 10_000}, ["2026-03-29T00:17:00Z", "2026-03-29T01:17:00Z"]),
        ({"except": ["* 2 * * *"]}, ["2026-03-29T01:17:00Z", "2026-03-29T02:17:00Z"]),
        ({"except": None, "dst": None, "end_at": None, "max_runs": None}, GOOD_ANSWER["fire_at"]),
        (
            {"schedule": ["30 3 29 3 *", "at 2026-03-29T05:00:00"]},
            ["2026-03-29T01:00:00Z", "2026-03-29T02:00:00Z"],
        ),
        (
            {"schedule": "30 3 * * *", "dst": {"gap": "skip"}},
            ["2026-03-30T00:30:00Z", "2026-03-31T00:30:00Z"],
        ),
        (
            {"schedule": "30 3 * * *", "after": "2026-10-25", "dst": {"fold": "both"}},
            ["2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"],
        ),
    ],
)
def test_bounds_exceptions_and_dst_rules(
    run: Run, more: dict[str, Any], fire_at: list[str]
) -> None:
    assert _answers(run, json.dumps(GOOD | more)) == [{"fire_at": fire_at}]


def test_the_options_of_all_lines(run: Run) -> None:
    line = json.dumps({"schedule": "30 3 * * *", "timezone": "Europe/Riga"})
    result = run(
        "preview", "--batch", "--after", "2026-03-28", "--except", "* * 31 3 *", "--dst-gap",
        "skip", "--max-runs", "2", stdin=line,
    )  # fmt: skip

    assert json.loads(result.stdout)["fire_at"] == ["2026-03-28T01:30:00Z", "2026-03-30T00:30:00Z"]


@pytest.mark.parametrize(
    ("arguments", "changed"),
    [
        ("preview --batch", {}),
        ("preview --json --batch --count=3", {"limit": 3}),
        ("preview --timezone Asia/Tokyo --batch --count 3", {"timezone": "Asia/Tokyo", "limit": 3}),
        ("preview --batch --start-at 2026-01-01 --end-at 2027-01-01 --max-runs 10000",
         {"start_at": "2026-01-01", "end_at": "2027-01-01", "max_runs": 10_000}),
        ("preview --batch --dst-gap skip --dst-fold both", {"gap": "skip", "fold": "both"}),
    ],
)  # fmt: skip
def test_a_plain_batch_is_read_without_typer(arguments: str, changed: dict[str, Any]) -> None:
    moment = ["--after", "2026-01-01T00:00:00Z"]

    request = plain_batch([*arguments.split(), *moment])

    assert request == PreviewRequest(None, "UTC", moment[1], 10)._replace(**changed)


@pytest.mark.parametrize(
    "arguments",
    [
        "", "preview", "preview x", "preview --batch x", "preview --batch --batch", "--json status",
        "preview --batch --explain", "preview --batch --count", "preview --batch --count 0",
        "preview --batch --count 10001", "preview --batch --count --after",
        "preview --batch --help", "preview --count --batch 3", "preview --batch --max-runs x",
        "--batch preview", "jobs --batch",
    ],
)  # fmt: skip
def test_every_other_command_line_is_left_to_typer(arguments: str) -> None:
    assert plain_batch(arguments.split()) is None


def test_members_left_out_are_taken_from_the_options(run: Run) -> None:
    line = json.dumps({"schedule": "17 * * * *", "start_at": None})
    result = run(
        "preview", "--batch", "--after", "2026-03-29T00:00:00Z", "--count", "2", stdin=line
    )

    assert json.loads(result.stdout) == GOOD_ANSWER


def test_no_lines_give_no_answers(run: Run) -> None:
    assert _answers(run) == []


def test_a_repeated_mistake_is_found_once(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    # A name that is no zone is compared with the names of all zones: milliseconds each time.
    looked_up: list[str] = []

    def load_zone(name: str) -> ZoneInfo:
        looked_up.append(name)
        return zones.load_zone(name)

    monkeypatch.setattr(occurrences, "load_zone", load_zone)
    line = json.dumps({**GOOD, "timezone": "Yurop/Reega"})

    answers = _answers(run, *[line] * 100)

    assert looked_up == ["Yurop/Reega"]
    assert answers == [answers[0]] * 100
