"""Rows that this version cannot read: what the ports promise about them.

A later version may have written them before a rollback, or tzdata may have dropped their zone.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import boto3
import pytest

from carillon.domain.job import JobState
from carillon.domain.run import RunStatus
from carillon.domain.wheel.entry import Slot
from carillon.errors import UnreadableRowError
from carillon.schedules import SlotKind
from carillon.settings import Settings
from carillon.stores.dynamo.side_rows import keys_of
from carillon.stores.ports import ADMISSION_ROWS, CALENDARS, OPERATIONS
from tests.contract.kit import Kit
from tests.contract.samples import (
    a_calendar,
    a_full_admission_row,
    a_job,
    a_key,
    a_run,
    an_entry,
    an_operation,
    own_job_id,
)
from tests.settings import SETTINGS

HOURLY_17 = Slot(SlotKind.HOURLY, 17)


def settings_of(kit: Kit) -> Settings:
    assert kit.settings is not None
    return kit.settings


@pytest.mark.parametrize(
    "spoilt",
    [
        {"s": {"S": "whenever it suits"}},
        {"z": {"S": "Atlantis/Capital"}},
        {"l": {"S": "express"}},
        {"m": {"S": "{}"}},
        {"k": {"S": "x/holidays"}},
        {"d": {"S": "backwards/both"}},
        {"o": None},
    ],
    ids=["schedule", "time zone", "lane", "message", "calendar rule", "DST rule", "no owner"],
)
def test_an_entry_that_cannot_be_read_is_told_by_its_key_among_the_others(
    aws_kit: Kit, spoilt: dict[str, dict[str, str] | None]
) -> None:
    owner, segment = aws_kit.new_owner(), aws_kit.new_segment()
    entries = sorted((an_entry(owner, segment, n) for n in range(3)), key=lambda e: e.key)
    aws_kit.wheel.put_entries(entries)
    table = settings_of(aws_kit).wheel_table
    (_, item, _) = aws_kit.raw_items(table, segment_slot=f"{segment}#h17")
    put_spoilt(table, item, spoilt)
    page = aws_kit.wheel.query(segment, HOURLY_17)
    assert page.items == (entries[0], entries[2])
    assert list(page.unreadable) == [entries[1].key]


@pytest.mark.parametrize(
    "spoilt",
    [
        {"state": {"S": "archived"}},
        {"generation": None},
        {"spec": None},
        {"spec": {"S": "{"}},
        {"target": {"type": "sqs", "queue": "from a later version"}},
        {"timezone": "Atlantis/Capital"},
        {"dst": {"gap": "backwards"}},
        {"on_complete": "archive"},
        {"calendar": {"name": "holidays", "rule": "fast"}},
        {"overlap": "replace"},
        {"events": ["run.dead", "run.lost"]},
        {"on_failure": {"type": "webhook"}},
        {"timeout_seconds": "90"},
        {"name": None},
    ],
    ids=str,
)
def test_a_job_that_cannot_be_read_raises_what_the_port_names(
    aws_kit: Kit, spoilt: dict[str, Any]
) -> None:
    job = a_job(aws_kit.new_owner())
    assert aws_kit.jobs.create(job)
    table = settings_of(aws_kit).jobs_table
    (item,) = aws_kit.raw_items(table, pk=job.job_id)
    if spoilt.keys() <= SETTINGS.keys():
        spoilt = {"spec": {"S": json.dumps(job.spec.document | spoilt)}}
    put_spoilt(table, item, spoilt)
    with pytest.raises(UnreadableRowError, match=job.job_id):
        aws_kit.jobs.get(job.owner, job.job_id)
    page = aws_kit.jobs.list(job.owner, 10)
    assert page.items == ()
    assert list(page.unreadable) == [job.job_id]
    with pytest.raises(UnreadableRowError):
        _ = page.whole
    assert aws_kit.jobs.remove_unreadable(job.owner, job.job_id)
    assert not aws_kit.jobs.remove_unreadable(job.owner, job.job_id), "there is none"
    assert aws_kit.jobs.get(job.owner, job.job_id) is None
    assert aws_kit.jobs.create(job)
    assert not aws_kit.jobs.remove_unreadable(job.owner, job.job_id), "it can be read"


@pytest.mark.parametrize("state", [{"S": "archived"}, None], ids=["unknown", "none"])
def test_a_job_of_an_unknown_state_is_tallied_as_unreadable(
    aws_kit: Kit, state: dict[str, str] | None
) -> None:
    owner = aws_kit.new_owner()
    jobs = [a_job(owner, job_id=own_job_id(owner, number)) for number in range(2)]
    assert all(map(aws_kit.jobs.create, jobs))
    table = settings_of(aws_kit).jobs_table
    (item,) = aws_kit.raw_items(table, pk=jobs[0].job_id)
    put_spoilt(table, item, {"state": state, "ends": {"BOOL": True}})
    tally = aws_kit.jobs.tally(owner)
    assert (tally.counts, tally.ending, tally.unreadable) == ({JobState.ACTIVE: 1}, (), 1)


@pytest.mark.parametrize(
    ("port", "row", "member", "value"),
    [
        ("calendars", a_calendar, "weekdays", [7, "Monday"]),
        ("calendars", a_calendar, "ranges", [["20261224", "soon"]]),
        ("operations", an_operation, "kind", "audit"),
        ("operations", an_operation, "state", "resting"),
        ("operations", an_operation, "step", "first"),
        ("admission_rows", a_full_admission_row, "lines", ["soon"]),
        ("admission_rows", a_full_admission_row, None, "{"),
    ],
)
def test_a_versioned_row_that_cannot_be_read_raises_what_the_port_names(
    aws_kit: Kit, port: str, row: Callable[[str], Any], member: str | None, value: Any
) -> None:
    stored, rows = row(aws_kit.new_owner()), getattr(aws_kit, port)
    kind: Any = {
        "calendars": CALENDARS,
        "admission_rows": ADMISSION_ROWS,
        "operations": OPERATIONS,
    }[port]
    assert rows.put(stored, None)
    table = settings_of(aws_kit).jobs_table
    (item,) = aws_kit.raw_items(table, pk=keys_of(kind, stored.owner, kind.key_of(stored))[0])
    body = json.loads(item["body"]["S"])
    spoilt = value if member is None else json.dumps({**body, member: value})
    put_spoilt(table, item, {"body": {"S": spoilt}})
    with pytest.raises(UnreadableRowError, match=kind.name):
        rows.get(stored.owner, kind.key_of(stored))
    if kind.any_text:
        return
    page = rows.list(stored.owner, 10)
    assert page.items == ()
    assert list(page.unreadable) == [kind.key_of(stored)]
    with pytest.raises(UnreadableRowError):
        _ = page.whole


@pytest.mark.parametrize(
    "spoilt",
    [{"s": {"S": "resting"}}, {"z": {"S": "forgotten"}}, {"n": {"S": "1"}}],
    ids=["status", "settlement", "text for a number"],
)
def test_a_run_that_cannot_be_read_is_an_unreadable_row(
    aws_kit: Kit, spoilt: dict[str, dict[str, str]]
) -> None:
    run = a_run(a_key(aws_kit.new_owner()))
    assert aws_kit.runs.claim(run, over=None)
    table = settings_of(aws_kit).runs_table
    (item,) = aws_kit.raw_items(table, job_key=f"{run.key.owner}#{run.key.job_id}")
    put_spoilt(table, item, spoilt)
    with pytest.raises(UnreadableRowError, match=run.key.job_id):
        aws_kit.runs.get(run.key)
    page = aws_kit.runs.list(run.key.owner, run.key.job_id, 10)
    assert page.items == ()
    assert list(page.unreadable) == [run.key.sort_key]
    dead = replace(run, status=RunStatus.DEAD)
    assert aws_kit.runs.replace_unreadable(dead)
    assert aws_kit.runs.replace_unreadable(dead), "its own"
    assert aws_kit.runs.get(run.key) == dead
    assert not aws_kit.runs.replace_unreadable(run), "what can be read is nobody's to replace"


def test_a_run_that_has_ended_is_not_replaced_though_it_cannot_be_read(aws_kit: Kit) -> None:
    run = a_run(a_key(aws_kit.new_owner()), status=RunStatus.SUCCEEDED)
    assert aws_kit.runs.claim(run, over=None)
    table = settings_of(aws_kit).runs_table
    (item,) = aws_kit.raw_items(table, job_key=f"{run.key.owner}#{run.key.job_id}")
    put_spoilt(table, item, {"n": {"S": "1"}})
    assert not aws_kit.runs.replace_unreadable(replace(run, status=RunStatus.DEAD))


def put_spoilt(
    table: str, item: dict[str, Any], spoilt: Mapping[str, dict[str, Any] | None]
) -> None:
    """Put an item with other attributes in place of its own; None takes one away."""
    changed: dict[str, Any] = {**item, **spoilt}
    kept = {name: value for name, value in changed.items() if value is not None}
    boto3.client("dynamodb").put_item(TableName=table, Item=kept)


def test_a_setting_of_a_later_version_is_ignored(aws_kit: Kit) -> None:
    """A deployment replaces the functions one after the other: the old ones read on."""
    job = a_job(aws_kit.new_owner())
    assert aws_kit.jobs.create(job)
    (item,) = aws_kit.raw_items(settings_of(aws_kit).jobs_table, pk=job.job_id)
    later = job.spec.document | {"mood": "good", "retry": {"max_attempts": 3, "patience": 1}}
    put_spoilt(settings_of(aws_kit).jobs_table, item, {"spec": {"S": json.dumps(later)}})
    assert aws_kit.jobs.get(job.owner, job.job_id) == job
