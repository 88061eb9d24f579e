"""The CPU of a dispatched occurrence and of a run on MiniStack, beside the bare wire calls.

Real stores, botocore and sockets (loopback); user and system time of this process alone. The bare
calls are the very requests of the measured part, made again by boto3 in one thread, on other tables
with the same rows: what the wire alone costs.
"""

import importlib
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from io import StringIO
from itertools import count, product
from typing import Any, TypeVar

import boto3
from botocore import xform_name

from carillon.clock import Clock, ManualClock, SideBySideThreads, SystemClock
from carillon.domain.chunks.message import ChunkKey, ChunkMessage, Member, Order, decode, encode
from carillon.domain.chunks.placing import MEAN_SIZE
from carillon.domain.job import Generation, Job
from carillon.domain.policies import Lane
from carillon.domain.spec.names import job_id_of
from carillon.domain.wheel.entry import Entry, entries_of, minute_of
from carillon.executor.batch import BATCH_SIZE
from carillon.executor.targets import Success
from carillon.garbage import spare_what_is_loaded
from carillon.local.emulator import Emulator
from carillon.schedules import SlotKind
from carillon.services.indexer import Indexer
from carillon.settings import Settings
from carillon.stores.dynamo import open_stores
from carillon.stores.ports import Stores
from carillon.tick.counting import SegmentReport
from carillon.tick.dispatcher import Dispatcher
from carillon.tick.ports import TickPorts
from tests.bench.wait import Context
from tests.support.jobs import make_job
from tests.support.tables import create_deployment

OCCURRENCES, SEGMENTS = 7_000, 16
HERD, HERD_SEGMENTS = 100_000, 32
RUNS, WARMING = 2_400, 240
CHUNKS_BATCH = 5
"""Chunks in a batch: event sources hand over ten at most (`Lane.batch_size`)."""
VISITS = 16
"""Segments that a tick visits side by side: MOST_VISITS of its handler."""
DISPATCH_GOAL, RUN_GOAL = 60, 1_200
"""Microseconds of CPU, with chunks."""
OWNER = "bench"
ENVIRONMENT = {
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "POWERTOOLS_LOG_LEVEL": "ERROR",
}
_GENERATION_ID = "01KAN000000000000000000000"
_DUE = datetime(2030, 1, 1, 12, 17, tzinfo=UTC)
_TIMEOUT_SECONDS = 52

_DEPLOYMENTS = count()

_T = TypeVar("_T")

Request = tuple[str, str, dict[str, Any]]
"""Service, operation and parameters."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of `units` occurrences or runs. `bare_cpu_seconds`: its requests by boto3; None
    where they were not made again."""

    name: str
    units: int
    cpu_seconds: float
    local_seconds: float
    requests: Counter[str]
    bare_cpu_seconds: float | None = None
    goal_us: int | None = None

    def __str__(self) -> str:
        each = self.cpu_seconds / self.units * 1e6
        beside = " " * 14
        if self.bare_cpu_seconds is not None:
            bare = self.bare_cpu_seconds / self.units * 1e6
            beside = f"{bare:7.0f} {each / bare:5.2f}x"
        goal = "" if self.goal_us is None else f"{self.goal_us:,}"
        told = ", ".join(f"{name} {count:,}" for name, count in self.requests.most_common())
        return f"{self.name:30} {each:8.0f} {beside} {goal:>6} {self.local_seconds:7.1f}  {told}"


HEAD = (
    f"{'us of CPU each, beside boto3':30} {'ours':>8} {'bare':>7} {'ratio':>6} {'goal':>6}"
    f" {'wall s':>7}  requests"
)


class Deployment:
    """Tables and queues of their own, the stores on them, and the requests that these make."""

    def __init__(self, clock: Clock) -> None:
        self.settings = create_deployment(f"bench-{os.getpid()}-{next(_DEPLOYMENTS)}")
        self.stores = open_stores(self.settings, clock)
        self._requests: list[Request] = []
        self.record(self.stores)

    def record(self, stores: Any) -> None:
        """Keep the requests of these stores too, at a microsecond each."""
        for client in (stores.wheel._table._connection.client, stores.queue._client):
            client.meta.events.register("provide-client-params", self._keep)

    def _keep(self, params: dict[str, Any], model: Any, **_: object) -> None:
        self._requests.append((model.service_model.service_name, model.name, params))

    def taken(self) -> list[Request]:
        """The requests since the last time."""
        taken, self._requests = self._requests, []
        return taken

    def names(self) -> list[str]:
        """All tables and queues, in an order that every deployment has."""
        some = self.settings
        tables = [some.jobs_table, some.wheel_table, some.runs_table]
        return [*tables, *(url for _, url in sorted(some.lane_queues.items()))]


