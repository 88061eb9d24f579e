"""Calendars, and a schedule resolved under one."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated

from pydantic import Field

from carillon.domain.changes.change import KeptChange
from carillon.domain.spec.options import Cli
from carillon.schedules import At, Delay, OnOpenDays, Recurrence, Schedule
from carillon.schedules.base import seconds_down
from carillon.schedules.calendars.closed_days import MOST_SHIFTED_DAYS, CalendarRule, ClosedDays
from carillon.schedules.calendars.either import Either
from carillon.schedules.zones import offsets as zones

CalendarName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$", examples=["holidays"])]


@dataclass(frozen=True, slots=True)
class CalendarUse:
    """The calendar of yours that is followed, and the rule for occurrences on closed days."""

    name: Annotated[
        CalendarName, Cli("--calendar", "The name of the calendar whose days are closed.")
    ]
    rule: Annotated[
        CalendarRule,
        Cli("--calendar-rule", "On closed days: skip, next_business_day or previous_business_day."),
    ] = CalendarRule.SKIP


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
    last_change: KeptChange = field(default=None, compare=False)

    @property
    def closed(self) -> ClosedDays:
        return ClosedDays.of(self.weekdays, list(self.ranges))


_REACH = timedelta(days=MOST_SHIFTED_DAYS + 2)
_LONGEST_GAP = timedelta(hours=3)
_BEYOND_UTC = timedelta(hours=15)
"""A local day begins and ends this much earlier or later than that of UTC at most."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """The effect of a calendar on a schedule, by one reading of it.

    `sent` are the occurrences that a tick sends. They hold all nominal ones: the executor, which
    reads the calendar last, records or moves on those of closed days, so that none is lost however
    the calendar changes. Where they move to earlier days, the moved ones are sent too. `open` are
    the occurrences as they are to run. `missed` are those that an outage can leave out.
    """

    schedule: Schedule
    use: CalendarUse | None
    closed: ClosedDays | None
    sent: Recurrence
    open: Recurrence
    missed: Recurrence

    def landing(self, fire_at: datetime) -> datetime | None:
        """The instant at which the occurrence that is nominally at `fire_at` runs; None if not at
        all.

        Several, of local times that the clocks skip at once, are one, and run where the last would.
        """
        use, closed = self.use, self.closed
        if use is None or closed is None or local_date(self.schedule, fire_at) not in closed:
            return fire_at
        if use.rule is CalendarRule.SKIP:
            return None
        # The consequence of a run that has ended has no earlier day left.
        is_delay = isinstance(self.schedule, Delay)
        rule = CalendarRule.NEXT_BUSINESS_DAY if is_delay else use.rule
        alone = At(fire_at.astimezone(UTC), self.schedule.timezone, dst=self.schedule.dst)
        around = OnOpenDays(alone, closed, rule).between(fire_at - _REACH, fire_at + _REACH)
        found = next(around, None)
        if found is None or is_delay or has(self.open, found) or not has(self.schedule, fire_at):
            return found
        return self._by_local_time(fire_at, found)

    def first_to_run(self, after: datetime, last: datetime) -> datetime | None:
        """The first of the `missed` ones, after `after` and up to `last`, that runs by `last`.

        `last` is the end of an outage, so that a run by then is late.
        """
        use, closed = self.use, self.closed
        if use is None or closed is None or use.rule is not CalendarRule.NEXT_BUSINESS_DAY:
            return next(self.open.between(after, last), None)
        return self._first_to_land(closed, after, last)

    def _first_to_land(
        self, closed: ClosedDays, after: datetime, last: datetime
    ) -> datetime | None:
        """The same under a calendar that moves occurrences to later days.

        Of a closed day no more is looked at once the others there land later still: where they are
        many, each look would take as long as an outage lasts.
        """
        beyond = last + _LONGEST_GAP
        at = after
        while (following := next(self.schedule.between(at, last), None)) is not None:
            at, landing = following, self.landing(following)
            if landing is not None and landing <= last:
                return at
            day = local_date(self.schedule, at)
            target = closed.open_day_from(day, CalendarRule.NEXT_BUSINESS_DAY)
            is_near = target is not None and target <= local_date(self.schedule, beyond)
            if not is_near or (landing is not None and landing > beyond):
                at = max(at, _end_of(day, self.schedule))
        return None

    def open_between(self, begin: datetime, end: datetime, since: datetime) -> Iterator[datetime]:
        """The `open` ones in (begin, end] but for those of `since` or before."""
        between = self.open.between(begin, end)
        return (fire_at for fire_at in between if not self.is_of_before(fire_at, since))

    def is_of_before(self, fire_at: datetime, since: datetime) -> bool:
        """True if one of the `open` ones after `since` is there from then or before alone, moved
        from closed days."""
        if shifts_back(self.use) or fire_at > since + _REACH or has(self.schedule, fire_at):
            return False
        return not any(self.moved_to(fire_at, since, fire_at))

    def moved_to(self, instant: datetime, after: datetime, until: datetime) -> Iterator[datetime]:
        """The nominal times in (after, until] of the occurrences of closed days that run at this
        instant."""
        assert isinstance(self.open, OnOpenDays)
        for day in self.open.moved_from(instant):
            begin = datetime.combine(day, time(), UTC) - _BEYOND_UTC
            end = min(begin + timedelta(days=1) + 2 * _BEYOND_UTC, until)
            begin = max(begin, after)
            for nominal_at in self.schedule.between(begin, end) if begin < end else ():
                if self.landing(nominal_at) == instant:
                    yield nominal_at

    def is_moved_to(self, fire_at: datetime) -> bool:
        """True if an occurrence of a later day is moved to this instant."""
        return (
            shifts_back(self.use)
            and isinstance(self.open, OnOpenDays)
            and bool(self.open.moved_from(fire_at))
        )

    def _by_local_time(self, fire_at: datetime, near: datetime) -> datetime:
        """The landing place of an occurrence whose nominal local time the clocks do not show at
        `fire_at`."""
        assert isinstance(self.open, OnOpenDays)
        day = local_date(self.schedule, fire_at)
        around = self.open.between(near - _LONGEST_GAP, near + _LONGEST_GAP)
        found = [instant for instant in around if day in self.open.moved_from(instant)]
        return max((instant for instant in found if instant <= near), default=near)


def shifts(use: CalendarUse | None) -> bool:
    """True if a calendar moves occurrences to other days."""
    return use is not None and use.rule is not CalendarRule.SKIP


def shifts_back(use: CalendarUse | None) -> bool:
    """True if a calendar moves occurrences to earlier days: these are sent besides the nominal
    ones, and so indexed by time of day."""
    return use is not None and use.rule is CalendarRule.PREVIOUS_BUSINESS_DAY


def resolve(schedule: Schedule, use: CalendarUse | None, closed: ClosedDays | None) -> Resolved:
    """The schedule under `use`; as if every day were open when `closed` is None."""
    if use is None or closed is None:
        return Resolved(schedule, use, None, schedule, schedule, schedule)
    moved = OnOpenDays(schedule, closed, use.rule)
    if not shifts_back(use):
        return Resolved(schedule, use, closed, schedule, moved, schedule)
    sent = moved if isinstance(schedule, Delay) else Either(schedule, moved)
    return Resolved(schedule, use, closed, sent, moved, moved)


def has(occurrences: Recurrence, instant: datetime) -> bool:
    """True if one of them is at exactly this instant, a whole second."""
    return occurrences.has(seconds_down(instant))


def local_date(schedule: Schedule, instant: datetime) -> date:
    """The day that the clocks of the schedule's zone show."""
    return instant.astimezone(zones.load_zone(schedule.timezone)).date()


def _end_of(day: date, schedule: Schedule) -> datetime:
    """The last second of a local day."""
    midnight = datetime.combine(day, time(), zones.load_zone(schedule.timezone))
    return (midnight + timedelta(days=1)).astimezone(UTC) - timedelta(seconds=1)
