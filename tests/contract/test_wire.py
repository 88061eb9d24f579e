"""What the DynamoDB implementation sends, and what it makes of lost answers and refusals."""

import dataclasses
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from carillon.clock import ManualClock, SeededEntropy
from carillon.domain.run import RunStatus
from carillon.domain.wheel.entry import Slot
from carillon.errors import StoreUnavailableError
from carillon.schedules import SlotKind
from carillon.settings import Settings
from carillon.stores.dynamo import open_stores
from carillon.stores.ports import DeadLetterFilter
from tests.contract.kit import Kit
from tests.contract.samples import (
    FIRE_AT,
    NOW,
    a_calendar,
    a_job,
    a_key,
    a_run,
    an_admission_row,
    an_entry,
    an_operation,
    job_id,
    own_job_id,
)
from tests.contract.wire import Wire
from tests.contract.writes import WRITES, Write

HOURLY_17 = Slot(SlotKind.HOURLY, 17)


def _settings(kit: Kit) -> Settings:
    assert kit.settings is not None
    return kit.settings


conditional_puts = pytest.mark.parametrize("prepare", WRITES, ids=lambda prepare: prepare.__name__)


@conditional_puts
def test_a_conditional_write_is_one_request(
    aws_kit: Kit, wire: Wire, prepare: Callable[[Kit], Write]
) -> None:
    write = prepare(aws_kit)
    wire.calls.clear()
    assert write()
    assert wire.operations() == ["PutItem"]


def test_a_mutation_costs_three_writes_more(aws_kit: Kit, wire: Wire) -> None:
    """Its change is a row in the table and one in an index; that of the revision before is refused,
    since it is there."""
    jobs, job = aws_kit.recorded_jobs, a_job(aws_kit.new_owner())
    assert jobs is not None
    assert jobs.create(job)
    assert wire.operations() == ["PutItem", "PutItem"]
    wire.calls.clear()
    assert jobs.replace(job.paused(NOW), job.revision)
    reads_back = ["PutItem", "GetItem"]
    assert wire.operations() == ["GetItem", *reads_back, "PutItem", "PutItem"]


@conditional_puts
def test_a_write_whose_answer_was_lost_is_known_as_ones_own(
    aws_kit: Kit, wire: Wire, prepare: Callable[[Kit], Write]
) -> None:
    write = prepare(aws_kit)
    wire.calls.clear()
    wire.lose_answers("PutItem")
    assert write()
    assert wire.operations() == ["PutItem", "PutItem", "GetItem"]
    assert wire.calls[-1].body["ConsistentRead"] is True


def test_a_lost_answer_does_not_turn_anothers_row_into_ones_own(aws_kit: Kit, wire: Wire) -> None:
    run = a_run(a_key(aws_kit.new_owner()))
    assert aws_kit.runs.claim(run, over=None)
    wire.lose_answers("PutItem")
    assert not aws_kit.runs.claim(dataclasses.replace(run, claim_id="other"), over=None)


def test_a_withdrawal_whose_answer_was_lost_says_false(aws_kit: Kit, wire: Wire) -> None:
    run = a_run(a_key(aws_kit.new_owner()))
    assert aws_kit.runs.claim(run, over=None)
    wire.calls.clear()
    wire.lose_answers("DeleteItem")
    assert not aws_kit.runs.discard_claim(run)
    assert wire.operations() == ["DeleteItem", "DeleteItem"]
    assert aws_kit.runs.get(run.key) is None


def test_a_deletion_whose_answer_was_lost_is_known_as_ones_own(aws_kit: Kit, wire: Wire) -> None:
    calendar = a_calendar(aws_kit.new_owner())
    assert aws_kit.calendars.put(calendar, None)
    wire.calls.clear()
    wire.lose_answers("DeleteItem")
    assert aws_kit.calendars.delete(calendar.owner, calendar.name, 1)
    assert wire.operations() == ["DeleteItem", "DeleteItem"]
    assert aws_kit.calendars.get(calendar.owner, calendar.name) is None


def _leave_all_but_one(answer: dict[str, Any]) -> None:
    """Make an answer say that only the first of its items was read."""
    ((table, items),) = answer["Responses"].items()
    left = [{name: item[name] for name in ("pk", "sk")} for item in items[1:]]
    answer["Responses"][table] = items[:1]
    answer["UnprocessedKeys"] = {table: {"Keys": left}}


