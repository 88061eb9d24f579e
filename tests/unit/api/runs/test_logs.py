"""GET /runs/{run_id}/logs."""

import json
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from carillon.api.runs.logs import PAGE_LINES, READS_BURST
from carillon.errors import StoreUnavailableError
from carillon.stores.task_logs import MemoryTaskLogs
from tests.unit.api.conftest import NOW, World, create
from tests.unit.api.gateway import Client, Json
from tests.unit.api.runs.test_runs import make_run, put

FIRST = NOW.replace(microsecond=0) - timedelta(minutes=5)


def line(run_id: str, **members: Any) -> str:
    record = {"level": "INFO", "message": "at work", "action": "task.log", "attempt": 1}
    return json.dumps({**record, "run_id": run_id, **members})


@pytest.fixture
def run_id(client: Client, world: World) -> str:
    job_id = create(client)["job_id"]
    run = make_run(job_id, FIRST, started_at=FIRST, finished_at=FIRST + timedelta(seconds=9))
    return put(world, run).key.run_id


def shown(world: World, run_id: str, *lines: tuple[datetime, str], **query: str) -> Json:
    answer = Client(world.api(task_logs=MemoryTaskLogs(lines))).get(f"/runs/{run_id}/logs", **query)
    assert answer.status == 200, answer.text
    page: Json = answer.json
    return page


def test_the_lines_of_a_run_are_shown_with_attempt_and_level(world: World, run_id: str) -> None:
    failed = line(run_id, level="ERROR", message="failed", exception="Traceback", attempt=2)
    page = shown(world, run_id, (FIRST, line(run_id)), (FIRST, failed))

    assert page == {
        "items": [
            {"at": "2026-03-01T11:55:00Z", "level": "INFO", "message": "at work", "attempt": 1},
            {
                "at": "2026-03-01T11:55:00Z",
                "level": "ERROR",
                "message": "failed\nTraceback",
                "attempt": 2,
            },
        ],
        "next_cursor": None,
    }


def test_text_that_is_no_unicode_is_shown_as_far_as_it_is(world: World, run_id: str) -> None:
    half = line(run_id, message="half \ud800 a pair", level="\udfff")
    page = shown(world, run_id, (FIRST, half), (FIRST, line(run_id)))
    said = [(each["level"], each["message"]) for each in page["items"]]
    assert said == [("?", "half ? a pair"), ("INFO", "at work")]


def test_lines_that_only_name_the_run_are_not_shown(world: World, run_id: str) -> None:
    """The search finds whatever contains the id: lines of other runs, owners, and actions."""
    others = (
        line(f"{run_id}1"),
        line("another", message=f"after {run_id}"),
        line(run_id, action="run.dead", message="signed with s3cret"),
        f'plain text of somebody about "{run_id}"',
        json.dumps([run_id]),
        "[" * 100_000 + run_id,
    )
    assert shown(world, run_id, *((FIRST, each) for each in others))["items"] == []


def test_the_search_is_bounded_by_the_attempts_of_the_run(world: World, run_id: str) -> None:
    early, late = FIRST - timedelta(minutes=1), FIRST + timedelta(minutes=10)
    page = shown(world, run_id, (early, line(run_id)), (late, line(run_id)))
    assert page["items"] == []


def test_lines_come_in_pages(world: World, run_id: str) -> None:
    lines = [(FIRST, line(run_id, message=str(number))) for number in range(PAGE_LINES + 1)]
    first = shown(world, run_id, *lines)
    rest = shown(world, run_id, *lines, cursor=first["next_cursor"])

    assert (len(first["items"]), rest["next_cursor"]) == (PAGE_LINES, None)
    assert [item["message"] for item in rest["items"]] == [str(PAGE_LINES)]


def test_long_lines_come_in_pages_that_lambda_can_answer(world: World, run_id: str) -> None:
    """Each letter beyond ASCII takes seven bytes of its 6 MB, once it is escaped twice."""
    lines = [(FIRST, line(run_id, message="ы" * 7_000)) for _ in range(PAGE_LINES)]
    found, query = list[str](), dict[str, str]()
    while query.get("cursor") != "None":
        page = shown(world, run_id, *lines, **query)
        assert len(json.dumps(json.dumps(page))) < 6_000_000
        found += [item["message"] for item in page["items"]]
        query = {"cursor": str(page["next_cursor"])}

    assert found == ["ы" * 7_000] * PAGE_LINES


def test_nobody_reads_the_logs_of_anothers_run(
    stranger: Client, client: Client, run_id: str
) -> None:
    assert client.get(f"/runs/{run_id}/logs").status == 200
    assert stranger.get(f"/runs/{run_id}/logs").status == 404
    assert client.get("/runs/nonsense/logs").status == 404


def test_a_run_that_has_not_begun_has_no_lines_and_costs_no_search(
    client: Client, world: World
) -> None:
    run = put(world, make_run(create(client)["job_id"], FIRST))

    class Searched:
        def find(self, *_: Any) -> Any:
            raise StoreUnavailableError("searched")

    api = world.api(task_logs=Searched())
    assert Client(api).get(f"/runs/{run.key.run_id}/logs").json["items"] == []
    begun = put(
        world, replace(make_run(run.key.job_id, NOW.replace(microsecond=0)), started_at=NOW)
    )
    assert Client(api).get(f"/runs/{begun.key.run_id}/logs").status == 503


def test_an_owner_reads_logs_once_a_second_or_so(client: Client, run_id: str) -> None:
    answers = [client.get(f"/runs/{run_id}/logs") for _ in range(READS_BURST + 1)]

    assert [answer.status for answer in answers] == [200] * READS_BURST + [429]
    assert answers[-1].headers["retry-after"] == "1"
