"""`carillon preview --batch`: one answer per line, whatever the lines are."""

import json
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from infra.cli import occurrences
from shared.recurrence import zones
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
    lines = [
        json.dumps({**GOOD, name: "?"})
        for name in ("schedule", "timezone", "after", "count", "start_at", "other")
    ]

    named = [answer["error"].partition(":")[0] for answer in _answers(run, *lines)]

    assert named == ["schedule", "timezone", "after", "count", "start_at", "other"]


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
