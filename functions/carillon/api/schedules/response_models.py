"""Bodies of answers about schedules: pydantic models."""

from pydantic import AliasChoices, BaseModel, Field

from carillon.api.http.fields import LocalTime, SameForm, UtcTime, local_text
from carillon.api.schedules.outlook import Occurrence
from carillon.domain.job import Job
from carillon.schedules import DstRule, SlotKind
from carillon.schedules.insight.warnings import WarningCode


class WarningForm(SameForm):
    """Something that may not be meant; `message` is for people."""

    code: WarningCode
    message: str


class TransitionForm(SameForm):
    """A change of the clocks that affects occurrences, and its effect on them.

    `kind` is gap (the local times from `local_from` up to `local_until` do not exist) or fold
    (they come twice). `count` of them are occurrences, null for more than 1,000; `first_local` is
    the first.
    """

    transition_at: UtcTime
    kind: str
    local_from: LocalTime
    local_until: LocalTime
    count: int | None
    first_local: LocalTime
    effect: str


class OccurrenceForm(BaseModel):
    """`fire_at` is the nominal time, `effective_at` the start of the run; both also as clocks in
    the schedule's time zone show them. `note` names the closed day from which it was moved, or, for
    a fixed delay, the closed day on which it is skipped."""

    fire_at: UtcTime
    local: str
    effective_at: UtcTime
    effective_local: str
    note: str | None
    job_id: str
    name: str

    @classmethod
    def of(cls, occurrence: Occurrence) -> "OccurrenceForm":
        job = occurrence.job
        timezone = job.schedule.timezone
        return cls(
            fire_at=occurrence.fire_at,
            local=local_text(occurrence.fire_at, timezone),
            effective_at=occurrence.effective_at,
            effective_local=local_text(occurrence.effective_at, timezone),
            note=occurrence.note,
            job_id=job.job_id,
            name=job.spec.name,
        )


class UpcomingForm(BaseModel):
    """`complete` is false when the owner has more jobs than the 1,000 that were read, or some that
    cannot be read, or their calendar."""

    items: list[OccurrenceForm]
    complete: bool


class PreviewedForm(BaseModel):
    """`effective_at` is null under a window: the offset in it is of a job, by its id.

    `note` names the closed day from which a calendar moved it, or why it is skipped.
    """

    fire_at: UtcTime
    local: str
    effective_at: UtcTime | None
    note: str | None


class SlotsForm(BaseModel):
    """The entries that a job with the schedule takes on the wheel, and their kind of slot."""

    kind: SlotKind
    count: int


class PreviewForm(BaseModel):
    """The behaviour of a schedule as a job.

    `occurrences` run; `skipped` are the first few on closed days up to the last of these, under
    the rule skip. Of a fixed delay, all but the first are the earliest possible, and those that
    are skipped are among them, with a note. `ends_at`
    is the end that `end_at` and `max_runs` make, if any. `window_seconds` is the largest offset
    that a job can have in the window. Fires and cost are of the 30 days from `after` on, skipped
    ones apart: exact up to 10,000 fires, estimated beyond; US dollars on demand in us-east-1 at
    most, as if each fire were received alone, in a deployment of up to 500 fires a minute; without
    retries, the targets' own cost, and what the deployment costs anyhow.
    """

    schedule: str | list[str]
    except_: list[str] = Field(validation_alias=AliasChoices("except", "except_"), alias="except")
    timezone: str
    start_at: UtcTime | None
    end_at: UtcTime | None
    max_runs: int | None
    dst: DstRule
    window: str | None
    window_seconds: int
    description: str
    occurrences: list[PreviewedForm]
    skipped: list[PreviewedForm]
    ends_at: UtcTime | None
    warnings: list[WarningForm]
    transitions: list[TransitionForm]
    slots: SlotsForm
    fires_per_month: int
    dollars_per_month: float


class MinuteForm(BaseModel):
    """A minute by its beginning, and the runs expected to start in it."""

    minute: UtcTime
    fires: int


class HourForm(BaseModel):
    """An hour of UTC by its beginning, and the runs expected to start in it."""

    hour: UtcTime
    fires: int


class PeakForm(MinuteForm):
    """`jobs` are the names of up to five jobs that fire in it, the most frequent first."""

    jobs: list[str]


class ForecastForm(BaseModel):
    """Expected starts from `from` up to, not including, `to`.

    `complete` is false when jobs were left out: beyond the first 1,000, because counting took too
    long, or since they, or their calendar, cannot be read. `jobs_counted` were counted; fixed
    delays, whose instants follow from their runs, are `jobs_after_finish`. `minutes` are those with
    any fires; with `by=hour` there are none, but `hours`, all of them.
    """

    from_: UtcTime = Field(alias="from")
    to: UtcTime
    complete: bool
    jobs_counted: int
    jobs_after_finish: int
    total: int
    peaks: list[PeakForm]
    minutes: list[MinuteForm]
    hours: list[HourForm]


class MinuteJobForm(BaseModel):
    """A job, its expected starts in a minute and at most in a day, and its window, null for
    none."""

    job_id: str
    name: str
    fires: int
    most_per_day: int
    window: str | None

    @classmethod
    def of(cls, job: Job, fires: int, most_per_day: int) -> "MinuteJobForm":
        return cls(
            job_id=job.job_id,
            name=job.spec.name,
            fires=fires,
            most_per_day=most_per_day,
            window=job.spec.window or None,
        )


class MinuteJobsForm(BaseModel):
    """The jobs that start in a minute, the most frequent first; `complete` is false when jobs
    beyond the first 1,000, or some that cannot be read, or their calendar, were left out."""

    minute: UtcTime
    items: list[MinuteJobForm]
    complete: bool