def test_jobs_that_a_batch_leaves_unread_are_read_again(aws_kit: Kit, wire: Wire) -> None:
    owner = aws_kit.new_owner()
    jobs = [a_job(owner, job_id=own_job_id(owner, number)) for number in range(3)]
    for job in jobs:
        assert aws_kit.jobs.create(job)
    wire.edit_answer("BatchGetItem", _leave_all_but_one)
    page = aws_kit.jobs.list(owner, 10)
    assert list(page.items) == sorted(jobs, key=lambda job: job.list_key)
    assert wire.operations()[-3:] == ["Query", "BatchGetItem", "BatchGetItem"]


def test_those_of_a_chunk_that_one_leaves_unread_hold_up_no_other(aws_kit: Kit, wire: Wire) -> None:
    """A request for them alone is refused as a whole, and botocore repeats that for seconds."""
    owner = aws_kit.new_owner()
    jobs = [a_job(owner, job_id=own_job_id(owner, number)) for number in range(3)]
    for job in jobs:
        assert aws_kit.jobs.create(job)
    wire.calls.clear()
    wire.edit_answer("BatchGetItem", _leave_all_but_one)
    found = aws_kit.jobs.get_all([(owner, job.job_id) for job in jobs])
    assert len(found) == 1
    assert set(found.values()) <= set(jobs)
    assert wire.operations() == ["BatchGetItem"]


def test_a_job_that_the_index_still_has_is_listed_no_more(aws_kit: Kit, wire: Wire) -> None:
    owner = aws_kit.new_owner()
    gone, there = (a_job(owner, job_id=own_job_id(owner, number)) for number in range(2))
    for job in (gone, there):
        assert aws_kit.jobs.create(job)
    assert aws_kit.jobs.replace(gone.deleted(NOW, NOW), gone.revision)
    behind = [
        {"pk": {"S": gone.job_id}, "sk": {"S": "job"}},
        {"pk": {"S": "0"}, "sk": {"S": "job"}},
    ]
    wire.edit_answer("Query", lambda answer: answer["Items"].extend(behind))
    assert aws_kit.jobs.list(owner, 10).items == (there,)


def test_a_list_reads_its_own_kind_only(aws_kit: Kit, wire: Wire) -> None:
    owner = aws_kit.new_owner()
    for number in range(3):
        assert aws_kit.jobs.create(a_job(owner, job_id=own_job_id(owner, number)))
    for number in range(5):
        assert aws_kit.calendars.put(a_calendar(owner, name=f"calendar{number}"), None)
        assert aws_kit.admission_rows.put(an_admission_row(owner, name=f"key/{number}"), None)
    for number in range(2):
        assert aws_kit.operations.put(an_operation(owner, number), None)
    scanned: list[int] = []
    for _ in range(6):
        wire.edit_answer("Query", lambda answer: scanned.append(answer["ScannedCount"]))
    wire.calls.clear()
    jobs = aws_kit.jobs.list(owner, 2)
    aws_kit.jobs.list(owner, 2, jobs.next_cursor)
    calendars = aws_kit.calendars.list(owner, 4)
    aws_kit.calendars.list(owner, 4, calendars.next_cursor)
    operations = aws_kit.operations.list(owner, 1)
    aws_kit.operations.list(owner, 1, operations.next_cursor)
    # One more than asked for tells whether there are more; at the end there is none to read.
    assert scanned == [3, 1, 5, 1, 2, 1]
    assert [one for one in wire.operations() if one != "BatchGetItem"] == ["Query"] * 6


def test_a_span_of_runs_is_all_that_is_read(aws_kit: Kit, wire: Wire) -> None:
    owner = aws_kit.new_owner()
    for hour in range(6):
        key = a_key(owner, FIRE_AT + timedelta(hours=hour))
        assert aws_kit.runs.claim(a_run(key, status=RunStatus.DEAD), over=None)
    span = (FIRE_AT + timedelta(hours=2), FIRE_AT + timedelta(hours=3))
    scanned: list[int] = []
    for _ in range(2):
        wire.edit_answer("Query", lambda answer: scanned.append(answer["ScannedCount"]))
    aws_kit.runs.list(owner, job_id(), 9, from_at=span[0], until_at=span[1])
    aws_kit.runs.dead_letters(owner, 9, only=DeadLetterFilter(from_at=span[0], until_at=span[1]))
    assert scanned == [2, 2]


