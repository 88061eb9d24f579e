"""What the DynamoDB implementation sends, and what it makes of lost answers and refusals."""

import dataclasses
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import boto3
import pytest

from shared.clock import ManualClock, SeededEntropy
from shared.domain.run import RunStatus
from shared.domain.wheel import Slot
from shared.errors import ConfigurationError, StoreUnavailableError
from shared.recurrence import SlotKind
from shared.settings import Settings
from shared.stores.dynamo import open_stores
from shared.stores.dynamo.connecting import (
    CONNECT_TIMEOUT_SECONDS,
    READ_TIMEOUT_SECONDS,
    TOTAL_ATTEMPTS,
    open_connection,
)
from tests.contract.kit import Kit
from tests.contract.samples import (
    NOW,
    a_calendar,
    a_control,
    a_job,
    a_key,
    a_run,
    an_entry,
    job_id,
)
from tests.contract.wire import Wire

HOURLY_17 = Slot(SlotKind.HOURLY, 17)
LEASE_UNTIL = NOW + timedelta(seconds=45)

Write = Callable[[], bool]


def _settings(kit: Kit) -> Settings:
    assert kit.settings is not None
    return kit.settings


def _create(kit: Kit) -> Write:
    job = a_job(kit.new_owner())
    return lambda: kit.jobs.create(job)


def _replace(kit: Kit) -> Write:
    job = a_job(kit.new_owner())
    assert kit.jobs.create(job)
    return lambda: kit.jobs.replace(dataclasses.replace(job, revision=2), 1)


def _first_claim(kit: Kit) -> Write:
    run = a_run(a_key(kit.new_owner()))
    return lambda: kit.runs.claim(run, over=None)


def _takeover(kit: Kit) -> Write:
    run = a_run(a_key(kit.new_owner()))
    assert kit.runs.claim(run, over=None)
    return lambda: kit.runs.claim(dataclasses.replace(run, token=2), over=run)


def _finish(kit: Kit) -> Write:
    run = a_run(a_key(kit.new_owner()), expires_at=NOW)
    assert kit.runs.claim(run, over=None)
    return lambda: kit.runs.finish(dataclasses.replace(run, status=RunStatus.DEAD))


def _first_calendar(kit: Kit) -> Write:
    calendar = a_calendar(kit.new_owner())
    return lambda: kit.calendars.put(calendar, None)


def _changed_calendar(kit: Kit) -> Write:
    calendar = a_calendar(kit.new_owner())
    assert kit.calendars.put(calendar, None)
    changed = dataclasses.replace(calendar, revision=2, ranges=())
    return lambda: kit.calendars.put(changed, 1)


def _first_control(kit: Kit) -> Write:
    segment = kit.new_segment()
    return lambda: kit.wheel.put_control(a_control(segment), over=None)


def _lease(kit: Kit) -> Write:
    seen = a_control(kit.new_segment())
    leased = dataclasses.replace(seen, token=1, lease_owner="tick", lease_until=LEASE_UNTIL)
    assert kit.wheel.put_control(seen, over=None)
    return lambda: kit.wheel.put_control(leased, over=seen)


CONDITIONAL_PUTS = [
    _create,
    _replace,
    _first_claim,
    _takeover,
    _finish,
    _first_calendar,
    _changed_calendar,
    _first_control,
    _lease,
]
conditional_puts = pytest.mark.parametrize("prepare", CONDITIONAL_PUTS)


@conditional_puts
def test_a_conditional_write_is_one_request(
    aws_kit: Kit, wire: Wire, prepare: Callable[[Kit], Write]
) -> None:
    write = prepare(aws_kit)
    wire.calls.clear()
    assert write()
    assert wire.operations() == ["PutItem"]


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
    assert not aws_kit.runs.withdraw(run)
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


