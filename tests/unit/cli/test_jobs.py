"""`carillon jobs ...` against an API that records what it is sent."""

import json
from pathlib import Path
from typing import Any

import pytest

from carillon.cli.exits import ExitCode
from tests.unit.cli.conftest import FakeApi, Run

JOB: dict[str, Any] = {
    "job_id": "j1",
    "revision": 1,
    "state": "active",
    "name": "nightly",
    "schedule": "0 3 * * *",
    "timezone": "Europe/Riga",
    "target": {"type": "task", "name": "samples.echo"},
    "next_fire_at": "2026-12-01T01:00:00Z",
}


def test_create_sends_every_option(signed_in: Run, api: FakeApi, tmp_path: Path) -> None:
    api.answer("POST", "/jobs", JOB, status=201)
    (tmp_path / "payload.json").write_text('{"text": "labrīt"}', encoding="utf-8")

    result = signed_in(
        "jobs", "create", "--name", "nightly", "--schedule", "0 3 * * *",
        "--timezone", "Europe/Riga", "--start-at", "2026-12-01T00:00:00",
        "--task", "samples.echo", "--payload", f"@{tmp_path / 'payload.json'}",
        "--max-attempts", "5", "--timeout", "20", "--priority", "high", "--catch-up", "all",
        "--idempotency-key", "k-1", "--json",
    )  # fmt: skip

    assert (result.exit_code, json.loads(result.stdout)) == (0, JOB)
    (request,) = api.requests
    assert request.headers["authorization"] == "Bearer secret-token"
    assert request.headers["idempotency-key"] == "k-1"
    assert request.body == {
        "name": "nightly",
        "schedule": "0 3 * * *",
        "timezone": "Europe/Riga",
        "start_at": "2026-12-01T00:00:00",
        "target": {"type": "task", "name": "samples.echo"},
        "payload": {"text": "labrīt"},
        "retry": {"max_attempts": 5},
        "timeout_seconds": 20,
        "priority": "high",
        "catch_up": "all",
    }


def test_create_tells_what_to_know_of_the_schedule(signed_in: Run, api: FakeApi) -> None:
    warning = {"code": "many_fires", "message": "fires 86,400 times a day"}
    transition = {
        "transition_at": "2027-03-28T01:00:00Z",
        "kind": "gap",
        "local_from": "2027-03-28T03:00:00",
        "local_until": "2027-03-28T04:00:00",
        "count": 2,
        "first_local": "2027-03-28T03:00:00",
        "effect": "03:00 does not exist\x1b[2J",
    }
    told = {**JOB, "warnings": [warning], "transitions": [transition]}
    api.answer("POST", "/jobs", told, status=201)

    shown = signed_in("jobs", "create", "--task", "a")
    as_json = signed_in("jobs", "create", "--task", "a", "--json")

    assert shown.stderr.splitlines() == [
        r"Clock change 2027-03-28T01:00:00Z: 03:00 does not exist\x1b[2J",
        "Warning: fires 86,400 times a day",
    ]
    assert [line.split()[0] for line in shown.stdout.splitlines()] == list(JOB)
    assert (json.loads(as_json.stdout), as_json.stderr) == (told, "")


def test_the_clocks_are_warned_of_where_no_change_is_listed(signed_in: Run, api: FakeApi) -> None:
    warning = {"code": "dst", "message": "clocks change"}
    transition = {"transition_at": "2027-03-28T01:00:00Z", "effect": "03:00 does not exist"}
    told = {**JOB, "warnings": [warning], "transitions": []}
    api.answer("POST", "/jobs", told, status=201)
    api.then("POST", "/jobs", {**told, "transitions": [transition]}, status=201)

    alone = signed_in("jobs", "create", "--task", "a").stderr
    listed = signed_in("jobs", "create", "--task", "a").stderr

    assert alone == "Warning: clocks change\n"
    assert listed == "Clock change 2027-03-28T01:00:00Z: 03:00 does not exist\n"


def test_a_combined_schedule_is_one_line(signed_in: Run, api: FakeApi) -> None:
    job = {
        **JOB,
        "state": "completed",
        "schedule": ["0 9 * * *", "every 90m"],
        "except": ["* * 25 12 *"],
        "calendar": {"name": "holidays", "rule": "skip"},
        "next_fire_at": None,
    }
    api.answer("GET", "/jobs/j1", job)
    api.answer("GET", "/jobs", {"items": [job], "next_cursor": None})

    record = dict(
        line.split(maxsplit=1) for line in signed_in("jobs", "show", "j1").stdout.splitlines()
    )
    row = signed_in("jobs", "list").stdout.splitlines()[1]

    assert record["schedule"] == "0 9 * * * | every 90m"
    assert record["except"] == "* * 25 12 *"
    assert record["calendar"] == "holidays (skip)"
    assert record["next_fire_at"] == "-"
    assert "  completed  0 9 * * * | every 90m  " in row


