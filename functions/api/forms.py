"""What answers carry: pydantic models, and how each is made of the domain's values."""

import json
from collections.abc import Iterable
from typing import Any, Literal

from pydantic import BaseModel, Field

from functions.api.instants import UtcTime
from functions.api.outlook import Outlook
from functions.api.overview import Overview, SegmentView
from functions.api.previews import Report
from functions.api.schedule_fields import CalendarUseForm, DstForm
from functions.api.schedule_forms import TransitionForm, WarningForm
from functions.api.scheduling import spoken
from functions.api.schemas import BackoffForm, RetryForm
from shared.domain.job import Job, JobState, Lane
from shared.domain.policies import CatchUp, OnComplete
from shared.domain.run import AttemptRecord, Run, RunError, RunKind, RunStatus
from shared.domain.targets import Target
from shared.recurrence.explain import sentence
from shared.recurrence.spread import parse_window
from shared.stores.ports import Page


class JobForm(BaseModel):
    """A job. `schedule` is a list of texts when it is a union of several.

    `state` is completed for an active job with no occurrence left. `next_fire_at` is the nominal
    time of the next occurrence that its calendar leaves, `next_effective_at` when it starts:
    `spread_seconds` later, the job's own offset in its window. Both are null while it is paused,
    when no occurrence is left, and for a fixed delay (see `GET /jobs/{job_id}/upcoming`).
    `last_fire_at` is the last nominal time of a schedule that ends, which `max_runs` makes of it
    too. `description` says in English when it fires.
    """

    job_id: str
    name: str
    state: JobState
    revision: int
    description: str
    schedule: str | list[str]
    except_: list[str] = Field(alias="except")
    timezone: str
    start_at: UtcTime | None
    end_at: UtcTime | None
    max_runs: int | None
    on_complete: OnComplete
    dst: DstForm
    window: str | None
    spread_seconds: int
    calendar: CalendarUseForm | None
    target: Target
    payload: Any
    lane: Lane
    catch_up: CatchUp
    retry: RetryForm
    timeout_seconds: int
    next_fire_at: UtcTime | None
    next_effective_at: UtcTime | None
    last_fire_at: UtcTime | None
    created_at: UtcTime
    updated_at: UtcTime

    @classmethod
    def of(cls, job: Job, outlook: Outlook) -> "JobForm":
        return cls(**_members(job, outlook))


class JobReport(JobForm):
    """A job as a creation or a change answers it: with what to know of its schedule.

    `warnings` and `transitions` are of the year to come.
    """

    warnings: list[WarningForm]
    transitions: list[TransitionForm]

    @classmethod
    def with_report(cls, job: Job, outlook: Outlook, report: Report) -> "JobReport":
        return cls(
            **_members(job, outlook),
            warnings=[WarningForm.of(warning) for warning in report.warnings],
            transitions=[TransitionForm.of(touched) for touched in report.transitions],
        )


class JobPage(BaseModel):
    items: list[JobForm]
    next_cursor: str | None

    @classmethod
    def of(cls, page: Page[Job], outlooks: Iterable[Outlook]) -> "JobPage":
        """`outlooks`: one for each job of the page."""
        pairs = zip(page.items, outlooks, strict=True)
        return cls(items=[JobForm.of(*pair) for pair in pairs], next_cursor=page.next_cursor)


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

    `fire_at` is the nominal time, `effective_at` when it was to start; `lag_seconds` counts from
    the latter. `reason` says why it was skipped, and `note` more: which calendar closed the day,
    or from which day it was moved.

    One of kind `missed` stands for the `covers_count` occurrences from `covers_from` to `fire_at`.
    """

    run_id: str
    job_id: str
    kind: RunKind
    fire_at: UtcTime
    effective_at: UtcTime
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
    note: str | None
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
            effective_at=run.effective_at or run.key.fire_at,
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
            note=run.note,
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
            segments=None if segments is None else [SegmentForm.of(view) for view in segments],
        )


def _members(job: Job, outlook: Outlook) -> dict[str, Any]:
    """The members of a job's form, by their names in JSON."""
    schedule, exceptions = spoken(job.schedule)
    dst, use = job.schedule.dst, job.calendar
    return {
        "job_id": job.job_id,
        "name": job.name,
        "state": outlook.state,
        "revision": job.revision,
        "description": _description(job),
        "schedule": schedule,
        "except": exceptions,
        "timezone": job.schedule.timezone,
        "start_at": job.schedule.start_at,
        "end_at": job.end_at,
        "max_runs": job.max_runs,
        "on_complete": job.on_complete,
        "dst": DstForm(gap=dst.gap, fold=dst.fold),
        "window": job.window or None,
        "spread_seconds": job.spread_seconds,
        "calendar": None if use is None else CalendarUseForm(name=use.name, rule=use.rule),
        "target": job.target,
        "payload": json.loads(job.payload),
        "lane": job.lane,
        "catch_up": job.catch_up,
        "retry": _retry_form(job),
        "timeout_seconds": job.timeout_seconds,
        "next_fire_at": outlook.next_fire_at,
        "next_effective_at": outlook.next_effective_at,
        "last_fire_at": outlook.last_fire_at,
        "created_at": job.created_at,
        "updated_at": job.updated_at,
    }


def _retry_form(job: Job) -> RetryForm:
    """Values of a stored job need not be within the limits for new ones."""
    backoff = job.retry.backoff
    return RetryForm.model_construct(
        max_attempts=job.retry.max_attempts,
        backoff=BackoffForm.model_construct(
            base_seconds=backoff.base_seconds,
            factor=backoff.factor,
            cap_seconds=backoff.cap_seconds,
        ),
    )


def _description(job: Job) -> str:
    use = job.calendar
    return sentence(
        job.schedule,
        calendar=None if use is None else (use.name, use.rule),
        window=parse_window(job.window) if job.window else None,
    )
