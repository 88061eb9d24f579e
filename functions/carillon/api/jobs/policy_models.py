"""The fields by which requests say what is done about failures, lateness, overlap and load."""

import re
from typing import Annotated, Any

from aws_lambda_powertools.event_handler.openapi.params import Query
from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from carillon.api.schedules.request_models import DefaultedDocument, Document
from carillon.domain.events import JOB_EVENTS, EventType
from carillon.domain.policies import Backoff, BackoffType, Concurrency, Rate, RetryPolicy
from carillon.domain.run import FAIL_KIND
from carillon.errors import InvalidFieldError
from carillon.schedules import format_duration, parse_duration
from carillon.stores.ports import JobFilter

MOST_TAGS = 20

_DAY_SECONDS = 86_400
_RETRY = RetryPolicy()
_PLAIN = r"^[^\x00-\x1f\x7f]+$"
_EVENTS = [each.value for each in JOB_EVENTS]


def _duration(shortest_seconds: int, longest_seconds: int, description: str) -> Any:
    """What makes a text the canonical one of a duration within bounds."""
    bounds = f"from {format_duration(shortest_seconds)} to {format_duration(longest_seconds)}"

    def check(text: str) -> str:
        try:
            seconds = parse_duration(text)
        except InvalidFieldError as error:
            raise ValueError(error.message) from error
        if not shortest_seconds <= seconds <= longest_seconds:
            raise ValueError(f"must be {bounds}")
        return format_duration(seconds)

    schema = {
        "type": "string",
        "minLength": 2,
        "maxLength": 64,
        "description": f"{description} A duration {bounds}.",
        "examples": ["90s", "25m", "PT1H30M"],
    }
    return [Field(max_length=64), AfterValidator(check), WithJsonSchema(schema)]


def seconds_of(duration: str | None) -> int | None:
    """Seconds of a checked duration."""
    return None if duration is None else parse_duration(duration)


def _event(value: object) -> EventType:
    if value not in _EVENTS:
        raise ValueError(f"must be one of {', '.join(_EVENTS)}")
    return EventType(value)


def _unique(values: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(values))


def _retried(kind: str) -> str:
    if kind == FAIL_KIND:
        raise ValueError(f'must not be "{FAIL_KIND}": a task that raises Fail has failed for good')
    return kind


Attempts = Annotated[int, Field(ge=1, le=100, strict=True)]
BaseSeconds = Annotated[int, Field(ge=1, le=86_400, strict=True)]
Factor = Annotated[float, Field(ge=1, le=100, strict=True)]
CapSeconds = Annotated[int, Field(ge=1, le=604_800, strict=True)]
TimeoutSeconds = Annotated[int, Field(ge=1, le=895, strict=True)]
"""The deployment's own limit is lower still: the executor's timeout less 5 s."""

ErrorKind = Annotated[
    str,
    Field(pattern=r"^[A-Za-z_][A-Za-z0-9_.]{0,127}$", examples=["timeout", "http_5xx"]),
    AfterValidator(_retried),
]
RetryOn = Annotated[
    tuple[ErrorKind, ...],
    Field(
        max_length=20,
        description="Error kinds: with any, these are retried and no others; without, all but "
        "those that no retry can help.",
    ),
    AfterValidator(_unique),
]
Tolerance = Annotated[
    str,
    *_duration(
        0,
        366 * _DAY_SECONDS,
        "Least spacing, of an `every` schedule: what would start before the last start + interval "
        "- tolerance is skipped. Less than the interval.",
    ),
]
Grace = Annotated[
    str,
    *_duration(
        1, 14 * _DAY_SECONDS, "How late an occurrence may start; `catch_up` decides about later."
    ),
]
ExpectWithin = Annotated[
    str,
    *_duration(
        60,
        7 * _DAY_SECONDS,
        "A run is missed, and told of, if no success is recorded so long after its effective time.",
    ),
]
Period = Annotated[str, *_duration(1, _DAY_SECONDS, "The time that `limit` starts count for.")]
ConcurrencyKey = Annotated[str, Field(min_length=1, max_length=128, pattern=_PLAIN)]
ConcurrencyLimit = Annotated[int, Field(ge=1, le=100, strict=True)]
RateKey = Annotated[
    str,
    Field(
        max_length=128,
        pattern=r"^[^\x00-\x1f\x7f]*$",
        description="All your jobs that name it share the rate; empty: this job alone.",
    ),
]
RateLimit = Annotated[int, Field(ge=1, le=10_000, strict=True)]
FailuresToPause = Annotated[
    int,
    Field(
        ge=1,
        le=20,
        strict=True,
        description="So many scheduled runs that end as dead letters, without a success between, "
        "pause the job.",
    ),
]
JobEvents = Annotated[
    tuple[
        Annotated[
            EventType,
            BeforeValidator(_event),
            WithJsonSchema({"type": "string", "enum": _EVENTS}),
        ],
        ...,
    ],
    Field(max_length=len(_EVENTS), description="The events that are put on the event bus."),
    AfterValidator(_unique),
]
Flag = Annotated[bool, Field(strict=True)]
Parent = Annotated[
    str,
    Field(
        min_length=1,
        max_length=128,
        pattern=_PLAIN,
        description="What the job belongs to: jobs are listed, paused and deleted by it.",
    ),
]
TagKey = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]
TagValue = Annotated[str, Field(max_length=256, pattern=r"^[^\x00-\x1f\x7f,]*$")]
Tags = Annotated[
    dict[TagKey, TagValue],
    Field(
        max_length=MOST_TAGS,
        description="Keys of letters, digits, `_`, `.`, `-`; values without commas or control "
        "characters.",
        examples=[{"team": "billing"}],
    ),
]


