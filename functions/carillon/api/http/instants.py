"""How answers write instants."""

from datetime import UTC, datetime
from typing import Annotated

from pydantic import PlainSerializer, WithJsonSchema

from carillon.schedules.zones.offsets import load_zone


def instant_text(instant: datetime) -> str:
    """ISO 8601 in UTC with Z; milliseconds only where there are any."""
    precision = "milliseconds" if instant.microsecond >= 1000 else "seconds"
    return instant.astimezone(UTC).replace(tzinfo=None).isoformat(timespec=precision) + "Z"


def local_text(instant: datetime, timezone: str) -> str:
    """ISO 8601 as clocks in the zone show it, with their offset."""
    return instant.astimezone(load_zone(timezone)).isoformat(timespec="seconds")


UtcTime = Annotated[
    datetime,
    PlainSerializer(instant_text, return_type=str),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
