"""An Api on memory stores, at a standing instant."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from io import StringIO
from ipaddress import ip_network
from typing import Any

import pytest
from aws_lambda_powertools import Logger
from aws_lambda_powertools.event_handler.openapi import dependant
from aws_lambda_powertools.event_handler.openapi.params import Dependant
from aws_lambda_powertools.metrics import Metrics

from carillon.api.app import Api
from carillon.clock import ManualClock, SeededEntropy
from carillon.domain.calendar import Calendar
from carillon.domain.idempotency import IdempotencyRecord
from carillon.domain.job import Lane
from carillon.domain.notifying.notification import Notification
from carillon.domain.notifying.window import Window
from carillon.domain.operation import Operation
from carillon.domain.quotas import OwnLimits, Use
from carillon.settings import Settings
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
    Stores,
)
from carillon.stores.recording import ChangeEvents, GenerationRecords, RecordedJobs
from carillon.telemetry import Telemetry
from tests.unit.api.gateway import STRANGER, USUAL_NAMES, Client, Json

NOW = datetime(2026, 3, 1, 12, 0, 0, 250_000, tzinfo=UTC)

SETTINGS = Settings(
    jobs_table="jobs",
    wheel_table="wheel",
    runs_table="runs",
    lane_queues={lane: f"https://queue.test/{lane}" for lane in Lane},
    webhook_allowed_networks=(ip_network("127.0.0.0/8"),),
    owner_requests_per_second=0,
    slow_lane_share=25,
)

BODY: Json = {
    "name": USUAL_NAMES[0],
    "schedule": "every 5m",
    "target": {"type": "task", "name": "echo"},
}


REPORT = ("warnings", "transitions", "last_run", "failures_in_a_row")
"""What the answers of creation and change, and of a job alone, have beside what lists have."""

_numbers = itertools.count()
_get_dependant = dependant.get_dependant
_dependants: dict[tuple[str, object], Dependant] = {}


def _kept_dependant(*, path: str, call: Any, **more: Any) -> Dependant:
    """What the resolver makes of a route is the same for each Api, and half of the tests' time."""
    key = path, getattr(call, "__func__", call)
    if key not in _dependants:
        _dependants[key] = _get_dependant(path=path, call=call, **more)
    return _dependants[key]


dependant.get_dependant = _kept_dependant


@dataclass
class World:
    """The parts of a deployment, for tests to look into."""

    jobs: MemoryJobStore
    calendars: MemoryVersionedRows[Calendar]
    wheel: MemoryWheelStore
    runs: MemoryRunStore
    activity: MemoryActivityStore
    changes: MemoryChangeStore
    chunks: MemoryChunkStore
    queue: MemoryQueue
    operations: MemoryVersionedRows[Operation]
    idempotency_records: MemoryVersionedRows[IdempotencyRecord]
    notifications: MemoryVersionedRows[Notification]
    windows: MemoryVersionedRows[Window]
    quotas: MemoryVersionedRows[OwnLimits]
    uses: MemoryVersionedRows[Use]
    events: MemoryEvents
    clock: ManualClock
    log: StringIO
    settings: Settings = SETTINGS

    def api(self, **replaced: Any) -> Api:
        """The Api on these parts, some of them `replaced`."""
        # Loggers of one service share the stream of the first.
        service = f"test-{next(_numbers)}"
        telemetry = Telemetry(
            Logger(service=service, stream=self.log), Metrics(namespace="Carillon", service=service)
        )
        parts: Json = {
            "jobs": RecordedJobs(
                self.jobs,
                self.changes,
                ChangeEvents(self.events),
                GenerationRecords(self.chunks, SETTINGS.run_lifetime),
            ),
            "calendars": self.calendars,
            "wheel": self.wheel,
            "runs": self.runs,
            "activity": self.activity,
            "changes": self.changes,
            "queue": self.queue,
            "operations": self.operations,
            "idempotency_records": self.idempotency_records,
            "chunks": self.chunks,
            "notifications": self.notifications,
            "windows": self.windows,
            "quotas": self.quotas,
            "uses": self.uses,
            "admission_rows": MemoryVersionedRows(ADMISSION_ROWS),
            "events": self.events,
            "skew_seconds": lambda: None,
            "clock": self.clock,
            "entropy": SeededEntropy(1),
            "settings": self.settings,
            "telemetry": telemetry,
        }
        parts |= replaced
        names = {field.name for field in fields(Stores)}
        stores = Stores(**{name: parts.pop(name) for name in names & parts.keys()})
        return Api(stores=stores, **parts)


def new_world(now: datetime = NOW) -> World:
    clock = ManualClock(now)
    return World(
        jobs=MemoryJobStore(),
        calendars=MemoryVersionedRows(CALENDARS),
        wheel=MemoryWheelStore(),
        runs=MemoryRunStore(),
        activity=MemoryActivityStore(),
        changes=MemoryChangeStore(),
        chunks=MemoryChunkStore(),
        queue=MemoryQueue(clock),
        operations=MemoryVersionedRows(OPERATIONS),
        idempotency_records=MemoryVersionedRows(IDEMPOTENCY_RECORDS),
        notifications=MemoryVersionedRows(NOTIFICATIONS),
        windows=MemoryVersionedRows(WINDOWS),
        quotas=MemoryVersionedRows(QUOTAS),
        uses=MemoryVersionedRows(USES),
        events=MemoryEvents(),
        clock=clock,
        log=StringIO(),
    )


@pytest.fixture
def world() -> Iterator[World]:
    made = new_world()
    yield made
    # What a test did not mean to provoke must not hide behind a well-formed 500.
    assert "request.failed" not in made.log.getvalue()


@pytest.fixture
def api(world: World) -> Api:
    return world.api()


@pytest.fixture
def client(api: Api) -> Client:
    return Client(api)


@pytest.fixture
def stranger(api: Api) -> Client:
    return Client(api, owner=STRANGER)


@pytest.fixture
def job(client: Client) -> Json:
    """An active job of the client."""
    created = client.post("/jobs", BODY)
    assert created.status == 201, created.text
    return without_report(created.json)


def create(client: Client, *, key: str | None = None, **members: Any) -> Json:
    """A job of BODY with these members."""
    answer = client.post("/jobs", BODY | members, key=key)
    assert answer.status == 201, answer.text
    made: Json = answer.json
    return made


def change(client: Client, job: Json, **members: Any) -> Json:
    """The job after a change, whatever its revision."""
    answer = client.patch(f"/jobs/{job['job_id']}", members, "*")
    assert answer.status == 200, answer.text
    changed: Json = answer.json
    return changed


def without_report(answered: Json) -> Json:
    """A job as a creation or a change answers it, as reading it does."""
    return {name: value for name, value in answered.items() if name not in REPORT}
