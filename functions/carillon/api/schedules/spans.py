"""Spans of fire times in requests: query parameters, and what they come to in whole seconds."""

from datetime import datetime
from typing import Annotated

from aws_lambda_powertools.event_handler.openapi.params import Query

from carillon.api.schedules.request_models import Instant
from carillon.clock import ceil_second
from carillon.errors import InvalidFieldError

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
        None if from_at is None else ceil_second(from_at),
        None if until_at is None else until_at.replace(microsecond=0),
    )
