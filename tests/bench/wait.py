"""`make bench-wait`: what an executor is billed for a batch of ten, by when the tick was invoked.

The real handlers on MiniStack (loopback), in real time: ticks at ten fractions of a second dispatch
the next minute, and whoever polls the queue hands each batch to the executor's handler. Once as
ticks do it, once as they would without waiting for a second's last tenth and without rounding up.
Then what an idle tick takes where each call of a table takes 5 ms. Six minutes; pass mark: 60 ms
of waiting in each batch.
"""

import importlib
import json
import os
import platform
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from io import StringIO
from statistics import median
from typing import Any

import boto3

from carillon.clock import ManualClock, SideBySide, SideBySideThreads, one_by_one
from carillon.domain.job import Generation, Job, Lane
from carillon.domain.spec.names import job_id_of
from carillon.domain.wheel import delaying
from carillon.local.emulator import Emulator
from carillon.services.indexer import Indexer
from carillon.settings import Settings
from carillon.tick.dispatcher import Dispatcher
from tests.support.jobs import make_job
from tests.support.tables import create_deployment

WORKERS = 5
BATCH = 10
MOST_WAITING_MS = 60
CALL_SECONDS = 0.005
IDLE_TICKS = 10
_TICK_SECOND, _DUE_SECOND, _APART = 1, 5, 8
"""Worker n's tick comes at second 1 + 8n, and what is due there at 5 + 8n of the next minute."""
_LONGEST_POLL_SECONDS = 30
OWNER = "bench"


class Context:
    """Of an invocation with a minute left."""

    function_name = "bench"
    memory_limit_in_mb = 512
    invoked_function_arn = "arn:aws:lambda:us-east-1:000000000000:function:bench"
    aws_request_id = "bench"

    @staticmethod
    def get_remaining_time_in_millis() -> int:
        return 60_000


@dataclass(frozen=True, slots=True)
class Batch:
    """An invocation of the executor: its length, and how long its longest wait was."""

    records: int
    billed_ms: float
    waiting_ms: float


class Bench:
    """One deployment, and its two handlers."""

    def __init__(self) -> None:
        self.settings = _deployment()
        self.tick = importlib.import_module("carillon.tick.handler")
        self.executor = importlib.import_module("carillon.executor.handler")
        self.tick.canary.keep = lambda: False  # it would come among the batches
        self._sqs = boto3.client("sqs")
        self._url = self.settings.lane_queues[Lane.NORMAL]
        self._slept: list[float] = []
        self._sleep = self.executor.clock.sleep
        self.executor.clock.sleep = self._count_and_sleep

    def file_jobs(self) -> None:
        """Ten for each worker, due once in each minute."""
        now = datetime.now(UTC)
        for worker in range(WORKERS):
            for number in range(BATCH):
                self.tick.ports.indexer.index_job(_job(worker, number, now), None)

    def minute(self, fractions: list[float]) -> list[Batch]:
        """Let each worker tick in the next minute, at its fraction; the batches of that minute,
        which the ticks of the minute before have sent."""
        begin = datetime.now(UTC).replace(second=0, microsecond=0) + timedelta(minutes=1)
        batches = []
        for worker, fraction in enumerate(fractions):
            _sleep_until(begin + timedelta(seconds=_TICK_SECOND + _APART * worker + fraction))
            self._drain()  # what else the ticks have found due
            self._tick_alone(worker)
            batches.append(self._batch())
        return batches

    def _tick_alone(self, segment: int) -> None:
        """A tick that serves one segment, as a share does which has no other."""
        now = self.tick.clock.now()
        owner = self.tick.entropy.new_id(now)
        dispatcher = Dispatcher(self.tick.ports, lease_owner=owner, look_ahead_minutes=1)
        dispatcher.tick((segment,), (), now + timedelta(seconds=52))

    def _drain(self) -> None:
        while messages := self._received():
            self._delete(messages)

    def _delete(self, messages: list[Any]) -> None:
        for message in messages:
            self._sqs.delete_message(QueueUrl=self._url, ReceiptHandle=message["ReceiptHandle"])

    def _batch(self) -> Batch:
        """Poll as Lambda does, which has a request waiting all the time."""
        messages: list[Any] = []
        until = time.monotonic() + _LONGEST_POLL_SECONDS
        while len(messages) < BATCH:
            came = self._received()
            if not came and messages:
                break
            assert time.monotonic() < until, "no message came"
            messages += came
        records = [_record(message) for message in messages]
        self._slept.clear()
        began = time.perf_counter()
        answer = self.executor.handler({"Records": records}, Context())
        billed_seconds = time.perf_counter() - began
        assert answer == {"batchItemFailures": []}, answer
        self._delete(messages)
        return Batch(len(records), billed_seconds * 1000, max(self._slept, default=0.0) * 1000)

    def _received(self) -> list[Any]:
        answer = self._sqs.receive_message(
            QueueUrl=self._url,
            MaxNumberOfMessages=BATCH,
            MessageSystemAttributeNames=["ApproximateReceiveCount"],
        )
        return list(answer.get("Messages", []))

    def _count_and_sleep(self, seconds: float) -> None:
        self._slept.append(max(0.0, seconds))
        self._sleep(seconds)

    def idle_tick(self, segments: range, side_by_side: SideBySide) -> tuple[float, float]:
        """Wall and CPU milliseconds of a tick that finds nothing due: medians."""
        clock = ManualClock(datetime(2030, 1, 1, tzinfo=UTC))
        stores = self.tick.stores
        indexer = Indexer(stores.jobs, stores.wheel, stores.queue, clock, stores.calendars)
        ports = replace(self.tick.ports, clock=clock, indexer=indexer, side_by_side=side_by_side)
        local_times, cpus = [], []
        for number in range(IDLE_TICKS):
            clock.advance(60)
            dispatcher = Dispatcher(ports, lease_owner=f"idle-{number:021}", look_ahead_minutes=2)
            began, began_cpu = time.perf_counter(), time.process_time()
            dispatcher.tick(segments, (), clock.now() + timedelta(seconds=52))
            local_times.append((time.perf_counter() - began) * 1000)
            cpus.append((time.process_time() - began_cpu) * 1000)
        return median(local_times[1:]), median(cpus[1:])


