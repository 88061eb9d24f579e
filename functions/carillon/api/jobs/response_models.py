"""What answers carry of jobs: pydantic models, and how each is made of the domain's values."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, Field

from carillon.api.http.fields import ListForm, UtcTime, rest_of
from carillon.api.jobs.drafts import document_of
from carillon.api.jobs.policy_models import BackoffForm, ConcurrencyForm, RateForm, RetryForm
from carillon.api.schedules.outlook import Outlook
from carillon.api.schedules.preview import Report
from carillon.api.schedules.request_models import CalendarUseForm, DstForm
from carillon.api.schedules.response_models import TransitionForm, WarningForm
from carillon.domain.events import EventType
from carillon.domain.job import Job, JobState, Lane, Priority
from carillon.domain.policies import CatchUp, OnComplete, Overlap
from carillon.domain.targets import Target
from carillon.schedules.insight.sentence import sentence
from carillon.schedules.placement.window import parse_window
from carillon.stores.ports import Page

Form = TypeVar("Form", bound=BaseModel)


class SlowForm(BaseModel):
    """Since when a job is served in lane slow, and why."""

    since: UtcTime
    reason: str


class JobForm(BaseModel):
    """A job. `schedule` is a list of texts when it is a union of several.

    `state` is completed for an active job with no occurrence left. `next_fire_at` is the nominal
    time of the next occurrence that its calendar leaves, `next_effective_at` when it starts:
    `spread_seconds` later, the job's own offset in its window. Both are null while it is paused,
    when no occurrence is left, and for a fixed delay (see `GET /jobs/{job_id}/upcoming`).
    `last_fire_at` is the last nominal time of a schedule that ends, which `max_runs` makes of it
    too. `description` says in English when it fires, `note` why it is paused where you did not do
    it. `time_limit_seconds` is what an attempt may take: `timeout_seconds`, or the default, within
    the limit of the deployment. `lane` is where it is served: its `priority`, or `slow` while its
    attempts keep lasting long, and `slow` says since when and why.
    """

    job_id: str
    name: str
    state: JobState
    note: str | None
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
    template: bool
    priority: Priority
    lane: Lane
    slow: SlowForm | None
    catch_up: CatchUp
    grace: str | None
    overlap: Overlap
    tolerance: str | None
    concurrency: ConcurrencyForm | None
    rate: RateForm | None
    retry: RetryForm
    timeout_seconds: int | None
    time_limit_seconds: int
    pause_after_failures: int | None
    expect_within: str | None
    on_success: Target | None
    on_failure: Target | None
    events: tuple[EventType, ...]
    parent: str | None
    tags: dict[str, str]
    next_fire_at: UtcTime | None
    next_effective_at: UtcTime | None
    last_fire_at: UtcTime | None
    created_at: UtcTime
    updated_at: UtcTime

    @classmethod
    def of(cls, job: Job, outlook: Outlook, longest_seconds: int) -> "JobForm":
        """`longest_seconds`: the time limit of the deployment."""
        return cls(**_members(job, outlook, longest_seconds))


class JobReport(JobForm):
    """A job as a creation or a change answers it: with what to know of its schedule.

    `warnings` and `transitions` are of the year to come.
    """

    warnings: list[WarningForm]
    transitions: list[TransitionForm]

    @classmethod
    def with_report(
        cls, job: Job, outlook: Outlook, longest_seconds: int, report: Report
    ) -> "JobReport":
        return cls(
            **_members(job, outlook, longest_seconds),
            warnings=[WarningForm.of(warning) for warning in report.warnings],
            transitions=[TransitionForm.of(touched) for touched in report.transitions],
        )


class JobPage(ListForm):
    items: list[JobForm]

    @classmethod
    def of(cls, page: Page[Job], outlooks: Iterable[Outlook], longest_seconds: int) -> "JobPage":
        """`outlooks`: one for each job of the page."""
        pairs = zip(page.items, outlooks, strict=True)
        items = [JobForm.of(job, outlook, longest_seconds) for job, outlook in pairs]
        return cls(items=items, **rest_of(page))


def _members(job: Job, outlook: Outlook, longest_seconds: int) -> dict[str, Any]:
    """The members of a job's form, by their names in JSON."""
    document = document_of(job)
    return {
        **document,
        "job_id": job.job_id,
        "state": outlook.state,
        "revision": job.revision,
        "note": job.note or None,
        "lane": job.lane,
        "slow": job.slow and SlowForm(since=job.slow.since, reason=job.slow.reason),
        "description": _description(job),
        "target": job.target,
        "on_success": job.on_success,
        "on_failure": job.on_failure,
        # Values of a stored job need not be within the limits for new ones.
        "retry": _retry_form(document["retry"]),
        "concurrency": _unchecked(ConcurrencyForm, document["concurrency"]),
        "rate": _unchecked(RateForm, document["rate"]),
        "time_limit_seconds": job.time_limit_seconds(longest_seconds),
        "spread_seconds": job.spread_seconds,
        "next_fire_at": outlook.next_fire_at,
        "next_effective_at": outlook.next_effective_at,
        "last_fire_at": outlook.last_fire_at,
        "created_at": job.created_at,
        "updated_at": job.updated_at,
    }


def _retry_form(members: Mapping[str, Any]) -> RetryForm:
    backoff = BackoffForm.model_construct(**members["backoff"])
    return RetryForm.model_construct(**{**members, "backoff": backoff})


def _unchecked(form: type[Form], members: Mapping[str, Any] | None) -> Form | None:
    return None if members is None else form.model_construct(**members)


def _description(job: Job) -> str:
    use = job.calendar
    return sentence(
        job.schedule,
        calendar=None if use is None else (use.name, use.rule),
        window=parse_window(job.window) if job.window else None,
    )
