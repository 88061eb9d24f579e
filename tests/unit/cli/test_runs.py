"""`carillon runs`, `upcoming` and `status`."""

import json
from typing import Any

import pytest

from carillon.cli.client import ApiClient
from carillon.cli.commands.runs import runs as runs_module
from carillon.cli.commands.runs.runs import write_changes
from carillon.cli.commands.runs.sources import Across, OfJob
from carillon.cli.exits import ExitCode
from carillon.client.resources.following import Follower
from tests.unit.cli.conftest import SENT, FakeApi, Run


def _run(second: int, status: str = "succeeded", attempt: int = 1) -> dict[str, Any]:
    fire_at = f"2026-01-01T00:00:{second:02}Z"
    return {
        "run_id": f"j1.{second}",
        "fire_at": fire_at,
        "kind": "scheduled",
        "status": status,
        "attempt": attempt,
        "lag_seconds": 0.25,
        "result": None,
        "error": None,
    }


def _page(*runs: dict[str, Any], cursor: str | None = None) -> dict[str, Any]:
    return {"items": list(runs), "next_cursor": cursor}


def test_runs_as_table_and_json(signed_in: Run, api: FakeApi) -> None:
    dead = {**_run(5, "dead", 3), "error": {"kind": "http_503", "message": "busy"}}
    spread = {**_run(0), "result": "fine", "effective_at": "2026-01-01T00:00:03Z"}
    api.answer("GET", "/jobs/j1/runs", _page(dead, spread))

    table = signed_in("runs", "list", "j1", "--limit", "2").stdout.splitlines()

    assert table[0].split() == [
        "fire_at", "effective_at", "kind", "status", "attempt", "lag_seconds", "outcome", "run_id",
    ]  # fmt: skip
    assert table[1].split() == [
        "2026-01-01T00:00:05Z", "-", "scheduled", "dead", "3", "0.25", "http_503:", "busy", "j1.5"
    ]  # fmt: skip
    assert table[2].split() == [
        "2026-01-01T00:00:00Z", "2026-01-01T00:00:03Z", "scheduled", "succeeded", "1", "0.25",
        "fine", "j1.0",
    ]  # fmt: skip
    assert json.loads(signed_in("runs", "list", "j1", "--json").stdout)[0] == dead
    assert [request.query["limit"] for request in api.requests] == ["2", "20"]


@pytest.mark.parametrize(
    ("told", "outcome"),
    [
        (
            {"reason": "calendar", "note": "2026-12-25 is closed in calendar holidays"},
            "calendar (2026-12-25 is closed in calendar holidays)",
        ),
        ({"note": "moved from 2026-12-25"}, "moved from 2026-12-25"),
        ({"result": "ok", "note": "moved\x1b"}, r"ok (moved\x1b)"),
        (
            {"error": {"kind": "timeout", "message": "10 s"}, "note": "moved"},
            "timeout: 10 s (moved)",
        ),
        ({"reason": "paused", "note": None}, "paused"),
        ({}, "-"),
    ],
)
def test_the_outcome_carries_the_note(
    signed_in: Run, api: FakeApi, told: dict[str, Any], outcome: str
) -> None:
    # Equal times are one time.
    run = _run(0, "skipped") | {"effective_at": "2026-01-01T00:00:00Z"} | told
    api.answer("GET", "/jobs/j1/runs", _page(run))

    row = signed_in("runs", "list", "j1").stdout.splitlines()[1]

    cells = [cell.strip() for cell in row.split("  ") if cell.strip()]
    assert cells == [run["fire_at"], "-", "scheduled", "skipped", "1", "0.25", outcome, "j1.0"]


def _changes(client: ApiClient, follower: Follower) -> list[tuple[str, str]]:
    return [(run["run_id"], run["status"]) for run in client.run(follower.changes())]


def test_follow_tells_what_is_new_oldest_first(api: FakeApi, client: ApiClient) -> None:
    path = "/jobs/j1/runs"
    follower = Follower(client.session, path, limit=2)

    api.answer("GET", path, _page(_run(10, "running"), _run(5), cursor="older"))
    assert _changes(client, follower) == [("j1.5", "succeeded"), ("j1.10", "running")]

    # The page is larger now: runs older than the first look stay untold.
    api.answer("GET", path, _page(_run(15, "running"), _run(10), _run(5), _run(0)))
    assert _changes(client, follower) == [("j1.10", "succeeded"), ("j1.15", "running")]


