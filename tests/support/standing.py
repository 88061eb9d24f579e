"""Jobs that stand on the wheel of deployed stores as if they had been made hours ago."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from carillon.clock import ManualClock, SystemClock, SystemEntropy
from carillon.domain.job import Generation, Job, segment_of
from carillon.domain.spec.names import job_id_of
from carillon.services.indexer import Indexer
from carillon.stores.ports import Stores
from tests.support.jobs import make_job

_AGE = timedelta(hours=2)
"""Longer than it takes until occurrences go in chunks."""


def standing_jobs(
    stores: Stores, owner: str, schedules: Iterable[tuple[str, str]], segments: int, **members: Any
) -> list[Job]:
    """File a job for each name and schedule, with these further settings.

    They owe nothing from before. Nothing is sent for them but by ticks: an occurrence in a minute
    that ticks have dispatched already is lost.
    """
    entropy, now = SystemEntropy(), SystemClock().now().replace(microsecond=0)
    made_at = now - _AGE
    indexer = Indexer.of(stores, ManualClock(made_at))  # which files nothing that it takes for old
    jobs = []
    for name, schedule in schedules:
        job_id = job_id_of(owner, name)
        job = make_job(
            schedule,
            owner=owner,
            job_id=job_id,
            name=name,
            segment=segment_of(job_id, segments),
            generation=Generation(entropy.new_id(made_at), now),
            created_at=made_at,
            updated_at=made_at,
            **members,
        )
        assert indexer.index_job(job, None)
        jobs.append(job)
    return jobs
