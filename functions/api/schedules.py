"""The resources /schedules/preview and /upcoming, of one job and of all."""

from typing import Annotated

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body, Query

from functions.api.forms import PreviewForm, UpcomingForm
from functions.api.jobs import JSON, JobId
from functions.api.occurrences import OccurrenceService
from functions.api.problems import Kind
from functions.api.requests import caller_of
from functions.api.routing import Routes
from functions.api.schemas import LARGEST_COUNT, Instant, PreviewBody

Count = Annotated[int, Query(ge=1, le=LARGEST_COUNT, description="Most occurrences to list.")]
Until = Annotated[Instant | None, Query(description="The last instant of interest.")]


class ScheduleRoutes:
    """Each method answers one route."""

    def __init__(self, routes: Routes, service: OccurrenceService) -> None:
        self._app = routes.app
        self._service = service
        self._add(routes)

    def preview_schedule(self, body: Annotated[PreviewBody, Body()]) -> Response[PreviewForm]:
        """The next occurrences of a schedule that need not belong to any job."""
        caller_of(self._app.current_event.raw_event)
        return Response(200, JSON, PreviewForm.of(self._service.preview(body)))

    def list_upcoming_of_job(self, job_id: JobId, count: Count = 10) -> Response[UpcomingForm]:
        """A paused job has none."""
        upcoming = self._service.of_job(self._owner(), job_id, count)
        return Response(200, JSON, UpcomingForm.of(upcoming))

    def list_upcoming(self, count: Count = 10, until: Until = None) -> Response[UpcomingForm]:
        """Across your first 1,000 jobs, by job id; `complete` is false when there are more."""
        upcoming = self._service.of_owner(self._owner(), count, until)
        return Response(200, JSON, UpcomingForm.of(upcoming))

    def _add(self, routes: Routes) -> None:
        routes.add(
            "POST",
            "/schedules/preview",
            self.preview_schedule,
            summary="Preview a schedule",
            answers={200: "Its next occurrences"},
        )
        routes.add(
            "GET",
            "/jobs/<job_id>/upcoming",
            self.list_upcoming_of_job,
            summary="List a job's next occurrences",
            answers={200: "The next occurrences"},
            problems=(Kind.NOT_FOUND,),
        )
        routes.add(
            "GET",
            "/upcoming",
            self.list_upcoming,
            summary="List the next occurrences of all your jobs",
            answers={200: "The next occurrences"},
        )

    def _owner(self) -> str:
        return caller_of(self._app.current_event.raw_event).owner
