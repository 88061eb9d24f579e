"""The read units of what an open page asks for again and again: counted at the client."""

import uuid
from dataclasses import replace
from datetime import timedelta

import pytest
from moto.core import DEFAULT_ACCOUNT_ID  # type: ignore[attr-defined]
from moto.dynamodb.models import dynamodb_backends

from carillon.clock import ManualClock
from carillon.domain.chunks.placing import Plan
from carillon.domain.spec.names import job_id_of
from carillon.domain.wheel.entry import minute_of
from carillon.schedules import parse_schedule
from carillon.schedules.insight.cost import Line
from carillon.services.activity import Activity, ActivityFilter
from carillon.services.history import History
from carillon.services.summing import Summing
from carillon.stores.cursors import pages
from carillon.stores.dynamo import jobs, open_stores
from tests.contract.kit import moto_kit
from tests.contract.samples import NOW, a_job
from tests.support.counting import ClientMeter

LIFETIME = timedelta(days=30)
OWNER = f"user/{uuid.uuid4()}"
POLLS = 24 * 60 * 60 // 2
SUMMARIES = 24 * 60


@pytest.mark.parametrize(
    ("count", "most_of_a_summary", "most_dollars_a_day"), [(100, 400, 0.09), (1_000, 2_400, 0.45)]
)
def test_what_a_summary_and_an_open_tab_read(
    count: int,
    most_of_a_summary: float,
    most_dollars_a_day: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    meter = ClientMeter()
    with moto_kit() as kit:
        assert kit.settings is not None
        meter.attach(monkeypatch)
        clock = ManualClock(NOW)
        stores = open_stores(kit.settings, clock)
        backend = dynamodb_backends[DEFAULT_ACCOUNT_ID]["us-east-1"]
        for number in range(count):
            name = f"sync customer {number:05}"
            job = a_job(
                OWNER,
                job_id=job_id_of(OWNER, name),
                name=name,
                schedule=parse_schedule("*/5 * * * *"),
            )
            earlier = replace(job.generation, from_at=NOW - timedelta(days=1))
            backend.put_item(
                kit.settings.jobs_table, jobs.item_of(replace(job, generation=earlier))
            )
        for minute in range(minute_of(NOW) - 60, minute_of(NOW) + 1):
            plan = Plan(job.segment, minute, "salt", NOW + LIFETIME, {})
            assert stores.chunks.put_plan(plan)
        meter.clear()
        feed = Activity(stores.activity)
        summing = Summing(feed, History.of(stores, clock, LIFETIME), stores.calendars, clock)

        read = pages(lambda cursor: stores.jobs.list(OWNER, 100, cursor))
        owned = [job for page in read for job in page.items]
        summing.of(OWNER, owned, NOW - timedelta(hours=1), NOW)
        of_a_summary = meter.amounts[Line.READS]
        meter.clear()
        feed.read(OWNER, ActivityFilter(), NOW - timedelta(seconds=12), NOW, 100)
        of_a_poll = meter.amounts[Line.READS]

    assert len(owned) == count
    # Else what reads whole rows, 100 a request, is not counted at all.
    assert count + 0.5 * min(count, 500) <= of_a_summary <= most_of_a_summary
    assert of_a_poll == 4
    dollars = 0.125e-6 * (SUMMARIES * of_a_summary + POLLS * of_a_poll)
    # To the cent, as the page says it: threads may read a few plans twice.
    assert round(dollars, 2) <= most_dollars_a_day, (of_a_summary, dollars)
