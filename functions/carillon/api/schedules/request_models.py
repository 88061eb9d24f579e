"""The fields by which requests say when something fires: types and models, apart from jobs."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Annotated, Any, Self

from aws_lambda_powertools.event_handler.openapi.params import Query
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    ModelWrapValidatorHandler,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import CoreSchema, InitErrorDetails, PydanticCustomError

from carillon.api.http.fields import field_errors
from carillon.clock import ceil_second
from carillon.errors import InvalidFieldError
from carillon.schedules import (
    DEFAULT_DST,
    CalendarRule,
    DstRule,
    Fold,
    Gap,
    parse_schedule,
    parse_window,
)
from carillon.schedules.parsing import MOST_MEMBERS

_HARMLESS: dict[str, Any] = {
    "schedule": "every 1d",
    "except": (),
    "timezone": "UTC",
    "start_at": None,
    "end_at": None,
}
"""What stands for a field that is wrong, or missing, while the others are looked at."""

SCHEDULE_FIELDS = (*_HARMLESS, "dst")


def errors_of_schedule(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Pairs of path and message; `values` are checked ones, a DstRule among them, by field."""
    tried = {**_HARMLESS, **values}
    wrong: dict[str, tuple[str, str]] = {}
    while True:
        try:
            parse_schedule(
                tried["schedule"],
                tried["timezone"],
                tried["start_at"],
                tried["end_at"],
                tried.get("dst", DEFAULT_DST),
                tuple(tried["except"]),
            )
        except InvalidFieldError as error:
            field = error.field.partition("[")[0].partition(".")[0]
            if field not in _HARMLESS or field in wrong:
                return [*wrong.values(), (error.field, error.message)]
            wrong[field] = (error.field, error.message)
            tried[field] = _HARMLESS[field]
        else:
            return list(wrong.values())


def joined(
    title: str, error: ValidationError | None, more: Sequence[tuple[str, str]]
) -> ValidationError:
    """One error that says what `error` says, and `more`: pairs of path and message."""
    details = [
        InitErrorDetails(
            type=PydanticCustomError(each["type"], each["msg"], each.get("ctx")),
            loc=each["loc"],
            input=each["input"],
        )
        for each in (error.errors() if error else ())
    ]
    details += [
        InitErrorDetails(
            type=PydanticCustomError("value_error", "{error}", {"error": message}),
            loc=(path,),
            input=None,
        )
        for path, message in more
    ]
    return ValidationError.from_exception_data(title, details)


MOST_RUNS = 10_000
"""The largest `max_runs`: the end is found by going through them."""

_FIRST_YEAR, _LAST_YEAR = 1971, 9997

