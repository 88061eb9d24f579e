"""What answers carry: pydantic models, and how each is made of the domain's values."""

import json
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, PlainSerializer, WithJsonSchema

from functions.api.occurrences import Occurrence, Preview, Upcoming, next_fire_at
from functions.api.overview import Overview, SegmentView
from functions.api.schemas import BackoffForm, RetryForm
from shared.domain.job import CatchUp, Job, JobState, Lane
from shared.domain.run import AttemptRecord, Run, RunError, RunKind, RunStatus
from shared.domain.targets import Target
from shared.recurrence import SlotKind
from shared.recurrence.zones import load_zone
from shared.stores.ports import Page


def instant_text(instant: datetime) -> str:
    """ISO 8601 in UTC with Z; milliseconds only where there are any."""
    precision = "milliseconds" if instant.microsecond >= 1000 else "seconds"
    return instant.astimezone(UTC).replace(tzinfo=None).isoformat(timespec=precision) + "Z"


UtcTime = Annotated[
    datetime,
    PlainSerializer(instant_text, return_type=str),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]


class JobForm(BaseModel):
    """A job. `next_fire_at` is null while it is paused and when no occurrence is left."""

    job_id: str
    name: str
    state: JobState
    revision: int
    schedule: str
    timezone: str
    start_at: UtcTime | None
    target: Target
    payload: Any
    lane: Lane
    catch_up: CatchUp
    retry: RetryForm
    timeout_seconds: int
    next_fire_at: UtcTime | None
    created_at: UtcTime
    updated_at: UtcTime

    @classmethod
    def of(cls, job: Job, now: datetime) -> "JobForm":
        backoff = job.retry.backoff
        # Values of a stored job need not be within the limits for new ones.
        retry = RetryForm.model_construct(
            max_attempts=job.retry.max_attempts,
            backoff=BackoffForm.model_construct(
                base_seconds=backoff.base_seconds,
                factor=backoff.factor,
                cap_seconds=backoff.cap_seconds,
            ),
        )
        return cls(
            job_id=job.job_id,
            name=job.name,
            state=job.state,
            revision=job.revision,
            schedule=job.schedule.text,
            timezone=job.schedule.timezone,
            start_at=job.schedule.start_at,
            target=job.target,
            payload=json.loads(job.payload),
            lane=job.lane,
            catch_up=job.catch_up,
            retry=retry,
            timeout_seconds=job.timeout_seconds,
            next_fire_at=next_fire_at(job, now),
            created_at=job.created_at,
            updated_at=job.updated_at,
        )


class JobPage(BaseModel):
    items: list[JobForm]
    next_cursor: str | None

    @classmethod
    def of(cls, page: Page[Job], now: datetime) -> "JobPage":
        return cls(items=[JobForm.of(job, now) for job in page.items], next_cursor=page.next_cursor)


class ErrorForm(BaseModel):
    """Why an attempt failed; `permanent`: no retry can help."""

    kind: str
    message: str
    permanent: bool

    @classmethod
    def of(cls, error: RunError) -> "ErrorForm":
        return cls(kind=error.kind, message=error.message, permanent=error.permanent)


class AttemptForm(BaseModel):
    """A failed attempt of a run that went on."""

    attempt: int
    started_at: UtcTime
    finished_at: UtcTime
    error: ErrorForm

    @classmethod
    def of(cls, record: AttemptRecord) -> "AttemptForm":
        return cls(
            attempt=record.attempt,
            started_at=record.started_at,
            finished_at=record.finished_at,
            error=ErrorForm.of(record.error),
        )


class RunForm(BaseModel):
    """A run as lists show it.

    One of kind `missed` stands for the `covers_count` occurrences from `covers_from` to `fire_at`.
    """

    run_id: str
    job_id: str
    kind: RunKind
    fire_at: UtcTime
    redrive: int
    status: RunStatus
    attempt: int
    lag_seconds: float | None
    started_at: UtcTime | None
    finished_at: UtcTime | None
    next_attempt_at: UtcTime | None
    updated_at: UtcTime
    result: str | None
    error: ErrorForm | None
    reason: str | None
    covers_from: UtcTime | None
    covers_count: int | None

    @classmethod
    def of(cls, run: Run) -> "RunForm":
        lag_seconds = run.lag_seconds
        return cls(
            run_id=run.key.run_id,
            job_id=run.key.job_id,
            kind=run.key.kind,
            fire_at=run.key.fire_at,
            redrive=run.key.redrive,
            status=run.status,
            attempt=run.attempt,
            lag_seconds=None if lag_seconds is None else round(lag_seconds, 3),
            started_at=run.started_at,
            finished_at=run.finished_at,
            next_attempt_at=run.next_attempt_at,
            updated_at=run.updated_at,
            result=run.result,
            error=None if run.error is None else ErrorForm.of(run.error),
            reason=run.reason,
            covers_from=run.covers_from,
            covers_count=run.covers_count,
        )