def test_reads_are_single_and_strong(aws_kit: Kit, wire: Wire) -> None:
    owner, segment = aws_kit.new_owner(), aws_kit.new_segment()
    aws_kit.wheel.put_entries([an_entry(owner, segment, number) for number in range(3)])
    wire.calls.clear()
    aws_kit.jobs.get(owner, job_id())
    aws_kit.calendars.get(owner, "holidays")
    aws_kit.runs.get(a_key(owner))
    aws_kit.admission_rows.get(owner, "owner")
    aws_kit.operations.get(owner, "any")
    aws_kit.wheel.get_control(segment)
    page = aws_kit.wheel.query(segment, HOURLY_17)
    assert (len(page.items), page.next_cursor) == (3, None)
    aws_kit.runs.list(owner, job_id(), 10, consistent=True)
    assert wire.operations() == ["GetItem"] * 6 + ["Query"] * 2
    assert all(call.body["ConsistentRead"] is True for call in wire.calls)


def test_a_wheel_page_is_one_request_even_when_there_is_more(aws_kit: Kit, wire: Wire) -> None:
    owner, segment = aws_kit.new_owner(), aws_kit.new_segment()
    # Entries of about 11 KB: a slot of more than the megabyte that a page holds.
    entries = [an_entry(owner + "x" * 11_000, segment, number) for number in range(110)]
    aws_kit.wheel.put_entries(entries)
    wire.calls.clear()
    page = aws_kit.wheel.query(segment, HOURLY_17)
    assert page.next_cursor == page.items[-1].key
    assert 80 < len(page.items) < 110
    rest = aws_kit.wheel.query(segment, HOURLY_17, page.next_cursor)
    assert [*page.items, *rest.items] == sorted(entries, key=lambda entry: entry.key)
    assert wire.operations() == ["Query", "Query"]


def test_entries_go_in_full_batches_and_one_alone_singly(aws_kit: Kit, wire: Wire) -> None:
    owner, segment = aws_kit.new_owner(), aws_kit.new_segment()
    aws_kit.wheel.put_entries([an_entry(owner, segment, number) for number in range(60)])
    aws_kit.wheel.put_entries([an_entry(owner, segment)])
    sizes = [len(_batch(call.body)) for call in wire.calls[:3]]
    assert sizes == [25, 25, 10]
    assert wire.operations()[3:] == ["PutItem"]


def _batch(body: dict[str, Any]) -> list[Any]:
    (requests,) = body["RequestItems"].values()
    assert isinstance(requests, list)
    return requests


def _leave_unprocessed(kit: Kit, wire: Wire, left: list[Any], count: int) -> None:
    """Make the next batch's answer say that its last `count` items were not written."""

    def edit(answer: dict[str, Any]) -> None:
        requests = _batch(wire.calls[-1].body)[-count:]
        left.append(requests)
        answer["UnprocessedItems"] = {_settings(kit).wheel_table: requests}

    wire.edit_answer("BatchWriteItem", edit)


def test_unprocessed_entries_are_repeated_with_pauses(aws_kit: Kit, wire: Wire) -> None:
    clock = ManualClock(NOW)
    wheel = open_stores(_settings(aws_kit), clock, SeededEntropy(1)).wheel
    owner, segment = aws_kit.new_owner(), aws_kit.new_segment()
    left: list[Any] = []
    _leave_unprocessed(aws_kit, wire, left, 3)
    _leave_unprocessed(aws_kit, wire, left, 1)
    wheel.put_entries([an_entry(owner, segment, number) for number in range(5)])
    batches = [_batch(call.body) for call in wire.calls]
    assert [len(batch) for batch in batches] == [5, 3, 1]
    assert batches[1:] == left
    assert 0 < (clock.now() - NOW).total_seconds() <= 0.15


def test_entries_never_processed_are_an_unavailable_store(aws_kit: Kit, wire: Wire) -> None:
    clock = ManualClock(NOW)
    wheel = open_stores(_settings(aws_kit), clock, SeededEntropy(1)).wheel
    owner, segment = aws_kit.new_owner(), aws_kit.new_segment()
    for _ in range(50):
        _leave_unprocessed(aws_kit, wire, [], 2)
    with pytest.raises(StoreUnavailableError, match="2 items left unprocessed"):
        wheel.put_entries([an_entry(owner, segment, number) for number in range(2)])
    assert 2 < len(wire.calls) < 20
    assert (clock.now() - NOW).total_seconds() < 15
