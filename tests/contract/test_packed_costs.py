"""The read units of history whose runs have no rows, counted at the client."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from moto import mock_aws

from carillon.api.jobs.summaries import Include, SummaryService
from carillon.clock import ManualClock, SystemClock, SystemEntropy
from carillon.domain.chunks.chunk import Chunk, Ended, Outcome, finished, ref_of
from carillon.domain.chunks.message import ChunkKey
from carillon.domain.chunks.placing import Plan
from carillon.domain.job import Job, Lane
from carillon.domain.policies import Overlap
from carillon.domain.run import RunStatus
from carillon.domain.spec.names import job_id_of
from carillon.domain.wheel.entry import minute_of
from carillon.reindexing.reindexing import Reindex
from carillon.schedules import parse_schedule
from carillon.schedules.insight.cost import Line
from carillon.services import history
from carillon.services.history import History
from carillon.stores.dynamo import open_stores
from carillon.stores.ports import JobFilter, Stores
from tests.contract.samples import CLAIM_ID, a_job
from tests.support.counting import ClientMeter
from tests.support.tables import create_deployment

OWNER = "user/7c9e6679-7425-40de-944b-e07fc1f90ae7"
NOW = datetime(2026, 11, 24, 12, 30, tzinfo=UTC)
HOURS = 30
LIFETIME = timedelta(days=30)


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
        yield open_stores(create_deployment("costs"), SystemClock())


def a_plain_job(number: int) -> Job:
    name = f"hourly report {number:03}"
    schedule = parse_schedule("0 * * * *")
    return a_job(OWNER, job_id=job_id_of(OWNER, name), name=name, schedule=schedule)


def run_packed(stores: Stores, jobs: Sequence[Job]) -> None:
    """Each hour of HOURS a chunk of all jobs, each of which succeeds with a result of its own."""
    for hour in range(HOURS):
        at = NOW.replace(minute=0) - timedelta(hours=hour)
        key = ChunkKey(jobs[0].segment, minute_of(at), 0, Lane.NORMAL, 0)
        refs = tuple(ref_of(job.job_id, job.generation.generation_id) for job in jobs)
        plan = Plan(key.segment, key.minute, CLAIM_ID, at + LIFETIME, {(0, Lane.NORMAL): 1})
        chunk = Chunk(key, CLAIM_ID, at, at + timedelta(minutes=1), at + LIFETIME, refs)
        ended_at = at + timedelta(milliseconds=300)
        ends = {
            ref: Ended(Outcome.OK, at, ended_at, f"{number:>24}") for number, ref in enumerate(refs)
        }
        assert stores.chunks.put_plan(plan)
        assert stores.chunks.claim(chunk)
        assert stores.chunks.finish(finished(chunk, ends))


def history_of(stores: Stores) -> History:
    return History.of(stores, ManualClock(NOW), LIFETIME)


def test_a_page_of_20_packed_runs(meter: ClientMeter, stores: Stores) -> None:
    """CHUNKS, section 9: two or three calls, 20 read units; here job and records besides."""
    jobs = [a_plain_job(number) for number in range(24)]
    assert all(map(stores.jobs.create, jobs))
    run_packed(stores, jobs)
    meter.clear()
    page = history_of(stores).page(OWNER, jobs[0].job_id, 20)
    assert [run.status for run in page.items] == [RunStatus.SUCCEEDED] * 20
    assert meter.amounts[Line.READS] <= 22
    assert meter.requests == {"Query": 2, "GetItem": 1, "BatchGetItem": 2}


def test_one_packed_run(meter: ClientMeter, stores: Stores) -> None:
    jobs = [a_plain_job(number) for number in range(24)]
    assert all(map(stores.jobs.create, jobs))
    run_packed(stores, jobs)
    (newest,) = history_of(stores).latest(OWNER, jobs[0].job_id)
    meter.clear()
    assert history_of(stores).get(newest.key) == newest
    assert meter.amounts[Line.READS] <= 5


@pytest.mark.parametrize(
    ("include", "most"), [(frozenset({Include.LAST_RUN}), 80), (frozenset(Include), 185)]
)
def test_a_page_of_25_jobs_with_their_last_packed_runs(
    include: frozenset[Include],
    most: float,
    meter: ClientMeter,
    stores: Stores,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One job after the other: side by side, some of the first read the same plans."""
    monkeypatch.setattr(history, "PARALLEL_JOBS", 1)
    jobs = [a_plain_job(number) for number in range(25)]
    assert all(map(stores.jobs.create, jobs))
    run_packed(stores, jobs)
    service = SummaryService(stores.jobs, history_of(stores), stores.calendars, ManualClock(NOW))
    meter.clear()
    page: Any = service.page(OWNER, 25, None, JobFilter(), None, include)
    assert len(page.items) == 25
    assert meter.amounts[Line.READS] <= most, meter.amounts[Line.READS]


def test_a_page_of_rows_costs_two_small_reads_more(meter: ClientMeter, stores: Stores) -> None:
    job = a_plain_job(0)
    alone = replace(job, spec=job.spec.model_copy(update={"overlap": Overlap.SKIP}))
    assert stores.jobs.create(alone)
    meter.clear()
    assert history_of(stores).page(OWNER, job.job_id, 20).items == ()
    assert meter.amounts[Line.READS] <= 2


def test_a_reindexing_reads_no_history_behind_the_newest_run(
    meter: ClientMeter, stores: Stores
) -> None:
    job = a_plain_job(0)
    assert stores.jobs.create(job)
    run_packed(stores, [job])
    reindex = Reindex(stores, ManualClock(NOW), SystemEntropy(), 60)
    meter.clear()
    reindex.run()
    assert reindex.done.jobs == 1
    assert meter.amounts[Line.READS] <= 40, meter.amounts[Line.READS]
