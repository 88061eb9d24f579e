"""/jobs/{job_id}/runs: routes and models."""

from typing import Annotated

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body, Path
from pydantic import BaseModel, Field

from carillon.api.http.fields import ListForm, SameForm, UtcTime
from carillon.api.http.problems import Kind
from carillon.api.http.requests import idempotency_key
from carillon.api.http.routing import Resource, Routes, route
from carillon.api.jobs.routes import JSON, Cursor, IdempotencyKey, JobId, Limit
from carillon.api.runs.service import RunService
from carillon.api.schedules.request_models import FireTimeFrom, FireTimeTo
from carillon.clock import utc_text
from carillon.domain.changes.change import Action as Act
from carillon.domain.idempotency import IdempotencyRecord
from carillon.domain.run import DeadReason, Resolution, Run, RunKind, RunStatus
from carillon.domain.spec.fields import Document, JsonText
from carillon.domain.spec.teams import Role
from carillon.stores.recording import Acts
from carillon.telemetry import Action, Telemetry


class ErrorForm(SameForm):
    """The reason why an attempt failed; `permanent`: no retry can help."""

    kind: str
    message: str
    permanent: bool


class AttemptForm(SameForm):
    """One attempt of a run: `error` is null if it succeeded or has not ended, `finished_at` if it
    has not ended."""

    attempt: int
    started_at: UtcTime
    finished_at: UtcTime | None
    error: ErrorForm | None

    @classmethod
    def all_of(cls, run: Run) -> "list[AttemptForm]":
        """Every attempt of a run, the last one too."""
        forms = [cls.of(record) for record in run.attempts]
        is_recorded = bool(run.attempts) and run.attempts[-1].attempt >= run.attempt
        # Where executors died each time the last claim only recorded that: it called nothing.
        only_recorded = run.error is not None and run.error.kind == DeadReason.EXECUTOR_DIED
        if run.attempt_started_at is not None and not (is_recorded or only_recorded):
            last = cls(
                attempt=run.attempt,
                started_at=run.attempt_started_at,
                finished_at=run.finished_at,
                error=None if run.error is None else ErrorForm.of(run.error),
            )
            forms.append(last)
        return forms


class RunForm(BaseModel):
    """A run as lists show it.

    `fire_at` is the nominal time, `effective_at` when it was to start; `lag_seconds` counts from
    the latter. `reason` is why it was skipped, and `note` has details: which calendar closed the
    day, or from which day it was moved. `settled` marks a former dead letter: it was redriven, by
    the run with the next `redrive`, or discarded.

    With `result_bytes` the result is kept whole, so long: it is its beginning in lists, and all of
    it where the run alone is read.

    One of kind `missed` stands for the `covers_count` occurrences from `covers_from` to `fire_at`.
    """

    run_id: str
    job_id: str
    kind: RunKind
    fire_at: UtcTime
    effective_at: UtcTime
    redrive: int
    status: RunStatus
    attempt: int
    lag_seconds: float | None
    started_at: UtcTime | None
    finished_at: UtcTime | None
    next_attempt_at: UtcTime | None
    updated_at: UtcTime
    result: str | None
    result_bytes: int | None
    error: ErrorForm | None
    reason: str | None
    note: str | None
    settled: Resolution | None
    covers_from: UtcTime | None
    covers_count: int | None

    @classmethod
    def of(cls, run: Run) -> "RunForm":
        lag_seconds = run.lag_seconds
        return cls(
            run_id=run.key.run_id,
            job_id=run.key.job_id,
            kind=run.key.kind,
            fire_at=run.key.fire_at,
            effective_at=run.effective_at or run.key.fire_at,
            redrive=run.key.redrive,
            status=run.status,
            attempt=run.attempt,
            lag_seconds=None if lag_seconds is None else round(lag_seconds, 3),
            started_at=run.started_at,
            finished_at=run.finished_at,
            next_attempt_at=run.next_attempt_at,
            updated_at=run.updated_at,
            result=run.result,
            result_bytes=run.result_bytes,
            error=None if run.error is None else ErrorForm.of(run.error),
            reason=run.reason,
            note=_note_of(run),
            settled=run.settled,
            covers_from=run.covers_from,
            covers_count=run.covers_count,
        )


def _note_of(run: Run) -> str | None:
    """The stored note; of an open run also until when a report is due."""
    if not run.is_open or run.completion is None or run.lease_until is None:
        return run.note
    due, end = utc_text(run.lease_until), utc_text(run.completion.until)
    told = f"open: its target is to report by {due}, and to have ended by {end}"
    return told if run.note is None else f"{run.note}; {told}"