def test_a_list_reads_its_own_kind_only(aws_kit: Kit, wire: Wire) -> None:
    owner = aws_kit.new_owner()
    for number in range(3):
        assert aws_kit.jobs.create(a_job(owner, job_id=job_id(number)))
    for number in range(5):
        assert aws_kit.calendars.put(a_calendar(owner, name=f"calendar{number}"), None)
    scanned: list[int] = []
    for _ in range(4):
        wire.edit_answer("Query", lambda answer: scanned.append(answer["ScannedCount"]))
    wire.calls.clear()
    jobs = aws_kit.jobs.list(owner, 2)
    aws_kit.jobs.list(owner, 2, jobs.next_cursor)
    calendars = aws_kit.calendars.list(owner, 4)
    aws_kit.calendars.list(owner, 4, calendars.next_cursor)
    # One more than asked for tells whether there are more; at the end there is none to read.
    assert scanned == [3, 1, 5, 1]
    assert wire.operations() == ["Query"] * 4


def test_reads_are_single_and_strong(aws_kit: Kit, wire: Wire) -> None:
    owner, segment = aws_kit.new_owner(), aws_kit.new_segment()
    aws_kit.wheel.put_entries([an_entry(owner, segment, number) for number in range(3)])
    wire.calls.clear()
    aws_kit.jobs.get(owner, job_id())
    aws_kit.calendars.get(owner, "holidays")
    aws_kit.runs.get(a_key(owner))
    aws_kit.wheel.get_control(segment)
    page = aws_kit.wheel.query(segment, HOURLY_17)
    assert (len(page.entries), page.last_key) == (3, None)
    assert wire.operations() == ["GetItem"] * 4 + ["Query"]
    assert all(call.body["ConsistentRead"] is True for call in wire.calls)


def test_a_wheel_page_is_one_request_even_when_there_is_more(aws_kit: Kit, wire: Wire) -> None:
    owner, segment = aws_kit.new_owner(), aws_kit.new_segment()
    # Entries of about 11 KB: a slot of more than the megabyte that a page holds.
    entries = [an_entry(owner + "x" * 11_000, segment, number) for number in range(110)]
    aws_kit.wheel.put_entries(entries)
    wire.calls.clear()
    page = aws_kit.wheel.query(segment, HOURLY_17)
    assert page.last_key == page.entries[-1].key
    assert 80 < len(page.entries) < 110
    rest = aws_kit.wheel.query(segment, HOURLY_17, page.last_key)
    assert [*page.entries, *rest.entries] == sorted(entries, key=lambda entry: entry.key)
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


THROTTLES = ["ProvisionedThroughputExceededException", "ThrottlingException"]


@pytest.mark.parametrize("code", [*THROTTLES, "RequestLimitExceeded"])
def test_throttling_is_ridden_out(aws_kit: Kit, wire: Wire, code: str) -> None:
    run = a_run(a_key(aws_kit.new_owner()))
    wire.refuse("PutItem", code, times=TOTAL_ATTEMPTS - 1)
    assert aws_kit.runs.claim(run, over=None)
    assert aws_kit.runs.get(run.key) == run


