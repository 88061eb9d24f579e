"""Facts worth knowing before a schedule is created: DST transitions that affect it, and
warnings."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from enum import StrEnum

from carillon.schedules.base import EPOCH, LAST_SECOND, Recurrence
from carillon.schedules.calendars.open_days import OnOpenDays
from carillon.schedules.insight.clock_changes import AffectingTransition, Effect, effects_of
from carillon.schedules.insight.rates import most_fires_per_day
from carillon.schedules.insight.words import listed, month_name, restrictions_of
from carillon.schedules.kinds.cron import Cron
from carillon.schedules.kinds.union import Union

__all__ = [
    "MANY_FIRES_A_DAY",
    "REPORTED",
    "AffectingTransition",
    "ScheduleWarning",
    "WarningCode",
    "transitions_affecting",
    "warnings_of",
]

MANY_FIRES_A_DAY = 1_440
REPORTED = timedelta(days=366)
"""Transitions are reported for a year ahead, counted as a leap year: what comes once a year is
never farther away."""

_YEAR_DAYS = 365
_LEAP_CYCLE_YEARS = 4
_MOST_TOLD = 2
_LAST_YEAR = 9_990
_LAST_INSTANT = EPOCH + timedelta(seconds=LAST_SECOND)


class WarningCode(StrEnum):
    """The closed list of warnings."""

    DST = "dst"
    """A time of day is skipped or moved, or a rule of the job's own makes it run twice."""
    MANY_FIRES = "many_fires"
    """More than MANY_FIRES_A_DAY."""
    DAY_OR_WEEKDAY = "day_or_weekday"
    """Both day fields are restricted, and either of them is enough."""
    DAY_AND_WEEKDAY = "day_and_weekday"
    """One day field begins with a star, so that both must match although both restrict."""
    NOT_EVERY_MONTH = "not_every_month"
    """As day 31: the months without it have no occurrence."""
    FAR_AWAY = "far_away"
    """No occurrence within a year."""


@dataclass(frozen=True, slots=True)
class ScheduleWarning:
    """`message` is one English sentence, or two, for people."""

    code: WarningCode
    message: str


def transitions_affecting(
    schedule: Recurrence, after: datetime, until: datetime | None = None
) -> list[AffectingTransition]:
    """The transitions in (after, until] that affect occurrences, ascending; until None: REPORTED.

    One that means different things to different occurrences is listed once for each.
    """
    return [touch.transition for touch in _affects(schedule, after, until)]


def _affects(schedule: Recurrence, after: datetime, until: datetime | None = None) -> list[Effect]:
    if until is None:
        # Not past what a datetime can hold.
        until = min(after, _LAST_INSTANT - REPORTED) + REPORTED
    return effects_of(schedule, after, until)


def warnings_of(schedule: Recurrence, after: datetime) -> list[ScheduleWarning]:
    """Warnings about a schedule that is to hold from `after` on."""
    found = [
        *_far_away(schedule, after),
        *_clock_changes(schedule, after),
        *_many_fires(schedule),
    ]
    base = schedule.base if isinstance(schedule, OnOpenDays) else schedule
    if isinstance(base, Cron):
        found += _of_days(base, after.date())
    elif isinstance(base, Union):
        for member in (*base.schedules, *base.exceptions):
            if isinstance(member, Cron):
                found += [
                    ScheduleWarning(warning.code, f'"{member.text}": {warning.message}')
                    for warning in _of_days(member, after.date())
                    if member in base.schedules or warning.code is not WarningCode.NOT_EVERY_MONTH
                ]
    return found


def _far_away(schedule: Recurrence, after: datetime) -> Iterator[ScheduleWarning]:
    first = schedule.next(after)
    if first is None:
        yield ScheduleWarning(
            WarningCode.FAR_AWAY, f"There is no occurrence after {after:%Y-%m-%d}."
        )
    elif first - after > REPORTED:
        days = (first - after).days
        yield ScheduleWarning(
            WarningCode.FAR_AWAY,
            f"The next occurrence is as far away as {first:%Y-%m-%d}, in {days:,} days.",
        )


def _clock_changes(schedule: Recurrence, after: datetime) -> Iterator[ScheduleWarning]:
    effects = [
        touch.transition.effect for touch in _affects(schedule, after) if not touch.is_expected
    ]
    if effects:
        more = len(effects) - _MOST_TOLD
        told = ". ".join(effects[:_MOST_TOLD]) + (f". And {more} more" if more > 0 else "")
        yield ScheduleWarning(
            WarningCode.DST, f"Within a year, clocks in {schedule.timezone} change: {told}."
        )


def _many_fires(schedule: Recurrence) -> Iterator[ScheduleWarning]:
    fires = most_fires_per_day(schedule)
    if fires > MANY_FIRES_A_DAY:
        exactly = isinstance(schedule, Cron) and schedule.rule.days.is_every_day
        most = "" if exactly else "up to "
        yield ScheduleWarning(WarningCode.MANY_FIRES, f"It fires {most}{fires:,} times a day.")


def _of_days(cron: Cron, today: date) -> Iterator[ScheduleWarning]:
    month_days, week_days = restrictions_of(cron.rule.days)
    if month_days is not None and week_days is not None:
        # Only the unix dialect can restrict both: its last five fields are these.
        _, _, month_day, _, week_day = cron.expression.split()[-5:]
        fields = f"Day-of-month {month_day} and day-of-week {week_day} both restrict"
        count = f"it fires on {_days_of_year(cron, today)} days of the next {_YEAR_DAYS}"
        if cron.rule.days.needs_both:
            yield ScheduleWarning(
                WarningCode.DAY_AND_WEEKDAY,
                f"{fields}, and since one begins with a star, a day must match both: {count}.",
            )
            return
        yield ScheduleWarning(
            WarningCode.DAY_OR_WEEKDAY,
            f"{fields}, and a day that matches either is enough: {count}.",
        )
    yield from _months_without(cron, today)


def _days_of_year(cron: Cron, today: date) -> int:
    first = min(today, _LAST_INSTANT.date() - timedelta(days=_YEAR_DAYS))
    return sum(cron.rule.matches_day(first + timedelta(days=n)) for n in range(_YEAR_DAYS))


def _months_without(cron: Cron, today: date) -> Iterator[ScheduleWarning]:
    """Of the first year in which some months have an occurrence, and others do not."""
    days = cron.rule.days
    if days.is_every_day or today.year > _LAST_YEAR:
        return
    # This year comes last: the months named should lie ahead.
    for year in (*range(today.year + 1, today.year + 1 + _LEAP_CYCLE_YEARS), today.year):
        empty = [month for month in sorted(days.months) if not _has_day(cron, year, month)]
        if not empty or len(empty) == len(days.months):
            continue
        count = "has" if len(empty) == 1 else "have"
        remedy = '. "L" is the last day of every month' if _is_late(cron) else ""
        yield ScheduleWarning(
            WarningCode.NOT_EVERY_MONTH,
            f"{listed([month_name(month) for month in empty])} {year} {count} no such day, and no "
            f"occurrence{remedy}.",
        )
        return


def _has_day(cron: Cron, year: int, month: int) -> bool:
    first = date(year, month, 1)
    days = (first + timedelta(days=n) for n in range(31))
    return any(cron.rule.matches_day(day) for day in days if day.month == month)


def _is_late(cron: Cron) -> bool:
    """True if it names the days that months may lack, and no others."""
    month_days, week_days = restrictions_of(cron.rule.days)
    return week_days is None and month_days is not None and min(month_days.days, default=0) > 28
