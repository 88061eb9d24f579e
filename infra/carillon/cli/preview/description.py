"""All that is to be known of a schedule before a job has it, computed here."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

from carillon.cli.instants import utc_text
from carillon.cli.output import notes_of, write_line, write_table
from carillon.cli.preview.local_schedule import (
    FAR,
    LARGEST_COUNT,
    PreviewRequest,
    ending_after,
    instant_of,
    schedule_of,
)
from carillon.schedules import (
    CalendarRule,
    ClosedDays,
    Delay,
    OnOpenDays,
    Recurrence,
    SlotKind,
    Slots,
    Window,
    parse_window,
    slots,
    spread_seconds,
)
from carillon.schedules.insight.cost import dollars_of_fires
from carillon.schedules.insight.rates import fires_per_month
from carillon.schedules.insight.sentence import sentence
from carillon.schedules.insight.warnings import transitions_affecting, warnings_of
from carillon.schedules.zones.offsets import load_zone

_LAST_FRACTION = 1 - 2**-48
"""The place in a window that no job's is beyond."""


@dataclass(frozen=True, slots=True)
class LocalCalendar:
    """A calendar of a file, and the rule for days that it has closed."""

    name: str
    closed: ClosedDays
    rule: CalendarRule


@dataclass(frozen=True, slots=True)
class Coming:
    """An occurrence: the UTC instant, what local clocks show, what a calendar does to it."""

    fire_at: datetime
    local: datetime
    note: str = ""

    def as_json(self) -> dict[str, str]:
        return {"fire_at": utc_text(self.fire_at), "local": self.local.isoformat()}


@dataclass(frozen=True, slots=True)
class Explanation:
    """The output of `carillon preview`.

    `warnings` and `transitions` are in the API's JSON forms. `window_seconds` is the largest
    offset that a job's own place in the window can give it; None without a window.
    """

    description: str
    occurrences: list[Coming]
    warnings: list[dict[str, Any]]
    transitions: list[dict[str, Any]]
    slots: Slots
    fires_per_month: int
    dollars_per_month: float
    window_seconds: int | None

    @property
    def entry_count(self) -> int:
        """The entries of one job on the wheel at a time; a dated one has its next only."""
        return 1 if self.slots.kind is SlotKind.DATED else len(self.slots.numbers)

    def as_json(self) -> dict[str, Any]:
        return {
            "description": self.description,
            "occurrences": [
                coming.as_json() | ({"note": coming.note} if coming.note else {})
                for coming in self.occurrences
            ],
            "warnings": self.warnings,
            "transitions": self.transitions,
            "slots": {"kind": self.slots.kind.value, "count": self.entry_count},
            "fires_per_month": self.fires_per_month,
            "dollars_per_month": round(self.dollars_per_month, 6),
            "window_seconds": self.window_seconds,
        }


def coming_of(request: PreviewRequest, calendar: LocalCalendar | None) -> list[Coming]:
    """The next `limit` occurrences on open days; raises InvalidFieldError.

    Those of a fixed delay that skips closed days are searched among 10,000.
    """
    schedule = ending_after(request, schedule_of(request))
    coming = _coming(request, schedule, calendar)
    if _skips_as_it_runs(schedule, calendar):
        looked_at = islice(coming, LARGEST_COUNT)
        coming = (one for one in looked_at if not one.note)
    return list(islice(coming, request.limit))


