"""The read units of lists: counted at the client, of the index's own view."""

import uuid
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from moto import mock_aws
from moto.core import DEFAULT_ACCOUNT_ID  # type: ignore[attr-defined]
from moto.dynamodb.models import dynamodb_backends

from carillon.api.jobs.summaries import Include, SummaryService
from carillon.clock import ManualClock, SystemClock
from carillon.domain.calendar import CalendarUse
from carillon.domain.run import RESULT_LIMIT_BYTES, RunError, RunStatus
from carillon.domain.spec.names import job_id_of
from carillon.schedules import CalendarRule, parse_schedule
from carillon.schedules.insight.cost import Line
from carillon.services.history import History
from carillon.stores.dynamo import jobs, open_stores, runs
from carillon.stores.ports import JobFilter, Stores
from tests.contract.samples import FIRE_AT, NOW, a_calendar, a_job, a_key, a_run
from tests.support.counting import ClientMeter
from tests.support.tables import create_deployment

OWNER = f"user/{uuid.uuid4()}"
EVERYTHING = frozenset(Include)
LAST_RUN = frozenset({Include.LAST_RUN})
A_RESULT = {"result": "r" * RESULT_LIMIT_BYTES}
AN_ERROR = {
    "status": RunStatus.DEAD,
    "error": RunError("http_503", "e" * RESULT_LIMIT_BYTES),
}
HOLIDAYS = CalendarUse("holidays", CalendarRule.SKIP)


@pytest.fixture
def meter(monkeypatch: pytest.MonkeyPatch) -> ClientMeter:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    meter = ClientMeter()
    meter.attach(monkeypatch)
    return meter


@pytest.fixture
def stores(meter: ClientMeter) -> Iterator[Stores]:
    with mock_aws():
        settings = create_deployment("costs")
        yield open_stores(settings, SystemClock())


def item_named(
    name: str, calendar: CalendarUse | None = HOLIDAYS, **changes: Any
) -> dict[str, Any]:
    """A job of ordinary settings, as an item."""
    job = a_job(
        OWNER,
        job_id=job_id_of(OWNER, name),
        name=name,
        schedule=parse_schedule("0 6 * * 1-5", "Europe/Berlin"),
        parent="channel/5",
        tags={"team": "billing", "channel": "5"},
        calendar=calendar,
        **changes,
    )
    return jobs.item_of(replace(job, managed_by="manifest/billing"))


def put_all(table: str, items: list[dict[str, Any]]) -> None:
    """Into moto itself: requests for so many would take half a minute."""
    backend = dynamodb_backends[DEFAULT_ACCOUNT_ID]["us-east-1"]
    for item in items:
        backend.put_item(table, item)


def units_of(meter: ClientMeter, stores: Stores, only: JobFilter, **how: Any) -> tuple[float, int]:
    """The read units of a page of 25, and the number of its jobs."""
    history = History.of(stores, ManualClock(NOW), timedelta(days=30))
    service = SummaryService(stores.jobs, history, stores.calendars, ManualClock(NOW))
    meter.clear()
    page = service.page(OWNER, 25, None, only, None, how.get("include", frozenset()))
    return meter.amounts[Line.READS], len(page.items)


@pytest.mark.parametrize(
    ("outcome", "include", "most"),
    [
        ({}, EVERYTHING, 65),
        ({}, LAST_RUN, 65),
        (A_RESULT, LAST_RUN, 65),
        (AN_ERROR, LAST_RUN, 65),
        # Ten rows are two reads of 4 KB with results as long as any, three as dead letters.
        (A_RESULT, EVERYTHING, 77.5),
        (AN_ERROR, EVERYTHING, 90),
    ],
)
def test_a_page_of_25_jobs_with_their_last_runs(
    outcome: dict[str, Any],
    include: frozenset[Include],
    most: float,
    meter: ClientMeter,
    stores: Stores,
) -> None:
    names = [f"nightly report {number:05}" for number in range(40)]
    put_all("costs-jobs", [item_named(name) for name in names])
    assert stores.calendars.put(a_calendar(OWNER, name="holidays"), None)
    for name in names:
        keys = [
            replace(a_key(OWNER, FIRE_AT - timedelta(hours=hour)), job_id=job_id_of(OWNER, name))
            for hour in range(12)
        ]
        values = {"status": RunStatus.SUCCEEDED, "finished_at": NOW, **outcome}
        put_all("costs-runs", [runs.item_of(a_run(key, **values)) for key in keys])

    units, shown = units_of(meter, stores, JobFilter(), include=include)

    assert (shown, units <= most) == (25, True), units


def many_jobs(count: int, **of_each_twentieth: Any) -> list[dict[str, Any]]:
    """Items of so many jobs; every twentieth has other attributes."""
    pattern = item_named("sync customer 00000", calendar=None)
    items = []
    for number in range(count):
        name = f"sync customer {number:05}"
        job_id = job_id_of(OWNER, name)
        own = {"pk": {"S": job_id}, "name": {"S": name}, "list_key": {"S": f"{name}\x1f{job_id}"}}
        items.append({**pattern, **own, **({} if number % 20 else of_each_twentieth)})
    return items


def test_a_search_among_10_000_jobs_is_2_read_units_a_page(
    meter: ClientMeter, stores: Stores
) -> None:
    put_all("costs-jobs", many_jobs(10_000))

    units, shown = units_of(meter, stores, JobFilter(name="SYNC customer 07"))
    whole_id, found = units_of(meter, stores, JobFilter(name=job_id_of(OWNER, "sync customer 07")))

    assert (shown, units <= 2) == (25, True), units
    assert (found, whole_id <= 2) == (0, True), whole_id


def test_a_filter_that_most_jobs_pass_reads_about_a_page(
    meter: ClientMeter, stores: Stores
) -> None:
    """And no megabyte, 128 units, for the one or two jobs that it lacks then."""
    put_all("costs-jobs", many_jobs(3_000, parent={"S": "rare"}))

    units, shown = units_of(meter, stores, JobFilter(parent="channel/5"))

    assert (shown, units <= 2.5) == (25, True), units
