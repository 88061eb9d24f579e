"""The fields by which requests say when something fires: types and models, apart from jobs."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from shared.recurrence import CalendarRule, DstRule, Fold, Gap

MOST_SCHEDULES = 20
"""Schedules of a list, and as many exceptions."""

MOST_RUNS = 10_000
"""The largest `max_runs`: the end is found by going through them."""

_DATE_TIME = {"type": "string", "format": "date-time"}
_ONE: list[dict[str, Any]] = [
    {"type": "string", "minLength": 1, "maxLength": 1024},
    {"type": "object", "minProperties": 1},
]
_LIST: dict[str, Any] = {
    "type": "array",
    "items": {"anyOf": _ONE},
    "minItems": 1,
    "maxItems": MOST_SCHEDULES,
}
_SCHEDULE_SCHEMA: dict[str, Any] = {
    "anyOf": [*_ONE, _LIST],
    "description": "Text, an object, or a list of 1 to 20 of these: their union, where the same "
    "instant counts once.",
    "examples": [
        "every 25m offset 2m",
        {"cron": "17 * * * *"},
        "at 2026-12-01T09:00:00",
        ["0 9 * * 1-5", "0 12 * * 6"],
    ],
}
_EXCEPT_SCHEMA: dict[str, Any] = {
    **_LIST,
    "minItems": 0,
    "description": "Schedules whose occurrences are left out. One in whole minutes (cron without "
    "seconds) takes out its whole minute, every other one its own instants.",
    "examples": [["* * 25 12 *"]],
}
_NULL = {"type": "null"}
_WANTED = 'text, as "every 25m", or an object, as {"every": "25m"}'


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


def _schedule(value: object) -> object:
    if isinstance(value, str | dict):
        return value
    if isinstance(value, list) and value:
        return _schedules(value)
    raise ValueError(f"must be {_WANTED}, or a list of 1 to {MOST_SCHEDULES} of these")


def _schedules(value: object) -> object:
    if not isinstance(value, list) or len(value) > MOST_SCHEDULES:
        raise ValueError(f"must be a list of at most {MOST_SCHEDULES} schedules")
    if not all(isinstance(member, str | dict) for member in value):
        raise ValueError(f"must hold nothing but {_WANTED}")
    return value


def _or_null(check: Callable[[object], object]) -> Callable[[object], object]:
    return lambda value: None if value is None else check(value)


Moment = Annotated[datetime, BeforeValidator(_moment), WithJsonSchema(_DATE_TIME)]
Instant = Annotated[datetime, BeforeValidator(_instant), WithJsonSchema(_DATE_TIME)]
ScheduleValue = Annotated[Any, AfterValidator(_schedule), WithJsonSchema(_SCHEDULE_SCHEMA)]
ScheduleChange = Annotated[
    Any,
    AfterValidator(_or_null(_schedule)),
    WithJsonSchema({**_SCHEDULE_SCHEMA, "anyOf": [*_ONE, _LIST, _NULL]}),
]
Exceptions = Annotated[Any, AfterValidator(_schedules), WithJsonSchema(_EXCEPT_SCHEMA)]
ExceptionsChange = Annotated[
    Any,
    AfterValidator(_or_null(_schedules)),
    WithJsonSchema({"anyOf": [_EXCEPT_SCHEMA, _NULL]}),
]
ZoneName = Annotated[str, Field(min_length=1, max_length=64, examples=["Europe/Riga"])]
MaxRuns = Annotated[
    int,
    Field(
        ge=1,
        le=MOST_RUNS,
        strict=True,
        description="The schedule ends with its n-th occurrence, skipped ones included, counted "
        "from the creation or from the last change of schedule, `except`, `timezone`, `start_at`, "
        "`end_at`, `max_runs` or `dst`. Not for a fixed delay.",
    ),
]
WindowText = Annotated[
    str,
    Field(
        min_length=1,
        max_length=32,
        description="Spreads jobs: each starts at a constant offset of its own (a hash of its id) "
        "within so much time, or within a percentage of the shortest interval, after the nominal "
        "time, and before the next one.",
        examples=["15m", "50%"],
    ),
]
CalendarName = Annotated[
    str,
    Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$", examples=["holidays"]),
]
StartAt = Annotated[
    Moment | None,
    Field(description="No occurrence before it; intervals count from it. Local without an offset."),
]
EndAt = Annotated[
    Moment | None,
    Field(description="No occurrence after it; it may be one itself. Local without an offset."),
]


class Document(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class DstForm(Document):
    """What is done with local times that clocks skip (`gap`) or show twice (`fold`).

    Null leaves that half to the default: of cron with a time of day, run_after and first; of cron
    with wildcards, skip and both; of `cron(…)`, skip and first.
    """

    gap: Gap | None = None
    fold: Fold | None = None

    @property
    def rule(self) -> DstRule:
        return DstRule(self.gap, self.fold)


class CalendarUseForm(Document):
    """Which of your calendars is followed, and what becomes of occurrences on closed days."""

    name: CalendarName
    rule: CalendarRule = CalendarRule.SKIP


class ScheduleFields(Document):
    """When something fires, its window and calendar apart."""

    schedule: ScheduleValue
    except_: Exceptions = Field(default=(), alias="except")
    timezone: ZoneName = "UTC"
    start_at: StartAt = None
    end_at: EndAt = None
    max_runs: MaxRuns | None = None
    dst: DstForm = DstForm()
