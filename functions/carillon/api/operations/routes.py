"""/operations, /missed and /backfill."""

from typing import Annotated

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body, Path, Query
from pydantic import BaseModel, Field

from carillon.api.http.fields import SameForm, UtcTime
from carillon.api.http.problems import Kind
from carillon.api.http.requests import idempotency_key
from carillon.api.http.routing import Resource, Routes, route
from carillon.api.jobs.routes import JSON, Cursor, IdempotencyKey, JobId, Limit
from carillon.api.operations.models import (
    BackfillBody,
    HandOverBody,
    OperationForm,
    OperationPage,
    OutcomesForm,
)
from carillon.api.operations.service import MissedService, OperationService
from carillon.api.schedules.request_models import FireTimeFrom, FireTimeTo
from carillon.domain.changes.change import Action as Act
from carillon.domain.run import RunStatus
from carillon.domain.spec.owners import team_owner
from carillon.domain.spec.teams import Role
from carillon.services.missed_search import Found
from carillon.stores.recording import Acts
from carillon.telemetry import Action, Telemetry

MissedLimit = Annotated[int, Query(ge=1, le=1000, description="Most occurrences to list.")]


class MissedForm(SameForm):
    """An occurrence without a success. `status`, `reason` and `run_id` are those of its row in the
    history, null when there is none: it was never sent."""

    fire_at: UtcTime
    status: RunStatus | None
    reason: str | None
    run_id: str | None


class MissedList(BaseModel):
    """Newest first. Everything since `from` was searched, which is later than requested when
    `complete` is false: continue with a `to` a second before it."""

    items: list[MissedForm]
    complete: bool
    from_at: UtcTime = Field(alias="from")

    @classmethod
    def of(cls, found: Found) -> "MissedList":
        items = [MissedForm.of(missed) for missed in found.items]
        return cls(**{"items": items, "complete": found.is_complete, "from": found.from_at})


class BackfillRoutes(Resource):
    """Each method answers one route."""

    def __init__(
        self,
        routes: Routes,
        missed: MissedService,
        operations: OperationService,
        acts: Acts,
        telemetry: Telemetry,
    ) -> None:
        super().__init__(routes)
        self._missed = missed
        self._operations = operations
        self._acts = acts
        self._telemetry = telemetry

    @route(
        "GET /jobs/<job_id>/missed",
        "List what a job has missed",
        {200: "Missed occurrences"},
        Kind.NOT_FOUND,
        role=Role.VIEWER,
    )
    def list_missed(
        self,
        job_id: JobId,
        from_at: FireTimeFrom = None,
        to: FireTimeTo = None,
        limit: MissedLimit = 100,
    ) -> Response[MissedList]:
        """Fire times of its schedule, as schedule and calendar are now, that have no success and
        are not under way: never sent, as while it was paused; skipped for whatever reason; dead.
        Cancelled runs and discarded dead letters are not among them, nor are closed days, nor what
        is so old that a run of it is not kept any more; of a pause none is before its end.

        By default since its last pause began, or of the last day if it had none; until now. At most
        366 days, and at most about 10,000 occurrences at once. To run them: `POST
        /jobs/{job_id}/backfill` with `"only": "missed"`.
        """
        found = self._missed.of_job(self._owner(), job_id, from_at, to, limit)
        return Response(200, JSON, MissedList.of(found))

    @route(
        "POST /jobs/<job_id>/backfill",
        "Run a job's occurrences of the past",
        {202: "The operation, which begins in a moment"},
        Kind.INVALID_HEADER,
        Kind.NOT_FOUND,
        Kind.CONTENDED,
        headers={"Location": "The operation's path."},
        role=Role.EDITOR,
    )
    def backfill_job(
        self, job_id: JobId, body: Annotated[BackfillBody, Body()], key: IdempotencyKey = None
    ) -> Response[OperationForm]:
        """Runs the job's occurrences of a past span, ascending and throttled, as an operation to
        follow and to cancel.

        They go by schedule and calendar as these are when their turn comes, and are runs of kind
        `backfill` beside those that there are already. While the job is paused it waits.
        """
        caller, key = self._caller(), idempotency_key(self._app)
        owner = caller.owner
        operation = self._operations.backfill(owner, job_id, body, key)
        self._acts.of_operation(operation, Act.BACKFILL, caller.author)
        operation_id = operation.operation_id
        self._telemetry.record(
            Action.OPERATION_REQUESTED,
            by=caller.author,
            operation_id=operation_id,
            owner=owner,
            job_id=job_id,
        )
        location = {"Location": f"/operations/{operation_id}"}
        return Response(202, JSON, OperationForm.of(operation), location)