@contextmanager
def at_once() -> Iterator[None]:
    """Ticks as they were: nothing waits, and delays are rounded down."""
    wait, rounded_up = delaying.Alignment.wait_seconds, delaying.ROUNDED_UP_SECONDS
    delaying.Alignment.wait_seconds = lambda *_: 0.0  # type: ignore[method-assign]
    delaying.ROUNDED_UP_SECONDS = 0.0
    try:
        yield
    finally:
        delaying.Alignment.wait_seconds = wait  # type: ignore[method-assign]
        delaying.ROUNDED_UP_SECONDS = rounded_up


def main() -> int:
    with Emulator() as emulator:
        os.environ["AWS_ENDPOINT_URL"] = emulator.endpoint_url
        with redirect_stdout(StringIO()):  # the functions' metrics
            bench = Bench()
            before, after = _batches(bench)
        _tell_batches(before, after)
        _tell_idle(_idle_ticks(bench))
    assert all(batch.records == BATCH for batch in (*before, *after)), "a batch was not whole"
    return 0 if max(batch.waiting_ms for batch in after) <= MOST_WAITING_MS else 1


def _batches(bench: Bench) -> tuple[list[Batch], list[Batch]]:
    """Before and after, at .0 to .9; each minute yields what the one before it has sent."""
    low, high = [[n / 10 for n in some] for some in (range(5), range(5, 10))]
    bench.file_jobs()
    with at_once():
        bench.minute(low)  # of what the same ticks have sent: the processes of tasks are made
        before = bench.minute(high)
    before += bench.minute(low)
    after = bench.minute(high)
    return before, after + bench.minute(low)


def _idle_ticks(bench: Bench) -> list[tuple[str, float, float]]:
    client = bench.tick.stores.wheel._table._connection.client
    client.meta.events.register("before-send.dynamodb", lambda **_: time.sleep(CALL_SECONDS))
    cases: list[tuple[str, range, SideBySide]] = [
        ("16 segments, one after the other", range(100, 116), one_by_one),
        ("4 segments, one after the other", range(200, 204), one_by_one),
        ("4 segments, side by side", range(300, 304), SideBySideThreads(16)),
        ("16 segments, side by side", range(400, 416), SideBySideThreads(16)),
    ]
    return [(name, *bench.idle_tick(segments, together)) for name, segments, together in cases]


def _tell_batches(before: list[Batch], after: list[Batch]) -> None:
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    print(f"{machine}, {datetime.now(UTC):%Y-%m-%d}; ms for a batch of {BATCH}\n")
    print("tick's fraction   at once: billed  waiting   aligned: billed  waiting")
    for number, (was, now) in enumerate(zip(before, after, strict=True)):
        print(
            f"             .{number}   {was.billed_ms:15.0f} {was.waiting_ms:8.0f}"
            f"   {now.billed_ms:15.0f} {now.waiting_ms:8.0f}"
        )
    means = [
        sum(values) / len(before)
        for values in (
            [batch.billed_ms for batch in before],
            [batch.waiting_ms for batch in before],
            [batch.billed_ms for batch in after],
            [batch.waiting_ms for batch in after],
        )
    ]
    print("           mean   {:15.0f} {:8.0f}   {:15.0f} {:8.0f}".format(*means), flush=True)


def _tell_idle(idle: list[tuple[str, float, float]]) -> None:
    print(f"\nidle tick, {CALL_SECONDS * 1000:.0f} ms a call{'wall ms':>22} {'CPU ms':>8}")
    for name, local_time, cpu in idle:
        print(f"{name:36} {local_time:9.0f} {cpu:8.0f}")


def _deployment() -> Settings:
    os.environ |= {
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "POWERTOOLS_LOG_LEVEL": "ERROR",
    }
    settings = create_deployment("bench")
    os.environ |= {
        "JOBS_TABLE": settings.jobs_table,
        "WHEEL_TABLE": settings.wheel_table,
        "RUNS_TABLE": settings.runs_table,
        "LANE_QUEUES": json.dumps({lane.value: u for lane, u in settings.lane_queues.items()}),
        "SEGMENTS": str(WORKERS),
        "LOOK_AHEAD_MINUTES": "1",
    }
    return settings


def _job(worker: int, number: int, now: datetime) -> Job:
    name = f"{worker}-{number}"
    second = _DUE_SECOND + _APART * worker
    generation_id = f"01KAN0000000000000000{worker:02}{number:03}"
    return make_job(
        f"{second} * * * * *",
        owner=OWNER,
        job_id=job_id_of(OWNER, name),
        name=name,
        segment=worker,
        generation=Generation(generation_id, now.replace(microsecond=0)),
        created_at=now,
        updated_at=now,
    )


def _record(message: Any) -> dict[str, Any]:
    return {
        "messageId": message["MessageId"],
        "receiptHandle": message["ReceiptHandle"],
        "body": message["Body"],
        "attributes": message["Attributes"],
        "eventSource": "aws:sqs",
    }


def _sleep_until(instant: datetime) -> None:
    time.sleep(max(0.0, (instant - datetime.now(UTC)).total_seconds()))


if __name__ == "__main__":
    sys.exit(main())
