"""From the text of an iCalendar file to closed days; imported only where one comes.

Recurrences are expanded by libraries that take every rule, also one that never ends or never
matches: what they may do is limited beforehand by what a calendar of days needs, and while they
work by time.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime, time, timedelta
from itertools import chain, islice
from threading import current_thread, main_thread
from types import FrameType
from typing import Any

import recurring_ical_events  # type: ignore[import-untyped]  # it has no stubs
from icalendar import Calendar, use_zoneinfo

from carillon.api.calendars.models import LARGEST_ICALENDAR_BYTES, Ranges
from carillon.errors import InvalidFieldError, quoted
from carillon.schedules import ClosedDays

FIELD = "icalendar"
YEARS_BACK = 1
YEARS_AHEAD = 5
MOST_OCCURRENCES = 20_000
LONGEST_SECONDS = 5.0

_FREQUENCIES = frozenset({"DAILY", "WEEKLY", "MONTHLY", "YEARLY"})
_TIMES_OF_DAY = ("BYHOUR", "BYMINUTE", "BYSECOND")
_ONCE = ("DTSTART", "DTEND", "DURATION", "RECURRENCE-ID")
_DAY = timedelta(days=1)
_BYTE_ORDER_MARK = "\ufeff"


class _TimeIsUp(BaseException):
    """Not an Exception: the libraries catch some of these."""


def closed_ranges(text: str, now: datetime) -> Ranges:
    """The days of the events (VEVENT) in an iCalendar text, as ranges apart from each other.

    Looked at are the days from the first of January of last year to the end of the fifth year from
    `now`. An event closes every day that it touches, by the clocks of its own time zone; its DTEND
    is exclusive (RFC 5545). Cancelled events close none; their display as busy (TRANSP) does not
    matter. Raises InvalidFieldError on `icalendar`, naming the line of the bad event, and for a
    file without events: it would open every day.
    """
    text = text.removeprefix(_BYTE_ORDER_MARK)
    size_bytes = len(text.encode())
    if size_bytes > LARGEST_ICALENDAR_BYTES:
        raise _refusal(f"takes {size_bytes} bytes; the limit is {LARGEST_ICALENDAR_BYTES} bytes")
    first, last = date(now.year - YEARS_BACK, 1, 1), date(now.year + YEARS_AHEAD, 12, 31)
    try:
        with _limited(LONGEST_SECONDS):
            spans = _spans(text, first, last)
    except _TimeIsUp:
        raise _refusal("takes too long to expand: give the dates and ranges instead") from None
    except InvalidFieldError:
        raise
    except Exception as error:
        # The libraries raise whatever they run into, such as KeyError or OverflowError.
        raise _refusal(f"cannot be read: {_shown(error)}") from error
    return list(ClosedDays.of(frozenset(), spans).ranges)


def _spans(text: str, first: date, last: date) -> Ranges:
    calendar = _parsed(text)
    within = (
        _occurrences(calendar, events, text, (first, last + _DAY))
        for events in _series_of(calendar, text)
    )
    found = list(islice(chain.from_iterable(within), MOST_OCCURRENCES + 1))
    if len(found) > MOST_OCCURRENCES:
        raise _refusal(f"has more than {MOST_OCCURRENCES} occurrences from {first} to {last}")
    spans = [
        _days_of(occurrence.start, occurrence.end)
        for occurrence in found
        if str(occurrence.as_component(False).get("STATUS", "")).upper() != "CANCELLED"
    ]
    return [(max(begin, first), min(end, last)) for begin, end in spans if begin <= end]


def _parsed(text: str) -> Any:
    # The library keeps each zone that a file defines for all that it reads later, which may be
    # another owner's: the choice of a source of zones forgets them.
    use_zoneinfo()  # type: ignore[no-untyped-call]
    calendar = Calendar.from_ical(text)
    if calendar.name != "VCALENDAR":
        raise _refusal("must be one VCALENDAR, as a file that begins with BEGIN:VCALENDAR")
    if calendar.errors:
        raise _refusal(f"cannot be read: {_shown(calendar.errors[0][1])}")
    return calendar


def _series_of(calendar: Any, text: str) -> list[dict[int, Any]]:
    """The events of each UID, by their positions among all events; refuses unfit ones."""
    series: dict[str, dict[int, Any]] = {}
    known: set[tuple[str, str, str]] = set()
    for number, event in enumerate(calendar.walk("VEVENT")):
        uid = str(event.get("UID", f"without UID {number}"))
        instance = getattr(event.get("RECURRENCE-ID"), "dt", None)
        # Of several the libraries keep one, that of the highest SEQUENCE.
        identity = (uid, str(instance), str(event.get("SEQUENCE", 0)))
        reason = _unfit(event)
        if not reason and identity in known:
            reason = "has the UID of one before it, and no RECURRENCE-ID of its own"
        if reason:
            raise _refusal(_at_event(text, number, reason))
        known.add(identity)
        series.setdefault(uid, {})[number] = event
    if not series:
        raise _refusal("has no events (VEVENT)")
    return list(series.values())


def _occurrences(
    calendar: Any, events: dict[int, Any], text: str, within: tuple[date, date]
) -> Iterator[Any]:
    """The events of one UID that begin before an end and do not end before a begin."""
    # One at a time: the libraries do not name the event that they cannot take.
    calendar.subcomponents = list(events.values())
    try:
        for series in recurring_ical_events.of(calendar, components=["VEVENT"]).series:
            yield from series.between(*within)
    except Exception as error:
        reason = f"cannot be read: {_shown(error)}"
        raise _refusal(_at_event(text, min(events), reason)) from error


def _unfit(event: Any) -> str:
    """The fault of an event; "" when there is none."""
    if event.errors:
        name, message = event.errors[0]
        return f"has a bad {name}: {_shown(message)}" if name else f"is broken: {_shown(message)}"
    if "DTSTART" not in event:
        return "has no DTSTART"
    if any(isinstance(event.get(name), list) for name in _ONCE):
        return f"has one of {', '.join(_ONCE)} twice"
    if _ends_early(event):
        return "ends before it begins"
    rules = event.get("RRULE", [])
    for rule in rules if isinstance(rules, list) else [rules]:
        frequency = str(rule.get("FREQ", [""])[0]).upper()
        if frequency not in _FREQUENCIES:
            return f"recurs {frequency or 'never'}: days recur {', '.join(sorted(_FREQUENCIES))}"
        if any(part in rule for part in _TIMES_OF_DAY):
            return f"has one of {', '.join(_TIMES_OF_DAY)} in its RRULE: days have no times"
        if any(int(interval) < 1 for interval in rule.get("INTERVAL", [1])):
            return "has an INTERVAL below 1 in its RRULE"
    return ""


def _ends_early(event: Any) -> bool:
    if "DURATION" in event and "DTEND" not in event:
        return bool(event["DURATION"].dt < timedelta())
    start = event["DTSTART"].dt
    end = event["DTEND"].dt if "DTEND" in event else start
    try:
        return bool(end < start)
    except TypeError:  # a date and a time, or times with a zone and without
        return date(end.year, end.month, end.day) < date(start.year, start.month, start.day)


def _days_of(start: date, end: date) -> tuple[date, date]:
    """The first and the last day that an event covers; `start` and `end` may be times, too."""
    first = start.date() if isinstance(start, datetime) else start
    last = end.date() if isinstance(end, datetime) else end
    ends_at_midnight = not isinstance(end, datetime) or end.time() == time()
    if ends_at_midnight and last > first:
        last -= _DAY
    return first, last


def _at_event(text: str, number: int, reason: str) -> str:
    """The fault of the n-th event, from 0, and the line on which it begins."""
    lines = (
        place
        for place, line in enumerate(text.splitlines(), start=1)
        if line.strip().upper() == "BEGIN:VEVENT"
    )
    line = next(islice(lines, number, None), 1)
    return f"line {line}: the event that begins here {reason}"


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Raise _TimeIsUp in the block after `seconds`.

    Only the main thread can be interrupted; Lambda runs handlers there.
    """
    if current_thread() is not main_thread():
        yield
        return

    def stop(_: int, __: FrameType | None) -> None:
        raise _TimeIsUp

    before = signal.signal(signal.SIGALRM, stop)
    # Again and again: raised inside of a destructor, it would be swallowed.
    signal.setitimer(signal.ITIMER_REAL, seconds, 0.1)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _shown(error: object) -> str:
    return quoted(" ".join(str(error).split()))


def _refusal(message: str) -> InvalidFieldError:
    return InvalidFieldError(FIELD, message)
