"""Dates on the command line: ISO 8601 in, UTC text out."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from carillon.domain.spec.options import DATES_HELP as DATES_HELP
from carillon.errors import InvalidFieldError
from carillon.schedules import parse_duration

LONGEST_SPAN = timedelta(days=366)
"""Of a simulation."""
_FIRST_YEAR, _LAST_YEAR = 1971, 9997


def parse_instant(text: str, zone: ZoneInfo, field: str) -> datetime:
    """The UTC instant of an ISO 8601 text; without an offset it is local time of `zone`.

    A local time that the clocks show twice is the first; one that they skip is shifted forward
    by the gap. Raises InvalidFieldError naming `field`.
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        message = f"{text!r} is not an ISO 8601 instant such as 2026-03-29T00:00:00Z"
        raise InvalidFieldError(field, message) from error
    refuse_out_of_range(moment, field)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=zone)
    instant = moment.astimezone(UTC)
    # An offset may carry it into another year.
    refuse_out_of_range(instant, field)
    return instant


def refuse_out_of_range(day: date, field: str) -> None:
    """Raises InvalidFieldError for a day, or a date and time, in years that the API refuses too."""
    if not _FIRST_YEAR <= day.year <= _LAST_YEAR:
        raise InvalidFieldError(field, f"must lie in the years {_FIRST_YEAR} to {_LAST_YEAR}")


def utc_text(instant: datetime) -> str:
    """The text of a UTC instant, with `Z`; a fraction of a second is kept."""
    # "+00:00" are always the last six characters of a UTC isoformat; quicker than strftime.
    return instant.isoformat()[:-6] + "Z"


def span_of(from_at: str | None, span: str, field: str = "for") -> tuple[datetime, datetime]:
    """Begin, by default the next full minute, and end in whole seconds; raises
    InvalidFieldError."""
    if from_at is None:
        begin = datetime.now(UTC).replace(second=0, microsecond=0) + timedelta(minutes=1)
    else:
        begin = parse_instant(from_at, ZoneInfo("UTC"), "from").replace(microsecond=0)
    length = timedelta(seconds=parse_duration(span, field))
    if not timedelta() < length <= LONGEST_SPAN:
        raise InvalidFieldError(field, f"must be from 1s to {LONGEST_SPAN.days}d")
    return begin, begin + length
