"""Answers and parameters of /runs."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, Literal, TypeVar

from aws_lambda_powertools.event_handler.openapi.params import Query
from pydantic import BaseModel, Field

from carillon.api.http.fields import ListForm, UtcTime
from carillon.api.runs.routes import RunDetail
from carillon.domain.activity.results import Result
from carillon.domain.activity.summary import Bucket
from carillon.domain.run import RunKind, RunStatus
from carillon.domain.spec.fields import Instant
from carillon.errors import InvalidFieldError

_Value = TypeVar("_Value", bound=StrEnum)

StatusQuery = Annotated[
    str | None,
    Query(
        min_length=1,
        max_length=200,
        description="Only these statuses, joined by commas: " + ", ".join(RunStatus),
    ),
]
KindQuery = Annotated[
    str | None,
    Query(
        min_length=1,
        max_length=200,
        description="Only runs of these kinds, joined by commas: " + ", ".join(RunKind),
    ),
]
JobQuery = Annotated[
    str | None, Query(min_length=1, max_length=64, description="Only this job's, by its id.")
]
FromQuery = Annotated[
    Instant | None,
    Query(alias="from", description="Recorded then or later; with `job`: fire times."),
]
ToQuery = Annotated[
    Instant | None, Query(description="Recorded then or earlier; with `job`: fire times.")
]
AfterQuery = Annotated[
    Instant | None,
    Query(
        description="The `as_of` of an earlier answer: what was recorded since. Items of that "
        "answer may come again; `run_id` and `attempt` tell them."
    ),
]


class RunSummary(BaseModel):
    """The end of an attempt of a run, at `at`: `retrying` if another attempt follows, else the
    run's status. With the filter `job`: a run as it is now, and when it last changed.

    Name and tags are those that the job had then.
    """

    run_id: str
    job_id: str
    job_name: str
    kind: RunKind
    status: RunStatus
    attempt: int
    fire_at: UtcTime
    at: UtcTime
    lag_seconds: float | None
    duration_seconds: float | None
    reason: str | None
    error_kind: str | None
    tags: dict[str, str]

    @classmethod
    def of(cls, result: Result) -> "RunSummary":
        return cls(
            run_id=result.key.run_id,
            job_id=result.key.job_id,
            job_name=result.job_name,
            kind=result.key.kind,
            status=result.status,
            attempt=result.attempt,
            fire_at=result.key.fire_at,
            at=result.at,
            lag_seconds=result.lag_seconds,
            duration_seconds=result.duration_seconds,
            reason=result.reason,
            error_kind=result.error_kind,
            tags=dict(result.tags),
        )


class ActivityForm(ListForm):
    """Results, those recorded last first. A page may be short, even empty, with more to come: only
    a null `next_cursor` is the end."""

    items: list[RunSummary]
    as_of: UtcTime = Field(description="Goes on as `after`.")
    successes: Literal["all", "counted"] = Field(
        description="`counted`: successes that were alone in their batch are left out; the job's "
        "history has them, and summaries count them."
    )


ByQuery = Annotated[
    Literal["minute", "hour", "day"], Query(description="A bucket's length, in UTC.")
]
GroupQuery = Annotated[
    Literal["status", "job", "tag"],
    Query(
        description="One bucket for each span (status), or one for each job or `key:value` with "
        "anything to count."
    ),
]
SumFrom = Annotated[
    Instant | None, Query(alias="from", description="A fire time; a day ago unless given.")
]
SumTo = Annotated[Instant | None, Query(description="A fire time; now unless given.")]


class CountsForm(BaseModel):
    """Runs and occurrences by their outcome. `pending`: under way, due since less than 15 minutes,
    or not looked for where `complete` is false. `unknown`: due for longer, without a trace."""

    succeeded: int = 0
    dead: int = 0
    timed_out: int = 0
    skipped: int = 0
    missed: int = 0
    cancelled: int = 0
    retrying: int = 0
    pending: int = 0
    unknown: int = 0


class LagForm(BaseModel):
    """Seconds from effective times to starts."""

    p50: float
    p95: float
    p99: float
    max: float

    @classmethod
    def of(cls, bucket: Bucket) -> "LagForm | None":
        if not bucket.lags:
            return None
        p50, p95, p99, most = (bucket.percentile(each) for each in (50, 95, 99, 100))
        return cls(p50=p50, p95=p95, p99=p99, max=most)


class BucketForm(BaseModel):
    """The sums of what fired from `at` on; `key` is a job id or a tag, null for all."""

    at: UtcTime
    key: str | None
    counts: CountsForm
    lag: LagForm | None


class SummaryForm(BaseModel):
    """`complete` is false where a limit has left something out; what was not found then is
    `pending`."""

    buckets: list[BucketForm]
    complete: bool
    as_of: UtcTime


class RunWithJob(RunDetail):
    """A run, whole, with the name that its job has now."""

    job_name: str


def values_of(name: str, text: str | None, known: Iterable[_Value]) -> frozenset[str]:
    """The values of a parameter that names some, joined by commas; raises InvalidFieldError."""
    given = frozenset() if text is None else frozenset(part.strip() for part in text.split(","))
    values = {each.value for each in known}
    unknown = sorted(given - values)
    if unknown:
        raise InvalidFieldError(name, f"{unknown[0][:100]!r} is none of {', '.join(values)}")
    return given
