"""The deployed handlers in this process, on moto, under a clock of our own.

Requests are built, signed and read by botocore, tasks run in children. Moto's part of the processor
time is taken off, and what a request takes on a socket is measured apart and put on. A clock that
moves only when a handler sleeps makes the waiting exact, whatever the machine is doing.
"""

import importlib
import json
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import IO, Any

import boto3
import pytest
from moto import mock_aws
from moto.core.botocore_stubber import BotocoreStubber

from carillon.clock import SystemClock
from carillon.domain.chunks import placing
from carillon.domain.chunks.message import ChunkMessage, decode
from carillon.domain.job import Job
from carillon.domain.message import Message
from carillon.domain.run import RunKey
from carillon.domain.wheel.entry import entries_of
from carillon.schedules.insight.cost import (
    CALL_SECONDS,
    DEFAULT,
    NOTHING,
    Line,
    Usage,
    carried,
    lasted,
    logged,
    queue_units,
    worked,
)
from carillon.settings import Settings
from carillon.stores.dynamo import open_stores
from tests.bench.cost.measuring import (
    Output,
    Processor,
    StandingClock,
    children_cpu_seconds,
    errors,
    receiver,
)
from tests.support.counting import ClientMeter
from tests.support.tables import create_deployment

REGION = "us-east-1"
HOUR = timedelta(hours=1)
_TIMEOUT_MS = 60_000


@dataclass(slots=True)
class Measured:
    """What invocations of one function took. `waits` are the seconds that each one slept;
    `metrics` the names of metrics that it gave out."""

    usage: Usage = NOTHING
    invocations: int = 0
    cpu_seconds: float = 0.0
    waits: list[float] = field(default_factory=list)
    requests: Counter[str] = field(default_factory=Counter)
    log_bytes: int = 0
    log_events: int = 0
    metrics: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Waiting:
    """A message in a lane, when it can be received, and the function that has sent it."""

    visible_at: datetime
    body: str
    queue_url: str
    sent_by: str


class Moto:
    """Keeps what moto takes of the processor; lets one request in at a time, since it is not made
    for threads."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.cpu_seconds = 0.0
        lock, real = threading.Lock(), BotocoreStubber.__call__

        def answered(stubber: BotocoreStubber, **event: Any) -> Any:
            with lock:
                began = time.thread_time()
                try:
                    return real(stubber, **event)
                finally:
                    self.cpu_seconds += time.thread_time() - began

        patch.setattr(BotocoreStubber, "__call__", answered)


class Context:
    """Lambda's, as far as handlers look."""

    aws_request_id = "bench"
    function_name = "bench"
    memory_limit_in_mb = 512
    invoked_function_arn = f"arn:aws:lambda:{REGION}:000000000000:function:bench"

    def get_remaining_time_in_millis(self) -> int:
        return _TIMEOUT_MS


