"""Preview of a schedule: its occurrences, rates and cost; the schedule of a request."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice

from carillon.api.calendars.models import CalendarChoice
from carillon.api.http.fields import local_text
from carillon.api.schedules.outlook import FAR, closed_note, last_of, moved_note
from carillon.api.schedules.request_models import PreviewBody
from carillon.api.schedules.response_models import (
    PreviewedForm,
    PreviewForm,
    SlotsForm,
    TransitionForm,
    WarningForm,
)
from carillon.clock import Clock
from carillon.domain.calendar import Calendar
from carillon.domain.spec.schedule_spec import ScheduleSpec, canonical_members
from carillon.errors import InvalidFieldError
from carillon.schedules import (
    NEVER,
    CalendarRule,
    ClosedDays,
    Delay,
    OnOpenDays,
    Recurrence,
    Schedule,
    SlotKind,
    slots,
    spread_seconds,
)
from carillon.schedules.insight.cost import dollars_of_fires
from carillon.schedules.insight.rates import fires_per_month
from carillon.schedules.insight.sentence import sentence
from carillon.schedules.insight.warnings import (
    transitions_affecting,
    warnings_of,
)
from carillon.schedules.placement.window import parse_window
from carillon.schedules.zones.offsets import load_zone
from carillon.stores.ports import VersionedRows

LAST_COUNTED = datetime(2199, 12, 31, 23, 59, 59, tzinfo=UTC)
"""Beyond the last year that EventBridge's cron knows, runs are not counted: there is no end."""


@dataclass(frozen=True, slots=True)
class Scheduling:
    """`schedule` ends at the earlier of `end_at`, from the request, and the last run that its
    `max_runs` allows."""

    schedule: Schedule
    end_at: datetime | None
    max_runs: int | None


def scheduling_of(form: ScheduleSpec, counted_from: datetime) -> Scheduling:
    """The schedule of a request; runs are counted from the occurrence after `counted_from`.

    Raises InvalidFieldError, as `parse_schedule` does.
    """
    schedule = form.parsed(form.end_at)
    end_at = schedule.end_at
    if form.max_runs is None:
        return Scheduling(schedule, end_at, None)
    if isinstance(schedule, Delay):
        raise InvalidFieldError(
            "max_runs", "cannot be counted ahead for a fixed delay: use end_at, or every without it"
        )
    last_at = _occurrence_number(form.max_runs, schedule, counted_from)
    # The last that it has needs no end: new rules of its zone may move it to a later instant.
    if last_at is not None and last_at != end_at and schedule.next(last_at) is not None:
        schedule = form.parsed(last_at)
    return Scheduling(schedule, end_at, form.max_runs)


def is_same(form: ScheduleSpec, other: ScheduleSpec) -> bool:
    """True if two requests mean the same, however they spell it."""
    return form.max_runs == other.max_runs and form.parsed(form.end_at) == other.parsed(
        other.end_at
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
    window: str | None, schedule: Schedule, fraction: float, shifts: bool
) -> tuple[str | None, int]:
    """The canonical text of a window, and the offset at a place in [0, 1) of it.

    `shifts`: a calendar moves occurrences to other days, nearer to others. Raises
    InvalidFieldError on `window`.
    """
    if not window:
        return None, 0
    parsed = parse_window(window)
    return parsed.text, spread_seconds(parsed, schedule, fraction, shifts=shifts)


def _occurrence_number(number: int, schedule: Schedule, after: datetime) -> datetime | None:
    """The n-th occurrence after an instant; None when there are fewer."""
    return next(islice(schedule.between(after, LAST_COUNTED), number - 1, None), None)


MOST_SKIPPED = 10
_MOST_READ = 1_000
"""The number of occurrences that are searched for skipped ones."""

_EARLIEST = "at the earliest: it counts from the end of the run before"

_LARGEST_FRACTION = 1 - 2**-48
"""The last place in a window that a job can have."""


@dataclass(frozen=True, slots=True)
class Report:
    """Facts worth knowing about a schedule within the year to come."""

    warnings: list[WarningForm]
    transitions: list[TransitionForm]


