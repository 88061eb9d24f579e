"""The beat schedule of a Celery app; its tasks stay behind.

Celery is imported by the app itself, not here: its schedules are told apart by what they have.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta, tzinfo
from typing import Any

from carillon.errors import InvalidFieldError
from carillon.importers.cron_fields import CronFields
from carillon.importers.entries import Entry, Json, Note
from carillon.importers.python_values import arguments_of, interval_text, zone_name
from carillon.importers.stubs import Stubs

_NAMES = ("beat_schedule", "CELERY_BEAT_SCHEDULE", "CELERYBEAT_SCHEDULE")
_ZONES = ("timezone", "CELERY_TIMEZONE")
_CRONTAB = ("minute", "hour", "day_of_week", "day_of_month", "month_of_year")
_KNOWN = frozenset({"task", "schedule", "args", "kwargs", "options", "relative"})


@dataclass(frozen=True, slots=True)
class CelerySchedule:
    """The entries of beat by name, and the time zone of their crontabs."""

    entries: Mapping[str, Any]
    timezone: str


def schedule_of(found: Any, reference: str) -> CelerySchedule:
    """The schedule of an app, of its settings (a module or an object), or the mapping itself.

    Raises InvalidFieldError where there is none.
    """
    finalize = getattr(found, "finalize", None)
    if callable(finalize):
        finalize()  # as beat does: some apps add their periodic tasks only then
    settings = getattr(found, "conf", found)
    entries = settings if _is_schedule(settings) else _first(settings, _NAMES)
    if not isinstance(entries, Mapping) or not entries:
        message = f"{reference} has no {_NAMES[0]}: name an app, its settings, or the mapping"
        raise InvalidFieldError("conf", message)
    zones = (getattr(found, name, None) for name in (() if entries is settings else _ZONES))
    # A module may have imported something else that is called `timezone`.
    zone = next((zone for zone in zones if zone and isinstance(zone, str | tzinfo)), None)
    return CelerySchedule(entries, zone_name(zone))


def _is_schedule(found: Any) -> bool:
    return type(found) is dict and all(isinstance(entry, Mapping) for entry in found.values())


def _first(settings: Any, names: tuple[str, ...]) -> Any:
    found = (getattr(settings, name, None) for name in names)
    return next((value for value in found if value), None)


def celery_entries(schedule: CelerySchedule, stubs: Stubs) -> Iterator[Entry]:
    """An entry for each of beat's."""
    for name, entry in schedule.entries.items():
        place = f"beat_schedule[{name!r}]"
        try:
            yield _entry(place, str(name), _members(entry), schedule.timezone, stubs)
        except InvalidFieldError as error:
            yield Entry.left_out(place, error.field, error.message)


def _members(entry: Any) -> Mapping[str, Any]:
    if isinstance(entry, Mapping):
        return entry
    return {name: getattr(entry, name) for name in _KNOWN if hasattr(entry, name)}


def _entry(place: str, name: str, entry: Mapping[str, Any], zone: str, stubs: Stubs) -> Entry:
    task = entry.get("task")
    if not task:
        raise InvalidFieldError("task", "is missing")
    times, notes = _times(entry.get("schedule"), zone)
    arguments, more = arguments_of(entry.get("args") or (), entry.get("kwargs") or {})
    called, note, stub = stubs.target(str(task), f"the Celery task {task}", arguments)
    options = entry.get("options") or {}
    lost = [Note(f"options.{key}", f"not carried over: {options[key]!r}") for key in options]
    unknown = sorted(set(entry) - _KNOWN)
    lost += [Note(str(key), f"not carried over: {entry[key]!r}") for key in unknown]
    body: Json = {**times, **called, "retry": {"max_attempts": 1}}
    return Entry(place, name, body, (*notes, note, *more, *lost), stub)


def _times(schedule: Any, zone: str) -> tuple[Json, list[Note]]:
    if all(isinstance(getattr(schedule, name, None), set | frozenset) for name in _CRONTAB):
        members = CronFields(
            minutes=schedule.minute,
            hours=schedule.hour,
            days=schedule.day_of_month,
            months=schedule.month_of_year,
            weekdays=schedule.day_of_week,
        ).members
        return (members if zone == "UTC" else {**members, "timezone": zone}), []
    if hasattr(schedule, "event") and hasattr(schedule, "lat"):
        message = f"follows the sun ({schedule.event} at {schedule.lat}, {schedule.lon})"
        raise InvalidFieldError("schedule", f"{message}, and nothing here does")
    every = getattr(schedule, "run_every", schedule)
    if isinstance(every, int | float) and not isinstance(every, bool):
        try:
            every = timedelta(seconds=every)
        except (OverflowError, ValueError) as error:
            raise InvalidFieldError("schedule", f"{every} s is no interval: {error}") from error
    if not isinstance(every, timedelta):
        raise InvalidFieldError("schedule", f"{schedule!r} is of no known kind")
    return {"schedule": interval_text(every)}, [
        Note("schedule", "Celery counts from the last run, Carillon from the epoch, or start_at")
    ]