def test_follow_looks_up_a_run_that_newer_ones_pushed_off(api: FakeApi, client: ApiClient) -> None:
    path = "/jobs/j1/runs"
    follower = Follower(client.session, path, limit=5)
    api.answer("GET", path, _page(_run(0, "retrying"), _run(1)))
    assert len(_changes(client, follower)) == 2

    api.answer("GET", path, _page(_run(2), _run(1)))
    api.answer("GET", f"{path}/j1.0", _run(0, "dead", 3))

    assert _changes(client, follower) == [("j1.0", "dead"), ("j1.2", "succeeded")]
    assert _changes(client, follower) == []
    # Finished: there is nothing to look up any more.
    assert [request.path for request in api.requests[-2:]] == [f"{path}/j1.0", path]


def test_follow_looks_up_a_few_at_a_time_of_many_that_wait(api: FakeApi, client: ApiClient) -> None:
    """Or one terminal would take all requests that its owner has."""
    path = "/jobs/j1/runs"
    follower = Follower(client.session, path, limit=50)
    api.answer("GET", path, _page(*(_run(number, "scheduled") for number in range(49, -1, -1))))
    assert len(_changes(client, follower)) == 50

    api.answer("GET", path, _page(_run(60)))
    for number in range(50):
        api.answer("GET", f"{path}/j1.{number}", _run(number, "scheduled"))
    before = len(api.requests)
    looks = [_changes(client, follower) for _ in range(3)]

    asked = [request.path for request in api.requests[before:] if request.path != path]
    assert looks == [[("j1.60", "succeeded")], [], []]
    assert (len(asked), len(set(asked))) == (60, 50), "each in its turn"


def test_follow_reads_on_until_a_run_that_it_knows(api: FakeApi, client: ApiClient) -> None:
    path = "/jobs/j1/runs"
    follower = Follower(client.session, path, limit=1)
    api.answer("GET", path, _page(_run(0)))
    assert _changes(client, follower) == [("j1.0", "succeeded")]

    api.answer("GET", path, _page(_run(4), _run(3), cursor="c1"))
    api.then("GET", path, _page(_run(2), _run(1), cursor="c2"))
    api.then("GET", path, _page(_run(0), cursor="c3"))

    assert [run_id for run_id, _ in _changes(client, follower)] == ["j1.1", "j1.2", "j1.3", "j1.4"]
    assert [request.query.get("cursor") for request in api.requests][-3:] == [None, "c1", "c2"]


def test_follow_finds_what_catches_up_behind_newer_runs(api: FakeApi, client: ApiClient) -> None:
    path = "/jobs/j1/runs"
    follower = Follower(client.session, path, limit=1)
    api.answer("GET", path, _page(_run(0)))
    assert _changes(client, follower) == [("j1.0", "succeeded")]
    api.answer("GET", path, _page(_run(9), cursor="c1"))
    api.then("GET", path, _page(_run(0)))
    assert _changes(client, follower) == [("j1.9", "succeeded")]

    api.answer("GET", path, _page(_run(10), _run(9), cursor="c1"))
    api.then("GET", path, _page(_run(3), _run(0)))

    assert [run_id for run_id, _ in _changes(client, follower)] == ["j1.3", "j1.10"]


class _Stop:
    """Sleeps `times` times, then presses Ctrl-C."""

    def __init__(self, times: int) -> None:
        self.left = times

    def __call__(self, seconds: float) -> None:
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt


def test_follow_survives_a_moment_without_the_api(
    api: FakeApi, client: ApiClient, capsys: pytest.CaptureFixture[str]
) -> None:
    path = "/jobs/j1/runs"
    api.answer("GET", path, _page(_run(0)))
    for _ in range(SENT):
        api.then("GET", path, {"message": "Service Unavailable"}, status=503)
    api.then("GET", path, _page(_run(5), _run(0)))

    source = OfJob(client, path, {}, {})
    write_changes(source, 10, 1.0, as_json=True, sleep=_Stop(2))

    captured = capsys.readouterr()
    assert [json.loads(line)["run_id"] for line in captured.out.splitlines()] == ["j1.0", "j1.5"]
    assert json.loads(captured.err)["status"] == 503


