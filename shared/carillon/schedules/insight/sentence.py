"""A schedule in one English sentence."""

from dataclasses import dataclass
from datetime import UTC, datetime

from carillon.schedules.base import Fold, Gap, Recurrence
from carillon.schedules.calendars.closed_days import CalendarRule
from carillon.schedules.calendars.open_days import OnOpenDays
from carillon.schedules.durations import words_of_duration
from carillon.schedules.insight.words import day_words, time_words
from carillon.schedules.kinds.at import At
from carillon.schedules.kinds.cron import Cron
from carillon.schedules.kinds.interval import Delay, Every
from carillon.schedules.kinds.union import Simple, Union
from carillon.schedules.placement.window import Window
from carillon.schedules.zones.offsets import load_zone

_CALENDARS = {
    CalendarRule.SKIP: "not on days closed in",
    CalendarRule.NEXT_BUSINESS_DAY: "moved to the next business day of",
    CalendarRule.PREVIOUS_BUSINESS_DAY: "moved to the previous business day of",
}
_GAPS = {
    Gap.RUN_AFTER: "times that the clocks skip run when they have jumped",
    Gap.SKIP: "times that the clocks skip are left out",
}
_FOLDS = {
    Fold.FIRST: "times that they show twice run the first time",
    Fold.SECOND: "times that they show twice run the second time",
    Fold.BOTH: "times that they show twice run both times",
}


@dataclass(frozen=True, slots=True)
class _Words:
    """The phrase of one schedule, without zone: for a member, or for what is excluded."""

    text: str
    as_exception: str
    needs_zone: bool
    years: str = ""


def sentence(
    schedule: Recurrence,
    *,
    calendar: tuple[str, CalendarRule] | None = None,
    window: Window | None = None,
) -> str:
    """As in "every weekday at 09:00 in Europe/Riga"; lower case, without a full stop.

    `calendar` is the name and the rule of the one that the job follows. What no shorter phrase fits
    is written by listing the values of the fields: never less than the whole.
    """
    if isinstance(schedule, OnOpenDays):
        calendar = calendar or ("of the job", schedule.rule)
        schedule = schedule.base
    text, names_zone = _described(schedule)
    text += _dst_words(schedule) + _bounds(schedule, names_zone)
    if calendar is not None:
        name, rule = calendar
        text += f", {_CALENDARS[rule]} calendar {name}"
    if window is not None and window.seconds is not None:
        text += f", spread over {words_of_duration(window.seconds)}"
    elif window is not None and window.percent is not None:
        text += f", spread over {window.percent}% of the interval"
    return text


def _described(schedule: Recurrence) -> tuple[str, bool]:
    """The words with the zone, and whether it had to be named."""
    if isinstance(schedule, Delay):
        length = words_of_duration(schedule.delay_seconds)
        return f"{length} after the end of the last run", False
    if not isinstance(schedule, Union):
        words = _words_of(schedule)
        return _zoned(words, schedule.timezone), words.needs_zone
    members = [_words_of(member) for member in schedule.schedules]
    apart = [_words_of(member) for member in schedule.exceptions]
    text = "; and ".join(words.text + words.years for words in members)
    if apart:
        text += "; but not " + ", nor ".join(words.as_exception + words.years for words in apart)
    needs_zone = any(words.needs_zone for words in (*members, *apart))
    zone = "UTC" if schedule.timezone == "UTC" else f"in {schedule.timezone}"
    return text + f", {zone}" * needs_zone, needs_zone


def _zoned(words: _Words, timezone: str) -> str:
    zone = ""
    if words.needs_zone and timezone == "UTC":
        # After a time of day it belongs to that, after a day it would read as one word with it.
        zone = " UTC" if words.text[-1].isdigit() else ", UTC"
    elif words.needs_zone:
        zone = f" in {timezone}"
    return words.text + zone + (f",{words.years}" if words.years else "")


def _words_of(schedule: Recurrence) -> _Words:
    match schedule:
        case At():
            return _at_words(schedule)
        case Every():
            return _every_words(schedule)
        case Cron():
            return _cron_words(schedule)
    return _Words(schedule.text, schedule.text, True)


def _at_words(schedule: At) -> _Words:
    moment = schedule.moment
    if moment.tzinfo is None:
        text = _moment(moment)
        return _Words(f"once on {text}", f"on {text}", True)
    text = f"{_moment(moment.astimezone(UTC))} UTC"
    return _Words(f"once on {text}", f"on {text}", False)


def _every_words(schedule: Every) -> _Words:
    interval = words_of_duration(schedule.interval_seconds)
    if interval.startswith("1 ") and interval.count(" ") == 1:
        interval = interval[2:]
    text = f"every {interval}"
    if schedule.offset_seconds:
        text += f", offset by {words_of_duration(schedule.offset_seconds)}"
    return _Words(text, f"what comes {text}", False)


def _cron_words(schedule: Cron) -> _Words:
    rule = schedule.rule
    times = time_words(rule.seconds, rule.minutes, rule.hours)
    days = day_words(rule.days)
    spaced = f" {days.on}" if days.on else ""
    # Every minute of every day is so by all clocks; so is "minute 17" by most, but not in Kolkata.
    is_anywhere = not (times.names_hours or days.on or days.years)
    needs_zone = not (is_anywhere and (times.is_every_minute or schedule.timezone == "UTC"))
    if not times.is_times:
        text = f"{times.text}{spaced}"
        excepted = days.on if times.is_every_minute and days.on else f"what comes {text}"
        return _Words(text, excepted, needs_zone, days.years)
    text = f"{days.each} {times.text}" if days.each else f"{times.text}{spaced}"
    return _Words(text, f"{times.text}{spaced}", needs_zone, days.years)


def _dst_words(schedule: Recurrence) -> str:
    """Of a rule that is the job's own, where there are transitions for it to rule."""
    has_local_times = any(isinstance(member, Cron) for member in _members(schedule))
    if schedule.timezone == "UTC" or not has_local_times:
        return ""
    rules = []
    if schedule.dst.gap is not None:
        rules.append(_GAPS[schedule.dst.gap])
    if schedule.dst.fold is not None:
        rules.append(_FOLDS[schedule.dst.fold])
    return f" ({', '.join(rules)})" if rules else ""


def _members(schedule: Recurrence) -> tuple[Simple | Recurrence, ...]:
    return schedule.schedules if isinstance(schedule, Union) else (schedule,)


def _bounds(schedule: Recurrence, names_zone: bool) -> str:
    if isinstance(schedule, At) or (schedule.start_at is None and schedule.end_at is None):
        return ""
    words = []
    for word, bound in (("from", schedule.start_at), ("until", schedule.end_at)):
        if bound is not None:
            local = bound.astimezone(load_zone(schedule.timezone))
            words.append(f"{word} {_moment(local)}")
    zone = "UTC" if schedule.timezone == "UTC" else f"in {schedule.timezone}"
    return f", {' '.join(words)}" + f" {zone}" * (not names_zone)


def _moment(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d} at {moment:%H:%M:%S}".removesuffix(":00")
