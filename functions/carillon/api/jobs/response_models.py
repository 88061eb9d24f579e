"""Bodies of answers about jobs: pydantic models, made of the domain's values."""

from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel, ConfigDict

from carillon.api.http.fields import ListForm, SameForm, UtcTime, rest_of
from carillon.api.schedules.outlook import Outlook
from carillon.api.schedules.preview import Report
from carillon.api.schedules.response_models import TransitionForm, WarningForm
from carillon.domain.changes.handing_over import former_owner
from carillon.domain.job import Job, JobState, Lane
from carillon.domain.spec.job_spec import JobSpec
from carillon.domain.spec.job_summary import Timed
from carillon.domain.spec.owners import AuthorKind, Via
from carillon.schedules.insight.sentence import sentence
from carillon.schedules.placement.window import parse_window
from carillon.stores.ports import Page


class SlowForm(BaseModel):
    """Since when a job is served in lane slow, and why."""

    since: UtcTime
    reason: str


class AuthorForm(SameForm):
    """The one who made a change (of the kind person, machine, role or system), and the way by
    which it came."""

    kind: AuthorKind
    id: str
    name: str
    via: Via


class JobForm(JobSpec):
    """A job: its settings, and what becomes of it.

    `schedule` is a list of texts when it is a union of several.

    `state` is completed for an active job with no occurrence left. `next_fire_at` is the nominal
    time of the next occurrence that its calendar leaves, `next_effective_at` when it starts:
    `spread_seconds` later, the job's own offset in its window. Both are null while it is paused,
    when no occurrence is left, while its calendar cannot be read, and for a fixed delay (see
    `GET /jobs/{job_id}/upcoming`).
    `ends_at` is the last nominal time of a schedule that ends, which `max_runs` makes of it
    too. `sentence` says in English when it fires, `note` why it is paused, and `resume_at`
    when it resumes by itself. `successors` are the ids of jobs that run, or may be about to run,
    `after` this one; a job that does so itself has no fire times. `time_limit_seconds` is what an
    attempt may take: `timeout_seconds`, or the default, within the limit of the deployment. `lane`
    is where it is served: its `priority`, or `slow` while its attempts keep lasting long, and
    `slow` says since when and why. `managed_by` is the manifest or stack that applies its settings;
    `changed_by` has made the latest revision, and `renamed_from` is the id under which the earlier
    runs are: those of the owner `handed_over_from`, where that is one.
    """

    model_config = ConfigDict(extra="ignore")

    job_id: str
    state: JobState
    note: str | None
    resume_at: UtcTime | None
    revision: int
    sentence: str
    spread_seconds: int
    lane: Lane
    slow: SlowForm | None
    time_limit_seconds: int
    next_fire_at: UtcTime | None
    next_effective_at: UtcTime | None
    ends_at: UtcTime | None
    managed_by: str | None
    renamed_from: str | None
    handed_over_from: str | None
    successors: list[str]
    changed_by: AuthorForm
    created_at: UtcTime
    updated_at: UtcTime

    @classmethod
    def of(cls, job: Job, outlook: Outlook, longest_seconds: int) -> "JobForm":
        """`longest_seconds`: the time limit of the deployment."""
        return cls.model_construct(**_members(job, outlook, longest_seconds))


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
        return cls.model_construct(
            **_members(job, outlook, longest_seconds),
            warnings=report.warnings,
            transitions=report.transitions,
        )


class JobPage(ListForm):
    items: list[JobForm]

    @classmethod
    def of(
        cls, page: Page[Job], shown: Iterable[tuple[Job, Outlook]], longest_seconds: int
    ) -> "JobPage":
        """`shown`: jobs of the page, with their outlooks."""
        items = [JobForm.of(job, outlook, longest_seconds) for job, outlook in shown]
        return cls(items=items, **rest_of(page))


def _members(job: Job, outlook: Outlook, longest_seconds: int) -> dict[str, Any]:
    """The members of a job's form; the settings were checked before they were stored."""
    return {
        **dict(job.spec),
        "job_id": job.job_id,
        "state": outlook.state,
        "revision": job.revision,
        "note": job.note or None,
        "resume_at": job.resume_at,
        "lane": job.lane,
        "slow": job.slow and SlowForm(since=job.slow.since, reason=job.slow.reason),
        "sentence": sentence_of(job),
        "time_limit_seconds": job.time_limit_seconds(longest_seconds),
        "spread_seconds": job.spread_seconds,
        "next_fire_at": outlook.next_fire_at,
        "next_effective_at": outlook.next_effective_at,
        "ends_at": outlook.ends_at,
        "managed_by": job.managed_by or None,
        "renamed_from": job.renamed_from or None,
        "handed_over_from": former_owner(job) or None,
        "successors": [link.job_id for link in job.successors],
        "changed_by": AuthorForm.of(job.author),
        "created_at": job.created_at,
        "updated_at": job.updated_at,
    }


def sentence_of(job: Timed) -> str:
    """The times at which a job fires, in English."""
    if job.spec.after is not None:
        return job.spec.after.sentence
    use = job.spec.calendar
    return sentence(
        job.schedule,
        calendar=None if use is None else (use.name, use.rule),
        window=parse_window(job.spec.window) if job.spec.window else None,
    )
