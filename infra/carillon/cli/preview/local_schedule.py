"""A schedule and its closed days, from the options of the command line."""

import json
import reprlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from enum import StrEnum
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from carillon.cli.instants import parse_instant, refuse_out_of_range
from carillon.errors import InvalidFieldError
from carillon.schedules import (
    DEFAULT_DST,
    CalendarRule,
    ClosedDays,
    Delay,
    DstRule,
    Fold,
    Gap,
    Schedule,
    parse_schedule,
    refuse_idle,
)
from carillon.schedules.zones.offsets import load_zone

LARGEST_COUNT = 10_000
"""Occurrences that one answer lists; `max_runs` has the same limit, the API's."""

FAR = datetime.max.replace(tzinfo=UTC)
_Choice = TypeVar("_Choice", bound=StrEnum)


class PreviewRequest(NamedTuple):
    """A request for a preview; `schedule` and `exceptions` are texts, or JSON forms.

    `after`, `start_at` and `end_at` are ISO 8601 texts, local time of `timezone` without an offset.
    `gap` and `fold` are the DST rule's texts. `max_runs` counts from `after` on. A tuple, since a
    batch makes one for each of its lines.
    """

    schedule: object
    timezone: str
    after: str
    limit: int
    start_at: str | None = None
    end_at: str | None = None
    max_runs: int | None = None
    exceptions: tuple[object, ...] = ()
    gap: str | None = None
    fold: str | None = None


def occurrences(request: PreviewRequest) -> Iterator[datetime]:
    """The first `limit` occurrences after `after`, in UTC; raises InvalidFieldError."""
    schedule = schedule_of(request)
    after = instant_of(request.after, request.timezone)
    limit = _whole_number(request.limit, "count")
    if request.max_runs is not None:
        limit = min(limit, _whole_number(request.max_runs, "max_runs"))
    return islice(schedule.between(after, FAR), limit)


@lru_cache(maxsize=4096)
def instant_of(after: str, timezone: str) -> datetime:
    """The UTC instant of `after`; raises InvalidFieldError on it, or on `timezone`."""
    return parse_instant(after, load_zone(timezone), "after")


def schedule_of(request: PreviewRequest) -> Schedule:
    """The schedule without regard to `max_runs`; raises InvalidFieldError."""
    given, exceptions = request.schedule, request.exceptions
    is_text = isinstance(given, str) and not exceptions
    key = given if is_text else json.dumps([given, exceptions], sort_keys=True)
    found = _compiled(
        key, is_text, request.timezone, request.start_at, request.end_at, request.gap, request.fold
    )  # fmt: skip
    if isinstance(found, InvalidFieldError):
        # A fresh one: raising the kept one again and again would grow its traceback.
        raise InvalidFieldError(found.field, found.message)
    if request.max_runs is not None and isinstance(found, Delay):
        raise InvalidFieldError("max_runs", "cannot be counted ahead for a delay after each finish")
    return found


def ending_after(request: PreviewRequest, schedule: Schedule) -> Schedule:
    """The schedule as a job has it: it ends with its `max_runs`-th occurrence."""
    if request.max_runs is None:
        return schedule
    most = _whole_number(request.max_runs, "max_runs")
    after = instant_of(request.after, request.timezone)
    runs = list(islice(schedule.between(after, FAR), most))
    if len(runs) < most:
        return schedule
    return schedule_of(request._replace(end_at=runs[-1].isoformat()))


def _whole_number(value: object, field: str) -> int:
    if type(value) is not int or not 1 <= value <= LARGEST_COUNT:
        raise InvalidFieldError(field, f"must be a whole number from 1 to {LARGEST_COUNT}")
    return value


@lru_cache(maxsize=4096)
def _compiled(
    key: str,
    is_text: bool,
    timezone: str,
    start_at: str | None,
    end_at: str | None,
    gap: str | None,
    fold: str | None,
) -> Schedule | InvalidFieldError:
    """The schedule, or why there is none: a batch repeats its mistakes as it does its schedules."""
    try:
        schedule, exceptions = (key, ()) if is_text else json.loads(key)
        zone = load_zone(timezone)
        start = None if start_at is None else parse_instant(start_at, zone, "start_at")
        end = None if end_at is None else parse_instant(end_at, zone, "end_at")
        dst = _dst_rule(gap, fold)
        parsed = parse_schedule(schedule, timezone, start, end, dst, exceptions)
        refuse_idle(parsed)
    except InvalidFieldError as error:
        return error
    return parsed


def _dst_rule(gap: str | None, fold: str | None) -> DstRule:
    if gap is None and fold is None:
        return DEFAULT_DST
    return DstRule(_choice(Gap, gap, "dst.gap"), _choice(Fold, fold, "dst.fold"))


def _choice(kind: type[_Choice], text: str | None, field: str) -> _Choice | None:
    try:
        return None if text is None else kind(text)
    except ValueError as error:
        wanted = ", ".join(kind)
        message = f"{reprlib.repr(text)} is none of {wanted}"
        raise InvalidFieldError(field, message) from error


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
