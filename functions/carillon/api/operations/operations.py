"""The resource /operations: work on many runs that goes on after its request was answered."""

from typing import Annotated

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Path

from carillon.api.http.problems import Kind
from carillon.api.http.requests import caller_of
from carillon.api.http.routing import Routes
from carillon.api.jobs.routes import JSON, Cursor, Limit
from carillon.api.operations.models import OperationForm, OperationPage, OutcomesForm
from carillon.api.operations.service import OperationService
from carillon.telemetry import Action, Telemetry

OperationId = Annotated[str, Path(description="The `operation_id` that the request answered.")]


class OperationRoutes:
    """Each method answers one route."""

    def __init__(self, routes: Routes, service: OperationService, telemetry: Telemetry) -> None:
        self._app = routes.app
        self._service = service
        self._telemetry = telemetry
        self._add(routes)

    def list_operations(self, limit: Limit = 20, cursor: Cursor = None) -> Response[OperationPage]:
        """Newest first. One that has ended is kept as long as a run."""
        page = self._service.list(self._owner(), limit, cursor)
        return Response(200, JSON, OperationPage.of(page))

    def get_operation(self, operation_id: OperationId) -> Response[OperationForm]:
        """With its progress."""
        operation = self._service.get(self._owner(), operation_id)
        return Response(200, JSON, OperationForm.of(operation))

    def count_outcomes(
        self, operation_id: OperationId, cursor: Cursor = None
    ) -> Response[OutcomesForm]:
        """What became of the runs of a backfill, a thousand rows of the job's history at a time:
        add up the pages until `next_cursor` is null. Other operations have none."""
        found = self._service.outcomes(self._owner(), operation_id, cursor)
        form = OutcomesForm(counts=dict(found.counts), next_cursor=found.next_cursor)
        return Response(200, JSON, form)

    def cancel_operation(self, operation_id: OperationId) -> Response[OperationForm]:
        """No further step of it is done; what it has sent, at most half a minute's, goes on."""
        operation = self._service.cancel(self._owner(), operation_id)
        self._telemetry.record(
            Action.OPERATION_CANCELLED, operation_id=operation_id, owner=operation.owner
        )
        return Response(200, JSON, OperationForm.of(operation))

    def _add(self, routes: Routes) -> None:
        routes.add(
            "GET",
            "/operations",
            self.list_operations,
            summary="List your operations",
            answers={200: "A page of operations"},
        )
        routes.add(
            "GET",
            "/operations/<operation_id>",
            self.get_operation,
            summary="Read an operation",
            answers={200: "The operation"},
            problems=(Kind.NOT_FOUND,),
        )
        routes.add(
            "GET",
            "/operations/<operation_id>/outcomes",
            self.count_outcomes,
            summary="Count what became of a backfill's runs",
            answers={200: "Counts by state"},
            problems=(Kind.NOT_FOUND,),
        )
        routes.add(
            "POST",
            "/operations/<operation_id>/cancel",
            self.cancel_operation,
            summary="Cancel an operation",
            answers={200: "The cancelled operation"},
            problems=(Kind.NOT_FOUND, Kind.CONTENDED, Kind.OPERATION_ENDED),
        )

    def _owner(self) -> str:
        return caller_of(self._app.current_event.raw_event).owner