def _calls(kit: Kit) -> dict[str, tuple[str, Callable[[], object]]]:
    """Every method of the stores: the operation it rests on, and a call."""
    owner, segment = kit.new_owner(), kit.new_segment()
    job, run, calendar = a_job(owner), a_run(a_key(owner)), a_calendar(owner)
    entry, control = an_entry(owner, segment), a_control(segment)
    both = [entry, an_entry(owner, segment, 1)]
    return {
        "jobs.get": ("GetItem", lambda: kit.jobs.get(owner, job.job_id)),
        "jobs.create": ("PutItem", lambda: kit.jobs.create(job)),
        "jobs.replace": ("PutItem", lambda: kit.jobs.replace(job, 1)),
        "jobs.list": ("Query", lambda: kit.jobs.list(owner, 5)),
        "calendars.get": ("GetItem", lambda: kit.calendars.get(owner, calendar.name)),
        "calendars.put": ("PutItem", lambda: kit.calendars.put(calendar, None)),
        "calendars.put_over": ("PutItem", lambda: kit.calendars.put(calendar, 1)),
        "calendars.delete": ("DeleteItem", lambda: kit.calendars.delete(owner, calendar.name, 1)),
        "calendars.list": ("Query", lambda: kit.calendars.list(owner, 5)),
        "wheel.put_entry": ("PutItem", lambda: kit.wheel.put_entries([entry])),
        "wheel.put_entries": ("BatchWriteItem", lambda: kit.wheel.put_entries(both)),
        "wheel.query": ("Query", lambda: kit.wheel.query(segment, HOURLY_17)),
        "wheel.remove_entry": (
            "DeleteItem",
            lambda: kit.wheel.remove_entry(segment, HOURLY_17, entry.key),
        ),
        "wheel.get_control": ("GetItem", lambda: kit.wheel.get_control(segment)),
        "wheel.put_control": ("PutItem", lambda: kit.wheel.put_control(control, over=None)),
        "runs.get": ("GetItem", lambda: kit.runs.get(run.key)),
        "runs.claim": ("PutItem", lambda: kit.runs.claim(run, over=None)),
        "runs.claim_over": ("PutItem", lambda: kit.runs.claim(run, over=run)),
        "runs.finish": ("PutItem", lambda: kit.runs.finish(run)),
        "runs.withdraw": ("DeleteItem", lambda: kit.runs.withdraw(run)),
        "runs.list": ("Query", lambda: kit.runs.list(owner, job.job_id, 5)),
    }


def _fresh(kit: Kit) -> Kit:
    """The kit on new clients: botocore lets one client repeat only so often until a success."""
    stores = open_stores(_settings(kit), ManualClock(NOW), SeededEntropy(1))
    return dataclasses.replace(
        kit,
        jobs=stores.jobs,
        calendars=stores.calendars,
        wheel=stores.wheel,
        runs=stores.runs,
        queue=stores.queue,
    )


@pytest.mark.parametrize("code", [*THROTTLES, "InternalServerError"])
def test_a_service_that_goes_on_refusing_is_an_unavailable_store(
    aws_kit: Kit, wire: Wire, code: str
) -> None:
    for name in _calls(aws_kit):
        operation, call = _calls(_fresh(aws_kit))[name]
        wire.calls.clear()
        wire.refuse(operation, code, times=TOTAL_ATTEMPTS)
        with pytest.raises(StoreUnavailableError) as unavailable:
            call()
        assert wire.operations() == [operation] * TOTAL_ATTEMPTS, name
        assert unavailable.value.__cause__ is not None, name


def test_what_no_repetition_mends_is_not_repeated(aws_kit: Kit, wire: Wire) -> None:
    for name, (operation, call) in _calls(_fresh(aws_kit)).items():
        wire.calls.clear()
        wire.refuse(operation, "ResourceNotFoundException", times=1)
        with pytest.raises(StoreUnavailableError):
            call()
        assert wire.operations() == [operation], name


def test_a_connection_that_goes_on_breaking_is_an_unavailable_store(
    aws_kit: Kit, wire: Wire
) -> None:
    for name in _calls(aws_kit):
        operation, call = _calls(_fresh(aws_kit))[name]
        wire.lose_answers(operation, TOTAL_ATTEMPTS)
        with pytest.raises(StoreUnavailableError):
            call()


def test_a_read_back_that_fails_is_an_unavailable_store(aws_kit: Kit, wire: Wire) -> None:
    run = a_run(a_key(aws_kit.new_owner()))
    assert aws_kit.runs.claim(run, over=None)
    wire.refuse("GetItem", "InternalServerError", times=TOTAL_ATTEMPTS)
    with pytest.raises(StoreUnavailableError):
        aws_kit.runs.claim(run, over=None)


def test_every_call_has_a_time_limit(aws_kit: Kit) -> None:
    config: Any = open_connection().client.meta.config
    assert config.connect_timeout == CONNECT_TIMEOUT_SECONDS <= 5
    assert config.read_timeout == READ_TIMEOUT_SECONDS <= 10


def test_no_region_is_a_wrong_configuration(aws_kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    with pytest.raises(ConfigurationError) as wrong:
        open_stores(_settings(aws_kit), ManualClock(NOW))
    assert wrong.value.name == "AWS_DEFAULT_REGION"
