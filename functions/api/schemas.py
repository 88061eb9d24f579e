"""What requests carry: pydantic models; unknown fields are refused."""

from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from shared.domain.job import CatchUp, Lane, RetryPolicy
from shared.domain.targets import Target

LARGEST_COUNT = 100
"""Occurrences that one answer lists."""

_DATE_TIME = {"type": "string", "format": "date-time"}
_SCHEDULE_FORMS: list[dict[str, Any]] = [
    {"type": "string", "minLength": 1, "maxLength": 256},
    {"type": "object", "additionalProperties": {"type": "string"}, "minProperties": 1},
]
_SCHEDULE_SCHEMA: dict[str, Any] = {
    "anyOf": _SCHEDULE_FORMS,
    "examples": ["every 25m offset 2m", {"cron": "17 * * * *"}, "at 2026-12-01T09:00:00"],
}


def _moment(value: object) -> datetime:
    """An ISO 8601 date and time, with an offset or without."""
    if isinstance(value, datetime):
        return value
    try:
        if isinstance(value, str) and "T" in value.upper():
            return datetime.fromisoformat(value.upper())
    except ValueError:
        pass
    raise ValueError('must be an ISO 8601 date and time such as "2026-12-01T09:00:00Z"')


def _instant(value: object) -> datetime:
    """An ISO 8601 date and time with an offset, in UTC, in the years 1971 to 9997."""
    moment = _moment(value)
    if moment.tzinfo is None:
        raise ValueError('needs an offset, as the Z of "2026-12-01T09:00:00Z" (in a URL, + is %2B)')
    if not 1970 < moment.year < 9998:
        raise ValueError("must lie in the years 1971 to 9997")
    return moment.astimezone(UTC)


def _text_or_object(value: object) -> object:
    if isinstance(value, str | dict):
        return value
    raise ValueError('must be text, as "every 25m", or an object, as {"every": "25m"}')


def _text_object_or_null(value: object) -> object:
    return None if value is None else _text_or_object(value)


Moment = Annotated[datetime, BeforeValidator(_moment), WithJsonSchema(_DATE_TIME)]
Instant = Annotated[datetime, BeforeValidator(_instant), WithJsonSchema(_DATE_TIME)]
ScheduleValue = Annotated[Any, AfterValidator(_text_or_object), WithJsonSchema(_SCHEDULE_SCHEMA)]
ScheduleChange = Annotated[
    Any,
    AfterValidator(_text_object_or_null),
    WithJsonSchema({**_SCHEDULE_SCHEMA, "anyOf": [*_SCHEDULE_FORMS, {"type": "null"}]}),
]
Name = Annotated[str, Field(min_length=1, max_length=128, pattern=r"\S")]
ZoneName = Annotated[str, Field(min_length=1, max_length=64, examples=["Europe/Riga"])]
Attempts = Annotated[int, Field(ge=1, le=100, strict=True)]
BaseSeconds = Annotated[int, Field(ge=1, le=86_400, strict=True)]
Factor = Annotated[float, Field(ge=1, le=100, strict=True)]
CapSeconds = Annotated[int, Field(ge=1, le=604_800, strict=True)]
TimeoutSeconds = Annotated[int, Field(ge=1, le=895, strict=True)]
"""The deployment's own limit is lower still: the executor's timeout less 5 s."""

_RETRY = RetryPolicy()


class Document(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class BackoffForm(Document):
    """Delays before retries: random below base * factor ** (failed attempts - 1), capped."""

    base_seconds: BaseSeconds = _RETRY.backoff.base_seconds
    factor: Factor = _RETRY.backoff.factor
    cap_seconds: CapSeconds = _RETRY.backoff.cap_seconds


class RetryForm(Document):
    max_attempts: Attempts = _RETRY.max_attempts
    backoff: BackoffForm = BackoffForm()


class JobBody(Document):
    """A job to be created, or as it is to be after a change."""

    name: Name
    schedule: ScheduleValue
    timezone: ZoneName = "UTC"
    start_at: Moment | None = None
    target: Target
    payload: Any = None
    lane: Lane = Lane.NORMAL
    catch_up: CatchUp = CatchUp.LATEST
    retry: RetryForm = RetryForm()
    timeout_seconds: TimeoutSeconds | None = None


class BackoffPatch(Document):
    base_seconds: BaseSeconds | None = None
    factor: Factor | None = None
    cap_seconds: CapSeconds | None = None


class RetryPatch(Document):
    max_attempts: Attempts | None = None
    backoff: BackoffPatch | None = None


class JobPatch(Document):
    """What is to change: absent fields stay, null sets a field to its default.

    The members of `retry`, and of `target` while its type stays, are merged one by one;
    `schedule` and `payload` are replaced whole.
    """

    name: Name | None = None
    schedule: ScheduleChange = None
    timezone: ZoneName | None = None
    start_at: Moment | None = None
    target: dict[str, Any] | None = None
    payload: Any = None
    lane: Lane | None = None
    catch_up: CatchUp | None = None
    retry: RetryPatch | None = None
    timeout_seconds: TimeoutSeconds | None = None


class PreviewBody(Document):
    """A schedule to look at; nothing is stored. `after` is now unless given."""

    schedule: ScheduleValue
    timezone: ZoneName = "UTC"
    start_at: Moment | None = None
    after: Instant | None = None
    count: Annotated[int, Field(ge=1, le=LARGEST_COUNT, strict=True)] = 5
