"""The resource /dead-letters."""

from typing import Annotated

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body, Path, Query

from carillon.api.http.problems import Kind
from carillon.api.http.requests import caller_of, idempotency_key
from carillon.api.http.routing import Routes
from carillon.api.jobs.routes import JSON, Cursor, IdempotencyKey, Limit
from carillon.api.operations.models import DeadLetterBody, OperationForm
from carillon.api.operations.service import OperationService
from carillon.api.runs.dead_letter_service import DeadLetterService
from carillon.api.runs.routes import RunDetail, RunPage
from carillon.api.schedules.spans import FireTimeFrom, FireTimeTo, whole_span
from carillon.domain.operation import OperationKind
from carillon.domain.run import DeadReason
from carillon.stores.ports import DeadLetterFilter
from carillon.telemetry import Action, Telemetry

DeadLetterId = Annotated[str, Path(description="The `run_id` of a dead letter.")]
OfJob = Annotated[
    str | None, Query(alias="job_id", pattern=r"^[0-9a-z]{26}$", description="Only this job's.")
]
Reason = Annotated[DeadReason | None, Query(description="Only those that died for this reason.")]
ErrorKind = Annotated[
    str | None,
    Query(
        min_length=1, max_length=256, description="Only those with this kind of error: `http_503`."
    ),
]


class DeadLetterRoutes:
    """Each method answers one route."""

    def __init__(
        self,
        routes: Routes,
        service: DeadLetterService,
        operations: OperationService,
        telemetry: Telemetry,
    ) -> None:
        self._app = routes.app
        self._service = service
        self._operations = operations
        self._telemetry = telemetry
        self._add_collection(routes)
        self._add_item(routes)

    def list_dead_letters(
        self,
        job_id: OfJob = None,
        reason: Reason = None,
        error: ErrorKind = None,
        from_at: FireTimeFrom = None,
        to: FireTimeTo = None,
        limit: Limit = 20,
        cursor: Cursor = None,
    ) -> Response[RunPage]:
        """Runs that have failed for good, of all your jobs, newest fire time first. They stay until
        they are redriven or discarded, or expire. A page can be shorter than `limit`, even empty;
        `next_cursor` is null on the last one."""
        bounds = whole_span(from_at, to)
        only = DeadLetterFilter(job_id or "", str(reason or ""), error or "", *bounds)
        return Response(
            200, JSON, RunPage.of(self._service.list(self._owner(), limit, cursor, only))
        )

    def redrive_dead_letter(self, run_id: DeadLetterId) -> Response[RunDetail]:
        """Runs it again, at once and even while its job is paused, with the job's payload and
        target as they are now. Answers the new run; a repetition answers the same one."""
        run = self._service.redrive(self._owner(), run_id)
        self._telemetry.record(Action.RUN_REDRIVEN, run_id=run.key.run_id, owner=run.key.owner)
        location = f"/jobs/{run.key.job_id}/runs/{run.key.run_id}"
        return Response(202, JSON, RunDetail.of(run), {"Location": location})

    def discard_dead_letter(self, run_id: DeadLetterId) -> Response[None]:
        """Takes it off the list; the job's history keeps it until it expires."""
        run = self._service.discard(self._owner(), run_id)
        self._telemetry.record(Action.RUN_DISCARDED, run_id=run_id, owner=run.key.owner)
        return Response(204)

    def redrive_dead_letters(
        self, body: Annotated[DeadLetterBody, Body()], key: IdempotencyKey = None
    ) -> Response[OperationForm]:
        """Runs again all dead letters that there are now and that the body leaves, at a pace, as an
        operation to follow and to cancel. Those of deleted jobs are passed over."""
        return self._settle(OperationKind.REDRIVE, body)

    def discard_dead_letters(
        self, body: Annotated[DeadLetterBody, Body()], key: IdempotencyKey = None
    ) -> Response[OperationForm]:
        """Takes all dead letters that there are now and that the body leaves off the list, as an
        operation to follow and to cancel."""
        return self._settle(OperationKind.DISCARD, body)

    def _settle(self, kind: OperationKind, body: DeadLetterBody) -> Response[OperationForm]:
        key = idempotency_key(self._app)
        operation = self._operations.settle(self._owner(), kind, body, key)
        operation_id = operation.operation_id
        self._telemetry.record(
            Action.OPERATION_REQUESTED, operation_id=operation_id, owner=operation.owner
        )
        location = {"Location": f"/operations/{operation_id}"}
        return Response(202, JSON, OperationForm.of(operation), location)

    def _add_collection(self, routes: Routes) -> None:
        routes.add(
            "GET",
            "/dead-letters",
            self.list_dead_letters,
            summary="List your dead letters",
            answers={200: "A page of runs"},
        )
        for end, call, summary in (
            ("redrive", self.redrive_dead_letters, "Redrive dead letters in bulk"),
            ("discard", self.discard_dead_letters, "Discard dead letters in bulk"),
        ):
            routes.add(
                "POST",
                f"/dead-letters/{end}",
                call,
                summary=summary,
                answers={202: "The operation, which begins in a moment"},
                problems=(Kind.INVALID_HEADER, Kind.CONTENDED),
                headers={"Location": "The operation's path."},
            )

    def _add_item(self, routes: Routes) -> None:
        routes.add(
            "POST",
            "/dead-letters/<run_id>/redrive",
            self.redrive_dead_letter,
            summary="Redrive a dead letter",
            answers={202: "The run that runs it again, which starts in a moment"},
            problems=(Kind.NOT_FOUND, Kind.NOT_A_DEAD_LETTER, Kind.JOB_GONE),
            headers={"Location": "The new run's path."},
        )
        routes.add(
            "DELETE",
            "/dead-letters/<run_id>",
            self.discard_dead_letter,
            summary="Discard a dead letter",
            answers={204: "Discarded"},
            problems=(Kind.NOT_FOUND, Kind.NOT_A_DEAD_LETTER),
        )

    def _owner(self) -> str:
        return caller_of(self._app.current_event.raw_event).owner