def test_create_sends_only_what_was_given(signed_in: Run, api: FakeApi) -> None:
    api.answer("POST", "/jobs", JOB, status=201)

    for _ in range(2):
        result = signed_in(
            "jobs", "create", "--schedule", '{"every": "25m"}', "--webhook", "https://a.test/h"
        )
        assert result.exit_code == 0

    first, second = api.requests
    assert first.body == {
        "schedule": {"every": "25m"},
        "target": {"type": "webhook", "url": "https://a.test/h"},
    }
    # Two calls are two jobs, unless the caller chooses the key.
    assert first.headers["idempotency-key"] != second.headers["idempotency-key"]


def test_create_from_stdin_with_options_over_it(signed_in: Run, api: FakeApi) -> None:
    api.answer("POST", "/jobs", JOB, status=201)
    body = {
        "name": "a",
        "schedule": "0 * * * *",
        "retry": {"max_attempts": 2, "factor": 3},
        "calendar": {"name": "old", "rule": "skip"},
    }

    result = signed_in(
        "jobs", "create", "--file", "-", "--name", "b", "--max-attempts", "4", "--calendar", "new",
        stdin=json.dumps(body),
    )  # fmt: skip

    assert result.exit_code == 0
    expected = {
        **body,
        "name": "b",
        "retry": {"max_attempts": 4, "factor": 3},
        "calendar": {"name": "new", "rule": "skip"},
    }
    assert api.requests[0].body == expected


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("jobs create --task a", "/jobs"),
        ("jobs run j1", "/jobs/j1/run"),
        ("jobs backfill j1 --from 2026-01-01 --to 2026-01-02", "/jobs/j1/backfill"),
        ("dead-letters redrive --all", "/dead-letters/redrive"),
    ],
)
def test_when_the_outcome_is_unknown_it_tells_how_to_repeat(
    signed_in: Run, api: FakeApi, line: str, path: str
) -> None:
    api.answer("POST", path, {"message": "Service Unavailable"}, status=503)

    result = signed_in(*line.split())

    assert result.exit_code == 7
    assert f"--idempotency-key {api.requests[0].headers['idempotency-key']}" in result.stderr


def test_an_empty_idempotency_key_is_sent_to_be_refused(signed_in: Run, api: FakeApi) -> None:
    signed_in("jobs", "run", "j1", "--idempotency-key", "")

    assert api.requests[0].headers["idempotency-key"] == ""


def test_run_carries_an_idempotency_key_too(signed_in: Run, api: FakeApi) -> None:
    api.answer("POST", "/jobs/j1/run", {"run_id": "j1.r"}, status=202)

    assert signed_in("jobs", "run", "j1", "--idempotency-key", "k-2").exit_code == 0
    assert signed_in("jobs", "run", "j1").exit_code == 0

    chosen, fresh = (request.headers["idempotency-key"] for request in api.requests)
    assert chosen == "k-2"
    assert fresh


def test_list_reads_page_after_page(signed_in: Run, api: FakeApi) -> None:
    api.answer("GET", "/jobs", {"items": [{"job_id": "a"}, {"job_id": "b"}], "next_cursor": "c1"})
    api.then("GET", "/jobs", {"items": [{"job_id": "c"}], "next_cursor": None})

    result = signed_in("jobs", "list", "--all", "--json")

    assert json.loads(result.stdout) == [{"job_id": "a"}, {"job_id": "b"}, {"job_id": "c"}]
    assert [request.query.get("cursor") for request in api.requests] == [None, "c1"]


def test_list_stops_at_its_limit(signed_in: Run, api: FakeApi) -> None:
    page = {"items": [{"job_id": "a"}, {"job_id": "b"}], "next_cursor": "more"}
    api.answer("GET", "/jobs", page)

    result = signed_in("jobs", "list", "--limit", "3", "--json")

    assert [job["job_id"] for job in json.loads(result.stdout)] == ["a", "b", "a"]
    assert [request.query["limit"] for request in api.requests] == ["3", "1"]


def test_list_as_a_table_shows_control_characters(signed_in: Run, api: FakeApi) -> None:
    api.answer("GET", "/jobs", {"items": [{**JOB, "name": "a\x1b[31m\n"}], "next_cursor": None})

    result = signed_in("jobs", "list")

    header, row = result.stdout.splitlines()
    assert header.split() == [
        "job_id", "name", "state", "schedule", "timezone", "next_fire_at", "last_run", "managed_by"
    ]  # fmt: skip
    assert r"a\x1b[31m\n" in row
    assert row.split()[-3:] == ["2026-12-01T01:00:00Z", "-", "-"]


@pytest.mark.parametrize(
    ("action", "answer", "said"),
    [
        ("run", {"run_id": "j1.r"}, "run_id  j1.r"),
        ("pause", {"name": "a", "state": "paused", "payload": {}}, "paused a"),
        (
            "pause",
            {"name": "a", "state": "paused", "resume_at": "2026-12-01T01:00:00Z"},
            "paused a, until 2026-12-01T01:00:00Z",
        ),
        (
            "resume",
            {"name": "a", "state": "active", "next_fire_at": "2026-12-01T01:00:00Z"},
            "resumed a, next fire 2026-12-01T01:00:00Z",
        ),
    ],
)
def test_actions_post_and_tell_the_answer_on_one_line(
    signed_in: Run, api: FakeApi, action: str, answer: dict[str, Any], said: str
) -> None:
    api.answer("POST", f"/jobs/j1/{action}", answer, status=202)

    assert json.loads(signed_in("jobs", action, "j1", "--json").stdout) == answer
    assert signed_in("jobs", action, "j1").stdout == f"{said}\n"


