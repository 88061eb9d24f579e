"""What a thousand fires cost: every AWS request counted at the client, from real item sizes."""

import json
import uuid
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from botocore import handlers

from shared.clock import ManualClock, SystemClock
from shared.domain.job import Lane
from shared.domain.message import decode
from shared.stores.dynamo import open_stores
from tests.integration.system import System, Undelayed
from tests.item_sizes import item_size, read_units, write_units
from tests.tables import create_deployment

pytestmark = pytest.mark.ministack

SEGMENTS = 2
JOBS_PER_SEGMENT = 100
MINUTES = 5
FIRES = SEGMENTS * JOBS_PER_SEGMENT * MINUTES


class Meter:
    """Counts requests and units; Lambda's own receives and deletes are not the system's."""

    def __init__(self) -> None:
        self.requests: Counter[str] = Counter()
        self.write_units: Counter[str] = Counter()
        self.read_units: Counter[str] = Counter()
        self._table = ""

    def before(self, params: dict[str, Any], model: Any, **_: object) -> None:
        self.requests[model.name] += 1
        if model.service_model.service_name != "dynamodb":
            return
        body = json.loads(params["body"])
        self._table = str(body.get("TableName", "batch")).rsplit("-", 1)[-1]
        if model.name == "PutItem":
            kind = "control" if "#control" in json.dumps(body["Item"]) else self._table
            self.write_units[kind] += write_units(body["Item"])
        elif model.name in ("Query", "GetItem"):
            assert body.get("ConsistentRead") is True
        else:
            self.write_units[model.name] += 1

    def after(self, parsed: dict[str, Any], model: Any, **_: object) -> None:
        if model.name == "Query":
            summed = sum(item_size(item) for item in parsed["Items"])
            self.read_units[self._table] += read_units(summed)
        elif model.name == "GetItem":
            self.read_units[self._table] += read_units(item_size(parsed.get("Item", {})))


@pytest.fixture
def meter(monkeypatch: pytest.MonkeyPatch) -> Meter:
    meter = Meter()
    hooks: list[tuple[str, Callable[..., None]]] = [
        ("before-call.*.*", meter.before),
        ("after-call.*.*", meter.after),
    ]
    # The default session keeps the handlers it was made with.
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    monkeypatch.setattr(handlers, "BUILTIN_HANDLERS", [*handlers.BUILTIN_HANDLERS, *hooks])
    return meter


def test_a_thousand_fires_of_recurring_jobs(meter: Meter, ministack: str) -> None:
    clock = ManualClock(datetime(2026, 12, 1, 12, 0, 30, tzinfo=UTC))
    settings = create_deployment(f"costs-{uuid.uuid4().hex[:8]}")
    stores = open_stores(settings, SystemClock())
    system = System(stores, Undelayed(stores.queue), clock)
    filer = system.filer()
    system.tick(SEGMENTS)
    for segment in range(SEGMENTS):
        for number in range(JOBS_PER_SEGMENT):
            job = system.job(f"job-{segment}-{number}", "* * * * *", segment)
            assert filer.file_job(job, None)
    queues = boto3.client("sqs")
    url = settings.lane_queues[Lane.NORMAL]
    queues.purge_queue(QueueUrl=url)  # what the filer sent itself: not recurring fires
    for counts in (meter.requests, meter.write_units, meter.read_units):
        counts.clear()

    for _ in range(MINUTES):
        clock.advance(60)
        system.tick(SEGMENTS)
    clock.advance(240)
    protocol = system.protocol()
    while taken := queues.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages"):
        for message in taken:
            protocol.handle(decode(message["Body"]), system.ends_at())
            queues.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])

    assert len(system.targets.calls) == FIRES
    assert set(system.targets.calls.values()) == {1}
    assert meter.write_units["wheel"] == 0, "no write to a wheel entry"
    assert meter.requests["BatchWriteItem"] == 0
    assert meter.write_units["control"] == 2 * SEGMENTS * MINUTES
    assert meter.write_units["runs"] == 2 * FIRES
    assert set(meter.write_units) == {"control", "runs"}, "nothing else is written"
    assert meter.requests["SendMessageBatch"] == FIRES / 10
    assert sum(meter.read_units.values()) <= 1.1 * FIRES
