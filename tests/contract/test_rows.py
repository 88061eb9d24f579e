"""Items of DynamoDB: exact, of the promised size, and with the attributes that indexes need."""

import dataclasses
import json
from datetime import date, timedelta
from typing import Any

import pytest

from carillon.domain.admission.state import PermitHolder, key_admission
from carillon.domain.calendar import CalendarUse
from carillon.domain.events import JOB_EVENTS
from carillon.domain.job import Lane, Slow
from carillon.domain.policies import Backoff, CatchUp, Concurrency, Overlap, Rate, RetryPolicy
from carillon.domain.run import (
    RESULT_LIMIT_BYTES,
    AttemptRecord,
    Completion,
    Resolution,
    RunError,
    RunStatus,
)
from carillon.domain.targets import SecretReference, WebhookTarget
from carillon.domain.wheel.entry import Slot, entry_of_message
from carillon.domain.wheel.segment import Backlog, Cursor
from carillon.schedules import CalendarRule, SlotKind, parse_schedule
from carillon.schedules.insight.cost import read_units, write_units
from carillon.stores.dynamo import jobs, runs, side_rows, wheel
from carillon.stores.dynamo.attributes import RawItem, item_size
from carillon.stores.dynamo.models import JobRow, SideRow
from carillon.stores.dynamo.table import keys_of
from carillon.stores.ports import ADMISSION_ROWS, CALENDARS, OPERATIONS
from tests.contract.kit import Kit
from tests.contract.samples import (
    CLAIM_ID,
    FIRE_AT,
    GENERATION_ID,
    NOW,
    a_bounded_schedule,
    a_calendar,
    a_control,
    a_full_operation,
    a_job,
    a_key,
    a_message,
    a_run,
    an_admission_row,
    an_entry,
    an_operation,
)

SUBJECT = "d4c8f4a8-10b1-70aa-5c3e-9f1e2d3c4b5a"
"""A Cognito subject is an owner of this length."""


@pytest.mark.parametrize(
    "item",
    [
        wheel.item_of(an_entry(SUBJECT, 15)),
        wheel.item_of(
            an_entry(
                SUBJECT,
                15,
                slot=Slot(SlotKind.DAILY, 1439),
                schedule=parse_schedule("*/15 8-18 * * 1-5", "Europe/Riga"),
            )
        ),
        wheel.item_of(
            an_entry(
                SUBJECT,
                15,
                slot=Slot(SlotKind.DATED, 29_700_000),
                schedule=parse_schedule("every 100m offset 2m", start_at=FIRE_AT),
            )
        ),
    ],
    ids=["hourly", "daily in a zone", "dated with an anchor"],
)
def test_an_entry_is_small(item: RawItem) -> None:
    assert 100 < item_size(item) <= 180


def test_an_entry_with_everything_is_small() -> None:
    entry = an_entry(
        SUBJECT,
        15,
        slot=Slot(SlotKind.DAILY, 1439),
        schedule=a_bounded_schedule(),
        lane=Lane.HIGH,
        catch_up=CatchUp.SKIP,
        spread_seconds=899,
        calendar=CalendarUse("holidays", CalendarRule.NEXT_BUSINESS_DAY),
        zone_digest="Kd8a0Q",
        grace_seconds=3600,
        within_seconds=604_800,
    )
    assert item_size(wheel.item_of(entry)) <= 250


def test_a_retry_far_ahead_is_one_write_unit() -> None:
    assert write_units(item_size(wheel.item_of(entry_of_message(a_message(SUBJECT))))) == 1


def _ended(**changes: Any) -> RawItem:
    fields: dict[str, Any] = {
        "status": RunStatus.SUCCEEDED,
        "finished_at": NOW + timedelta(seconds=1),
        "lease_until": None,
        "result": "x" * RESULT_LIMIT_BYTES,
    }
    return runs.item_of(a_run(a_key(SUBJECT), **{**fields, **changes}))


