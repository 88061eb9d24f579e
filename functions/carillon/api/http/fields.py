"""Paths of pydantic's errors, instants as parameters, and the form of a page."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, WithJsonSchema

from carillon.schedules.zones.offsets import load_zone
from carillon.stores.ports import Page

_Item = TypeVar("_Item")

MOST_ERRORS = 50
"""The answer names this many wrong fields at most, the first ones."""

LONGEST_PATH_CHARACTERS = 200

_WHOLE = frozenset({"schedule", "except", "payload"})
"""Fields whose inner structure is not pydantic's matter: what it appends is its own wording."""

_TAGGED = frozenset({"target", "on_success", "on_failure", "to"})
"""Fields distinguished by a member `type`: pydantic inserts its value into the path."""


def field_errors(
    errors: Sequence[Mapping[str, Any]], prefixed: bool = False
) -> list[tuple[str, str]]:
    """Pairs of path and message; `prefixed` paths begin with where: body, query, path, header."""
    return [_field_error(error, prefixed) for error in errors[:MOST_ERRORS]]


def _field_error(error: Mapping[str, Any], prefixed: bool) -> tuple[str, str]:
    location = list(error["loc"])[1 if prefixed else 0 :]
    if location and location[0] in _WHOLE:
        del location[1:]
    if location and location[0] in _TAGGED:
        del location[1:2]
        if location[1:2] == ["headers"]:
            # Of the forms of a header's value, too.
            del location[3:4]
    if location[-1:] == ["[key]"]:
        location.pop()
    if error["type"] in ("union_tag_not_found", "union_tag_invalid"):
        location.append("type")
    return (_path(location) or "body")[:LONGEST_PATH_CHARACTERS], _message(error)


def _path(location: Sequence[object]) -> str:
    """Members after dots, places in a list in brackets: `ranges[3].to`."""
    path = ""
    for part in location:
        if isinstance(part, int):
            path += f"[{part}]"
        else:
            path += f".{part}" if path else str(part)
    return path


def _message(error: Mapping[str, Any]) -> str:
    context = error.get("ctx") or {}
    match error["type"]:
        case "model_attributes_type" | "model_type" | "dict_type" | "dataclass_type":
            return "must be an object"
        case "missing":
            return "is required"
        case "extra_forbidden":
            return "is not a known field"
        case "union_tag_not_found":
            return "is required"
        case "union_tag_invalid":
            return f"should be one of {context['expected_tags']}"
        case "value_error":
            return str(context["error"])
    message = str(error["msg"])
    return message.removeprefix("Input ").removeprefix("String ").removeprefix("Value ")


def instant_text(instant: datetime) -> str:
    """ISO 8601 in UTC with Z; milliseconds only where there are any."""
    precision = "milliseconds" if instant.microsecond >= 1000 else "seconds"
    return instant.astimezone(UTC).replace(tzinfo=None).isoformat(timespec=precision) + "Z"


def local_text(instant: datetime, timezone: str) -> str:
    """ISO 8601 as clocks in the zone show it, with their offset."""
    return instant.astimezone(load_zone(timezone)).isoformat(timespec="seconds")


UtcTime = Annotated[
    datetime,
    PlainSerializer(instant_text, return_type=str),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]


LocalTime = Annotated[
    datetime,
    PlainSerializer(lambda instant: instant.isoformat(timespec="seconds"), return_type=str),
    WithJsonSchema({"type": "string"}),
]


class SameForm(BaseModel):
    """Shows a value of the domain whose attributes have the names of its members."""

    model_config = ConfigDict(from_attributes=True)

    @classmethod
    def of(cls, shown: object) -> Self:
        return cls.model_validate(shown)


class UnreadableForm(BaseModel):
    """A row that is left out since it cannot be read: of a bug, or of a later version. `id` is that
    of the item; of a run its key in the store."""

    id: str
    reason: str


class ListForm(BaseModel):
    """`next_cursor` is null on the last page."""

    next_cursor: str | None
    unreadable: list[UnreadableForm] = Field(
        default_factory=list, description="Rows of the page that cannot be read, left out."
    )

    @classmethod
    def of_page(cls, page: Page[_Item], form_of: Callable[[_Item], BaseModel]) -> Self:
        items = [form_of(item) for item in page.items]
        return cls.model_validate({"items": items, **rest_of(page)})


def rest_of(page: Page[Any]) -> dict[str, Any]:
    """The members of a list's form besides its items."""
    unreadable = [UnreadableForm(id=each, reason=why) for each, why in page.unreadable.items()]
    return {"next_cursor": page.next_cursor, "unreadable": unreadable}
