"""Command lines that are refused here, before anything is sent."""

import json
import shlex
from pathlib import Path

import pytest

from tests.unit.cli.conftest import FakeApi, Run

PREVIEW = "preview '0 * * * *'"
RUN_ID = "j1_20260101T000000Z_scheduled_0"
NO_TAGS = ("team=a,env:prod", "team:a=b", "'team=a\nb'", f"{'k' * 65}=a")
"""Sent all the same, `team:a,env:prod` would choose jobs with two other tags."""

# What a shell would split, and the field that the refusal names.
BAD_INPUT = [
    ("jobs create --payload '{not json'", "payload"),
    ("jobs create --payload NaN", "payload"),
    ("jobs create --payload @/nowhere/at/all", "payload"),
    ("jobs create --task a --payload 1e999", "request"),
    ("jobs create --task a --payload '\"\\ud800\"'", "request"),
    ("jobs create --file /nowhere/at/all", "file"),
    ("jobs create --file -", "file"),
    ("jobs create --schedule {", "schedule"),
    ("jobs create --schedule 'every 5m' --except '* * * * 1' --except [", "except[1]"),
    ("jobs create --target arn:aws:events:eu-north-1:1:event-bus/a", "target"),
    ("jobs create --target arn:aws:s3:::bucket", "target"),
    ("jobs create --target {", "target"),
    ("jobs create --on-success {", "on_success"),
    ("jobs create --on-failure arn:", "on_failure"),
    ("jobs create --concurrency database", "concurrency"),
    ("jobs create --concurrency =2", "concurrency"),
    ("jobs create --concurrency database=two", "concurrency.limit"),
    ("jobs create --rate 60", "rate"),
    ("jobs create --rate 60/", "rate"),
    ("jobs create --rate =60/1m", "rate"),
    ("jobs create --rate x/1m", "rate.limit"),
    ("jobs create --tag team", "tags"),
    ("jobs create --tag =billing", "tags"),
    ("jobs create --tag team=a --tag team=b", "tags"),
    ("jobs create --task a --idempotency-key ā", "request"),
    ("jobs create --task a --idempotency-key 'a\nb'", "request"),
    ("jobs create --task a --token ā", "token"),
    ("jobs create --task a --token 'a\nX-Other: b'", "token"),
    ("jobs import /nowhere/at/all", "file"),
    ("jobs show ..", "job"),
    ("jobs show .", "job"),
    ("jobs show ''", "job"),
    *((f"jobs {command} --parent ''", "parent") for command in ("pause", "resume", "delete")),
    *((f"jobs {command} --parent '' --tag a=b", "parent") for command in ("pause", "delete")),
    *((f"jobs {command} --tag a", "tags") for command in ("pause", "resume", "delete")),
    *((f"jobs {command} --tag ''", "tags") for command in ("pause", "resume", "delete")),
    *((f"jobs {command} --tag {tag}", "tag") for command in ("list", "delete") for tag in NO_TAGS),
    ("jobs backfill j1 --from soon --to 2026-01-01", "from"),
    ("runs list j1 --to soon", "to"),
    ("runs show j1", "run_id"),
    ("runs show ''", "run_id"),
    ("runs cancel _x", "job_id"),
    ("runs cancel .._x", "job_id"),
    ("operations show ..", "operation_id"),
    ("operations cancel ..", "operation_id"),
    ("dead-letters redrive --from soon", "from"),
    ("dead-letters discard --from soon", "from"),
    ("dead-letters redrive ..", "run_id"),
    ("dead-letters discard ..", "run_id"),
    ("calendars put a --range 2026-12-30", "ranges[0]"),
    ("calendars put a --ics /nowhere/at/all", "icalendar"),
    ("calendars put a --file -", "file"),
    ("calendars show ..", "name"),
    ("calendars delete ..", "name"),
    ("forecast --to noon", "to"),
    ("preview '61 * * * *'", "schedule"),
    ('preview \'{"every": "0s"}\'', "schedule.every"),
    ("preview '{\"every\": '", "schedule"),
    ("preview '{\"any\": []}'", "schedule"),
    ("preview 'every 5m after finish' --max-runs 3", "max_runs"),
    (f"{PREVIEW} --timezone Europe/Rigga", "timezone"),
    (f"{PREVIEW} --after yesterday", "after"),
    (f"{PREVIEW} --after 0001-01-01T00:00:00+05:00", "after"),
    (f"{PREVIEW} --after 0001-01-01 --timezone Asia/Tokyo", "after"),
    (f"{PREVIEW} --after 1970-12-31T23:59:59Z", "after"),
    (f"{PREVIEW} --after 1971-01-01T00:00:00+14:00", "after"),
    (f"{PREVIEW} --after 9997-12-31T23:00:00-12:00", "after"),
    (f"{PREVIEW} --after 9998-01-01T00:00:00Z", "after"),
    (f"{PREVIEW} --after 9999-12-31T23:59:59-12:00", "after"),
    (f"{PREVIEW} --start-at 2026-13-01", "start_at"),
    (f"{PREVIEW} --end-at noon", "end_at"),
    (f"{PREVIEW} --dst-gap leap", "dst.gap"),
    (f"{PREVIEW} --dst-fold leap", "dst.fold"),
    (f"{PREVIEW} --except [", "except[0]"),
    (f"{PREVIEW} --calendar-file /nowhere/at/all", "calendar"),
]
WRONG_COMMAND_LINES = [
    "jobs create",
    "jobs create --task a --webhook https://a.test",
    "jobs create --task a --target b",
    "jobs create --file - --payload @-",
    "jobs create --max-attempts many",
    "jobs change j1",
    "jobs change j1 --clear retry --clear retry.backoff.type",
    "jobs change j1 --clear retry.backoff --clear retry.backoff.type",
    "jobs change j1 --backoff fixed --clear retry.backoff.type",
    "jobs change j1 --grace 5m --clear grace",
    "jobs change j1 --tag a=b --clear tags.a",
    "jobs change j1 --tag a=b --clear tags",
    "jobs change j1 --name a --clear name.first",
    "jobs change j1 --clear tags --clear tags.a",
    "jobs change j1 --task a --webhook https://a.test",
    *(f"jobs {command}" for command in ("pause", "resume", "delete")),
    *(f"jobs {command} j1 --parent p" for command in ("pause", "resume", "delete")),
    *(f"jobs {command} j1 --tag a=b" for command in ("pause", "resume", "delete")),
    "jobs backfill j1",
    "jobs backfill j1 --from 2026-01-01",
    "runs list j1 --follow --from 2026-01-01",
    *(
        f"dead-letters {command} {which}"
        for command in ("redrive", "discard")
        for which in (
            "",
            f"{RUN_ID} --all",
            f"{RUN_ID} --job j1",
            f"{RUN_ID} --per-minute 5",
            f"{RUN_ID} --idempotency-key k",
            "--all --reason refused",
            "--all --per-minute 0",
        )
    ),
    "calendars put a",
    "calendars put a --file - --ics -",
    "preview",
    f"{PREVIEW} --batch",
    f"{PREVIEW} --count 0",
    f"{PREVIEW} --cuont 1",
    f"{PREVIEW} --max-runs 0",
    f"{PREVIEW} --calendar-rule skip",
    "preview --batch --explain",
    "preview --batch --window 5m",
    "preview --batch --calendar-file a.json",
    "preview --batch --calendar-rule skip",
]


