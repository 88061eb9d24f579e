"""The resource /status."""

from aws_lambda_powertools.event_handler import Response

from carillon.api.http.requests import caller_of
from carillon.api.http.routing import Routes
from carillon.api.jobs.routes import JSON
from carillon.api.overview import OverviewService
from carillon.api.status_forms import StatusForm


class StatusRoutes:
    """One route; `operators_group` names the group whose members see the segments."""

    def __init__(self, routes: Routes, service: OverviewService, operators_group: str) -> None:
        self._app = routes.app
        self._service = service
        self._operators_group = operators_group
        routes.add(
            "GET",
            "/status",
            self.get_status,
            summary="Whether your jobs are idle",
            answers={200: "The status"},
        )

    def get_status(self) -> Response[StatusForm]:
        """Processing while any of the newest runs of your first 100 jobs is unfinished."""
        caller = caller_of(self._app.current_event.raw_event)
        is_operator = self._operators_group in caller.groups
        segments = self._service.segments() if is_operator else None
        return Response(200, JSON, StatusForm.of(self._service.of_owner(caller.owner), segments))