def test_an_ordinary_run_is_one_write_unit_from_claim_to_finish() -> None:
    claimed = runs.item_of(a_run(a_key(SUBJECT)))
    assert item_size(claimed) < 300
    assert item_size(_ended()) < 1024
    error = RunError("http_503", "x" * RESULT_LIMIT_BYTES)
    dead = _ended(status=RunStatus.DEAD, result=None, error=error, reason="attempts exhausted")
    assert item_size(dead) < 1024


def test_an_item_is_the_one_that_its_row_would_give(monkeypatch: pytest.MonkeyPatch) -> None:
    """`item_as` writes by the same attributes, without the row: also maps and lists of maps."""
    error = RunError("k", "m", permanent=True)
    attempts = (AttemptRecord(1, NOW, NOW, error),)
    completion = Completion("h", NOW, 30, is_open=True, permits=("p",))
    full = a_run(a_key("o"), error=error, attempts=attempts, completion=completion, waits=2)
    direct = [runs.item_of(run) for run in (full, a_run(a_key("o")))]
    monkeypatch.setattr(runs, "item_as", lambda model, **values: model(**values).serialize())
    assert [runs.item_of(run) for run in (full, a_run(a_key("o")))] == direct


def test_an_item_is_read_as_its_row_would_be(monkeypatch: pytest.MonkeyPatch) -> None:
    completion = Completion("h", NOW, 30, is_open=True, permits=("p",))
    attempts = (AttemptRecord(1, NOW, NOW, RunError("k", "m", permanent=True)),)
    full = a_run(a_key("o"), attempts=attempts, completion=completion, waits=2)
    job = a_job(SUBJECT, slow=Slow(NOW, "it lasts"), note="why", resume_at=NOW)
    of_runs = [runs.item_of(run) for run in (full, a_run(a_key("o")))]
    direct = [*map(runs.run_of, of_runs), jobs.job_of(jobs.item_of(job))]
    for module in (runs, jobs):
        monkeypatch.setattr(module, "row_as", lambda model, item: model.from_raw_data(item))
    assert [*map(runs.run_of, of_runs), jobs.job_of(jobs.item_of(job))] == direct
    assert direct == [full, a_run(a_key("o")), job]


def test_a_job_with_a_small_payload_is_small() -> None:
    item = jobs.item_of(a_job(SUBJECT, payload=json.dumps({"text": "x" * 256})))
    assert item_size(item) < 2048


def test_a_job_with_every_policy_is_one_read_unit() -> None:
    hook = WebhookTarget(
        url="https://example.com/hooks/carillon",
        headers={"X-Api-Key": SecretReference(secret="partner-key")},
        signing_secret=SecretReference(secret="signing"),
    )
    job = a_job(
        SUBJECT,
        payload=json.dumps({"text": "x" * 256}),
        target=hook,
        retry=RetryPolicy(5, Backoff(10), ("timeout", "http_5xx")),
        overlap=Overlap.QUEUE_ONE,
        tolerance=30,
        grace=600,
        concurrency=Concurrency("database", 5),
        rate=Rate(100, 60, "partner"),
        pause_after_failures=5,
        expect_within=600,
        on_success=hook,
        on_failure=hook,
        events=JOB_EVENTS,
        template=True,
        parent="channel/5",
        tags={"channel": "5", "team": "billing"},
        note="x" * 256,
    )
    assert read_units(item_size(jobs.item_of(job))) == 1


def test_what_a_job_does_not_use_takes_no_space() -> None:
    used = set(jobs.item_of(a_job(SUBJECT)))
    assert not used & {"tags", "parent", "note", "previous", "slow", "ends_at"}


