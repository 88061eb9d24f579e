"""Values of other people's Python programs, in the forms that a job has."""

import json
from collections.abc import Mapping
from datetime import timedelta, tzinfo
from typing import Any

from carillon.errors import InvalidFieldError
from carillon.importers.entries import Json, Note
from carillon.schedules import format_duration


def zone_name(zone: Any) -> str:
    """The name of a time zone in any of the ways to have one; UTC for none."""
    if isinstance(zone, tzinfo):
        return str(getattr(zone, "key", None) or getattr(zone, "zone", None) or zone)
    return str(zone or "UTC")


def interval_text(every: timedelta) -> str:
    """`every` so long; raises InvalidFieldError for parts of a second."""
    if every.microseconds or every < timedelta(seconds=1):
        message = f"every {every.total_seconds():g} s: only whole seconds can be told"
        raise InvalidFieldError("schedule", message)
    return f"every {format_duration(int(every.total_seconds()))}"


def arguments_of(args: Any, kwargs: Any) -> tuple[Json, list[Note]]:
    """The arguments of a call as a payload; a note where they have no form in JSON."""
    given: Json = {}
    notes: list[Note] = []
    for name, value in (("args", args), ("kwargs", kwargs)):
        if not value:
            continue
        try:
            given[name] = _as_json(list(value) if name == "args" else value)
        except ValueError as error:
            notes.append(Note(name, f"not carried over, as JSON has no form for it: {error}"))
    return given, notes


def _as_json(value: Any) -> Any:
    """The value in JSON's types, tuples as lists; raises ValueError for what has no such form."""
    try:
        text = json.dumps(value, allow_nan=False)
    except (TypeError, RecursionError) as error:
        raise ValueError(str(error)) from error
    found = json.loads(text)
    if _keys(value) != _keys(found):
        raise ValueError("a key of a mapping is not text")
    return found


def _keys(value: Any) -> list[Any]:
    """The keys of all mappings in a value: JSON makes text of numbers."""
    if isinstance(value, Mapping):
        return [*value, *(key for inner in value.values() for key in _keys(inner))]
    if isinstance(value, list | tuple):
        return [key for inner in value for key in _keys(inner)]
    return []