_INSTANT = {"type": "string", "format": "date-time"}
_MOMENT: dict[str, Any] = {
    # Not of the format date-time (RFC 3339): that one always has an offset.
    "type": "string",
    "examples": ["2026-12-01T09:00:00", "2026-12-01T09:00:00+02:00"],
}
_ONE: list[dict[str, Any]] = [
    {"type": "string", "minLength": 1, "maxLength": 1024},
    {"type": "object", "minProperties": 1},
]
_LIST: dict[str, Any] = {
    "type": "array",
    "items": {"anyOf": _ONE},
    "minItems": 1,
    "maxItems": MOST_MEMBERS,
}
_SCHEDULE_SCHEMA: dict[str, Any] = {
    "anyOf": [*_ONE, _LIST],
    "description": f"Text, an object, or a list of 1 to {MOST_MEMBERS} of these: their union, "
    "where the same instant counts once.",
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


OUT_OF_RANGE = f"must lie in the years {_FIRST_YEAR} to {_LAST_YEAR}"


def is_in_range(day: date) -> bool:
    """Whether a day or an instant lies in the years that requests may speak of."""
    return _FIRST_YEAR <= day.year <= _LAST_YEAR


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
    if is_in_range(moment):
        instant = moment.astimezone(UTC)
        # An offset may carry it into another year.
        if is_in_range(instant):
            return instant
    raise ValueError(OUT_OF_RANGE)


def _schedule(value: object) -> object:
    if isinstance(value, str | dict):
        return value
    if isinstance(value, list) and value:
        return _schedules(value)
    raise ValueError(f"must be {_WANTED}, or a list of 1 to {MOST_MEMBERS} of these")


def _schedules(value: object) -> object:
    if not isinstance(value, list) or len(value) > MOST_MEMBERS:
        raise ValueError(f"must be a list of at most {MOST_MEMBERS} schedules")
    if not all(isinstance(member, str | dict) for member in value):
        raise ValueError(f"must hold nothing but {_WANTED}")
    return value


def _window(text: str) -> str:
    try:
        parse_window(text)
    except InvalidFieldError as error:
        raise ValueError(error.message) from error
    return text


def _or_null(check: Callable[[object], object]) -> Callable[[object], object]:
    return lambda value: None if value is None else check(value)


Moment = Annotated[datetime, BeforeValidator(_moment), WithJsonSchema(_MOMENT)]
Instant = Annotated[datetime, BeforeValidator(_instant), WithJsonSchema(_INSTANT)]
ScheduleValue = Annotated[Any, AfterValidator(_schedule), WithJsonSchema(_SCHEDULE_SCHEMA)]
ScheduleChange = Annotated[
    Any,
    AfterValidator(_or_null(_schedule)),
    WithJsonSchema({**_SCHEDULE_SCHEMA, "anyOf": [*_ONE, _LIST, _NULL]}),
]
Exceptions = Annotated[
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
    AfterValidator(_window),
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


class DefaultedDocument(Document):
    """Null is the default, as if the member were left out, of each that has one."""

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        defaulted = cls._defaulted()
        return {
            name: value
            for name, value in given.items()
            if value is not None or name not in defaulted
        }

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        schema = handler(core_schema)
        members = handler.resolve_ref_schema(schema)["properties"]
        for name in cls._defaulted():
            members[name] = {"anyOf": [members[name], {"type": "null"}]}
        return schema

    @classmethod
    def _defaulted(cls) -> frozenset[str]:
        """The members with a default that is not null, by their names in JSON."""
        return frozenset(
            field.alias or name
            for name, field in cls.model_fields.items()
            if not field.is_required() and field.get_default(call_default_factory=True) is not None
        )


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


class CalendarUseForm(DefaultedDocument):
    """Which of your calendars is followed, and what becomes of occurrences on closed days."""

    name: CalendarName
    rule: CalendarRule = CalendarRule.SKIP


class ScheduleFields(DefaultedDocument):
    """When something fires, its window and calendar apart."""

    schedule: ScheduleValue
    except_: Exceptions = Field(default=None, alias="except")
    timezone: ZoneName = "UTC"
    start_at: StartAt = None
    end_at: EndAt = None
    max_runs: MaxRuns | None = None
    dst: DstForm | None = None

    @model_validator(mode="wrap")
    @classmethod
    def _with_all_errors(cls, given: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Who has a bad zone and a bad priority is told of both."""
        try:
            form = handler(given)
        except ValidationError as error:
            raise joined(cls.__name__, error, _errors_beside(error, given)) from None
        errors = errors_of_schedule(form.schedule_values)
        if errors:
            raise joined(cls.__name__, None, errors)
        return form

    @property
    def schedule_values(self) -> dict[str, Any]:
        """What `errors_of_schedule` looks at."""
        return {
            "schedule": self.schedule,
            "except": self.except_ or (),
            "timezone": self.timezone,
            "start_at": self.start_at,
            "end_at": self.end_at,
            "dst": DEFAULT_DST if self.dst is None else self.dst.rule,
        }


def _errors_beside(error: ValidationError, given: Any) -> list[tuple[str, str]]:
    """Those of the schedule fields that `error` does not name."""
    named = {each["loc"][0] for each in error.errors() if each["loc"]}
    if not isinstance(given, dict) or not named:
        return []
    rest = {name: given[name] for name in SCHEDULE_FIELDS if name in given and name not in named}
    try:
        ScheduleFields.model_validate({"schedule": "every 1d", **rest})
    except ValidationError as other:
        return [pair for pair in field_errors(other.errors()) if pair[0] not in named]
    return []


FireTimeFrom = Annotated[
    Instant | None, Query(alias="from", description="The first fire time, inclusive.")
]
FireTimeTo = Annotated[
    Instant | None, Query(alias="to", description="The last fire time, inclusive.")
]


def whole_span(
    from_at: datetime | None, until_at: datetime | None
) -> tuple[datetime | None, datetime | None]:
    """The bounds in whole seconds, the fraction of `from` rounded up: fire times have none.

    Raises InvalidFieldError when the span ends before it begins.
    """
    if from_at is not None and until_at is not None and until_at < from_at:
        raise InvalidFieldError("to", "must not lie before from")
    return (
        None if from_at is None else ceil_second(from_at),
        None if until_at is None else until_at.replace(microsecond=0),
    )