def test_a_gate_in_its_ordinary_use_is_one_write_unit() -> None:
    run_id, later = a_key(SUBJECT).run_id, a_key(SUBJECT, FIRE_AT + timedelta(hours=1)).run_id
    of_a_job = an_admission_row(
        SUBJECT,
        active=run_id,
        waiting=later,
        waiting_generation=GENERATION_ID,
        started=run_id,
        started_at=NOW,
        failed=(run_id,) * 5,
    )
    of_a_key = an_admission_row(
        SUBJECT, name=key_admission("database"), holders=(PermitHolder(CLAIM_ID, NOW),)
    )
    many = dataclasses.replace(of_a_key, holders=of_a_key.holders * 6)
    for gate in (of_a_job, of_a_key, many):
        assert write_units(item_size(side_rows.item_of(ADMISSION_ROWS, gate))) == 1


def test_an_operation_is_one_write_unit() -> None:
    assert write_units(item_size(side_rows.item_of(OPERATIONS, a_full_operation(SUBJECT)))) == 1


def test_a_usual_calendar_is_one_read_unit() -> None:
    singles = tuple((FIRE_AT.date() + timedelta(days=31 * n),) * 2 for n in range(100))
    calendar = a_calendar(SUBJECT, ranges=singles, description="x" * 256)
    assert read_units(item_size(side_rows.item_of(CALENDARS, calendar))) == 1


def test_the_largest_calendar_fits_an_item() -> None:
    first = date(2026, 1, 1)
    ranges = tuple(
        (first + timedelta(days=400 * n), first + timedelta(days=400 * n + 365))
        for n in range(2000)
    )
    calendar = a_calendar(SUBJECT, name="x" * 128, ranges=ranges, description="x" * 1024)
    assert item_size(side_rows.item_of(CALENDARS, calendar)) < 64 * 1024


def test_what_else_an_owner_has_is_stored_under_the_keys_of_jobs() -> None:
    names = [[key.attr_name for key in keys_of(each)] for each in (JobRow, SideRow)]
    assert names[0] == names[1]


def test_a_control_item_is_one_write_unit_in_the_worst_ordinary_case() -> None:
    control = a_control(
        15,
        token=10**9,
        lease_owner=GENERATION_ID,
        lease_until=NOW,
        backlog=tuple(Backlog(29_700_000, 29_700_001, 29_700_999, NOW) for _ in range(4)),
        cursor=Cursor(29_700_000, "m29700000", f"{GENERATION_ID}#{GENERATION_ID}"),
    )
    assert write_units(item_size(wheel.control_item_of(control))) == 1


def test_item_sizes_follow_the_documented_rule() -> None:
    assert item_size({"ab": {"S": "ü"}}) == 2 + 2
    assert item_size({"n": {"N": "0"}}) == 1 + 1
    assert item_size({"n": {"N": "1790000000"}}) == 1 + 1 + 2
    assert item_size({"n": {"N": "-12345"}}) == 1 + 1 + 3 + 1
    assert item_size({"b": {"BOOL": True}}) == 1 + 1
    assert item_size({"l": {"L": [{"S": "abc"}]}}) == 1 + 3 + (1 + 3)
    assert item_size({"m": {"M": {"k": {"S": "abc"}}}}) == 1 + 3 + (1 + 1 + 3)
    assert [item_size({"a": {"S": "x" * size}}) for size in (1023, 1024)] == [1024, 1025]


@pytest.mark.parametrize("status", list(RunStatus))
def test_only_runs_that_need_attention_are_in_their_index(aws_kit: Kit, status: RunStatus) -> None:
    assert aws_kit.settings is not None
    owner = aws_kit.new_owner()
    run = a_run(a_key(owner), status=status)
    assert aws_kit.runs.claim(run, over=None)
    (item,) = aws_kit.raw_items(aws_kit.settings.runs_table, job_key=f"{owner}#{run.key.job_id}")
    if run.attention is not None:
        assert item["attention_owner"] == {"S": f"{run.attention}#{owner}"}
        assert item["attention_key"]["S"].startswith(run.key.sort_key)
    else:
        assert not {"attention_owner", "attention_key"} & set(item)