def explain(
    request: PreviewRequest, window: str | None, calendar: LocalCalendar | None
) -> Explanation:
    """The whole explanation; raises InvalidFieldError."""
    schedule = ending_after(request, schedule_of(request))
    fired = _fired(schedule, calendar)
    after = instant_of(request.after, request.timezone)
    spread = None if window is None else parse_window(window)
    rule = CalendarRule.SKIP if calendar is None else calendar.rule
    shifts = rule is not CalendarRule.SKIP
    largest = None
    if spread is not None:
        largest = spread_seconds(spread, schedule, _LAST_FRACTION, shifts=shifts)
    fires = fires_per_month(fired, after)
    return Explanation(
        description=_description(schedule, spread, calendar),
        occurrences=list(islice(_coming(request, schedule, calendar), request.limit)),
        warnings=[
            {"code": warning.code.value, "message": warning.message}
            for warning in warnings_of(fired, after)
        ],
        transitions=[
            {
                "transition_at": utc_text(touched.transition_at),
                "kind": touched.kind,
                "local_from": touched.local_from.isoformat(),
                "local_until": touched.local_until.isoformat(),
                "count": touched.count,
                "first_local": touched.first_local.isoformat(),
                "effect": touched.effect,
            }
            for touched in transitions_affecting(fired, after)
        ],
        slots=slots(schedule, largest or 0, shifts=rule is CalendarRule.PREVIOUS_BUSINESS_DAY),
        fires_per_month=fires,
        dollars_per_month=dollars_of_fires(fires),
        window_seconds=largest,
    )


def write_explanation(explanation: Explanation) -> None:
    """For people: the sentence, the table, what the clocks do to it, and what it takes."""
    write_line(explanation.description)
    write_line("")
    _write_occurrences(explanation.occurrences)
    write_line("")
    notes = list(notes_of(explanation.as_json()))
    for note in notes:
        write_line(note)
    if notes:
        write_line("")
    if explanation.window_seconds is not None:
        write_line(f"window            starts at most {explanation.window_seconds} s later")
    count = explanation.entry_count
    entries = f"{count} {'entry' if count == 1 else 'entries'}"
    write_line(f"on the wheel      {entries} ({explanation.slots.kind.value})")
    write_line(f"fires per month   {explanation.fires_per_month:,}")
    write_line(f"cost per month    {_dollars(explanation.dollars_per_month)}")


def _write_occurrences(occurrences: list[Coming]) -> None:
    if not occurrences:
        write_line("No occurrence is left.")
        return
    columns = ["fire_at", "local"]
    rows = [[coming.as_json()[column] for column in columns] for coming in occurrences]
    if any(coming.note for coming in occurrences):
        columns.append("note")
        rows = [[*row, coming.note] for row, coming in zip(rows, occurrences, strict=True)]
    write_table(columns, rows)


def _fired(schedule: Recurrence, calendar: LocalCalendar | None) -> Recurrence:
    """The occurrences that fire under the calendar."""
    return schedule if calendar is None else OnOpenDays(schedule, calendar.closed, calendar.rule)


def _coming(
    request: PreviewRequest, schedule: Recurrence, calendar: LocalCalendar | None
) -> Iterator[Coming]:
    """The coming occurrences, computed as they are asked for; for a fixed delay also those to be
    skipped."""
    zone = load_zone(request.timezone)
    fired = _fired(schedule, calendar)
    skips = _skips_as_it_runs(schedule, calendar)
    for instant in fired.between(instant_of(request.after, request.timezone), FAR):
        local = instant.astimezone(zone)
        note = ""
        if calendar is not None and skips:
            if local.date() in calendar.closed:
                note = f"{local.date()} is closed in calendar {calendar.name}"
        elif isinstance(fired, OnOpenDays) and (days := fired.moved_from(instant)):
            note = f"moved from {', '.join(map(str, days))}"
        yield Coming(instant, local, note)


def _skips_as_it_runs(schedule: Recurrence, calendar: LocalCalendar | None) -> bool:
    """True if occurrences on closed days come too: the next counts from a skipped one."""
    rule = None if calendar is None else calendar.rule
    return isinstance(schedule, Delay) and rule is CalendarRule.SKIP


def _description(
    schedule: Recurrence, window: Window | None, calendar: LocalCalendar | None
) -> str:
    use = None if calendar is None else (calendar.name, calendar.rule)
    return sentence(schedule, calendar=use, window=window)


def _dollars(dollars: float) -> str:
    if 0 < dollars < 0.01:
        return "less than $0.01"
    return f"up to ${dollars:,.2f}" if dollars else "nothing"