class RunDetail(RunForm):
    """A run, whole, with all its attempts. `payload_overridden`: it was asked for with a payload of
    its own; `request_note` is what was said about it then."""

    attempts: list[AttemptForm]
    payload_overridden: bool
    request_note: str | None

    @classmethod
    def of(cls, run: Run, asked: IdempotencyRecord | None = None) -> "RunDetail":
        """`asked` is the record of its request, if it has one."""
        return cls(
            **RunForm.of(run).__dict__,
            attempts=AttemptForm.all_of(run),
            payload_overridden=run.key.has_own_payload,
            request_note=asked.note or None if asked else None,
        )


class RunBody(Document):
    """`payload` stands in place of the job's, for this run, its retries and redrives, as a template
    where the job's is one. `note` says what it is for."""

    payload: JsonText = "null"
    note: Annotated[str, Field(min_length=1, max_length=256)] | None = None

    @property
    def own_payload(self) -> str | None:
        """The payload that was given, JSON text; None for that of the job."""
        return self.payload if "payload" in self.model_fields_set else None


class RunPage(ListForm):
    items: list[RunForm]


RunId = Annotated[str, Path(description="A `run_id` of the job's history.")]
_PATH = "/jobs/<job_id>/runs"


class RunRoutes(Resource):
    """Each method answers one route."""

    def __init__(
        self, routes: Routes, service: RunService, acts: Acts, telemetry: Telemetry
    ) -> None:
        super().__init__(routes)
        self._service = service
        self._acts = acts
        self._telemetry = telemetry

    @route(
        "POST /jobs/<job_id>/run",
        "Run a job now",
        {202: "The run, which starts in a moment"},
        Kind.INVALID_HEADER,
        Kind.NOT_FOUND,
        Kind.CONTENDED,
        Kind.KEY_REUSED,
        headers={"Location": "The run's path."},
        role=Role.EDITOR,
    )
    def run_job(
        self,
        job_id: JobId,
        body: Annotated[RunBody | None, Body()] = None,
        key: IdempotencyKey = None,
    ) -> Response[RunDetail]:
        """Runs it now, whatever its schedule is, and even while it is paused.

        With an Idempotency-Key a repetition answers the same run; after a 503 it sends it again.
        """
        asked, caller = body or RunBody(), self._caller()
        note = asked.note or ""
        run = self._service.request(
            caller.owner, job_id, idempotency_key(self._app), asked.own_payload, note
        )
        self._acts.of_run(run.key, Act.RUN, caller.author, note)
        self._telemetry.record(
            Action.RUN_REQUESTED, by=caller.author, run_id=run.key.run_id, owner=run.key.owner
        )
        location = f"/jobs/{job_id}/runs/{run.key.run_id}"
        return Response(202, JSON, self._detail(run), {"Location": location})

    @route(
        f"GET {_PATH}",
        "List a job's runs",
        {200: "A page of runs"},
        Kind.NOT_FOUND,
        role=Role.VIEWER,
    )
    def list_runs(
        self,
        job_id: JobId,
        from_at: FireTimeFrom = None,
        to: FireTimeTo = None,
        limit: Limit = 20,
        cursor: Cursor = None,
    ) -> Response[RunPage]:
        """Newest fire time first. A deleted job's history can be read until it expires."""
        page = self._service.list(self._owner(), job_id, limit, cursor, from_at, to)
        return Response(200, JSON, RunPage.of_page(page, RunForm.of))

    @route(
        f"GET {_PATH}/<run_id>", "Read a run", {200: "The run"}, Kind.NOT_FOUND, role=Role.VIEWER
    )
    def get_run(self, job_id: JobId, run_id: RunId) -> Response[RunDetail]:
        """With each of its attempts, the last one too."""
        run = self._service.get(self._owner(), job_id, run_id)
        return Response(200, JSON, self._detail(run))

    @route(
        f"POST {_PATH}/<run_id>/cancel",
        "Cancel a run that waits or runs",
        {200: "The cancelled run"},
        Kind.NOT_FOUND,
        Kind.CONTENDED,
        Kind.NOT_CANCELLABLE,
        role=Role.EDITOR,
    )
    def cancel_run(self, job_id: JobId, run_id: RunId) -> Response[RunDetail]:
        """A run that waits, for its start or for a retry, does not start any more. The call of one
        that is running is ended within 4 seconds. In its first 2 seconds it is not cancelled yet:
        409 with Retry-After. Of one that is open no report is taken any more. One that was
        cancelled before stays as it is; one that has ended otherwise is not cancelled."""
        caller = self._caller()
        run = self._service.cancel(caller.owner, job_id, run_id)
        self._acts.of_run(run.key, Act.CANCEL, caller.author, at=run.updated_at)
        self._telemetry.record(
            Action.RUN_CANCELLED, by=caller.author, run_id=run_id, owner=run.key.owner
        )
        return Response(200, JSON, self._detail(run))

    def _detail(self, run: Run) -> RunDetail:
        return RunDetail.of(run, self._service.asked(run.key))
