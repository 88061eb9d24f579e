"""What the answer about the state of everything carries."""

from typing import Literal

from pydantic import BaseModel, Field

from carillon.api.http.instants import UtcTime
from carillon.api.overview import Overview, SegmentView
from carillon.domain.job import JobState
from carillon.domain.run import RunStatus


class SegmentForm(BaseModel):
    """How far a segment is dispatched, in whole minutes; instants are those minutes' ends."""

    segment: int
    watermark_at: UtcTime | None
    horizon_at: UtcTime | None
    lag_minutes: int
    backlog_minutes: int
    lease_until: UtcTime | None
    unreadable: str | None = Field(
        default=None, description="Why nothing of it is known, and how an operator mends that."
    )

    @classmethod
    def of(cls, view: SegmentView) -> "SegmentForm":
        return cls(
            segment=view.segment,
            watermark_at=view.watermark_at,
            horizon_at=view.horizon_at,
            lag_minutes=view.lag_minutes,
            backlog_minutes=view.backlog_minutes,
            lease_until=view.lease_until,
            unreadable=view.unreadable,
        )


class StatusForm(BaseModel):
    """Runs are those unfinished among the newest 20 of each of `jobs_looked_into` jobs. Active jobs
    with no occurrence left count as completed.

    `complete` is false when the owner has more jobs than that. `segments` is for operators.
    """

    state: Literal["idle", "processing"]
    active_jobs: int
    paused_jobs: int
    completed_jobs: int
    scheduled_runs: int
    running_runs: int
    retrying_runs: int
    jobs_looked_into: int
    complete: bool
    unreadable_jobs: int = Field(
        default=0, description="Jobs that cannot be read; `GET /jobs` names them."
    )
    segments: list[SegmentForm] | None = None

    @classmethod
    def of(cls, overview: Overview, segments: list[SegmentView] | None) -> "StatusForm":
        runs = overview.runs
        return cls(
            state="processing" if overview.is_processing else "idle",
            active_jobs=overview.jobs[JobState.ACTIVE],
            paused_jobs=overview.jobs[JobState.PAUSED],
            completed_jobs=overview.jobs[JobState.COMPLETED],
            scheduled_runs=runs[RunStatus.SCHEDULED],
            running_runs=runs[RunStatus.RUNNING],
            retrying_runs=runs[RunStatus.RETRYING],
            jobs_looked_into=overview.jobs_looked_into,
            complete=overview.is_complete,
            unreadable_jobs=overview.unreadable_jobs,
            segments=None if segments is None else [SegmentForm.of(view) for view in segments],
        )