def test_show_prints_every_field(signed_in: Run, api: FakeApi) -> None:
    api.answer("GET", "/jobs/j1", JOB)

    lines = signed_in("jobs", "show", "j1").stdout.splitlines()

    assert [line.split()[0] for line in lines] == list(JOB)
    assert lines[6].endswith("task samples.echo")


def test_show_says_since_when_and_why_a_job_is_served_in_lane_slow(
    signed_in: Run, api: FakeApi
) -> None:
    slow = {"since": "2026-12-01T12:00:00Z", "reason": "attempts keep lasting longer than 2 s"}
    api.answer("GET", "/jobs/j1", {"job_id": "j1", "lane": "slow", "slow": slow})
    shown = signed_in("jobs", "show", "j1").stdout
    assert f"since {slow['since']}: {slow['reason']}" in " ".join(shown.split())


def test_delete_asks_nothing_off_a_terminal(signed_in: Run, api: FakeApi) -> None:
    api.answer("DELETE", "/jobs/j1", status=204)

    assert signed_in("jobs", "delete", "j1").stdout == "deleted j1\n"
    answer = json.loads(signed_in("--json", "jobs", "delete", "j1").stdout)
    assert answer == {"job_id": "j1", "state": "deleted"}


def test_a_job_id_is_one_part_of_the_path(signed_in: Run, api: FakeApi) -> None:
    api.answer("GET", "/jobs/a%2Fb%3Fc", JOB)

    assert signed_in("jobs", "show", "id:a/b?c").exit_code == 0


@pytest.mark.parametrize(
    ("job", "path"),
    [
        ("nightly report", "/jobs/named/nightly%20report"),
        ("name:id:7", "/jobs/named/id%3A7"),
        ("Ärger & Söhne", "/jobs/named/%C3%84rger%20%26%20S%C3%B6hne"),
        ("0" * 25, f"/jobs/named/{'0' * 25}"),
        ("id", "/jobs/named/id"),
        ("name", "/jobs/named/name"),
    ],
)
def test_a_job_is_named_where_an_id_could_stand(
    signed_in: Run, api: FakeApi, job: str, path: str
) -> None:
    api.answer("GET", path, JOB)
    api.answer("GET", f"/jobs/{JOB['job_id']}", JOB)
    assert signed_in("jobs", "show", job).exit_code == 0
    assert [request.path for request in api.requests] == [path, f"/jobs/{JOB['job_id']}"]


@pytest.mark.parametrize("job", ["0" * 26, f"id:{'0' * 26}"])
def test_an_id_is_not_looked_up(signed_in: Run, api: FakeApi, job: str) -> None:
    api.answer("GET", f"/jobs/{'0' * 26}", JOB)
    assert signed_in("jobs", "show", job).exit_code == 0
    assert len(api.requests) == 1


def test_an_unknown_name_is_not_found(signed_in: Run, api: FakeApi) -> None:
    problem = {"type": "urn:carillon:problem:not-found", "title": "Not found", "status": 404}
    api.answer("GET", "/jobs/named/nobody", problem, status=404)
    shown = signed_in("jobs", "pause", "nobody")
    assert shown.exit_code == ExitCode.NOT_FOUND


def test_a_list_can_be_sorted(signed_in: Run, api: FakeApi) -> None:
    jobs = [
        {"name": "a", "state": "paused", "next_fire_at": None, "last_run": None},
        {"name": "B", "state": "active", "next_fire_at": "2026-01-02T00:00:00Z"}
        | {"last_run": {"status": "dead", "fire_at": "2026-01-01T00:00:00Z"}},
        {"name": "c", "state": "active", "next_fire_at": "2026-01-01T00:00:00Z"}
        | {"last_run": {"status": "succeeded", "fire_at": "2025-12-31T00:00:00Z"}},
    ]
    api.answer("GET", "/jobs", {"items": jobs, "next_cursor": None})

    def names(*options: str) -> list[str]:
        listed = json.loads(signed_in("jobs", "list", *options, "--json").stdout)
        return [job["name"] for job in listed]

    assert names() == ["a", "B", "c"]
    assert names("--sort", "next") == ["c", "B", "a"]
    assert names("--sort", "state") == ["B", "c", "a"]
    by_last = signed_in("jobs", "list", "--sort", "last").stdout.splitlines()[1:]
    assert [row.split()[1] for row in by_last] == ["c", "B", "a"]
    assert "dead" in by_last[1]
    assert api.requests[-1].query["include"] == "last_run"
    assert signed_in("jobs", "list", "--sort", "last", "--json").exit_code == 2
