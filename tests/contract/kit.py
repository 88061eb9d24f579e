"""The implementations under test, each with what a test needs besides the ports."""

import importlib
import itertools
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from threading import Barrier
from time import sleep
from typing import Any, TypeVar

import boto3
import time_machine
from moto import mock_aws

from carillon.clock import ManualClock, SystemClock
from carillon.domain.admission.state import AdmissionRow
from carillon.domain.calendar import Calendar
from carillon.domain.idempotency import IdempotencyRecord
from carillon.domain.job import Lane
from carillon.domain.message import Message, decode
from carillon.domain.notifying.notification import Notification
from carillon.domain.notifying.window import Window
from carillon.domain.operation import Operation
from carillon.domain.quotas import OwnLimits, Use
from carillon.settings import Settings
from carillon.stores.activity import ActivityStore
from carillon.stores.dynamo import open_stores
from carillon.stores.memory import (
    MemoryActivityStore,
    MemoryEvents,
    MemoryJobStore,
    MemoryQueue,
    MemoryRunStore,
    MemoryVersionedRows,
    MemoryWheelStore,
)
from carillon.stores.memory.changes import MemoryChangeStore
from carillon.stores.memory.chunks import MemoryChunkStore
from carillon.stores.ports import (
    ADMISSION_ROWS,
    CALENDARS,
    IDEMPOTENCY_RECORDS,
    NOTIFICATIONS,
    OPERATIONS,
    QUOTAS,
    USES,
    WINDOWS,
    ChangeStore,
    ChunkStore,
    EventSink,
    JobStore,
    LaneQueue,
    RunStore,
    VersionedRows,
    WheelStore,
)
from carillon.stores.recording import RecordedJobs
from tests.support.tables import create_deployment

Answer = TypeVar("Answer")

CONTENDERS = 16

_segments = itertools.count(1)


@dataclass(frozen=True)
class Kit:
    """The ports of one implementation, and the consumer's side of its queue."""

    jobs: JobStore
    calendars: VersionedRows[Calendar]
    wheel: WheelStore
    runs: RunStore
    chunks: ChunkStore
    activity: ActivityStore
    changes: ChangeStore
    admission_rows: VersionedRows[AdmissionRow]
    operations: VersionedRows[Operation]
    idempotency_records: VersionedRows[IdempotencyRecord]
    notifications: VersionedRows[Notification]
    windows: VersionedRows[Window]
    quotas: VersionedRows[OwnLimits]
    uses: VersionedRows[Use]
    queue: LaneQueue
    events: EventSink
    is_threaded: bool
    """Whether it can be used from several threads at once."""
    receive: Callable[[Lane], list[Message]]
    """Take and delete all messages of a lane that are visible now."""
    wait: Callable[[float], None]
    """Let so many seconds go by, for the queue's delays."""
    recorded_jobs: JobStore | None = None
    """`jobs` as deployments have them; None in memory."""
    settings: Settings | None = None
    """Of the deployment on DynamoDB and SQS; None in memory."""

    def new_owner(self) -> str:
        """An owner that no other test has, of the length of a Cognito subject."""
        return str(uuid.uuid4())

    def new_segment(self) -> int:
        """A segment that no other test has."""
        return next(_segments)

    def raw_items(self, table: str, **key: str) -> list[dict[str, Any]]:
        """Items of one partition as they stand in DynamoDB."""
        ((name, value),) = key.items()
        answer = boto3.client("dynamodb").query(
            TableName=table,
            KeyConditionExpression="#key = :value",
            ExpressionAttributeNames={"#key": name},
            ExpressionAttributeValues={":value": {"S": value}},
        )
        return answer["Items"]