class PreviewService:
    """Nothing here writes; raises StoreUnavailableError when a calendar cannot be read."""

    def __init__(self, calendars: VersionedRows[Calendar], clock: Clock) -> None:
        self._calendars = calendars
        self._clock = clock

    def preview(self, owner: str, body: PreviewBody) -> PreviewForm:
        """The schedule of the body, under a calendar of the owner's; raises InvalidFieldError."""
        after = body.after or self._clock.now()
        scheduling = scheduling_of(body, after)
        schedule = scheduling.schedule
        choice = body.calendar
        opened: Recurrence = schedule
        shifts = shifts_back = False
        if choice is not None:
            opened = OnOpenDays(schedule, self._closed_days(owner, choice), choice.rule)
            shifts, shifts_back = opened.shifts, choice.rule is CalendarRule.PREVIOUS_BUSINESS_DAY
        window, window_seconds = offset_seconds(body.window, schedule, _LARGEST_FRACTION, shifts)
        name = "" if choice is None else choice.name or ""
        found = tuple(islice(opened.between(after, FAR), body.count))
        skipped = _skipped(opened, after, found, body.count)
        skipped_notes = ((at, closed_note(opened, at, name)) for at in skipped)
        wheel_slots = slots(schedule, window_seconds, shifts_back)
        # A job has but the next one of its dated entries on the wheel.
        entries = 1 if wheel_slots.kind is SlotKind.DATED else len(wheel_slots.numbers)
        fires = fires_per_month(opened, after)
        report = report_of(opened, after)
        members = {
            **canonical_members(schedule),
            "end_at": scheduling.end_at,
            "max_runs": scheduling.max_runs,
            "window": window,
            "window_seconds": window_seconds,
            "description": sentence(
                schedule,
                calendar=None if choice is None else (name or "given here", choice.rule),
                window=parse_window(window) if window else None,
            ),
            "occurrences": _listed(opened, _running(opened, found, name), window),
            "skipped": _listed(opened, skipped_notes, window),
            "ends_at": last_of(schedule),
            "warnings": report.warnings,
            "transitions": report.transitions,
            "slots": SlotsForm(kind=wheel_slots.kind, count=entries),
            "fires_per_month": fires,
            "dollars_per_month": dollars_of_fires(fires),
        }
        return PreviewForm.model_validate(members)

    def _closed_days(self, owner: str, choice: CalendarChoice) -> ClosedDays:
        if choice.name is None:
            return choice.closed
        calendar = self._calendars.get(owner, choice.name)
        if calendar is None:
            raise InvalidFieldError(
                "calendar.name", f"you have no calendar {choice.name!r}: give its days here"
            )
        return calendar.closed


def report_of(schedule: Recurrence, after: datetime) -> Report:
    """The warnings, and the transitions of the year after an instant that affect the schedule. None
    about a job without fire times of its own."""
    if schedule == NEVER:
        return Report([], [])
    warnings = [WarningForm.of(each) for each in warnings_of(schedule, after)]
    transitions = [TransitionForm.of(each) for each in transitions_affecting(schedule, after)]
    return Report(warnings, transitions)


def _skipped(
    opened: Recurrence, after: datetime, found: tuple[datetime, ...], count: int
) -> Iterator[datetime]:
    """The first occurrences on closed days up to the last one that is listed.

    Of a rolling rule these are the few that find no open day; they are not searched.
    """
    if not isinstance(opened, OnOpenDays) or opened.shifts or isinstance(opened.base, Delay):
        return iter(())
    until = found[-1] if len(found) == count else FAR
    zone = load_zone(opened.base.timezone)
    looked_at = islice(opened.base.between(after, until), _MOST_READ)
    closed = (at for at in looked_at if at.astimezone(zone).date() in opened.closed)
    return islice(closed, MOST_SKIPPED)


def _running(
    opened: Recurrence, fire_times: Sequence[datetime], calendar: str
) -> Iterator[tuple[datetime, str | None]]:
    """Occurrences that run, each with its note; a fixed delay also comes by on closed days, where
    it is skipped.

    All but the first of a fixed delay follow from runs.
    """
    is_delay = isinstance(getattr(opened, "base", opened), Delay)
    for number, fire_at in enumerate(fire_times):
        if not is_delay:
            yield fire_at, moved_note(opened, fire_at, calendar)
            continue
        notes = [_EARLIEST if number else None, closed_note(opened, fire_at, calendar)]
        yield fire_at, "; ".join(filter(None, notes)) or None


def _listed(
    opened: Recurrence, noted: Iterable[tuple[datetime, str | None]], window: str | None
) -> list[PreviewedForm]:
    return [
        PreviewedForm(
            fire_at=fire_at,
            local=local_text(fire_at, opened.timezone),
            effective_at=None if window else fire_at,
            note=note,
        )
        for fire_at, note in noted
    ]
