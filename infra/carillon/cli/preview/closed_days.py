"""A calendar in a file, for `carillon preview`: the API's form without iCalendar."""

import reprlib
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from carillon.cli.instants import refuse_out_of_range
from carillon.errors import InvalidFieldError
from carillon.schedules import CalendarRule, ClosedDays

_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MEMBERS = ("weekdays", "dates", "ranges", "description")


def closed_days_of(form: Any) -> ClosedDays:
    """The days of {"weekdays": ["sat"], "dates": [...], "ranges": [{"from", "to"}]}.

    Raises InvalidFieldError on `calendar`, `calendar.ranges[0].to`, ...
    """
    if not isinstance(form, Mapping):
        message = f"must be an object of {', '.join(_MEMBERS)}, not {reprlib.repr(form)}"
        raise InvalidFieldError("calendar", message)
    for member in form:
        if member not in _MEMBERS:
            message = f"is unknown: use {', '.join(_MEMBERS)}"
            raise InvalidFieldError(f"calendar.{member}", message)
    weekdays = {
        _weekday(name, f"calendar.weekdays[{number}]")
        for number, name in enumerate(_list(form, "weekdays"))
    }
    ranges = [_range(value, number) for number, value in enumerate(_list(form, "ranges"))]
    for number, value in enumerate(_list(form, "dates")):
        day = _date(value, f"calendar.dates[{number}]")
        ranges.append((day, day))
    return ClosedDays.of(weekdays, ranges)


def calendar_rule(text: str) -> CalendarRule:
    """Raises InvalidFieldError on `calendar.rule`."""
    try:
        return CalendarRule(text)
    except ValueError as error:
        message = f"{text!r} is none of {', '.join(CalendarRule)}"
        raise InvalidFieldError("calendar.rule", message) from error


def _list(form: Mapping[str, Any], member: str) -> Sequence[Any]:
    value = form.get(member, [])
    if not isinstance(value, list):
        raise InvalidFieldError(f"calendar.{member}", "must be a list")
    return value


def _weekday(name: object, field: str) -> int:
    wanted = name.lower() if isinstance(name, str) else ""
    for number, full in enumerate(_WEEKDAYS):
        if wanted in (full, full[:3]):
            return number
    raise InvalidFieldError(field, f"{reprlib.repr(name)} is no weekday such as sat or saturday")


def _range(value: object, number: int) -> tuple[date, date]:
    field = f"calendar.ranges[{number}]"
    if not isinstance(value, Mapping) or value.keys() != {"from", "to"}:
        raise InvalidFieldError(field, 'must be {"from": first day, "to": last day}')
    first, last = _date(value["from"], f"{field}.from"), _date(value["to"], f"{field}.to")
    if last < first:
        raise InvalidFieldError(f"{field}.to", f"lies before {first}, the first day")
    return first, last


def _date(value: object, field: str) -> date:
    try:
        day = date.fromisoformat(value if isinstance(value, str) else "")
    except ValueError as error:
        message = f"{reprlib.repr(value)} is no date such as 2026-12-25"
        raise InvalidFieldError(field, message) from error
    refuse_out_of_range(day, field)
    return day
