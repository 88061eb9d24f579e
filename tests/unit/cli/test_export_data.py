"""`carillon export-data`: all that an owner has."""

import json
from typing import Any

from tests.unit.cli.conftest import FakeApi, Run

KEPT, GONE = "0" * 26, "1" * 26


def page(*items: Any, cursor: str | None = None) -> dict[str, Any]:
    return {"items": list(items), "next_cursor": cursor}


def run_id(job_id: str, second: int) -> str:
    return f"{job_id}_20260301T1200{second:02}Z_scheduled_0"


def answers(api: FakeApi) -> None:
    api.answer("GET", "/jobs", page({"job_id": KEPT, "name": "a"}, cursor="c"))
    api.then("GET", "/jobs", page())
    api.answer("GET", "/calendars", page({"name": "days"}))
    api.answer("GET", "/notifications", page())
    api.answer("GET", "/operations", page({"operation_id": "o"}))
    changes = ({"change_id": "2", "job_id": GONE}, {"change_id": "1", "job_id": None})
    api.answer("GET", "/changes", page(*changes))
    for job_id in (KEPT, GONE):
        ids = [run_id(job_id, second) for second in (2, 1)]
        api.answer("GET", f"/jobs/{job_id}/runs", page(*({"run_id": each} for each in ids)))
        for each in ids:
            path = f"/jobs/{job_id}/runs/{each}"
            api.answer("GET", path, {"run_id": each, "attempts": []})


def lines(text: str) -> list[Any]:
    return [json.loads(line) for line in text.splitlines()]


def test_each_thing_is_a_line_also_the_runs_of_jobs_that_are_gone(
    signed_in: Run, api: FakeApi
) -> None:
    answers(api)
    result = signed_in("export-data", "--team", "billing")
    assert result.exit_code == 0, result.stderr
    assert lines(result.stdout) == [
        {"job": {"job_id": KEPT, "name": "a"}},
        {"calendar": {"name": "days"}},
        {"operation": {"operation_id": "o"}},
        {"change": {"change_id": "2", "job_id": GONE}},
        {"change": {"change_id": "1", "job_id": None}},
        *(
            {"run": {"run_id": run_id(job_id, second), "attempts": []}}
            for job_id in (KEPT, GONE)
            for second in (2, 1)
        ),
    ]
    assert result.stderr.endswith("9 written\n")


def test_what_has_expired_is_left_out_and_nothing_else(signed_in: Run, api: FakeApi) -> None:
    answers(api)
    api.answer("GET", f"/jobs/{KEPT}/runs/{run_id(KEPT, 2)}", {"detail": "gone"}, status=404)
    api.answer("GET", f"/jobs/{GONE}/runs", {"detail": "gone"}, status=404)
    result = signed_in("export-data")
    assert result.exit_code == 0, result.stderr
    runs = [line["run"]["run_id"] for line in lines(result.stdout) if "run" in line]
    assert runs == [run_id(KEPT, 1)]


def test_what_cannot_be_read_is_no_end(signed_in: Run, api: FakeApi) -> None:
    answers(api)
    api.answer("GET", f"/jobs/{KEPT}/runs", {"detail": "no"}, status=403)
    assert signed_in("export-data").exit_code == 5


def test_runs_can_be_left_out(signed_in: Run, api: FakeApi) -> None:
    answers(api)
    result = signed_in("export-data", "--no-runs")
    assert len(lines(result.stdout)) == 5
