"""A DynamoDB that throttles, fails or breaks connections: what the ports promise about that."""

import dataclasses
from collections.abc import Callable
from typing import Any

import boto3
import pytest

from carillon.clock import ManualClock, SeededEntropy
from carillon.domain.chunks.chunk import Chunk, finished
from carillon.domain.chunks.message import ChunkKey
from carillon.domain.chunks.placing import Plan
from carillon.domain.job import Lane
from carillon.domain.wheel.entry import Slot
from carillon.errors import ConfigurationError, StoreUnavailableError
from carillon.schedules import SlotKind
from carillon.settings import Settings
from carillon.stores.dynamo import (
    CONNECT_TIMEOUT_SECONDS,
    READ_TIMEOUT_SECONDS,
    TOTAL_ATTEMPTS,
    open_connection,
    open_stores,
)
from tests.contract.kit import Kit
from tests.contract.samples import (
    CLAIM_ID,
    NOW,
    a_calendar,
    a_control,
    a_job,
    a_key,
    a_run,
    an_admission_row,
    an_entry,
    an_operation,
)
from tests.contract.wire import Wire

# What is disturbed never reaches a service: which one it would be makes no difference.
pytestmark = pytest.mark.parametrize("aws_kit", ["moto"], indirect=True)

HOURLY_17 = Slot(SlotKind.HOURLY, 17)


def _settings(kit: Kit) -> Settings:
    assert kit.settings is not None
    return kit.settings


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
    gate, operation = an_admission_row(owner), an_operation(owner)
    chunk = Chunk(ChunkKey(segment, 1, 0, Lane.NORMAL, 0), CLAIM_ID, NOW, NOW, NOW, ())
    plan = Plan(segment, 1, CLAIM_ID, NOW)
    return {
        "jobs.get": ("GetItem", lambda: kit.jobs.get(owner, job.job_id)),
        "jobs.get_all": ("BatchGetItem", lambda: kit.jobs.get_all([(owner, job.job_id)])),
        "jobs.create": ("PutItem", lambda: kit.jobs.create(job)),
        "jobs.replace": ("PutItem", lambda: kit.jobs.replace(job, 1)),
        "jobs.relink": ("PutItem", lambda: kit.jobs.relink(job, ())),
        "jobs.list": ("Query", lambda: kit.jobs.list(owner, 5)),
        "calendars.get": ("GetItem", lambda: kit.calendars.get(owner, calendar.name)),
        "calendars.put": ("PutItem", lambda: kit.calendars.put(calendar, None)),
        "calendars.put_over": ("PutItem", lambda: kit.calendars.put(calendar, 1)),
        "calendars.delete": ("DeleteItem", lambda: kit.calendars.delete(owner, calendar.name, 1)),
        "calendars.list": ("Query", lambda: kit.calendars.list(owner, 5)),
        "gates.get": ("GetItem", lambda: kit.admission_rows.get(owner, gate.name)),
        "gates.put": ("PutItem", lambda: kit.admission_rows.put(gate, None)),
        "gates.put_over": ("PutItem", lambda: kit.admission_rows.put(gate, 1)),
        "operations.get": ("GetItem", lambda: kit.operations.get(owner, operation.operation_id)),
        "operations.put": ("PutItem", lambda: kit.operations.put(operation, None)),
        "operations.put_over": ("PutItem", lambda: kit.operations.put(operation, 1)),
        "operations.list": ("Query", lambda: kit.operations.list(owner, 5)),
        "wheel.put_entry": ("PutItem", lambda: kit.wheel.put_entries([entry])),
        "wheel.put_entries": ("BatchWriteItem", lambda: kit.wheel.put_entries(both)),
        "wheel.query": ("Query", lambda: kit.wheel.query(segment, HOURLY_17)),
        "wheel.remove_entry": (
            "DeleteItem",
            lambda: kit.wheel.remove_entries(segment, [(HOURLY_17, entry.key)]),
        ),
        "wheel.remove_entries": (
            "BatchWriteItem",
            lambda: kit.wheel.remove_entries(segment, [(one.slot, one.key) for one in both]),
        ),
        "wheel.get_control": ("GetItem", lambda: kit.wheel.get_control(segment)),
        "wheel.put_control": ("PutItem", lambda: kit.wheel.put_control(control, over=None)),
        "runs.get": ("GetItem", lambda: kit.runs.get(run.key)),
        "runs.claim": ("PutItem", lambda: kit.runs.claim(run, over=None)),
        "runs.claim_over": ("PutItem", lambda: kit.runs.claim(run, over=run)),
        "runs.finish": ("PutItem", lambda: kit.runs.finish(run)),
        "runs.withdraw": ("DeleteItem", lambda: kit.runs.discard_claim(run)),
        "chunks.get": ("GetItem", lambda: kit.chunks.get(chunk.key)),
        "chunks.claim": ("PutItem", lambda: kit.chunks.claim(chunk)),
        "chunks.finish": ("PutItem", lambda: kit.chunks.finish(finished(chunk, {}))),
        "chunks.get_plan": ("GetItem", lambda: kit.chunks.get_plan(segment, 1)),
        "chunks.put_plan": ("PutItem", lambda: kit.chunks.put_plan(plan)),
        "runs.list": ("Query", lambda: kit.runs.list(owner, job.job_id, 5)),
        "runs.dead_letters": ("Query", lambda: kit.runs.dead_letters(owner, 5)),
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
        chunks=stores.chunks,
        admission_rows=stores.admission_rows,
        operations=stores.operations,
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
