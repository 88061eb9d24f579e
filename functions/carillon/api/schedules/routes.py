"""The resources /schedules/preview, /upcoming (of one job and of all) and /forecast."""

from typing import Annotated, Literal

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body, Query

from carillon.api.http.problems import Kind
from carillon.api.http.routing import Resource, Routes, route
from carillon.api.jobs.routes import JSON, JobId
from carillon.api.schedules.preview import PreviewService
from carillon.api.schedules.request_models import LARGEST_COUNT, PreviewBody
from carillon.api.schedules.response_models import (
    ForecastForm,
    MinuteJobsForm,
    PreviewForm,
    UpcomingForm,
)
from carillon.api.schedules.upcoming import ForecastService, OccurrenceService
from carillon.domain.spec.fields import Instant
from carillon.domain.spec.teams import Role

Count = Annotated[int, Query(ge=1, le=LARGEST_COUNT, description="Most occurrences to list.")]
Until = Annotated[Instant | None, Query(description="The last instant of interest.")]
From = Annotated[
    Instant | None, Query(alias="from", description="The first instant; now unless given.")
]
To = Annotated[
    Instant | None,
    Query(description="The instant before which it ends: a day later unless given, 7 at most."),
]
By = Annotated[
    Literal["minute", "hour"], Query(description="What is counted: `minutes`, or `hours` of UTC.")
]
Minute = Annotated[Instant, Query(description="An instant in the minute.")]


class ScheduleRoutes(Resource):
    """Each method answers one route."""

    def __init__(
        self,
        routes: Routes,
        occurrences: OccurrenceService,
        previews: PreviewService,
        forecasts: ForecastService,
    ) -> None:
        super().__init__(routes)
        self._occurrences = occurrences
        self._previews = previews
        self._forecasts = forecasts

    @route(
        "POST /schedules/preview",
        "Preview and explain a schedule",
        {200: "What it does"},
        role=Role.VIEWER,
    )
    def preview_schedule(self, body: Annotated[PreviewBody, Body()]) -> Response[PreviewForm]:
        """Describes a schedule that need not belong to any job: its next occurrences, in words, the
        effect of clock changes within a year, what it takes and what it costs."""
        return Response(200, JSON, self._previews.preview(self._owner(), body))

    @route(
        "GET /jobs/<job_id>/upcoming",
        "List a job's next occurrences",
        {200: "The next occurrences"},
        Kind.NOT_FOUND,
        role=Role.VIEWER,
    )
    def list_upcoming_of_job(self, job_id: JobId, count: Count = 10) -> Response[UpcomingForm]:
        """A paused job has none. A fixed delay has at most one: counted from the end of its newest
        run, so none during a run."""
        return Response(200, JSON, self._occurrences.of_job(self._owner(), job_id, count))

    @route(
        "GET /upcoming",
        "List the next occurrences of all your jobs",
        {200: "The next occurrences"},
        role=Role.VIEWER,
    )
    def list_upcoming(self, count: Count = 10, until: Until = None) -> Response[UpcomingForm]:
        """Across your first 1,000 jobs, by name; `complete` is false when there are more. In the
        order of effective times; fixed delays are left out."""
        return Response(200, JSON, self._occurrences.of_owner(self._owner(), count, until))

    @route(
        "GET /forecast",
        "Expect the fires of all your jobs, minute by minute",
        {200: "The forecast"},
        role=Role.VIEWER,
    )
    def get_forecast(
        self, from_at: From = None, to: To = None, by: By = "minute"
    ) -> Response[ForecastForm]:
        """The number of runs that are expected to start in each minute, or hour, over your first
        1,000 jobs by name, under their calendars and windows as they are now; `complete` is false
        when there are more. Paused jobs do not count."""
        form = self._forecasts.of_owner(self._owner(), from_at, to, by_hour=by == "hour")
        return Response(200, JSON, form)

    @route(
        "GET /forecast/jobs",
        "List the jobs of a minute of the forecast",
        {200: "The jobs"},
        role=Role.VIEWER,
    )
    def list_forecast_jobs(self, minute: Minute) -> Response[MinuteJobsForm]:
        """Each with how often it is expected to start in that minute, of your first 1,000 jobs."""
        return Response(200, JSON, self._forecasts.of_minute(self._owner(), minute))