@pytest.mark.parametrize(("line", "field"), BAD_INPUT)
def test_bad_input_is_named_by_field(signed_in: Run, api: FakeApi, line: str, field: str) -> None:
    plain = signed_in(*shlex.split(line), stdin="[1]")
    as_json = signed_in(*shlex.split(line), "--json", stdin=b"\xff")

    assert (plain.exit_code, as_json.exit_code) == (3, 3)
    assert plain.stdout == as_json.stdout == ""
    assert plain.stderr.splitlines()[1].startswith(f"  {field}: ")
    problem = json.loads(as_json.stderr)
    assert problem["title"] == "Bad input"
    assert [error["field"] for error in problem["errors"]] == [field]
    assert api.requests == []


@pytest.mark.parametrize("line", WRONG_COMMAND_LINES)
def test_a_wrong_command_line_ends_with_2(signed_in: Run, api: FakeApi, line: str) -> None:
    assert signed_in(*shlex.split(line)).exit_code == 2
    assert api.requests == []


def test_json_may_be_asked_for_before_the_command(signed_in: Run) -> None:
    result = signed_in("--json", "runs", "show", "j1")

    assert json.loads(result.stderr)["title"] == "Bad input"


@pytest.mark.parametrize(
    ("line", "content", "field"),
    [
        ("calendars put a --ics -", b"\xff", "icalendar"),
        ("jobs import -", "", "file"),
        ("jobs import -", "[]", "file"),
        ("jobs import -", "[1", "file"),
        ("jobs import -", b"\xff", "file"),
        ("jobs import -", '{"name": "a"}\nnope', "line 2"),
        ("jobs import -", '\n"a"', "line 2"),
        ("jobs import -", '[{"name": "a"}, 1]', "items[1]"),
    ],
)
def test_what_comes_in_by_stdin_is_looked_at_too(
    signed_in: Run, api: FakeApi, line: str, content: str | bytes, field: str
) -> None:
    result = signed_in(*shlex.split(line), "--json", stdin=content)

    assert result.exit_code == 3
    assert [error["field"] for error in json.loads(result.stderr)["errors"]] == [field]
    assert api.requests == []


@pytest.mark.parametrize(
    ("content", "field"),
    [
        ("[]", "calendar"),
        ('{"days": []}', "calendar.days"),
        ('{"dates": ["9998-01-01", "2026-12-25"]}', "calendar.dates[0]"),
        ('{"ranges": [{"from": "1970-12-31", "to": "2026-12-25"}]}', "calendar.ranges[0].from"),
        ('{"dates": "2026-12-25"}', "calendar.dates"),
        ('{"weekdays": ["samedi"]}', "calendar.weekdays[0]"),
        ("{}", "calendar.rule"),
    ],
)
def test_a_bad_calendar_is_named_by_field(
    run: Run, tmp_path: Path, content: str, field: str
) -> None:
    file = tmp_path / "holidays.json"
    file.write_text(content)

    result = run(
        "preview", "0 9 * * *", "--calendar-file", str(file), "--calendar-rule", "stay", "--json"
    )

    assert result.exit_code == 3
    assert [error["field"] for error in json.loads(result.stderr)["errors"]] == [field]