class Stage:
    """Invokes the handlers and bills each invocation. `alone` are the runs of chunks that an
    executor has sent messages of their own."""

    def __init__(
        self,
        clock: StandingClock,
        meter: ClientMeter,
        output: Output,
        moto: Moto,
        processor: Processor,
    ) -> None:
        self.clock = clock
        self._moto = moto
        self._processor = processor
        self.meter = meter
        self.output = output
        self.lanes: list[Waiting] = []
        self.measured: dict[str, Measured] = {}
        self.began_at = clock.now()
        self.stores = open_stores(Settings.from_environment(), clock)
        self._handlers = {name: _loaded(name) for name in ("tick", "executor", "api")}
        self.begin()

    def begin(self) -> None:
        """Begin to count anew."""
        self.measured = {name: Measured() for name in self._handlers}
        self._rows_before = set(self.meter.rows)
        self.alone: set[RunKey] = set()

    def rows_since(self, kind: str) -> list[int]:
        """The bytes of each row of a table that was put since."""
        rows = self.meter.rows
        return [rows[row] for row in rows if row[0] == kind and row not in self._rows_before]

    @property
    def usage(self) -> Usage:
        return sum((one.usage for one in self.measured.values()), NOTHING)

    def tick(self) -> None:
        self._invoke("tick", {})

    def post(self, path: str, body: Any, person: str) -> Any:
        """A request of a person to the API; its answer."""
        event = _request("POST", path, body, person)
        answer = self._invoke("api", event, Usage({Line.API: 1}))
        assert answer["statusCode"] < 300, answer
        return json.loads(answer["body"])

    def job(self, body: Any, person: str) -> Job:
        """A job that the API makes."""
        job_id = self.post("/jobs", body, person)["job_id"]
        job = self.stores.jobs.get(f"user/{person}", job_id)
        assert job is not None
        return job

    def put(self, jobs: Sequence[Job]) -> None:
        """Put what the API would have put for such jobs, without its requests: moto is slow."""
        for job in jobs:
            assert self.stores.jobs.create(job)
        for place in range(0, len(jobs), 25):
            entries = [entry for job in jobs[place : place + 25] for entry in entries_of(job)]
            self.stores.wheel.put_entries(entries)

    def receive(self, batch: Sequence[Waiting]) -> None:
        """Hand an executor a batch, received and deleted in one request each."""
        records = [_record(number, one) for number, one in enumerate(batch)]
        units = queue_units(sum(len(one.body.encode()) for one in batch))
        before = len(self.lanes)
        answer = self._invoke("executor", {"Records": records}, carried(units + 1))
        assert answer == {"batchItemFailures": []}, answer
        sent = [decode(one.body) for one in self.lanes[before:]]
        orders = [decode(one.body) for one in batch]
        chunks = [each for each in orders if isinstance(each, ChunkMessage)]
        members = {each.alone(member).key for each in chunks for member in each.members}
        first = {each.key for each in sent if isinstance(each, Message) and each.attempt == 1}
        self.alone |= members & first

    def _invoke(self, name: str, event: dict[str, Any], more: Usage = NOTHING) -> Any:
        began_at, children = self.clock.now(), children_cpu_seconds()
        self.meter.clear()
        self.output.take()
        moto = self._moto.cpu_seconds
        began = time.process_time()
        answer = self._handlers[name](event, Context())
        cpu_seconds = time.process_time() - began - self.meter.own_cpu_seconds
        cpu_seconds += children_cpu_seconds() - children - (self._moto.cpu_seconds - moto)
        cpu_seconds += self.meter.requests.total() * self._processor.wire_seconds
        cpu_seconds *= self._processor.speed
        one = self.measured[name]
        one.invocations += 1
        one.cpu_seconds += cpu_seconds
        slept = (self.clock.now() - began_at).total_seconds()
        one.waits.append(slept)
        one.requests += self.meter.requests
        lines = self.output.take()
        one.log_bytes += sum(len(line.encode()) for line in lines)
        one.log_events += len(lines)
        one.metrics |= {metric for line in lines for metric in _metrics_of(line)}
        one.usage += self._billed(cpu_seconds, slept, lines) + more
        for sent in self.meter.sent:
            visible_at = self.clock.now() + timedelta(seconds=sent.delay_seconds)
            self.lanes.append(Waiting(visible_at, sent.body, sent.queue_url, name))
        return answer

    def _billed(self, cpu_seconds: float, slept: float, lines: list[str]) -> Usage:
        memory_mb = DEFAULT.memory_mb
        usage = self.meter.usage + Usage({Line.INVOCATIONS: 1}) + worked(cpu_seconds, memory_mb)
        usage += lasted(Line.WAITING, slept, memory_mb)
        # While one thread waits for an answer the others work.
        chain, threads = self.meter.longest_chain
        usage += lasted(Line.WORK, chain * CALL_SECONDS / max(threads, 1), memory_mb)
        return usage + logged(sum(len(line.encode()) for line in lines), len(lines))