def memory_kit() -> Kit:
    clock = ManualClock(datetime(2026, 11, 20, 12, tzinfo=UTC))
    queue = MemoryQueue(clock)

    def receive(lane: Lane) -> list[Message]:
        received = queue.receive(clock.now(), limit=1000, lane=lane)
        for kept in received:
            queue.delete(kept.receipt)
        return [kept.message for kept in received]

    return Kit(
        jobs=MemoryJobStore(),
        calendars=MemoryVersionedRows(CALENDARS),
        wheel=MemoryWheelStore(page_size=7),
        runs=MemoryRunStore(),
        chunks=MemoryChunkStore(),
        activity=MemoryActivityStore(),
        changes=MemoryChangeStore(),
        admission_rows=MemoryVersionedRows(ADMISSION_ROWS),
        operations=MemoryVersionedRows(OPERATIONS),
        idempotency_records=MemoryVersionedRows(IDEMPOTENCY_RECORDS),
        notifications=MemoryVersionedRows(NOTIFICATIONS),
        windows=MemoryVersionedRows(WINDOWS),
        quotas=MemoryVersionedRows(QUOTAS),
        uses=MemoryVersionedRows(USES),
        queue=queue,
        events=MemoryEvents(),
        is_threaded=True,
        receive=receive,
        wait=clock.advance,
    )


@contextmanager
def moto_kit() -> Iterator[Kit]:
    """On moto, whose clock is moved by hand."""
    # A naive destination would be taken as local time.
    with mock_aws(), time_machine.travel(datetime.now(UTC), tick=True) as traveller:
        yield _aws_kit(is_threaded=False, wait=traveller.shift)


def served_kit() -> Kit:
    """On the MiniStack that AWS_ENDPOINT_URL names, and the dynalite, if any, that
    AWS_ENDPOINT_URL_DYNAMODB names."""
    return _aws_kit(is_threaded=True, wait=sleep)


@contextmanager
def named_kit(name: str) -> Iterator[Kit]:
    """The kit that `package.module:function` opens: a Kit, or a context manager of one."""
    module, _, function = name.partition(":")
    opened = getattr(importlib.import_module(module), function)()
    with nullcontext(opened) if isinstance(opened, Kit) else opened as kit:
        yield kit


def _aws_kit(is_threaded: bool, wait: Callable[[float], None]) -> Kit:
    settings = create_deployment(f"contract-{uuid.uuid4().hex[:8]}")
    stores = open_stores(settings, SystemClock())
    sqs = boto3.client("sqs")

    def receive(lane: Lane) -> list[Message]:
        url = settings.lane_queues[lane]
        messages: list[Message] = []
        while taken := sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages"):
            for message in taken:
                sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
                messages.append(decode(message["Body"]))
        return messages

    return Kit(
        jobs=unrecorded(stores.jobs),
        recorded_jobs=stores.jobs,
        calendars=stores.calendars,
        wheel=stores.wheel,
        runs=stores.runs,
        chunks=stores.chunks,
        activity=stores.activity,
        changes=stores.changes,
        admission_rows=stores.admission_rows,
        operations=stores.operations,
        idempotency_records=stores.idempotency_records,
        notifications=stores.notifications,
        windows=stores.windows,
        quotas=stores.quotas,
        uses=stores.uses,
        queue=stores.queue,
        events=_events_on_a_bus(settings),
        is_threaded=is_threaded,
        receive=receive,
        wait=wait,
        settings=settings,
    )


def unrecorded(jobs: JobStore) -> JobStore:
    """The store under the one that records changes."""
    assert isinstance(jobs, RecordedJobs)
    return jobs._jobs


def _events_on_a_bus(settings: Settings) -> EventSink:
    name = f"contract-{uuid.uuid4().hex[:8]}"
    boto3.client("events").create_event_bus(Name=name)
    return open_stores(replace(settings, event_bus=name), SystemClock()).events


def contend(attempt: Callable[[int], Answer]) -> list[Answer]:
    """The answers of `attempt(0)` … `attempt(15)`, begun at the same moment."""
    barrier = Barrier(CONTENDERS)

    def start(number: int) -> Answer:
        barrier.wait(timeout=10)
        return attempt(number)

    with ThreadPoolExecutor(CONTENDERS) as pool:
        return list(pool.map(start, range(CONTENDERS)))