class Bare:
    """Makes requests of a deployment again, by boto3 alone, on another one."""

    def __init__(self, ours: Deployment, twin: Deployment) -> None:
        self._clients = {name: boto3.client(name) for name in ("dynamodb", "sqs")}
        self._names = dict(zip(ours.names(), twin.names(), strict=True))

    def make(self, requests: Sequence[Request]) -> None:
        for service, operation, params in requests:
            getattr(self._clients[service], xform_name(operation))(**params)

    def renamed(self, requests: Sequence[Request]) -> list[Request]:
        return [(*call, self._with_names(params)) for *call, params in requests]  # type: ignore[misc]

    def _with_names(self, params: dict[str, Any]) -> dict[str, Any]:
        changed = dict(params)
        for member in {"TableName", "QueueUrl"} & changed.keys():
            changed[member] = self._names[changed[member]]
        if "RequestItems" in changed:
            items = changed["RequestItems"].items()
            changed["RequestItems"] = {self._names[name]: asked for name, asked in items}
        return changed


def dispatched(
    name: str,
    occurrences: int,
    segments: int,
    goal_us: int | None,
    *,
    beside: bool,
    chunked: bool = False,
) -> Cost:
    """A tick that finds so many due in one minute, for which its clock stands still."""
    clock = ManualClock(_DUE - timedelta(minutes=1))
    ours, twin = Deployment(clock), Deployment(clock)
    entries = [_entry(number, segments) for number in range(occurrences)]
    for deployment in (ours, twin) if beside else (ours,):
        deployment.stores.wheel.put_entries(entries)
        deployment.taken()

    _tick(ours.stores, clock, segments, chunked)  # makes control items and connections
    before = ours.taken()
    spare_what_is_loaded()  # as the handler does; the executor's is loaded for its rows
    clock.set(_DUE)
    began, began_cpu = time.perf_counter(), time.process_time()
    _tick(ours.stores, clock, segments, chunked)
    cpu_seconds, local_seconds = time.process_time() - began_cpu, time.perf_counter() - began
    requests = ours.taken()
    sent = _occurrences_in(requests)
    assert sent == occurrences, f"{sent} occurrences were sent"
    bare = _bare_cpu_seconds(Bare(ours, twin), before, requests) if beside else None
    counts = Counter(operation for _, operation, _ in requests)
    return Cost(name, occurrences, cpu_seconds, local_seconds, counts, bare, goal_us)


def _occurrences_in(requests: Sequence[Request]) -> int:
    return sum(
        len(each.members) if isinstance(each, ChunkMessage) else 1 for each in orders_in(requests)
    )


def orders_in(requests: Sequence[Request]) -> Iterator[Order]:
    """What was sent."""
    sends = (params for _, operation, params in requests if operation == "SendMessageBatch")
    return (decode(entry["MessageBody"]) for params in sends for entry in params["Entries"])


def _bare_cpu_seconds(bare: Bare, before: Sequence[Request], requests: Sequence[Request]) -> float:
    bare.make(bare.renamed(before))
    renamed = bare.renamed(requests)
    began_cpu = time.process_time()
    bare.make(renamed)
    return time.process_time() - began_cpu


def _tick(stores: Stores, clock: Clock, segments: int, chunked: bool) -> list[SegmentReport]:
    ports = TickPorts(
        jobs=stores.jobs,
        calendars=stores.calendars,
        wheel=stores.wheel,
        chunks=stores.chunks,
        indexer=Indexer.of(stores, clock),
        clock=clock,
        on_bad_entry=lambda *_: None,
        side_by_side=SideBySideThreads(VISITS),
        chunked=chunked,
    )
    dispatcher = Dispatcher(ports, lease_owner=OWNER, look_ahead_minutes=0)
    return dispatcher.tick(range(segments), (), clock.now() + timedelta(seconds=_TIMEOUT_SECONDS))


def runs(name: str, goal_us: int | None, *, chunked: bool) -> Cost:
    """The executor's handler with batches of first attempts, whose target ends at once."""
    clock = SystemClock()
    ours, twin = Deployment(clock), Deployment(clock)
    jobs = [job(number, "* * * * *", 0) for number in range(RUNS + WARMING)]
    for each, deployment in product(jobs, (ours, twin)):
        assert deployment.stores.jobs.create(each)
        deployment.taken()
    now = clock.now()
    batches = _chunks(jobs, now) if chunked else _singles(jobs, now)
    warming = len(batches) * WARMING // len(jobs)
    handler = _executor(ours)
    _receive(handler, batches[:warming])
    before = ours.taken()
    began, began_cpu = time.perf_counter(), time.process_time()
    _receive(handler, batches[warming:])
    cpu_seconds, local_seconds = time.process_time() - began_cpu, time.perf_counter() - began
    requests = ours.taken()
    bare = _bare_cpu_seconds(Bare(ours, twin), before, requests)
    counts = Counter(operation for _, operation, _ in requests)
    return Cost(name, RUNS, cpu_seconds, local_seconds, counts, bare, goal_us)


