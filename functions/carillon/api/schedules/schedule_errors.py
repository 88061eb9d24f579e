"""Every error of a request's schedule fields at once, beside those of its other fields."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from carillon.errors import InvalidFieldError
from carillon.schedules import DEFAULT_DST, parse_schedule

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
