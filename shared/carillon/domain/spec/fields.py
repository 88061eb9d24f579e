"""Types of settings: their form in documents, their value in code, and the conversions."""

import json
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from datetime import UTC, date, datetime
from functools import cache
from types import NoneType
from typing import Annotated, Any, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    PlainSerializer,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import CoreSchema, core_schema

from carillon.errors import InvalidFieldError
from carillon.schedules import format_duration, parse_duration

DAY_SECONDS = 86_400
PLAIN = r"^[^\x00-\x1f\x7f]+$"
"""The pattern of text without control characters."""

_FIRST_YEAR, _LAST_YEAR = 1971, 9997
OUT_OF_RANGE = f"must lie in the years {_FIRST_YEAR} to {_LAST_YEAR}"

_INSTANT = {"type": "string", "format": "date-time"}
_MOMENT: dict[str, Any] = {
    # Not of the format date-time (RFC 3339): that one always has an offset.
    "type": "string",
    "examples": ["2026-12-01T09:00:00", "2026-12-01T09:00:00+02:00"],
}


@dataclass(frozen=True, slots=True)
class Seconds:
    """Marks an int of seconds, or None, that documents write as a duration within bounds."""

    shortest: int
    longest: int
    description: str

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        schema = core_schema.no_info_after_validator_function(
            self._parsed,
            core_schema.str_schema(max_length=64),
            serialization=core_schema.plain_serializer_function_ser_schema(
                format_duration, when_used="json"
            ),
        )
        return core_schema.nullable_schema(schema) if NoneType in get_args(source) else schema

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        made = {
            "type": "string",
            "minLength": 2,
            "maxLength": 64,
            "description": f"{self.description} A duration {self._bounds}.",
            "examples": ["90s", "25m", "PT1H30M"],
        }
        return _or_null(made) if schema["type"] == "nullable" else made

    @property
    def _bounds(self) -> str:
        return f"from {format_duration(self.shortest)} to {format_duration(self.longest)}"

    def _parsed(self, text: str) -> int:
        try:
            seconds = parse_duration(text)
        except InvalidFieldError as error:
            raise ValueError(error.message) from error
        if not self.shortest <= seconds <= self.longest:
            raise ValueError(f"must be {self._bounds}")
        return seconds


def compact_json(value: Any) -> str:
    """JSON without blanks and escapes."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def is_in_range(day: date) -> bool:
    """True if a day or an instant is in the years that requests may name."""
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


def _moment_text(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")


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


def _unique(values: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(values))


Flag = Annotated[bool, Field(strict=True)]
Moment = Annotated[
    datetime,
    BeforeValidator(_moment),
    PlainSerializer(_moment_text, return_type=str, when_used="json"),
    WithJsonSchema(_MOMENT),
]
Instant = Annotated[datetime, BeforeValidator(_instant), WithJsonSchema(_INSTANT)]
JsonText = Annotated[
    str,
    BeforeValidator(compact_json),
    PlainSerializer(json.loads, when_used="json"),
    WithJsonSchema({}),
    Field(json_schema_extra=lambda schema: schema.pop("default", None)),
]
"""Any JSON value: compact text inside, where 1 and true, which are equal in Python, differ."""

UniqueValues = AfterValidator(_unique)
"""Marks a tuple: of equal values the first is kept."""


class NullsAreDefaults:
    """Marks a dataclass as a member's type: null is the default of each of its own members that
    has another one, as if it were left out."""

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        names = defaulted(source)
        return core_schema.no_info_before_validator_function(
            lambda given: _without_nulls(given, names), handler(source)
        )

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        made = handler(schema)
        members = handler.resolve_ref_schema(made)["properties"]
        for name, member in members.items():
            if "default" in member and member["default"] is not None and "anyOf" not in member:
                members[name] = _or_null(member)
        return made


class Document(BaseModel):
    """The base of request bodies; unknown members are refused."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, json_schema_serialization_defaults_required=True
    )


class DefaultedDocument(Document):
    """Null is the default, as if the member were left out, of each that has one."""

    @model_validator(mode="before")
    @classmethod
    def _defaults_for_nulls(cls, given: Any) -> Any:
        return _without_nulls(given, defaulted(cls))

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        made = handler(schema)
        members = handler.resolve_ref_schema(made)["properties"]
        if handler.mode == "validation":
            for name in defaulted(cls):
                members[name] = _or_null(members[name])
        return made


@cache
def defaulted(declared: type[Any]) -> frozenset[str]:
    """The members with a default that is not null, by their names in JSON."""
    if is_dataclass(declared):
        return frozenset(
            each.name
            for each in fields(declared)
            if each.default_factory is not MISSING or each.default not in (MISSING, None)
        )
    return frozenset(
        field.alias or name
        for name, field in declared.model_fields.items()
        if not field.is_required() and field.get_default(call_default_factory=True) is not None
    )


def _without_nulls(given: Any, names: frozenset[str]) -> Any:
    if not isinstance(given, Mapping):
        return given
    return {name: value for name, value in given.items() if value is not None or name not in names}


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]}
