"""What a thousand fires cost: every AWS request counted at the client, from real item sizes."""

import json
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

import boto3
import pytest
from botocore import handlers

from shared.clock import ManualClock, SystemClock
from shared.domain.calendar import Calendar, CalendarUse
from shared.domain.job import Job, Lane
from shared.domain.message import decode
from shared.recurrence import CalendarRule
from shared.stores.dynamo import open_stores
from tests.integration.system import OWNER, System, Undelayed
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
        self.gets: Counter[str] = Counter()
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
            self.gets[self._table] += model.name == "GetItem"
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


def plain(job: Job) -> Job:
    return job


def spread_under_a_calendar(job: Job) -> Job:
    """A third each skips, moves on and moves back; all at a place of their own in the minute."""
    number = int(job.name.rpartition("-")[2])
    use = CalendarUse("holidays", list(CalendarRule)[number % 3])
    return replace(job, window="59s", spread_seconds=number % 59, calendar=use)


def no_holidays(now: datetime) -> Calendar:
    ranges = tuple((date(2027, 1, day), date(2027, 1, day)) for day in range(1, 29))
    return Calendar(OWNER, "holidays", 1, frozenset(), ranges, now, now)


@pytest.mark.parametrize("made", [plain, spread_under_a_calendar])
def test_a_thousand_fires_of_recurring_jobs(
    made: Callable[[Job], Job], meter: Meter, ministack: str
) -> None:
    clock = ManualClock(datetime(2026, 12, 1, 12, 0, 30, tzinfo=UTC))
    settings = create_deployment(f"costs-{uuid.uuid4().hex[:8]}")
    stores = open_stores(settings, SystemClock())
    assert stores.calendars.put(no_holidays(clock.now()), None)
    system = System(stores, Undelayed(stores.queue), clock)
    filer = system.filer()
    system.tick(SEGMENTS)
    for segment in range(SEGMENTS):
        for number in range(JOBS_PER_SEGMENT):
            job = made(system.job(f"job-{segment}-{number}", "* * * * *", segment))
            assert filer.file_job(job, None)
    queues = boto3.client("sqs")
    url = settings.lane_queues[Lane.NORMAL]
    queues.purge_queue(QueueUrl=url)  # what the filer sent itself: not recurring fires
    for counts in (meter.requests, meter.write_units, meter.read_units, meter.gets):
        counts.clear()

    for _ in range(MINUTES):
        clock.advance(60)
        system.tick(SEGMENTS)
    clock.advance(240)
    protocol = system.executor()
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
    # With a calendar: one read more by each run, and one by each tick, however many entries.
    reads = FIRES if made is plain else 2 * FIRES + MINUTES
    assert meter.gets["jobs"] == reads
    assert sum(meter.read_units.values()) <= reads + 0.1 * FIRES
