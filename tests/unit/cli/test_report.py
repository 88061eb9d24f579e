"""`carillon report`."""

import json
from typing import Any

import pytest

from carillon.cli.commands.runs.report import rows_of
from tests.unit.cli.conftest import FakeApi, Run

LAG = {"p50": 0.1, "p95": 0.2, "p99": 4.0, "max": 9.0}


def _bucket(key: str | None, lag: dict[str, float] | None = None, **counts: int) -> dict[str, Any]:
    return {"at": "2026-01-01T00:00:00Z", "key": key, "counts": counts, "lag": lag}


def test_days_are_added_up_and_lags_are_those_of_the_worst() -> None:
    late = LAG | {"p99": 7.0}
    buckets = [
        _bucket("team:b", LAG, succeeded=98, dead=1),
        _bucket("team:b", late, succeeded=1, skipped=5, missed=0),
        _bucket("team:a", succeeded=0, pending=3),
        _bucket("env:x", succeeded=7),
    ]

    a, b = rows_of(buckets, "team:", {}, 5.0)

    assert (a["of"], a["success"], a["pending"], a["late"]) == ("a", None, 3, None)
    assert (b["of"], b["success"], b["lag_p99"], b["late"]) == ("b", 0.99, 7.0, "1 of 2 d")


def test_the_jobs_with_an_empty_tag_are_not_called_all() -> None:
    buckets = [_bucket("team:", succeeded=1), _bucket("team:a", succeeded=1)]

    assert [row["of"] for row in rows_of(buckets, "team:", {}, 5.0)] == ["", "a"]


def test_an_hour_without_a_trace_is_no_success() -> None:
    (row,) = rows_of([_bucket(None, succeeded=1, unknown=3)], "", {}, 5.0)

    assert (row["of"], row["success"]) == ("all jobs", 0.25)


@pytest.mark.parametrize("succeeded", [29_999, 9_999_999])
def test_a_success_is_never_rounded_up_to_all(signed_in: Run, api: FakeApi, succeeded: int) -> None:
    buckets = [_bucket(None, LAG, succeeded=succeeded, dead=1)]
    api.answer("GET", "/runs/summary", {"buckets": buckets, "complete": True})

    assert signed_in("report").stdout.splitlines()[1].split()[2] == "99.99%"
    assert json.loads(signed_in("report", "--json").stdout)[0]["success"] < 1


def test_hours_are_not_called_days(signed_in: Run, api: FakeApi) -> None:
    buckets = [_bucket(None, LAG, succeeded=3)]
    api.answer("GET", "/runs/summary", {"buckets": buckets, "complete": True})

    (row,) = json.loads(signed_in("report", "--last", "24h", "--json").stdout)

    assert (api.requests[0].query["by"], row["late"]) == ("hour", "0 of 1 h")


def test_it_asks_by_day_and_names_jobs(signed_in: Run, api: FakeApi) -> None:
    answer = {"buckets": [_bucket("j1", LAG, succeeded=3, dead=1)], "complete": False}
    api.answer("GET", "/runs/summary", answer)
    api.answer("GET", "/jobs", {"items": [{"job_id": "j1", "name": "nightly"}]})

    told = signed_in("report", "--last", "30d", "--by", "job")

    assert told.stdout.splitlines()[1].split()[:3] == ["nightly", "75.00%", "3"]
    assert "a limit was reached" in told.stderr
    assert api.requests[0].query["by"] == "day"
    assert json.loads(signed_in("report", "--by", "job", "--json").stdout)[0]["success"] == 0.75


@pytest.mark.parametrize(
    ("options", "field"),
    [
        (["--last", "soon"], "last"),
        (["--last", "300d"], "last"),
        (["--by", "team"], "by"),
        (["--by", "tag:"], "by"),
        (["--lag-target", "x"], "lag_target"),
    ],
)
def test_what_is_wrong_is_named(signed_in: Run, options: list[str], field: str) -> None:
    refused = signed_in("report", *options)

    assert (refused.exit_code, f"  {field}: " in refused.stderr) == (3, True)
