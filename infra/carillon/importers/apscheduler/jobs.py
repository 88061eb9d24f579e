"""From a job of APScheduler 3 to ours; its function stays behind.

Triggers are told apart by the names of their classes: nothing of APScheduler is imported.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from carillon.domain.spec.fields import DAY_SECONDS
from carillon.errors import InvalidFieldError
from carillon.importers.cron_fields import CronFields
from carillon.importers.entries import Entry, Json, Note, second_of
from carillon.importers.python_values import arguments_of, interval_text, zone_name
from carillon.importers.stubs import Stubs
from carillon.schedules import format_duration

_RANDOM_ID = re.compile(r"[0-9a-f]{32}")
_LONGEST_GRACE_SECONDS = 14 * DAY_SECONDS
_MINUTE = 60
_BOUNDS = {
    "month": (1, 12),
    "day": (1, 31),
    "day_of_week": (0, 6),
    "hour": (0, 23),
    "minute": (0, 59),
    "second": (0, 59),
}
_LAST = 5
"""The option of a weekday's position that means the last one; others count from 0."""


def entry_of(state: Mapping[str, Any], stubs: Stubs) -> Entry:
    """The job that a state becomes, as APScheduler pickles it."""
    place = f"job {state['id']}"
    function = state.get("func")
    try:
        times, notes = _times(state["trigger"], state.get("next_run_time"))
    except InvalidFieldError as error:
        return Entry.left_out(place, error.field, error.message)
    arguments, more = arguments_of(state.get("args") or (), state.get("kwargs") or {})
    name = str(state.get("name") or function or state["id"])
    wanted = name if _RANDOM_ID.fullmatch(str(state["id"])) else str(state["id"])
    called, note, stub = stubs.target(
        str(function or name).replace(":", "."), f"the function {function or name}", arguments
    )
    if not function:
        more.append(Note("func", "has no name that can be imported, as a lambda or a local one"))
    policies, changed = _policies(state)
    if state.get("executor", "default") != "default":
        changed.append(Note("executor", f"not carried over: {state['executor']}"))
    body: Json = {**times, **called, **policies}
    if state.get("next_run_time", ...) is None:
        body["initial_state"] = "paused"
    return Entry(place, wanted, body, (*notes, *changed, note, *more), stub)


def _policies(state: Mapping[str, Any]) -> tuple[Json, list[Note]]:
    """Retries, lateness and overlap."""
    notes: list[Note] = []
    body: Json = {"retry": {"max_attempts": 1}}
    late, coalesce = state.get("misfire_grace_time", 1), bool(state.get("coalesce", True))
    if late is None:
        body["catch_up"] = "latest" if coalesce else "all"
    else:
        body["catch_up"] = "skip"
        grace = min(max(int(late), _MINUTE), _LONGEST_GRACE_SECONDS)
        body["grace"] = format_duration(grace)
        if grace != int(late):
            message = f"{late} s is {format_duration(grace)} here: from a minute to 14 days"
            notes.append(Note("misfire_grace_time", message))
        if coalesce:
            message = "of several within the grace APScheduler runs the last, Carillon each"
            notes.append(Note("coalesce", message))
    most = int(state.get("max_instances", 1))
    if most == 1:
        body["overlap"] = "skip"
    else:
        message = f"{most} at once are not bounded here; `concurrency` lets those above wait"
        notes.append(Note("max_instances", message))
    return body, notes


def _times(trigger: Any, next_run: datetime | None = None) -> tuple[Json, list[Note]]:
    kind = type(trigger).__name__
    match kind:
        case "CronTrigger":
            return _cron(trigger)
        case "IntervalTrigger":
            return _interval(trigger, next_run)
        case "DateTrigger":
            return {"schedule": f"at {second_of(trigger.run_date, up=True)}"}, []
        case "OrTrigger":
            return _union(trigger)
    raise InvalidFieldError("trigger", f"is {kind}, and nothing here is its equal: {trigger}")


