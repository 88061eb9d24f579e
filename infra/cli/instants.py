"""Dates on the command line: ISO 8601 in, UTC text out."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from shared.errors import InvalidFieldError

DATES_HELP = "ISO 8601; without an offset it is local time of the time zone given."


def parse_instant(text: str, zone: ZoneInfo, field: str) -> datetime:
    """The UTC instant of an ISO 8601 text; without an offset it is local time of `zone`.

    A local time that the clocks show twice is the first; one that they skip is shifted forward
    by the gap. Raises InvalidFieldError naming `field`.
    """
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=zone)
        return moment.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        message = f"{text!r} is not an ISO 8601 instant such as 2026-03-29T00:00:00Z"
        raise InvalidFieldError(field, message) from error


def utc_text(instant: datetime) -> str:
    """The text of a UTC instant, with `Z`; a fraction of a second is kept."""
    # "+00:00" are always the last six characters of a UTC isoformat; quicker than strftime.
    return instant.isoformat()[:-6] + "Z"
