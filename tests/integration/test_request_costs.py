"""What fires cost: every AWS request counted at the client, from real item sizes."""

import uuid
from collections.abc import Callable
from datetime import UTC, date, datetime
from statistics import mean

import boto3
import pytest

from carillon.clock import ManualClock, SystemClock
from carillon.domain.calendar import Calendar, CalendarUse
from carillon.domain.job import Job, Lane
from carillon.domain.message import decode
from carillon.schedules import CalendarRule
from carillon.schedules.insight.cost import (
    ENTRY_BYTES,
    IDLE_WRITES,
    RUN_ROW_BYTES,
    RUN_WRITES,
    Deployment,
    Line,
    fires,
    idle,
)
from carillon.stores.dynamo import open_stores
from tests.integration.system import OWNER, System, Undelayed
from tests.support.counting import ClientMeter
from tests.support.jobs import job_with
from tests.support.tables import create_deployment

pytestmark = pytest.mark.ministack

SEGMENTS = 2
JOBS_PER_SEGMENT = 20
MINUTES = 5
FIRES = SEGMENTS * JOBS_PER_SEGMENT * MINUTES
BATCHES_BY_LAMBDA = FIRES / 10 * 2
"""Receives and deletes, which no client of ours asks for."""
LATE_READS = FIRES
"""All are handled minutes late here, and look for the chunks that may have had them."""


def plain(job: Job) -> Job:
    return job


def spread_under_a_calendar(job: Job) -> Job:
    """A third each skips, moves on and moves back; all at a place of their own in the minute."""
    number = int(job.spec.name.rpartition("-")[2])
    use = CalendarUse("holidays", list(CalendarRule)[number % 3])
    return job_with(job, window="59s", spread_seconds=number % 59, calendar=use)


def no_holidays(now: datetime) -> Calendar:
    ranges = tuple((date(2027, 1, day), date(2027, 1, day)) for day in range(1, 29))
    return Calendar(OWNER, "holidays", 1, frozenset(), ranges, now, now)


@pytest.mark.parametrize("made", [plain, spread_under_a_calendar])
def test_fires_of_recurring_jobs(
    made: Callable[[Job], Job], meter: ClientMeter, ministack: str
) -> None:
    clock = ManualClock(datetime(2026, 12, 1, 12, 0, 30, tzinfo=UTC))
    settings = create_deployment(f"costs-{uuid.uuid4().hex[:8]}")
    stores = open_stores(settings, SystemClock())
    assert stores.calendars.put(no_holidays(clock.now()), None)
    system = System(stores, Undelayed(stores.queue), clock)
    indexer = system.indexer()
    system.tick(SEGMENTS)
    for segment in range(SEGMENTS):
        for number in range(JOBS_PER_SEGMENT):
            job = made(system.job(f"job-{segment}-{number}", "* * * * *", segment))
            assert indexer.index_job(job, None)
    queues = boto3.client("sqs")
    url = settings.lane_queues[Lane.NORMAL]
    queues.purge_queue(QueueUrl=url)  # what the indexer sent itself: not recurring fires
    meter.clear()

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
    assert set(meter.writes) == {"control", "runs"}, "nothing else is written, no wheel entry"
    assert meter.writes["control"] == IDLE_WRITES * SEGMENTS * MINUTES
    assert meter.writes["runs"] == RUN_WRITES * FIRES
    assert meter.requests["BatchWriteItem"] == 0
    assert meter.requests["SendMessageBatch"] == FIRES / 10
    # With a calendar: one read more by each run, and one by each tick, however many entries.
    reads = FIRES if made is plain else 2 * FIRES + MINUTES
    assert meter.gets["jobs"] == reads
    if made is plain:
        _agrees(meter)


def _agrees(meter: ClientMeter) -> None:
    """What the model says of these fires and idle minutes is what the client asked for."""
    ticks = idle(MINUTES, Deployment(segments=SEGMENTS))
    modelled = fires(FIRES) + ticks
    assert meter.usage.of(Line.WRITES) == modelled.of(Line.WRITES)
    by_us = fires(FIRES).of(Line.QUEUE) - BATCHES_BY_LAMBDA
    assert meter.usage.of(Line.QUEUE) == pytest.approx(by_us)
    # The model shares pages among fires; AWS counts each page's last begun unit whole.
    begun = meter.usage.of(Line.READS) - modelled.of(Line.READS) - LATE_READS
    assert -SEGMENTS * MINUTES <= begun <= SEGMENTS * MINUTES
    for kind, modelled_bytes in (("runs", RUN_ROW_BYTES), ("wheel", ENTRY_BYTES)):
        sizes = [
            size
            for (of, key, _), size in meter.rows.items()
            if of == kind and "#control" not in key
        ]
        # This clock tells whole seconds, each of which takes three bytes less.
        assert mean(sizes) == pytest.approx(modelled_bytes, rel=0.15)
