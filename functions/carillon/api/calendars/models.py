"""Bodies of requests about calendars: pydantic models; unknown fields are refused."""

import re
from datetime import date
from typing import Annotated, Any, Self

from pydantic import (
    BeforeValidator,
    Field,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from carillon.domain.calendar import CalendarName
from carillon.domain.spec.fields import OUT_OF_RANGE, Document, is_in_range
from carillon.schedules import CalendarRule, ClosedDays

MOST_RANGES = 2_000
"""Dates and ranges of a calendar, together: it is one row."""

LARGEST_ICALENDAR_BYTES = 256 * 1024

WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_FULL_NAMES = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_NUMBERS = {name: number for names in (WEEKDAYS, _FULL_NAMES) for number, name in enumerate(names)}
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)

Ranges = list[tuple[date, date]]


def _day(value: object) -> date:
    """A date in the years 1971 to 9997."""
    if isinstance(value, date):
        return value
    try:
        if isinstance(value, str) and _DATE.fullmatch(value):
            day = date.fromisoformat(value)
            if is_in_range(day):
                return day
            raise ValueError(OUT_OF_RANGE)
    except ValueError as error:
        raise ValueError(f"{error}: dates are such as 2026-12-25") from None
    raise ValueError('must be a date such as "2026-12-25"')


def _weekday(value: object) -> str:
    """The canonical name of a weekday, in any case, short or long."""
    number = _NUMBERS.get(value.lower()) if isinstance(value, str) else None
    if number is None:
        raise ValueError(f"must be one of {', '.join(WEEKDAYS)}, or a full name")
    return WEEKDAYS[number]


Day = Annotated[date, BeforeValidator(_day), WithJsonSchema({"type": "string", "format": "date"})]
_WEEKDAY_SCHEMA: dict[str, Any] = {"type": "string", "examples": ["sat", "sunday"]}
Weekday = Annotated[str, BeforeValidator(_weekday), WithJsonSchema(_WEEKDAY_SCHEMA)]


class RangeForm(Document):
    """The first and the last day of a closed stretch."""

    from_: Day = Field(alias="from")
    to: Day

    @field_validator("to")
    @classmethod
    def _not_backwards(cls, last: date, info: ValidationInfo) -> date:
        first = info.data.get("from_")
        if first is not None and last < first:
            raise ValueError(f"must not lie before from, {first}")
        return last


class DaysForm(Document):
    """Closed days, local to each job's time zone: whole weekdays, dates, and ranges of dates.

    Dates and ranges are at most 2,000 together.
    """

    weekdays: list[Weekday] = Field(default_factory=list, max_length=14)
    dates: list[Day] = Field(default_factory=list, max_length=MOST_RANGES)
    ranges: list[RangeForm] = Field(default_factory=list, max_length=MOST_RANGES)

    @property
    def weekday_numbers(self) -> frozenset[int]:
        return frozenset(_NUMBERS[name] for name in self.weekdays)

    @property
    def spans(self) -> Ranges:
        """Dates and ranges as pairs of first and last day, in the order given."""
        return [(day, day) for day in self.dates] + [(span.from_, span.to) for span in self.ranges]

    @property
    def closed(self) -> ClosedDays:
        return ClosedDays.of(self.weekday_numbers, self.spans)


class CalendarBody(DaysForm):
    """A calendar, whole: what it was before is replaced.

    `icalendar` is the text of an iCalendar file (RFC 5545), at most 256 KiB: the days of its
    events, from the first of January of last year to the end of the fifth year from now, are
    closed too. It is not kept: the answer shows the dates and ranges that it became.
    """

    description: Annotated[str, Field(max_length=512)] = ""
    icalendar: str | None = None


class CalendarChoice(DaysForm):
    """One of your calendars by its `name`, or the closed days themselves; and the rule."""

    name: CalendarName | None = None
    rule: CalendarRule = CalendarRule.SKIP

    @model_validator(mode="after")
    def _either(self) -> Self:
        if self.name is not None and (self.weekdays or self.dates or self.ranges):
            raise ValueError("takes either a name or weekdays, dates and ranges")
        return self