class RunDetail(RunForm):
    """A run, whole: `attempts` are the failed ones that it went on from."""

    attempts: list[AttemptForm]

    @classmethod
    def of(cls, run: Run) -> "RunDetail":
        attempts = [AttemptForm.of(record) for record in run.attempts]
        return cls(**RunForm.of(run).__dict__, attempts=attempts)


class RunPage(BaseModel):
    items: list[RunForm]
    next_cursor: str | None

    @classmethod
    def of(cls, page: Page[Run]) -> "RunPage":
        return cls(items=[RunForm.of(run) for run in page.items], next_cursor=page.next_cursor)


class FireTime(BaseModel):
    """A fire time in UTC, and as clocks in the schedule's time zone show it."""

    fire_at: UtcTime
    local: str

    @classmethod
    def of(cls, fire_at: datetime, timezone: str) -> "FireTime":
        return cls(fire_at=fire_at, local=_local_text(fire_at, timezone))


class OccurrenceForm(FireTime):
    job_id: str
    name: str

    @classmethod
    def of_occurrence(cls, occurrence: Occurrence) -> "OccurrenceForm":
        job = occurrence.job
        return cls(
            fire_at=occurrence.fire_at,
            local=_local_text(occurrence.fire_at, job.schedule.timezone),
            job_id=job.job_id,
            name=job.name,
        )


class UpcomingForm(BaseModel):
    """`complete` is false when the owner has more jobs than the 1,000 looked at."""

    items: list[OccurrenceForm]
    complete: bool

    @classmethod
    def of(cls, upcoming: Upcoming) -> "UpcomingForm":
        items = [OccurrenceForm.of_occurrence(found) for found in upcoming.occurrences]
        return cls(items=items, complete=upcoming.is_complete)


class SlotsForm(BaseModel):
    """Where a job with the schedule stands on the wheel, and how many entries it takes there."""

    kind: SlotKind
    count: int


class PreviewForm(BaseModel):
    schedule: str
    timezone: str
    start_at: UtcTime | None
    occurrences: list[FireTime]
    slots: SlotsForm

    @classmethod
    def of(cls, preview: Preview) -> "PreviewForm":
        schedule = preview.schedule
        return cls(
            schedule=schedule.text,
            timezone=schedule.timezone,
            start_at=schedule.start_at,
            occurrences=[FireTime.of(at, schedule.timezone) for at in preview.fire_times],
            slots=SlotsForm(kind=preview.slots.kind, count=preview.entry_count),
        )


class SegmentForm(BaseModel):
    """How far a segment is dispatched, in whole minutes; instants are those minutes' ends."""

    segment: int
    watermark_at: UtcTime | None
    horizon_at: UtcTime | None
    lag_minutes: int
    backlog_minutes: int
    lease_until: UtcTime | None

    @classmethod
    def of(cls, view: SegmentView) -> "SegmentForm":
        return cls(
            segment=view.segment,
            watermark_at=view.watermark_at,
            horizon_at=view.horizon_at,
            lag_minutes=view.lag_minutes,
            backlog_minutes=view.backlog_minutes,
            lease_until=view.lease_until,
        )


class StatusForm(BaseModel):
    """Runs are those unfinished among the newest 20 of each of `jobs_looked_into` jobs.

    `complete` is false when the owner has more jobs than that. `segments` is for operators.
    """

    state: Literal["idle", "processing"]
    active_jobs: int
    paused_jobs: int
    scheduled_runs: int
    running_runs: int
    retrying_runs: int
    jobs_looked_into: int
    complete: bool
    segments: list[SegmentForm] | None = None

    @classmethod
    def of(cls, overview: Overview, segments: list[SegmentView] | None) -> "StatusForm":
        runs = overview.runs
        return cls(
            state="processing" if overview.is_processing else "idle",
            active_jobs=overview.jobs[JobState.ACTIVE],
            paused_jobs=overview.jobs[JobState.PAUSED],
            scheduled_runs=runs[RunStatus.SCHEDULED],
            running_runs=runs[RunStatus.RUNNING],
            retrying_runs=runs[RunStatus.RETRYING],
            jobs_looked_into=overview.jobs_looked_into,
            complete=overview.is_complete,
            segments=None if segments is None else [SegmentForm.of(view) for view in segments],
        )


def _local_text(instant: datetime, timezone: str) -> str:
    return instant.astimezone(load_zone(timezone)).isoformat(timespec="seconds")
