"""`carillon admin audit` on moto: what it says, and what it ends with."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from importlib.metadata import version
from typing import Any

import boto3
import pytest
import time_machine

from carillon.clock import SystemClock
from carillon.settings import Settings
from carillon.stores.dynamo import open_stores
from carillon.stores.dynamo.runs import item_of
from tests.support.world import OWNER, World
from tests.unit.audit.planting import (
    DEFECTS,
    START,
    a_run_never_ends,
    a_segment_stands_still,
    an_entry_is_lost,
    an_hour,
)
from tests.unit.cli.conftest import Run
from tests.unit.cli.test_admin import deployment

__all__ = ["deployment"]

SPAN = ("--from", "2026-12-01T12:00:00Z", "--until", "2026-12-01T12:58:00Z")
NOW = START + timedelta(hours=2)
ON_TABLES = [
    each
    for each in DEFECTS
    if each[0] in (a_run_never_ends, an_entry_is_lost, a_segment_stands_still)
]
"""Of each table some; all of them: tests/unit/audit."""


@pytest.fixture(autouse=True)
def later(deployment: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """It is two o'clock, and the deployment has one segment."""
    monkeypatch.setenv("SEGMENTS", "1")
    with time_machine.travel(NOW, tick=False):
        yield


def copied(world: World, settings: Settings) -> None:
    """The tables as the world's stores are."""
    stores = open_stores(settings, SystemClock())
    for job in world.jobs._rows.values():
        assert stores.jobs.create(job)
    requests = [{"PutRequest": {"Item": item_of(row)}} for row in world.runs._rows.values()]
    client = boto3.client("dynamodb")
    for begin in range(0, len(requests), 25):
        batch: Any = {settings.runs_table: requests[begin : begin + 25]}
        assert not client.batch_write_item(RequestItems=batch)["UnprocessedItems"]
    entries = [each for slot in world.wheel._slots.values() for each in slot.values()]
    stores.wheel.put_entries(entries)
    for control in world.wheel._controls.values():
        own = replace(control, tzdata=version("tzdata"))
        assert stores.wheel.put_control(own, None)


def test_tables_on_which_all_is_well_end_with_0(run: Run, deployment: Settings) -> None:
    copied(an_hour(), deployment)
    told = run("admin", "audit", *SPAN)
    assert told.exit_code == 0, told.output
    assert "7 jobs with" in told.stdout
    assert told.stdout.strip().endswith(": 0 findings")


def put_bad_job(deployment: Settings) -> None:
    bad = {"pk": {"S": "a" * 26}, "sk": {"S": "job"}, "owner": {"S": "eve"}}
    boto3.client("dynamodb").put_item(TableName=deployment.jobs_table, Item=bad)


def test_planted_defects_and_rows_that_cannot_be_read_end_with_1(
    run: Run, deployment: Settings
) -> None:
    world = an_hour()
    for plant, _ in ON_TABLES:
        plant(world)
    copied(world, deployment)
    put_bad_job(deployment)
    client = boto3.client("dynamodb")
    calendar = {"pk": {"S": "~owner/eve"}, "sk": {"S": "calendar/holidays"}}
    client.put_item(TableName=deployment.jobs_table, Item=calendar)
    row = next(iter(world.runs._rows.values()))
    key = {
        "job_key": {"S": f"{OWNER}#{row.key.job_id}"},
        "run_key": {"S": row.key.sort_key},
        "status": {"S": "wondering"},
    }
    client.put_item(TableName=deployment.runs_table, Item=key)
    told = run("admin", "audit", *SPAN)
    assert told.exit_code == 1, told.output
    assert [words for _, words in ON_TABLES if words not in told.stdout] == []
    assert told.stdout.count("unreadable ") == 2
    assert "calendar" not in told.stdout


def test_json_is_a_line_for_each_finding_and_one_for_the_figures(
    run: Run, deployment: Settings
) -> None:
    put_bad_job(deployment)
    told = run("admin", "audit", *SPAN, "--json")
    assert told.exit_code == 1
    finding, figures = map(json.loads, told.stdout.splitlines())
    assert finding["promise"] == "unreadable"
    assert finding.keys() == {"promise", "owner", "job_id", "text"}
    assert figures["findings"] == 1
    assert figures["until"] == "2026-12-01T12:58:00Z"


@pytest.mark.parametrize(
    "given",
    [
        ("--from", "yesterday"),
        ("--from", "2026-12-01T13:45:00Z"),
        ("--from", "2026-01-01T00:00:00Z", "--until", "2026-01-02T00:00:00Z"),
    ],
)
def test_a_span_that_nothing_is_known_of_is_refused(given: tuple[str, ...], run: Run) -> None:
    told = run("admin", "audit", *given)
    assert told.exit_code == 3
    assert "from" in told.stderr


def test_the_last_day_but_half_an_hour_is_audited_unless_it_is_said(
    run: Run, deployment: Settings
) -> None:
    told = run("admin", "audit", "--json")
    figures = json.loads(told.stdout.splitlines()[-1])
    begin, end = (datetime.fromisoformat(figures[name]) for name in ("from", "until"))
    assert end == NOW - timedelta(minutes=30)
    assert end - begin == timedelta(days=1)
