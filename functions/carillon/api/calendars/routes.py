"""/calendars: routes and response models."""

from typing import Annotated

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body, Path
from pydantic import BaseModel

from carillon.api.calendars.models import WEEKDAYS, CalendarBody, Day, RangeForm
from carillon.api.calendars.service import CalendarService
from carillon.api.http.callers import Caller
from carillon.api.http.fields import ListForm, UtcTime
from carillon.api.http.problems import Kind
from carillon.api.http.requests import IfMatch, IfNoneMatch, etag, precondition
from carillon.api.http.routing import Resource, Routes, route
from carillon.api.jobs.routes import JSON, Cursor, Limit
from carillon.domain.calendar import Calendar
from carillon.domain.spec.teams import Role
from carillon.telemetry import Action, Telemetry


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


CalendarName = Annotated[
    str,
    Path(
        pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$",
        description="Lower-case letters, digits, dot, underscore and dash; at most 64.",
    ),
]

_ETAG = {"ETag": "The calendar's revision, for If-Match."}
_PATH = "/calendars/<name>"


class CalendarRoutes(Resource):
    """Each method answers one route."""

    def __init__(self, routes: Routes, service: CalendarService, telemetry: Telemetry) -> None:
        super().__init__(routes)
        self._service = service
        self._telemetry = telemetry

    @route(
        f"PUT {_PATH}",
        "Create or replace a calendar",
        {201: "The new calendar", 200: "The calendar as it is now"},
        Kind.INVALID_HEADER,
        Kind.NOT_FOUND,  # of a name that no path can carry
        Kind.CONTENDED,
        Kind.REVISION_MISMATCH,
        headers=_ETAG,
        role=Role.EDITOR,
    )
    def put_calendar(
        self,
        name: CalendarName,
        body: Annotated[CalendarBody, Body()],
        if_match: IfMatch = None,
        if_none_match: IfNoneMatch = None,
    ) -> Response[CalendarForm]:
        """Creates it, or replaces it whole. It holds at once for every job that follows it, up to
        the moment a run starts; days that are over are not gone through again."""
        caller, condition = self._caller(), precondition(self._app)
        put = self._service.put(caller.owner, name, body, condition, caller.author)
        self._report(Action.CALENDAR_PUT, put.calendar, caller)
        return self._answer(put.calendar, 201 if put.before is None else 200)

    @route("GET /calendars", "List your calendars", {200: "A page of calendars"}, role=Role.VIEWER)
    def list_calendars(self, limit: Limit = 20, cursor: Cursor = None) -> Response[CalendarPage]:
        """By name; `next_cursor` is null on the last page."""
        page = self._service.list(self._owner(), limit, cursor)
        return Response(200, JSON, CalendarPage.of_page(page, CalendarForm.of))

    @route(
        f"GET {_PATH}",
        "Read a calendar",
        {200: "The calendar"},
        Kind.NOT_FOUND,
        headers=_ETAG,
        role=Role.VIEWER,
    )
    def get_calendar(self, name: CalendarName) -> Response[CalendarForm]:
        """With all its dates and ranges, imported ones included."""
        return self._answer(self._service.get(self._owner(), name))

    @route(
        f"DELETE {_PATH}",
        "Delete a calendar",
        {204: "Deleted"},
        Kind.INVALID_HEADER,
        Kind.NOT_FOUND,
        Kind.CONTENDED,
        Kind.CALENDAR_IN_USE,
        Kind.REVISION_MISMATCH,
        role=Role.EDITOR,
    )
    def delete_calendar(self, name: CalendarName, if_match: IfMatch = None) -> Response[None]:
        """Refused while any of your first 1,000 jobs follows it: the problem names them. A job
        beyond those then runs as if every day were open."""
        caller, condition = self._caller(), precondition(self._app)
        deleted = self._service.delete(caller.owner, name, condition.revision, caller.author)
        self._report(Action.CALENDAR_DELETED, deleted, caller)
        return Response(204)

    def _answer(self, calendar: Calendar, status: int = 200) -> Response[CalendarForm]:
        headers = {"ETag": etag(calendar.revision)}
        return Response(status, JSON, CalendarForm.of(calendar), headers)

    def _report(self, action: Action, calendar: Calendar, caller: Caller) -> None:
        self._telemetry.record(
            action,
            by=caller.author,
            owner=calendar.owner,
            calendar=calendar.name,
            revision=calendar.revision,
        )
