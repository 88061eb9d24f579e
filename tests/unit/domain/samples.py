"""One job and its messages, to be varied by tests."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from carillon.clock import SeededEntropy
from carillon.domain.job import Generation, Job, Lane
from carillon.domain.message import Message
from carillon.domain.run import Run, RunKey, RunKind, RunStatus
from tests.support.jobs import job_with, make_job

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
ENTROPY = SeededEntropy(1)
OLDER = ENTROPY.new_id(NOON - timedelta(days=2))
OLD = ENTROPY.new_id(NOON - timedelta(days=1))
CURRENT = ENTROPY.new_id(NOON - timedelta(minutes=30))
NEWER_YOUNG = ENTROPY.new_id(NOON - timedelta(seconds=10))
NEWER_STALE = ENTROPY.new_id(NOON - timedelta(minutes=5))
KEY = RunKey("owner", "job", RunKind.SCHEDULED, NOON)


def message(generation_id: str = CURRENT, **changes: object) -> Message:
    base = Message(KEY, generation_id, segment=0, lane=Lane.NORMAL, due_at=NOON)
    return replace(base, **changes)  # type: ignore[arg-type]


def run(status: RunStatus, attempt: int = 1, **changes: object) -> Run:
    base = Run(KEY, status, attempt, 1, "claim-1", CURRENT, NOON, NOON + timedelta(days=30))
    return replace(base, **changes)  # type: ignore[arg-type]


def job(**changes: object) -> Job:
    base = make_job(
        "*/10 * * * *",
        owner="owner",
        job_id="job",
        segment=0,
        generation=Generation(CURRENT, NOON - timedelta(hours=2)),
        created_at=NOON,
        updated_at=NOON,
    )
    return job_with(base, **changes)