@pytest.mark.parametrize("settled", list(Resolution))
def test_a_settled_dead_letter_leaves_the_index(aws_kit: Kit, settled: Resolution) -> None:
    assert aws_kit.settings is not None
    owner = aws_kit.new_owner()
    run = a_run(a_key(owner), status=RunStatus.DEAD)
    assert aws_kit.runs.claim(run, over=None)
    after = dataclasses.replace(run, settled=settled, token=2)
    assert aws_kit.runs.claim(after, over=run)
    (item,) = aws_kit.raw_items(aws_kit.settings.runs_table, job_key=f"{owner}#{run.key.job_id}")
    assert not {"attention_owner", "attention_key"} & set(item)


def test_gates_and_operations_expire(aws_kit: Kit) -> None:
    assert aws_kit.settings is not None
    owner = aws_kit.new_owner()
    row, operation = an_admission_row(owner, expires_at=NOW), an_operation(owner, expires_at=NOW)
    assert aws_kit.admission_rows.put(row, None)
    assert aws_kit.operations.put(operation, None)
    partition, _ = side_rows.keys_of(ADMISSION_ROWS, owner, row.name)
    items = [
        *aws_kit.raw_items(aws_kit.settings.jobs_table, pk=partition),
        *aws_kit.raw_items(aws_kit.settings.jobs_table, pk=f"~owner/{owner}"),
    ]
    second = {"N": str(int(NOW.timestamp()) + 1)}
    assert [item["ttl"] for item in items] == [second, second]
    keys = ["admission", f"operation/{operation.operation_id}"]
    assert [item["sk"]["S"] for item in items] == keys
    assert all(item["owner"] == {"S": owner} for item in items)


def test_expiry_is_a_number_of_seconds(aws_kit: Kit) -> None:
    settings, owner, segment = aws_kit.settings, aws_kit.new_owner(), aws_kit.new_segment()
    assert settings is not None
    assert aws_kit.runs.claim(a_run(a_key(owner)), over=None)
    tombstone = a_job(owner).deleted(NOW, NOW)
    assert aws_kit.jobs.create(tombstone)
    standing = an_entry(owner, segment)
    dated = an_entry(owner, segment, slot=Slot(SlotKind.DATED, 29_700_000))
    ended = an_entry(owner, segment, slot=Slot(SlotKind.DAILY, 420), schedule=a_bounded_schedule())
    aws_kit.wheel.put_entries([standing, dated, ended])
    (run,) = aws_kit.raw_items(settings.runs_table, job_key=f"{owner}#{standing.job_id}")
    (job,) = aws_kit.raw_items(settings.jobs_table, pk=tombstone.job_id)
    (first,) = aws_kit.raw_items(settings.wheel_table, segment_slot=f"{segment}#h17")
    (second,) = aws_kit.raw_items(settings.wheel_table, segment_slot=f"{segment}#m29700000")
    (third,) = aws_kit.raw_items(settings.wheel_table, segment_slot=f"{segment}#d420")
    started = int(NOW.timestamp())
    assert run["ttl"] == {"N": str(started + 30 * 86400)}
    assert job["ttl"] == {"N": str(started + 1)}
    assert "ttl" not in first
    assert second["ttl"] == {"N": str(29_700_000 * 60 + 14 * 86400)}
    assert ended.expires_at is not None
    assert third["ttl"] == {"N": str(int(ended.expires_at.timestamp()))}


def test_control_items_have_the_agreed_key(aws_kit: Kit) -> None:
    assert aws_kit.settings is not None
    segment = aws_kit.new_segment()
    assert aws_kit.wheel.put_control(a_control(segment), over=None)
    (item,) = aws_kit.raw_items(aws_kit.settings.wheel_table, segment_slot=f"{segment}#control")
    assert item["entry_key"] == {"S": "control"}
