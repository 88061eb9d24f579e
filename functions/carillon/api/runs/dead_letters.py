"""/dead-letters: routes and service."""

from typing import Annotated

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body, Path, Query

from carillon.api.http.problems import JobGoneError, Kind, MissingError, NotADeadLetterError
from carillon.api.http.requests import idempotency_key
from carillon.api.http.routing import Resource, Routes, route
from carillon.api.jobs.routes import JSON, Cursor, IdempotencyKey, Limit
from carillon.api.jobs.service import JobService
from carillon.api.operations.models import DeadLetterBody, OperationForm
from carillon.api.operations.service import OperationService
from carillon.api.runs.routes import RunDetail, RunForm, RunPage
from carillon.api.runs.service import RunService, run_key_of
from carillon.api.schedules.request_models import FireTimeFrom, FireTimeTo, whole_span
from carillon.clock import Clock
from carillon.domain.changes.change import Action as Act
from carillon.domain.job import Job
from carillon.domain.notifying.notification import Notification, notification_of
from carillon.domain.operation import OperationKind
from carillon.domain.run import DeadReason, Run, RunKey, RunKind
from carillon.domain.spec.teams import Role
from carillon.services.history import History
from carillon.services.redrive import Redriver, Refusal
from carillon.stores.ports import DeadLetterFilter, Page, VersionedRows
from carillon.stores.recording import Acts
from carillon.telemetry import Action, Telemetry


class DeadLetterService:
    """One owner's dead letters; raises StoreUnavailableError and QueueUnavailableError.

    Every method that names a run raises MissingError if the owner has none of that id, and
    NotADeadLetterError if it cannot be settled so.
    """

    def __init__(
        self,
        jobs: JobService,
        notifications: VersionedRows[Notification],
        history: History,
        redriver: Redriver,
        clock: Clock,
    ) -> None:
        self._jobs = jobs
        self._notifications = notifications
        self._history = history
        self._redriver = redriver
        self._clock = clock

    def list(self, owner: str, limit: int, cursor: str | None, only: DeadLetterFilter) -> Page[Run]:
        """One page, newest fire time first; one that has just come or gone may lag behind."""
        return self._history.dead_letters(owner, limit, cursor, only)

    def redrive(self, owner: str, run_id: str) -> Run:
        """The run that runs a dead letter again, now; a repetition answers the same one.

        Raises JobGoneError for one of a deleted job.
        """
        dead = self._get(owner, run_id)
        job = self._job_of(dead.key)
        due_at = self._clock.now().replace(microsecond=0)
        made = self._redriver.redrive(dead, job, due_at)
        match made:
            case Run():
                return made
            case Refusal.JOB_GONE:
                raise JobGoneError(run_id, _whose(dead.key))
            case Refusal.EXPIRED:
                raise MissingError("run", dead.key.redriven.run_id)
        raise NotADeadLetterError(run_id, _why(dead, made))

    def _job_of(self, key: RunKey) -> Job | None:
        if key.kind is RunKind.NOTICE:
            notification = self._notifications.get(key.owner, notification_of(key))
            return None if notification is None else notification.as_job()
        return self._jobs.find(key.owner, key.job_id)

    def discard(self, owner: str, run_id: str) -> Run:
        """The dead letter, off the list; a repetition changes nothing."""
        dead = self._get(owner, run_id)
        discarded = self._redriver.discard(dead)
        if isinstance(discarded, Refusal):
            raise NotADeadLetterError(run_id, _why(dead, discarded))
        return discarded

    def _get(self, owner: str, run_id: str) -> Run:
        key = run_key_of(owner, run_id)
        run = None if key is None else self._history.get(key)
        if run is None:
            raise MissingError("run", run_id)
        return run


def _whose(key: RunKey) -> str:
    """The words for that of which the key's run is one."""
    if key.kind is RunKind.NOTICE:
        return f"notification {notification_of(key)}"
    return f"job {key.job_id}"


def _why(run: Run, refusal: Refusal) -> str:
    match refusal:
        case Refusal.NOT_DEAD:
            return f"it is {run.status.value}, not a dead letter"
        case Refusal.REDRIVEN:
            return f"it was redriven, as run {run.key.redriven.run_id}"
    return refusal.value


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


