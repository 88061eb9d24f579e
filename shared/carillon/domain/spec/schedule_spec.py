"""The settings that define when a job fires, and their checks: apart from jobs, previews have
them."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    Field,
    ModelWrapValidatorHandler,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

from carillon.domain.calendar import CalendarUse
from carillon.domain.spec.after import AfterSetting
from carillon.domain.spec.fields import DefaultedDocument, Moment, NullsAreDefaults, compact_json
from carillon.domain.spec.options import DATES_HELP, Cli
from carillon.errors import InvalidFieldError
from carillon.schedules import (
    DEFAULT_DST,
    NEVER,
    DstRule,
    Schedule,
    Union,
    parse_schedule,
    parse_window,
    refuse_idle,
)
from carillon.schedules.parsing import MOST_MEMBERS

STORED = {"stored": True}
"""The context of a validation of what was stored: it was checked before."""

_HARMLESS: dict[str, Any] = {
    "schedule": "every 1d",
    "except": (),
    "timezone": "UTC",
    "start_at": None,
    "end_at": None,
}
"""The replacement of a field that is wrong, or missing, while the others are checked."""

SCHEDULE_FIELDS = (*_HARMLESS, "dst")


def errors_of_schedule(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Pairs of path and message; `values` are checked ones, a DstRule among them, by field."""
    tried = {**_HARMLESS, **values}
    wrong: dict[str, tuple[str, str]] = {}
    while True:
        try:
            refuse_idle(_schedule_of(tried))
        except InvalidFieldError as error:
            field = error.field.partition("[")[0].partition(".")[0]
            if field not in _HARMLESS or field in wrong:
                return [*wrong.values(), (error.field, error.message)]
            wrong[field] = (error.field, error.message)
            tried[field] = _HARMLESS[field]
        else:
            return list(wrong.values())


def _schedule_of(values: Mapping[str, Any]) -> Schedule:
    """The schedule of SCHEDULE_FIELDS; raises InvalidFieldError."""
    return parse_schedule(
        values["schedule"],
        values["timezone"],
        values["start_at"],
        values["end_at"],
        values.get("dst", DEFAULT_DST),
        tuple(values["except"]),
    )


MOST_RUNS = 10_000
"""The largest `max_runs`: the end is found by going through them."""

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
_WANTED = 'text, as "every 25m", or an object, as {"every": "25m"}'


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


ScheduleValue = Annotated[Any, AfterValidator(_schedule), WithJsonSchema(_SCHEDULE_SCHEMA)]
Exceptions = Annotated[Any, AfterValidator(_schedules), WithJsonSchema(_EXCEPT_SCHEMA)]
ZoneName = Annotated[str, Field(min_length=1, max_length=64, examples=["Europe/Riga"])]
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


SCHEDULE_OPTION = Cli(
    "--schedule", '"17 * * * *", "every 25m", "at ...", or a JSON form; several are united.'
)


class ScheduleSpec(DefaultedDocument):
    """The fire times, window and calendar apart."""

    schedule: Annotated[ScheduleValue, SCHEDULE_OPTION]
    except_: Annotated[
        Exceptions | None,
        Cli("--except", "Without the occurrences of this schedule; repeatable."),
    ] = Field(default=None, alias="except")
    timezone: Annotated[ZoneName, Cli("--timezone", "IANA time zone of the schedule.")] = "UTC"
    start_at: Annotated[
        Moment | None,
        Field(
            description="No occurrence before it; intervals count from it. Local without an offset."
        ),
        Cli("--start-at", f"The schedule's start and anchor. {DATES_HELP}"),
    ] = None
    end_at: Annotated[
        Moment | None,
        Field(description="No occurrence after it; it may be one itself. Local without an offset."),
        Cli("--end-at", f"The last instant that may fire. {DATES_HELP}"),
    ] = None
    max_runs: Annotated[
        int | None,
        Field(
            ge=1,
            le=MOST_RUNS,
            strict=True,
            description="The schedule ends with its n-th occurrence, skipped ones included, "
            "counted from the creation or from the last change of schedule, `except`, `timezone`, "
            "`start_at`, `end_at`, `max_runs` or `dst`. Not for a fixed delay.",
        ),
        Cli("--max-runs", "End after so many occurrences."),
    ] = None
    dst: Annotated[
        DstRule | None,
        Field(
            description="What is done with local times that clocks skip (`gap`) or show twice "
            "(`fold`). Null leaves that half to the default: of cron with a time of day, run_after "
            "and first; of cron with wildcards, skip and both; of `cron(…)`, skip and first."
        ),
        Cli("--dst-gap", "Local times that the clocks skip: run_after or skip.", member="gap"),
        Cli("--dst-fold", "Local times shown twice: first, second or both.", member="fold"),
    ] = None

    @model_validator(mode="wrap")
    @classmethod
    def _with_all_errors(
        cls, given: Any, handler: ModelWrapValidatorHandler[Self], info: ValidationInfo
    ) -> Self:
        """A request with a bad zone and a bad priority is answered with both."""
        if info.context is STORED:
            return handler(given)
        try:
            form = handler(given)
        except ValidationError as error:
            missing = _details_of(cls.errors_of_choice(given))
            details = missing + _details(error) + _details_beside(error, given)
            raise _joined(cls.__name__, details) from None
        errors = cls.errors_of_choice(given) + errors_of_schedule(form._schedule_values)
        if errors:
            raise _joined(cls.__name__, _details_of(errors))
        return form

    def parsed(self, end_at: datetime | None) -> Schedule:
        """The schedule with this end; raises InvalidFieldError."""
        return _schedule_of({**self._schedule_values, "end_at": end_at})

    @classmethod
    def errors_of_choice(cls, given: object) -> list[tuple[str, str]]:
        """Pairs of path and message: of a form that leaves it open when it fires, or says it
        twice."""
        return []

    @property
    def _schedule_values(self) -> dict[str, Any]:
        """The members that `errors_of_schedule` checks."""
        return {
            "schedule": _HARMLESS["schedule"] if self.schedule is None else self.schedule,
            "except": self.except_ or (),
            "timezone": self.timezone,
            "start_at": self.start_at,
            "end_at": self.end_at,
            "dst": self.dst or DEFAULT_DST,
        }