OperationId = Annotated[str, Path(description="The `operation_id` that the request answered.")]


class OperationRoutes(Resource):
    """Each method answers one route."""

    def __init__(
        self, routes: Routes, service: OperationService, acts: Acts, telemetry: Telemetry
    ) -> None:
        super().__init__(routes)
        self._service = service
        self._acts = acts
        self._telemetry = telemetry

    @route(
        "POST /jobs/hand-over",
        "Hand jobs over to another team",
        {202: "The operation, which begins in a moment"},
        Kind.INVALID_HEADER,
        Kind.NOT_FOUND,
        Kind.CONTENDED,
        headers={"Location": "The operation's path."},
        role=Role.ADMIN,
    )
    def hand_over_jobs(
        self, body: Annotated[HandOverBody, Body()], key: IdempotencyKey = None
    ) -> Response[OperationForm]:
        """Makes jobs those of another team, of which the caller must be an admin, too.

        What comes due before the instant at which a job moves, and its retries, are runs of the job
        that it was; what comes due later are runs of its new owner's, which takes its secrets from
        there. What cannot move stays, and the operation says why.
        """
        caller, key = self._caller(), idempotency_key(self._app)
        author = self._routes.admin_of(body.to, "hand-over")
        to = team_owner(body.to)
        operation = self._service.hand_over(caller.owner, to, body, author, key)
        self._acts.of_operation(operation, Act.HAND_OVER, author)
        operation_id = operation.operation_id
        self._telemetry.record(
            Action.OPERATION_REQUESTED,
            by=author,
            operation_id=operation_id,
            owner=caller.owner,
            to=to,
        )
        location = {"Location": f"/operations/{operation_id}"}
        return Response(202, JSON, OperationForm.of(operation), location)

    @route(
        "GET /operations", "List your operations", {200: "A page of operations"}, role=Role.VIEWER
    )
    def list_operations(self, limit: Limit = 20, cursor: Cursor = None) -> Response[OperationPage]:
        """Newest first. One that has ended is kept as long as a run."""
        page = self._service.list(self._owner(), limit, cursor)
        return Response(200, JSON, OperationPage.of_page(page, OperationForm.of))

    @route(
        "GET /operations/<operation_id>",
        "Read an operation",
        {200: "The operation"},
        Kind.NOT_FOUND,
        role=Role.VIEWER,
    )
    def get_operation(self, operation_id: OperationId) -> Response[OperationForm]:
        """With its progress."""
        operation = self._service.get(self._owner(), operation_id)
        return Response(200, JSON, OperationForm.of(operation))

    @route(
        "GET /operations/<operation_id>/outcomes",
        "Count what became of a backfill's runs",
        {200: "Counts by state"},
        Kind.NOT_FOUND,
        role=Role.VIEWER,
    )
    def count_outcomes(
        self, operation_id: OperationId, cursor: Cursor = None
    ) -> Response[OutcomesForm]:
        """The outcomes of the runs of a backfill, a thousand rows of the job's history at a time:
        add up the pages until `next_cursor` is null. Other operations have none."""
        found = self._service.outcomes(self._owner(), operation_id, cursor)
        return Response(200, JSON, found)

    @route(
        "POST /operations/<operation_id>/cancel",
        "Cancel an operation",
        {200: "The cancelled operation"},
        Kind.NOT_FOUND,
        Kind.CONTENDED,
        Kind.OPERATION_ENDED,
        role=Role.EDITOR,
    )
    def cancel_operation(self, operation_id: OperationId) -> Response[OperationForm]:
        """Does no further step of it; the runs that it has sent, at most half a minute's, still
        start."""
        caller = self._caller()
        operation = self._service.cancel(caller.owner, operation_id)
        self._acts.of_operation(operation, Act.CANCEL, caller.author)
        self._telemetry.record(
            Action.OPERATION_CANCELLED,
            by=caller.author,
            operation_id=operation_id,
            owner=operation.owner,
        )
        return Response(200, JSON, OperationForm.of(operation))
