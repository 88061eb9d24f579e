"""A schedule under its job's calendar: which occurrences are sent, and which of them are open."""

from dataclasses import dataclass

from shared.domain.calendar import CalendarUse
from shared.recurrence import CalendarRule, ClosedDays, OnOpenDays, Recurrence, Schedule


@dataclass(frozen=True, slots=True)
class Resolved:
    """What a schedule comes to by one reading of its calendar.

    `sent` are the occurrences that a tick sends. Under the rule skip these are all nominal ones:
    the executor, which reads the calendar last, records those that it leaves out. Under the other
    rules they are the moved ones. `open` are the occurrences that are to run.
    """

    sent: Recurrence
    open: Recurrence


def rolls(use: CalendarUse | None) -> bool:
    """Whether a calendar moves occurrences to other days."""
    return use is not None and use.rule is not CalendarRule.SKIP


def resolve(schedule: Schedule, use: CalendarUse | None, closed: ClosedDays | None) -> Resolved:
    """The schedule under `use`; as if every day were open when `closed` is None."""
    if use is None or closed is None:
        return Resolved(schedule, schedule)
    on_open_days = OnOpenDays(schedule, closed, use.rule)
    return Resolved(on_open_days if rolls(use) else schedule, on_open_days)
