"""What answers about calendars carry: pydantic models, and how each is made."""

from pydantic import BaseModel

from carillon.api.calendars.models import WEEKDAYS, Day, RangeForm
from carillon.api.http.instants import UtcTime
from carillon.api.http.page_forms import ListForm, rest_of
from carillon.domain.calendar import Calendar
from carillon.stores.ports import Page


class CalendarForm(BaseModel):
    """A calendar: its closed days are whole `weekdays`, single `dates` and `ranges` of dates,
    both ends included, by the clocks of each job's time zone."""

    name: str
    revision: int
    description: str
    weekdays: list[str]
    dates: list[Day]
    ranges: list[RangeForm]
    created_at: UtcTime
    updated_at: UtcTime

    @classmethod
    def of(cls, calendar: Calendar) -> "CalendarForm":
        # Values of a stored calendar need not be within the limits for new ones.
        ranges = [
            RangeForm.model_construct(from_=first, to=last)
            for first, last in calendar.ranges
            if first != last
        ]
        return cls(
            name=calendar.name,
            revision=calendar.revision,
            description=calendar.description,
            weekdays=[WEEKDAYS[number] for number in sorted(calendar.weekdays)],
            dates=[first for first, last in calendar.ranges if first == last],
            ranges=ranges,
            created_at=calendar.created_at,
            updated_at=calendar.updated_at,
        )


class CalendarPage(ListForm):
    items: list[CalendarForm]

    @classmethod
    def of(cls, page: Page[Calendar]) -> "CalendarPage":
        return cls(
            items=[CalendarForm.of(calendar) for calendar in page.items],
            **rest_of(page),
        )
