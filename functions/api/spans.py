"""Spans of fire times in requests: query parameters, and what they come to in whole seconds."""

from datetime import datetime, timedelta
from typing import Annotated

from aws_lambda_powertools.event_handler.openapi.params import Query

from functions.api.schedule_fields import Instant
from shared.errors import InvalidFieldError

_SECOND = timedelta(seconds=1)

FireTimeFrom = Annotated[
    Instant | None, Query(alias="from", description="The first fire time, inclusive.")
]
FireTimeTo = Annotated[
    Instant | None, Query(alias="to", description="The last fire time, inclusive.")
]


def whole_span(
    from_at: datetime | None, until_at: datetime | None
) -> tuple[datetime | None, datetime | None]:
    """The bounds in whole seconds, the fraction of `from` rounded up: fire times have none.

    Raises InvalidFieldError when the span ends before it begins.
    """
    if from_at is not None and until_at is not None and until_at < from_at:
        raise InvalidFieldError("to", "must not lie before from")
    return (
        None if from_at is None else second_from(from_at),
        None if until_at is None else until_at.replace(microsecond=0),
    )


def second_from(instant: datetime) -> datetime:
    """The first whole second from an instant on."""
    whole = instant.replace(microsecond=0)
    return whole if whole == instant else whole + _SECOND