class DeadLetterRoutes(Resource):
    """Each method answers one route."""

    def __init__(
        self,
        routes: Routes,
        service: DeadLetterService,
        runs: RunService,
        operations: OperationService,
        acts: Acts,
        telemetry: Telemetry,
    ) -> None:
        super().__init__(routes)
        self._service = service
        self._runs = runs
        self._operations = operations
        self._acts = acts
        self._telemetry = telemetry

    @route("GET /dead-letters", "List your dead letters", {200: "A page of runs"}, role=Role.VIEWER)
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
        page = self._service.list(self._owner(), limit, cursor, only)
        return Response(200, JSON, RunPage.of_page(page, RunForm.of))

    @route(
        "POST /dead-letters/<run_id>/redrive",
        "Redrive a dead letter",
        {202: "The run that runs it again, which starts in a moment"},
        Kind.NOT_FOUND,
        Kind.NOT_A_DEAD_LETTER,
        Kind.JOB_GONE,
        headers={"Location": "The new run's path."},
        role=Role.EDITOR,
    )
    def redrive_dead_letter(self, run_id: DeadLetterId) -> Response[RunDetail]:
        """Runs it again, at once and even while its job is paused, with the target and the payload
        that the job has now, or the payload that it was asked for with. Answers the new run; a
        repetition answers the same one."""
        caller = self._caller()
        run = self._service.redrive(caller.owner, run_id)
        self._acts.of_run(run.key, Act.REDRIVE, caller.author)
        self._telemetry.record(
            Action.RUN_REDRIVEN, by=caller.author, run_id=run.key.run_id, owner=run.key.owner
        )
        location = f"/jobs/{run.key.job_id}/runs/{run.key.run_id}"
        detail = RunDetail.of(run, self._runs.asked(run.key))
        return Response(202, JSON, detail, {"Location": location})

    @route(
        "DELETE /dead-letters/<run_id>",
        "Discard a dead letter",
        {204: "Discarded"},
        Kind.NOT_FOUND,
        Kind.NOT_A_DEAD_LETTER,
        role=Role.EDITOR,
    )
    def discard_dead_letter(self, run_id: DeadLetterId) -> Response[None]:
        """Takes it off the list; the job's history keeps it until it expires."""
        caller = self._caller()
        run = self._service.discard(caller.owner, run_id)
        self._acts.of_run(run.key, Act.DISCARD, caller.author, at=run.updated_at)
        self._telemetry.record(
            Action.RUN_DISCARDED, by=caller.author, run_id=run_id, owner=run.key.owner
        )
        return Response(204)

    @route(
        "POST /dead-letters/redrive",
        "Redrive dead letters in bulk",
        {202: "The operation, which begins in a moment"},
        Kind.INVALID_HEADER,
        Kind.CONTENDED,
        headers={"Location": "The operation's path."},
        role=Role.EDITOR,
    )
    def redrive_dead_letters(
        self, body: Annotated[DeadLetterBody, Body()], key: IdempotencyKey = None
    ) -> Response[OperationForm]:
        """Runs again all present dead letters that the body leaves, throttled, as an operation to
        follow and to cancel. Those of deleted jobs are left out."""
        return self._settle(OperationKind.REDRIVE, body)

    @route(
        "POST /dead-letters/discard",
        "Discard dead letters in bulk",
        {202: "The operation, which begins in a moment"},
        Kind.INVALID_HEADER,
        Kind.CONTENDED,
        headers={"Location": "The operation's path."},
        role=Role.ADMIN,
    )
    def discard_dead_letters(
        self, body: Annotated[DeadLetterBody, Body()], key: IdempotencyKey = None
    ) -> Response[OperationForm]:
        """Takes all dead letters that there are now and that the body leaves off the list, as an
        operation to follow and to cancel."""
        return self._settle(OperationKind.DISCARD, body)

    def _settle(self, kind: OperationKind, body: DeadLetterBody) -> Response[OperationForm]:
        key, caller = idempotency_key(self._app), self._caller()
        operation = self._operations.settle(caller.owner, kind, body, key)
        self._acts.of_operation(operation, Act(kind.value), caller.author)
        operation_id = operation.operation_id
        self._telemetry.record(
            Action.OPERATION_REQUESTED,
            by=caller.author,
            operation_id=operation_id,
            owner=operation.owner,
        )
        location = {"Location": f"/operations/{operation_id}"}
        return Response(202, JSON, OperationForm.of(operation), location)