REINDEX = object()
"""Marks a setting that entries on the wheel carry: its change needs new ones."""


class TimingSpec(ScheduleSpec):
    """A schedule, or `after` another job, with window and calendar: what lists show of a job's
    times."""

    schedule: Annotated[ScheduleValue | None, SCHEDULE_OPTION] = None
    after: Annotated[AfterSetting, REINDEX] = None
    window: Annotated[
        WindowText | None,
        Cli("--window", 'Spread: start up to "15m" later, or "50%" of the interval.'),
    ] = None
    calendar: Annotated[Annotated[CalendarUse, NullsAreDefaults()] | None, REINDEX] = None

    def parsed(self, end_at: datetime | None) -> Schedule:
        """Without an occurrence for a job that runs after another one."""
        return super().parsed(end_at) if self.after is None else NEVER

    @classmethod
    def errors_of_choice(cls, given: object) -> list[tuple[str, str]]:
        said = given if isinstance(given, dict) else {}
        is_scheduled, is_after = (said.get(name) is not None for name in ("schedule", "after"))
        if is_scheduled and is_after:
            both = "stands in the place of a schedule: give one of the two, null the other"
            return [("after", both)]
        if isinstance(given, dict) and not is_scheduled and not is_after:
            return [("schedule", "is required, or `after`: the job that it runs after")]
        return []

    @property
    def timing_text(self) -> str:
        """These settings as JSON, without those that are null."""
        members = set(TimingSpec.model_fields)
        document = self.model_dump(mode="json", by_alias=True, include=members, exclude_none=True)
        return compact_json(document)

    @classmethod
    def of_timing_text(cls, text: str) -> Self:
        """The settings that `timing_text` wrote; raises pydantic.ValidationError, a ValueError."""
        return cls.model_validate(json.loads(text), context=STORED, extra="ignore")


def canonical_members(schedule: Schedule) -> dict[str, Any]:
    """The members of a ScheduleSpec with this schedule, but for its end."""
    said: str | list[str] | None = None if schedule == NEVER else schedule.text
    exceptions: list[str] = []
    if isinstance(schedule, Union):
        members = [member.text for member in schedule.schedules]
        said = members[0] if len(members) == 1 else members
        exceptions = [exception.text for exception in schedule.exceptions]
    return {
        "schedule": said,
        "except_": exceptions,
        "timezone": schedule.timezone,
        "start_at": schedule.start_at,
        "dst": schedule.dst,
    }


def _joined(title: str, details: Sequence[InitErrorDetails]) -> ValidationError:
    return ValidationError.from_exception_data(title, list(details))


def _details(error: ValidationError) -> list[InitErrorDetails]:
    return [
        InitErrorDetails(
            type=PydanticCustomError(each["type"], each["msg"], each.get("ctx")),
            loc=each["loc"],
            input=each["input"],
        )
        for each in error.errors()
    ]


def _details_of(errors: Sequence[tuple[str, str]]) -> list[InitErrorDetails]:
    """Of pairs of path and message."""
    return [
        InitErrorDetails(
            type=PydanticCustomError("value_error", "{error}", {"error": message}),
            loc=(path,),
            input=None,
        )
        for path, message in errors
    ]


def _details_beside(error: ValidationError, given: Any) -> list[InitErrorDetails]:
    """The errors of the schedule's members that `error` does not name."""
    named = {each["loc"][0] for each in error.errors() if each["loc"]}
    if not isinstance(given, dict) or not named:
        return []
    said = (name for name in SCHEDULE_FIELDS if given.get(name) is not None)
    rest = {name: given[name] for name in said if name not in named}
    try:
        ScheduleSpec.model_validate({"schedule": "every 1d", **rest})
    except ValidationError as other:
        return [each for each in _details(other) if each["loc"][0] not in named]
    return []