class Theatre:
    """A receiver of webhooks at `receiver`, and a new stage for each profile."""

    def __init__(self, patch: pytest.MonkeyPatch, receiver: str, errors: IO[bytes]) -> None:
        self.receiver = receiver
        self.processor = Processor.measured(receiver)
        self._moto = Moto(patch)
        self._patch = patch
        self._clock = StandingClock(datetime.now(UTC))
        self._meter = ClientMeter()
        self._output = Output(errors)
        self._meter.attach(patch)
        patch.setattr(SystemClock, "now", lambda _: self._clock.now())
        patch.setattr(SystemClock, "sleep", lambda _, seconds: self._clock.sleep(seconds))
        # The clock is right: what the answers' headers say is another time.
        there = "carillon.stores.dynamo.parsedate_to_datetime"
        patch.setattr(there, lambda _: self._clock.now())

    @contextmanager
    def stage(self, *, chunks: bool = False, segments: int = DEFAULT.segments) -> Iterator[Stage]:
        """Empty tables, and handlers that were just loaded, at the full hour to come. With `chunks`
        jobs go in them as soon as they are made."""
        self._clock.set(datetime.now(UTC).replace(minute=0, second=0, microsecond=0) + HOUR)
        self._meter.rows.clear()
        with self._patch.context() as patch, mock_aws():
            for name, value in _deployed().items():
                patch.setenv(name, value)
            patch.setenv("SEGMENTS", str(segments))
            if chunks:
                patch.setattr(placing, "SETTLED_AFTER", timedelta())
            # Before the handlers are loaded: their loggers keep the stream that they find.
            patch.setattr(sys, "stdout", self._output)
            yield Stage(self._clock, self._meter, self._output, self._moto, self.processor)


@contextmanager
def theatre() -> Iterator[Theatre]:
    with pytest.MonkeyPatch.context() as patch, receiver() as url, errors() as written:
        patch.delenv("AWS_ENDPOINT_URL", raising=False)
        for name, value in {
            "AWS_DEFAULT_REGION": REGION,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "POWERTOOLS_LOG_LEVEL": "INFO",
            "POWERTOOLS_METRICS_NAMESPACE": "Carillon",
        }.items():
            patch.setenv(name, value)
        yield Theatre(patch, url, written)


def _loaded(name: str) -> Callable[[dict[str, Any], Context], Any]:
    """The handler of a function, loaded anew: it reads the environment at import."""
    module = f"carillon.{name}.handler"
    sys.modules.pop(module, None)
    handler: Callable[[dict[str, Any], Context], Any] = importlib.import_module(module).handler
    return handler


def _deployed() -> dict[str, str]:
    """New tables, lanes and secret, and the environment that names them."""
    name = f"bench-{uuid.uuid4().hex[:8]}"
    settings = create_deployment(name)
    secret = boto3.client("secretsmanager").create_secret(Name=name, SecretString="x" * 40)
    return {
        "STACK_NAME": "Bench",
        "JOBS_TABLE": settings.jobs_table,
        "WHEEL_TABLE": settings.wheel_table,
        "RUNS_TABLE": settings.runs_table,
        "LANE_QUEUES": json.dumps(settings.lane_queues),
        "WEBHOOK_SECRET_ARN": secret["ARN"],
        "WEBHOOK_ALLOWED_NETWORKS": "127.0.0.0/8",
        "TASK_MODULES": "carillon.executor.tasks.samples,tests.bench.cost.tasks",
        "OWNER_REQUESTS_PER_SECOND": "0",
    }


def _metrics_of(line: str) -> set[str]:
    if '"CloudWatchMetrics"' not in line:
        return set()
    (directive,) = json.loads(line)["_aws"]["CloudWatchMetrics"]
    return {metric["Name"] for metric in directive["Metrics"]}


def _record(number: int, one: Waiting) -> dict[str, Any]:
    return {
        "messageId": f"message-{number}",
        "receiptHandle": "receipt",
        "body": one.body,
        "attributes": {"ApproximateReceiveCount": "1"},
        "messageAttributes": {},
        "eventSource": "aws:sqs",
        "eventSourceARN": f"arn:aws:sqs:{REGION}:000000000000:normal",
        "awsRegion": REGION,
    }


def _request(method: str, path: str, body: Any, person: str) -> dict[str, Any]:
    http = {"method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "192.0.2.1"}
    return {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": path,
        "rawQueryString": "",
        "headers": {"content-type": "application/json", "idempotency-key": body["name"]},
        "requestContext": {
            "http": {**http, "userAgent": "bench"},
            "requestId": "bench",
            "stage": "$default",
            "authorizer": {"jwt": {"claims": {"sub": person}, "scopes": None}},
        },
        "body": json.dumps(body),
        "isBase64Encoded": False,
    }
