"""Requests about schedules, apart from jobs: the body of a preview, spans of time."""

from datetime import datetime
from typing import Annotated

from aws_lambda_powertools.event_handler.openapi.params import Query
from pydantic import Field

from carillon.api.calendars.models import CalendarChoice
from carillon.clock import ceil_second
from carillon.domain.spec.fields import Instant
from carillon.domain.spec.schedule_spec import ScheduleSpec, WindowText
from carillon.errors import InvalidFieldError

LARGEST_COUNT = 100
"""Occurrences that one answer lists."""


class PreviewBody(ScheduleSpec):
    """A schedule to preview; nothing is stored. `after` is now unless given; `max_runs` counts from
    it. `calendar` is one of yours, or its closed days given here."""

    window: WindowText | None = None
    calendar: CalendarChoice | None = None
    after: Instant | None = None
    count: Annotated[int, Field(ge=1, le=LARGEST_COUNT, strict=True)] = 5


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
