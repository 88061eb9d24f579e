"""RunStore.count and JobStore.tally."""

from collections import Counter
from dataclasses import replace
from datetime import timedelta

from carillon.domain.job import Job, JobState
from carillon.domain.run import Attention, Resolution, RunError, RunStatus
from carillon.domain.spec.job_summary import JobSummary
from carillon.schedules import parse_schedule
from tests.contract.kit import Kit
from tests.contract.samples import FIRE_AT, NOW, a_job, a_key, a_run, own_job_id
from tests.support.jobs import job_with


def test_runs_are_counted_while_they_need_attention(kit: Kit) -> None:
    owner = kit.new_owner()

    def counts() -> list[int]:
        return [kit.runs.count(owner, each, 100) for each in Attention]

    keys = [a_key(owner, FIRE_AT - timedelta(hours=hour)) for hour in range(7)]
    rows = [a_run(key) for key in keys]
    for row in rows:
        assert kit.runs.claim(row, None)
    assert counts() == [0, 0, 0]

    failed = [replace(row, status=RunStatus.RETRYING, next_attempt_at=NOW) for row in rows]
    waiting = replace(rows[5], status=RunStatus.SCHEDULED, waits=1)
    for row in (*failed[:5], waiting):
        assert kit.runs.finish(row)
    assert counts() == [0, 5, 1]
    assert kit.runs.count(owner, Attention.RETRYING, 2) == 2
    assert kit.runs.count(kit.new_owner(), Attention.RETRYING, 2) == 0

    again = replace(failed[0], status=RunStatus.RUNNING, attempt=2, token=2)
    assert kit.runs.claim(again, failed[0])
    assert counts() == [0, 4, 1]

    dead = replace(again, status=RunStatus.DEAD, error=RunError("E", "no"), finished_at=NOW)
    assert kit.runs.finish(dead)
    assert counts() == [1, 4, 1]
    assert kit.runs.dead_letters(owner, 9).items == (dead,)

    settled = replace(dead, settled=Resolution.DISCARDED, token=3)
    assert kit.runs.claim(settled, dead)
    assert counts() == [0, 4, 1]


def test_jobs_are_tallied_by_state_and_those_that_end_are_named(kit: Kit) -> None:
    owner = kit.new_owner()
    jobs: list[Job] = [a_job(owner, job_id=own_job_id(owner, number)) for number in range(5)]
    once = parse_schedule("at 2026-11-20T12:00:00", "UTC")
    bounded = parse_schedule("every 5m", "UTC", end_at=FIRE_AT + timedelta(days=1))
    jobs[0] = job_with(jobs[0], schedule=once)
    jobs[1] = job_with(jobs[1], schedule=bounded)
    jobs[2] = job_with(jobs[2], schedule=once, state=JobState.PAUSED)
    for job in jobs:
        assert kit.jobs.create(job)
    assert kit.jobs.replace(jobs[4].deleted(NOW, NOW), 1)

    counts: Counter[JobState] = Counter()
    ending: list[JobSummary] = []
    tally = kit.jobs.tally(owner)
    while True:
        counts.update(tally.counts)
        ending += tally.ending
        if tally.next_cursor is None:
            break
        tally = kit.jobs.tally(owner, tally.next_cursor)
    assert counts == {JobState.ACTIVE: 1, JobState.PAUSED: 1}
    assert {job.job_id for job in ending} == {jobs[0].job_id, jobs[1].job_id}