class BackoffForm(DefaultedDocument):
    """Delays before retries: random below base * factor ** (failed attempts - 1), capped; of type
    `fixed`, the base itself."""

    type: BackoffType = _RETRY.backoff.type
    base_seconds: BaseSeconds = _RETRY.backoff.base_seconds
    factor: Factor = _RETRY.backoff.factor
    cap_seconds: CapSeconds = _RETRY.backoff.cap_seconds


class RetryForm(DefaultedDocument):
    max_attempts: Attempts = _RETRY.max_attempts
    backoff: BackoffForm = BackoffForm()
    retry_on: RetryOn = ()

    @property
    def policy(self) -> RetryPolicy:
        backoff = self.backoff
        return RetryPolicy(
            self.max_attempts,
            Backoff(backoff.base_seconds, backoff.factor, backoff.cap_seconds, backoff.type),
            self.retry_on,
        )


class ConcurrencyForm(Document):
    """At most `limit` runs at once of all your jobs that name this `key`."""

    key: ConcurrencyKey
    limit: ConcurrencyLimit

    @property
    def policy(self) -> Concurrency:
        return Concurrency(self.key, self.limit)


class RateForm(DefaultedDocument):
    """At most `limit` starts within `per`; those above wait."""

    limit: RateLimit
    per: Period
    key: RateKey = ""

    @property
    def policy(self) -> Rate:
        return Rate(self.limit, parse_duration(self.per), self.key)


class BackoffPatch(Document):
    type: BackoffType | None = None
    base_seconds: BaseSeconds | None = None
    factor: Factor | None = None
    cap_seconds: CapSeconds | None = None


class RetryPatch(Document):
    max_attempts: Attempts | None = None
    backoff: BackoffPatch | None = None
    retry_on: RetryOn | None = None


class ConcurrencyPatch(Document):
    key: ConcurrencyKey | None = None
    limit: ConcurrencyLimit | None = None


class RatePatch(Document):
    limit: RateLimit | None = None
    per: Period | None = None
    key: RateKey | None = None


ParentQuery = Annotated[
    str | None,
    Query(min_length=1, max_length=128, description="Only jobs with this `parent`."),
]
TagQuery = Annotated[
    str | None,
    Query(
        min_length=1,
        max_length=8192,
        description="Only jobs with these tags, as `key:value`; several are joined by commas, and "
        "a job must have all of them.",
    ),
]

_TAG = re.compile(r"([A-Za-z0-9_.-]{1,64}):([^\x00-\x1f\x7f,]{0,256})", re.ASCII)


def filter_of(parent: str | None, tag: str | None) -> JobFilter | None:
    """The filter, None where neither is given; raises InvalidFieldError on `tag`."""
    if parent is None and tag is None:
        return None
    return JobFilter(parent or "", _tags(tag) if tag else ())


def required_filter(parent: str | None, tag: str | None) -> JobFilter:
    """The filter; raises InvalidFieldError where nothing is asked for: that would be all jobs."""
    only = filter_of(parent, tag)
    if only is None:
        raise InvalidFieldError("parent", "is required, or tag: say which jobs")
    return only


def _tags(text: str) -> tuple[tuple[str, str], ...]:
    tags: dict[str, str] = {}
    for word in text.split(","):
        match = _TAG.fullmatch(word)
        if match is None:
            raise InvalidFieldError(
                "tag", f"must be key:value, several joined by commas, not {word[:100]!r}"
            )
        key, value = match.groups()
        if tags.setdefault(key, value) != value:
            raise InvalidFieldError("tag", f"names {key} with two values: no job has both")
    if len(tags) > MOST_TAGS:
        raise InvalidFieldError("tag", f"must name at most {MOST_TAGS} tags")
    return tuple(sorted(tags.items()))