def _interval(trigger: Any, next_run: datetime | None) -> tuple[Json, list[Note]]:
    members: Json = {"schedule": interval_text(trigger.interval)}
    # It counts from its last run, which `next_run_time` may have put beside those of the start.
    first = trigger.start_date if getattr(trigger, "jitter", None) else next_run
    first = first or trigger.start_date
    if first:
        # Its first run is at that instant, ours an interval after it.
        members["start_at"] = second_of(first - trigger.interval, up=True)
    if trigger.end_date:
        members["end_at"] = second_of(trigger.end_date, up=True)
    return _with_jitter(members, trigger)


def _union(trigger: Any) -> tuple[Json, list[Note]]:
    found = [_times(each) for each in trigger.triggers]
    beside = [{name: part[name] for name in part if name != "schedule"} for part, _ in found]
    if any("except" in rest or rest != beside[0] for rest in beside):
        message = "its parts have zones, starts or exceptions of their own: make each a job"
        raise InvalidFieldError("trigger", f"{message} ({trigger})")
    schedules: list[Any] = []
    for part, _ in found:
        said = part["schedule"]
        schedules += said if isinstance(said, list) else [said]
    members, notes = _with_jitter({**beside[0], "schedule": schedules}, trigger)
    return members, [*(note for _, more in found for note in more), *notes]


def _cron(trigger: Any) -> tuple[Json, list[Note]]:
    fields = {field.name: field.expressions for field in trigger.fields}
    if str(fields["week"][0]) != "*":
        raise InvalidFieldError("trigger", f"no schedule here counts weeks of the year: {trigger}")
    zone = zone_name(trigger.timezone)
    days = fields["day"]
    seconds = _numbers("second", fields["second"])
    members = CronFields(
        seconds=None if seconds == {0} else seconds,
        minutes=_numbers("minute", fields["minute"]),
        hours=_numbers("hour", fields["hour"]),
        days=_numbers("day", days),
        months=_numbers("month", fields["month"]),
        weekdays=frozenset((day + 1) % 7 for day in _numbers("day_of_week", fields["day_of_week"])),
        last_day=any(type(each).__name__ == "LastDayOfMonthExpression" for each in days),
        other_days=tuple(_positions(days)),
    ).members
    if zone != "UTC":
        members["timezone"] = zone
    years = _years(fields["year"])
    begin, end = trigger.start_date, trigger.end_date
    if years and (begin or end):
        raise InvalidFieldError("trigger", f"has years beside a start or an end: {trigger}")
    if years:
        members["start_at"] = f"{years[0]}-01-01T00:00:00"
        members["end_at"] = f"{years[1]}-12-31T23:59:59"
    if begin:
        members["start_at"] = second_of(begin, up=True)
    if end:
        members["end_at"] = second_of(end, up=False)
    return _with_jitter(members, trigger)


def _numbers(name: str, expressions: Any) -> frozenset[int]:
    """The numbers that a field's expressions name; those of other kinds are left."""
    low, high = _BOUNDS[name]
    found: set[int] = set()
    for each in expressions:
        kind = type(each).__name__
        if kind == "AllExpression":
            found.update(range(low, high + 1, each.step or 1))
        elif kind.endswith("RangeExpression"):
            last = high if each.last is None else each.last
            found.update(range(each.first, last + 1, each.step or 1))
    return frozenset(found)


def _positions(expressions: Any) -> Iterator[str]:
    for each in expressions:
        if type(each).__name__ == "WeekdayPositionExpression":
            day = (each.weekday + 1) % 7
            last = each.option_num == _LAST
            yield f"{day}L" if last else f"{day}#{each.option_num + 1}"


def _years(expressions: Any) -> tuple[int, int] | None:
    """The first and the last year; None for all."""
    each: Any = expressions[0] if len(expressions) == 1 else None
    kind = type(each).__name__
    if kind == "AllExpression" and not each.step:
        return None
    if kind == "RangeExpression" and not each.step:
        return each.first, each.last
    text = ",".join(map(str, expressions))
    raise InvalidFieldError("trigger", f"years that are no range cannot be told: {text}")


def _with_jitter(members: Json, trigger: Any) -> tuple[Json, list[Note]]:
    jitter = getattr(trigger, "jitter", None)
    if not jitter:
        return members, []
    message = "each job has one offset within the window, the same for all its occurrences"
    return {**members, "window": f"{int(jitter)}s"}, [Note("jitter", message)]
