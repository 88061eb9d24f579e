"""The stores that simulated worlds have."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from carillon.domain.job import Generation, JobState
from carillon.schedules import parse_schedule
from carillon.simulation.seams import MemoryRows
from tests.support.jobs import job_with, make_job

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)


def test_a_job_that_was_changed_as_it_was_paused_is_not_as_filed() -> None:
    """Seed 10000601055 (`--chunks off`): pause and change were of the same instant."""
    jobs = MemoryRows(page_size=7).jobs
    job = make_job(
        "every 1m",
        owner="owner-1",
        job_id="j1",
        segment=0,
        generation=Generation("g1", NOON),
        created_at=NOON,
        updated_at=NOON,
    )
    at = NOON + timedelta(minutes=5)
    paused = replace(job, state=JobState.PAUSED, paused_at=at, updated_at=at, revision=2)
    changed = job_with(replace(paused, revision=3), schedule=parse_schedule("every 2m"))
    kept = []
    for number, each in enumerate((job, paused, changed)):
        assert jobs.replace(each, number) if number else jobs.create(each)
        stored = jobs.get(each.owner, each.job_id)
        kept.append(stored is not None and stored.is_as_filed)
    assert kept == [True, True, False]
