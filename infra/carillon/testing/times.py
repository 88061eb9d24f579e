"""Times as tests write them."""

import re
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from carillon.cli.instants import parse_instant
from carillon.errors import InvalidFieldError
from carillon.schedules import parse_duration
from carillon.schedules.zones.offsets import load_zone

_TIME_OF_DAY = re.compile(r"[0-2]\d:[0-5]\d(:[0-5]\d)?")

When = datetime | str
Span = timedelta | str


def instant_of(when: When, zone: str, now: datetime, field: str) -> datetime:
    """An instant in UTC; text without an offset is local time of `zone`, and a time of day the
    next one after `now`. Raises InvalidFieldError."""
    local = load_zone(zone)
    if isinstance(when, datetime):
        if when.tzinfo is None:
            raise InvalidFieldError(field, f"{when!r} has no time zone: give it one, or a text")
        return when.astimezone(UTC)
    if not isinstance(when, str):
        raise InvalidFieldError(field, f"{when!r} is neither a text nor a datetime")
    if _TIME_OF_DAY.fullmatch(when):
        return _next(when, local, now, field)
    return parse_instant(when, local, field)


def span_of(span: Span, field: str) -> timedelta:
    """Raises InvalidFieldError for what is no duration above zero."""
    if isinstance(span, str):
        span = timedelta(seconds=parse_duration(span, field))
    if not isinstance(span, timedelta) or span <= timedelta():
        raise InvalidFieldError(field, f'{span!r} is no duration above zero, such as "PT20M"')
    return span


def _next(text: str, zone: ZoneInfo, now: datetime, field: str) -> datetime:
    try:
        at = time.fromisoformat(text)
    except ValueError as error:
        raise InvalidFieldError(field, f"{text!r} is no time of a day") from error
    today = now.astimezone(zone).date()
    for day in (today, today + timedelta(days=1), today + timedelta(days=2)):
        found = parse_instant(datetime.combine(day, at).isoformat(), zone, field)
        if found > now:
            return found
    raise AssertionError("a day has every time of day, or the one after its gap")
