"""From pydantic's errors to a field's path in the request and words about it."""

from collections.abc import Mapping, Sequence
from typing import Any

MOST_ERRORS = 50
"""A request with more is told of the first ones."""

LONGEST_PATH_CHARACTERS = 200

_WHOLE = frozenset({"schedule", "except", "payload"})
"""Fields whose inner structure is not pydantic's matter: what it appends is its own wording."""

_TAGGED = frozenset({"target", "on_success", "on_failure"})
"""Fields told apart by a member `type`: pydantic inserts its value into the path."""


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
