"""Calendars: named sets of closed days of an owner, shared by that owner's jobs."""

from dataclasses import dataclass
from datetime import date, datetime

from carillon.schedules.calendars.closed_days import CalendarRule, ClosedDays


@dataclass(frozen=True, slots=True)
class CalendarUse:
    """Which of its owner's calendars a job follows, and how."""

    name: str
    rule: CalendarRule


@dataclass(frozen=True, slots=True)
class Calendar:
    """A calendar row, whole; a change is a new value with the next revision.

    `weekdays` (0 is Monday) and `ranges` (first and last date, as given) are closed.
    """

    owner: str
    name: str
    revision: int
    weekdays: frozenset[int]
    ranges: tuple[tuple[date, date], ...]
    created_at: datetime
    updated_at: datetime
    description: str = ""

    @property
    def closed(self) -> ClosedDays:
        return ClosedDays.of(self.weekdays, list(self.ranges))