def test_follow_as_a_command_ends_with_0_on_ctrl_c(
    signed_in: Run, api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.answer("GET", "/jobs/j1/runs", _page(_run(0)))
    looked: list[OfJob] = []

    def once(source: OfJob, limit: int, interval_seconds: float, as_json: bool) -> None:
        looked.append(source)
        write_changes(source, limit, interval_seconds, as_json, sleep=_Stop(0))

    monkeypatch.setattr(runs_module, "write_changes", once)

    result = signed_in("runs", "list", "j1", "--follow")

    assert (result.exit_code, len(looked)) == (0, 1)
    header, row = result.stdout.splitlines()
    assert header.index("status") == row.index("succeeded")
    assert row.split()[:4] == ["2026-01-01T00:00:00Z", "-", "scheduled", "succeeded"]


def _item(second: int, status: str = "dead") -> dict[str, Any]:
    return _run(second, status) | {"job_name": "nightly", "error_kind": "http_503", "reason": None}


def test_runs_across_jobs_by_status_kind_tag_and_time(signed_in: Run, api: FakeApi) -> None:
    again = _page(_item(5, "retrying"), _item(5), _item(5, "retrying"))
    api.answer("GET", "/runs", again | {"as_of": "2026-01-01T01:00:00Z"})

    table = signed_in(
        "runs", "list", "--status", "dead,timed_out", "--kind", "scheduled", "--tag", "a=b",
        "--from", "2026-01-01",
    ).stdout.splitlines()  # fmt: skip

    assert len(table) == 2, "doubles are dropped"
    assert table[1].split() == [
        "nightly", "2026-01-01T00:00:05Z", "scheduled", "dead", "1", "0.25", "-", "http_503", "j1.5"
    ]  # fmt: skip
    assert api.requests[0].query == {
        "status": "dead,timed_out", "kind": "scheduled", "tag": "a:b",
        "from": "2026-01-01T00:00:00Z", "limit": "20",
    }  # fmt: skip


def test_a_job_s_runs_are_filtered_as_they_are_read(signed_in: Run, api: FakeApi) -> None:
    api.answer("GET", "/jobs/j1/runs", _page(_run(9), _run(8, "dead"), cursor="c"))
    api.then("GET", "/jobs/j1/runs", _page(_run(7, "timed_out"), _run(6, "dead")))

    found = signed_in("runs", "list", "j1", "--status", "dead, timed_out", "--limit", "2", "--json")

    assert [run["run_id"] for run in json.loads(found.stdout)] == ["j1.8", "j1.7"]
    assert signed_in("runs", "list", "j1", "--tag", "a=b").exit_code == 2


@pytest.mark.parametrize(("option", "known"), [("status", "timed_out"), ("kind", "backfill")])
def test_a_mistyped_filter_of_a_job_s_runs_is_refused(
    signed_in: Run, api: FakeApi, option: str, known: str
) -> None:
    refused = signed_in("runs", "list", "j1", f"--{option}", f"{known},failed")

    assert refused.exit_code == ExitCode.BAD_INPUT
    assert f"  {option}: 'failed' is none of " in refused.stderr
    assert (known in refused.stderr, api.requests) == (True, [])


def test_what_runs_across_jobs_is_followed_without_doubles(api: FakeApi, client: ApiClient) -> None:
    source = Across(client, {"status": "dead"})
    api.answer("GET", "/runs", _page(_item(2), _item(1), cursor="older") | {"as_of": "T1"})
    api.then("GET", "/runs", _page(_item(3), _item(2), cursor="c") | {"as_of": "T2"})
    api.then("GET", "/runs", _page(_item(1)) | {"as_of": "T2"})
    api.then("GET", "/runs", _page(_item(4), _item(3)) | {"as_of": "T3"})

    looks = [[run["run_id"] for run in source.changes(2)] for _ in range(3)]

    assert looks == [["j1.1", "j1.2"], ["j1.3"], ["j1.4"]]
    assert [request.query.get("after") for request in api.requests] == [None, "T1", "T1", "T2"]


def test_the_first_look_across_jobs_may_be_longer_than_a_page(
    api: FakeApi, client: ApiClient
) -> None:
    source = Across(client, {})
    api.answer("GET", "/runs", _page(*map(_item, range(120, 20, -1)), cursor="c") | {"as_of": "T1"})
    api.then("GET", "/runs", _page(*map(_item, range(20, 0, -1)), cursor="older") | {"as_of": "T1"})

    assert len(source.changes(120)) == 120
    assert [request.query for request in api.requests] == [
        {"limit": "100"}, {"limit": "100", "cursor": "c"},
    ]  # fmt: skip


def test_follow_of_a_job_that_is_not_there_ends(signed_in: Run) -> None:
    assert signed_in("runs", "list", "j1", "--follow").exit_code == 4


def test_runs_of_a_span_of_time(signed_in: Run, api: FakeApi) -> None:
    api.answer("GET", "/jobs/j1/runs", _page(_run(0), cursor="more"))
    api.then("GET", "/jobs/j1/runs", _page())

    result = signed_in(
        "runs", "list", "j1", "--from", "2026-01-01", "--to", "2026-01-01T02:00:00+02:00", "--json"
    )

    assert result.exit_code == 0
    span = {"from": "2026-01-01T00:00:00Z", "to": "2026-01-01T00:00:00Z"}
    assert [request.query for request in api.requests] == [
        {**span, "limit": "20"},
        {**span, "limit": "19", "cursor": "more"},
    ]


def test_a_settled_run_says_so(signed_in: Run, api: FakeApi) -> None:
    error = {"kind": "http_503", "message": "busy"}
    api.answer("GET", "/jobs/j1/runs", _page(_run(0) | {"error": error, "settled": "redriven"}))

    assert "http_503: busy (redriven)" in signed_in("runs", "list", "j1").stdout


def test_upcoming_of_one_job_and_of_all(signed_in: Run, api: FakeApi) -> None:
    item = {
        "job_id": "j1",
        "name": "nightly",
        "fire_at": "2026-01-01T00:00:00Z",
        "local": "2026-01-01T02:00:00+02:00",
        "effective_at": "2026-01-01T00:00:09Z",
    }
    api.answer("GET", "/jobs/j1/upcoming", {"items": [item]})
    api.answer("GET", "/upcoming", {"items": [item, item]})

    assert json.loads(signed_in("upcoming", "j1", "--count", "1", "--json").stdout) == [item]
    assert signed_in("upcoming").stdout.splitlines()[2].split() == [
        "2026-01-01T00:00:00Z", "2026-01-01T02:00:00+02:00", "2026-01-01T00:00:09Z", "nightly", "j1"
    ]  # fmt: skip
    assert [request.query for request in api.requests] == [{"count": "1"}, {"count": "10"}]


def test_upcoming_tells_from_where_a_calendar_moved_it(signed_in: Run, api: FakeApi) -> None:
    moved = {"fire_at": "2026-12-28T00:00:00Z", "note": "moved from 2026-12-25"}
    api.answer("GET", "/upcoming", {"items": [moved, {**moved, "note": None}]})

    lines = signed_in("upcoming").stdout.splitlines()

    assert lines[0].endswith("  note")
    assert lines[1].endswith("  moved from 2026-12-25")
    assert lines[2].endswith("  -")


def test_a_list_says_what_it_leaves_out(signed_in: Run, api: FakeApi) -> None:
    unreadable = [{"id": "j9", "reason": "job j9: spoilt"}]
    api.answer("GET", "/jobs", {"items": [], "next_cursor": None, "unreadable": unreadable})

    for command in (["jobs", "list"], ["export-data", "--no-runs"]):
        assert "j9 cannot be read, and is left out: job j9: spoilt" in signed_in(*command).stderr


def test_upcoming_says_when_it_may_be_incomplete(signed_in: Run, api: FakeApi) -> None:
    api.answer("GET", "/upcoming", {"items": [], "complete": False})

    result = signed_in("upcoming", "--json")

    assert (result.exit_code, json.loads(result.stdout)) == (0, [])
    assert "not all of your jobs were read" in result.stderr


def test_status_with_segments_for_operators(signed_in: Run, api: FakeApi) -> None:
    answer = {"state": "idle", "segments": [{"segment": 0, "lag_seconds": 12}]}
    api.answer("GET", "/status", answer)

    assert json.loads(signed_in("status", "--json").stdout) == answer
    assert [line.split() for line in signed_in("status").stdout.splitlines()] == [
        ["state", "idle"], [], ["segment", "lag_seconds"], ["0", "12"]
    ]  # fmt: skip
