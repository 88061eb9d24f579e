"""From the schedule fields of a request to a schedule with its end, and a job's window."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice

from carillon.api.schedules.request_models import ScheduleFields
from carillon.errors import InvalidFieldError
from carillon.schedules import (
    Combined,
    Delay,
    Schedule,
    parse_schedule,
    parse_window,
    spread_seconds,
)

LAST_COUNTED = datetime(2199, 12, 31, 23, 59, 59, tzinfo=UTC)
"""Beyond the last year that EventBridge's cron knows, runs are not counted: there is no end."""


@dataclass(frozen=True, slots=True)
class Scheduling:
    """`schedule` ends at the earlier of `end_at`, which the request said, and the last run that
    its `max_runs` allows."""

    schedule: Schedule
    end_at: datetime | None
    max_runs: int | None


def scheduling_of(form: ScheduleFields, counted_from: datetime) -> Scheduling:
    """The schedule of a request; runs are counted from the occurrence after `counted_from`.

    Raises InvalidFieldError, as `parse_schedule` does.
    """
    schedule = _parsed(form, form.end_at)
    end_at = schedule.end_at
    if form.max_runs is None:
        return Scheduling(schedule, end_at, None)
    if isinstance(schedule, Delay):
        raise InvalidFieldError(
            "max_runs", "cannot be counted ahead for a fixed delay: use end_at, or every without it"
        )
    last_at = _occurrence_number(form.max_runs, schedule, counted_from)
    if last_at is not None and last_at != end_at:
        schedule = _parsed(form, last_at)
    return Scheduling(schedule, end_at, form.max_runs)


def is_same(form: ScheduleFields, other: ScheduleFields) -> bool:
    """Whether two requests say the same, however they spell it."""
    return form.max_runs == other.max_runs and _parsed(form, form.end_at) == _parsed(
        other, other.end_at
    )


def refuse_finished(schedule: Schedule, end_at: datetime | None, now: datetime) -> None:
    """Raises InvalidFieldError for a schedule without an occurrence after `now`."""
    if schedule.next(now.replace(microsecond=0)) is not None:
        return
    if end_at is not None and end_at <= now:
        raise InvalidFieldError("end_at", "is past: no occurrence is left after now")
    last = schedule.previous(now + timedelta(seconds=1))
    word = "last" if schedule.is_recurring else "only"
    past = "" if last is None else f": the {word} one, {last:%Y-%m-%dT%H:%M:%SZ}, is past"
    raise InvalidFieldError("schedule", f"has no occurrence after now{past}")


def offset_seconds(
    window: str | None, schedule: Schedule, fraction: float, rolls: bool
) -> tuple[str, int]:
    """The canonical text of a window, "" for none, and the offset at a place in [0, 1) of it.

    `rolls`: a calendar moves occurrences to other days, nearer to others. Raises
    InvalidFieldError on `window`.
    """
    if not window:
        return "", 0
    parsed = parse_window(window)
    return parsed.text, spread_seconds(parsed, schedule, fraction, rolls=rolls)


def spoken(schedule: Schedule) -> tuple[str | list[str], list[str]]:
    """The `schedule` and the `except` of a request that would give this one."""
    if not isinstance(schedule, Combined):
        return schedule.text, []
    members = [member.text for member in schedule.schedules]
    exceptions = [exception.text for exception in schedule.exceptions]
    return (members[0] if len(members) == 1 else members), exceptions


def _parsed(form: ScheduleFields, end_at: datetime | None) -> Schedule:
    said = form.schedule_values
    return parse_schedule(
        said["schedule"],
        said["timezone"],
        said["start_at"],
        end_at,
        said["dst"],
        tuple(said["except"]),
    )


def _occurrence_number(number: int, schedule: Schedule, after: datetime) -> datetime | None:
    """The n-th occurrence after an instant; None when there are not so many."""
    return next(islice(schedule.between(after, LAST_COUNTED), number - 1, None), None)