def _singles(jobs: Sequence[Job], now: datetime) -> list[list[str]]:
    """The bodies of batches of their runs, each alone, due in this minute."""
    due_at = now.replace(second=0, microsecond=0)
    bodies = [encode(entries_of(job)[0].message_at(due_at)) for job in jobs]
    return [list(each) for each in batched(bodies, BATCH_SIZE)]


def _chunks(jobs: Sequence[Job], now: datetime) -> list[list[str]]:
    """The bodies of batches of their runs in chunks, due in this second."""
    members = [Member(OWNER, job.job_id, _GENERATION_ID, SlotKind.HOURLY) for job in jobs]
    keys = (ChunkKey(0, minute_of(now), now.second, Lane.NORMAL, number) for number in count())
    bodies = [
        encode(ChunkMessage(key, tuple(some)))
        for key, some in zip(keys, batched(members, MEAN_SIZE), strict=False)
    ]
    return [list(each) for each in batched(bodies, CHUNKS_BATCH)]


def batched(some: Sequence[_T], size: int) -> Iterator[Sequence[_T]]:
    return (some[first : first + size] for first in range(0, len(some), size))


def _executor(deployment: Deployment) -> Callable[[dict[str, Any], Context], Any]:
    """The handler as deployed, but for its targets and its task processes."""
    settings = deployment.settings
    os.environ |= tables_and_lanes(settings)
    sys.modules.pop("carillon.executor.handler", None)  # it takes its settings when it is loaded
    module = importlib.import_module("carillon.executor.handler")
    module.targets.close()
    module.targets.deliver = lambda target, call: Success(None)
    deployment.record(module.stores)
    return module.handler  # type: ignore[no-any-return]


def tables_and_lanes(settings: Settings) -> dict[str, str]:
    """Their names, as variables of the environment."""
    return {
        "JOBS_TABLE": settings.jobs_table,
        "WHEEL_TABLE": settings.wheel_table,
        "RUNS_TABLE": settings.runs_table,
        "LANE_QUEUES": json.dumps({lane.value: url for lane, url in settings.lane_queues.items()}),
    }


def _receive(
    handler: Callable[[dict[str, Any], Context], Any], batches: Sequence[Sequence[str]]
) -> None:
    for bodies in batches:
        records = [record(body) for body in bodies]
        assert handler({"Records": records}, Context()) == {"batchItemFailures": []}


def record(body: str) -> dict[str, Any]:
    return {
        "messageId": body,
        "receiptHandle": "receipt",
        "body": body,
        "attributes": {"ApproximateReceiveCount": "1"},
        "eventSource": "aws:sqs",
    }


def _entry(number: int, segments: int) -> Entry:
    (entry,) = entries_of(job(number, f"{_DUE.minute} * * * *", number % segments))
    return entry


def job(number: int, expression: str, segment: int) -> Job:
    name = f"job-{number}"
    began_at = datetime(2026, 1, 1, tzinfo=UTC)
    return make_job(
        expression,
        owner=OWNER,
        job_id=job_id_of(OWNER, name),
        name=name,
        segment=segment,
        generation=Generation(_GENERATION_ID, began_at),
        created_at=began_at,
        updated_at=began_at,
    )


def executed(name: str, goal_us: int | None, *, chunked: bool) -> Cost:
    """`runs`, without the metrics that the function prints."""
    with redirect_stdout(StringIO()):
        return runs(name, goal_us, chunked=chunked)


def costs() -> Iterator[Cost]:
    """Each as soon as it is measured."""
    os.environ |= ENVIRONMENT
    with Emulator() as emulator:
        os.environ["AWS_ENDPOINT_URL"] = emulator.endpoint_url
        due = f"dispatch {OCCURRENCES:,}, {SEGMENTS} segments"
        yield dispatched(due, OCCURRENCES, SEGMENTS, None, beside=True)
        yield dispatched(
            "the same in chunks", OCCURRENCES, SEGMENTS, DISPATCH_GOAL, beside=True, chunked=True
        )
        yield executed(f"run, batches of {BATCH_SIZE}", None, chunked=False)
        yield executed(f"run, {CHUNKS_BATCH} chunks of {MEAN_SIZE}", RUN_GOAL, chunked=True)
        herd = f"dispatch {HERD:,}, {HERD_SEGMENTS} segments"
        yield dispatched(herd, HERD, HERD_SEGMENTS, None, beside=False)
        yield dispatched(
            "the same in chunks", HERD, HERD_SEGMENTS, DISPATCH_GOAL, beside=False, chunked=True
        )
