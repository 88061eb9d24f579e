"""The summary of a job: what lists show of it, and what that can be computed from."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from carillon.domain.job import Generation, Job, JobState
from carillon.domain.spec.schedule_spec import TimingSpec
from carillon.schedules import Schedule


class Timed(Protocol):
    """The part of a job, or of its summary, that decides when it fires."""

    @property
    def owner(self) -> str: ...
    @property
    def spec(self) -> TimingSpec: ...
    @property
    def schedule(self) -> Schedule: ...
    @property
    def state(self) -> JobState: ...
    @property
    def generation(self) -> Generation: ...
    @property
    def spread_seconds(self) -> int: ...


@dataclass(frozen=True, slots=True)
class JobSummary:
    """A job as the index of its owner's jobs has it; the members are those of Job."""

    owner: str
    job_id: str
    name: str
    spec: TimingSpec
    schedule: Schedule
    state: JobState
    generation: Generation
    spread_seconds: int
    note: str
    resume_at: datetime | None
    parent: str | None
    tags: Mapping[str, str]
    managed_by: str

    @classmethod
    def of(cls, job: Job) -> "JobSummary":
        return cls(
            owner=job.owner,
            job_id=job.job_id,
            name=job.spec.name,
            spec=TimingSpec.of_timing_text(job.spec.timing_text),
            schedule=job.schedule,
            state=job.state,
            generation=job.generation,
            spread_seconds=job.spread_seconds,
            note=job.note,
            resume_at=job.resume_at,
            parent=job.spec.parent,
            tags=job.spec.tags,
            managed_by=job.managed_by,
        )
