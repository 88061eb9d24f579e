"""/completions: reports about runs that end later than their call, without a JWT."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Annotated

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body, Path
from pydantic import AfterValidator, BaseModel, Field

from carillon.api.http.fields import UtcTime
from carillon.api.http.problems import (
    ContendedError,
    Kind,
    MissingError,
    PayloadTooLargeError,
    ProblemError,
)
from carillon.api.http.routing import Resource, Routes, route
from carillon.api.jobs.routes import JSON
from carillon.api.runs.service import run_key_of
from carillon.clock import Clock, Entropy
from carillon.domain.execution import completing
from carillon.domain.execution.completing import Standing
from carillon.domain.execution.transitions import EXECUTOR_DIED, retry_message
from carillon.domain.job import Job
from carillon.domain.run import FAIL_KIND, RETRY_KIND, Run, RunError, RunStatus, one_line
from carillon.domain.spec.fields import Document, Flag, JsonText
from carillon.errors import CarillonError
from carillon.services.indexer import Indexer
from carillon.services.results import with_result
from carillon.stores.ports import JobStore, RunStore
from carillon.telemetry import Action, Telemetry

RESULT_LIMIT_BYTES = 64 * 1024
_ROUNDS = 6


class ReportRefusedError(CarillonError):
    """`why` a report about the run's attempt is not taken any more."""

    def __init__(self, run_id: str, why: str) -> None:
        super().__init__(f"the report about run {run_id} is not taken: {why}")


class CompletionService:
    """Reports about runs; each names a run and the token of one of its attempts.

    Raises MissingError where the token is of none of them, ReportRefusedError where its attempt has
    ended otherwise, StoreUnavailableError and QueueUnavailableError: then nobody knows. `admit` may
    refuse an owner who sends too many.
    """

    def __init__(
        self,
        jobs: JobStore,
        runs: RunStore,
        indexer: Indexer,
        clock: Clock,
        entropy: Entropy,
        admit: Callable[[str], None] = lambda owner: None,
    ) -> None:
        self._jobs = jobs
        self._runs = runs
        self._indexer = indexer
        self._clock = clock
        self._entropy = entropy
        self._admit = admit

    def complete(self, run_id: str, token: str, result: str | None) -> Run:
        """The run, succeeded with this result, of which what its job wants is kept; a repetition
        answers the same."""
        return self._report(run_id, token, result, None)

    def fail(self, run_id: str, token: str, error: RunError) -> Run:
        """The run after the failed attempt: dead, or retrying; a repetition answers the same, or
        the run at a later attempt."""
        return self._report(run_id, token, None, error)

    def heartbeat(self, run_id: str, token: str) -> Run:
        """The run with the end of its lease, `heartbeat` from now if its time allows.

        While its call is under way nothing is written: the lease begins when that has ended.
        """
        for _ in range(_ROUNDS):
            run, standing = self._find(run_id, token)
            now = self._clock.now()
            longer = completing.heartbeat(run, now)
            if standing is not Standing.CURRENT or longer is None:
                raise ReportRefusedError(run_id, _why(run, standing))
            if not run.is_open:
                if run.lease_until is not None and run.lease_until <= now:
                    raise ReportRefusedError(run_id, "the executor of its call has died")
                return replace(run, lease_until=longer.lease_until)
            if self._runs.claim(longer, run):
                return longer
        raise ContendedError(run_id, "run")

    def _report(self, run_id: str, token: str, result: str | None, error: RunError | None) -> Run:
        """Send the messages of what follows, then put the row: a crash in between leaves messages
        that find the run open, and nothing that nobody comes for."""
        for _ in range(_ROUNDS):
            run, standing = self._find(run_id, token)
            if standing is Standing.ENDED and completing.has_ended_so(run, result, error):
                return run
            if standing is Standing.TAKEN_OVER and completing.has_failed_so(run, token, error):
                return run
            if standing is not Standing.CURRENT:
                raise ReportRefusedError(run_id, _why(run, standing))
            job = self._jobs.get(run.key.owner, run.key.job_id)
            if job is None:
                raise MissingError("run", run_id)
            now = self._clock.now()
            ended = self._ended(run, job, result, error, now)
            message = completing.report_message(run, job, now)
            retry = [retry_message(ended, message)] if ended.status is RunStatus.RETRYING else []
            self._indexer.schedule_messages([message, *retry])
            if self._runs.claim(ended, run):
                return ended
        raise ContendedError(run_id, "run")

    def _ended(
        self, run: Run, job: Job, result: str | None, error: RunError | None, now: datetime
    ) -> Run:
        # Of a claim of its own: the permit of a call that is under way is not the retry's.
        seen = replace(run, claim_id=self._entropy.new_id(now))
        if error is None:
            return completing.completed(with_result(self._runs, seen, job, result), now)
        return completing.failed(seen, job, error, now, self._entropy.fraction())

    def _find(self, run_id: str, token: str) -> tuple[Run, Standing]:
        owner = completing.owner_of(token)
        key = None if owner is None else run_key_of(owner, run_id)
        run = None if key is None else self._runs.get(key)
        standing = completing.standing_of(run, token)
        if run is None or standing is Standing.UNKNOWN:
            raise MissingError("run", run_id)
        self._admit(run.key.owner)
        return run, standing


def _why(run: Run, standing: Standing) -> str:
    if standing is Standing.TAKEN_OVER:
        return f"attempt {run.attempt} has taken over"
    if standing is Standing.CURRENT:
        return "its time is over"
    return f"its attempt has ended: the run is {run.status.value}"


def _not_ours(kind: str) -> str:
    if kind in (EXECUTOR_DIED.kind, FAIL_KIND, RETRY_KIND):
        raise ValueError(f"must not be {kind!r}, which Carillon says itself")
    return kind


class CompleteBody(Document):
    """`result`, any JSON value, is kept in the history as text: its beginning, 512 bytes, or up to
    32 KB of it where the job wants that (its `result`)."""

    result: JsonText = "null"


class FailBody(Document):
    """The reason: `kind` is a short name, which the job's `retry_on` may name; `permanent`: no
    retry can help."""

    message: Annotated[str, Field(min_length=1, max_length=4096)]
    kind: Annotated[
        str,
        Field(pattern=r"^[A-Za-z_][A-Za-z0-9_.]{0,127}$"),
        AfterValidator(_not_ours),
    ] = "failed"
    permanent: Flag = False


class ReportForm(BaseModel):
    """The run after the report; `lease_until`: without another report by then its attempt has
    failed."""

    run_id: str
    status: RunStatus
    attempt: int
    lease_until: UtcTime | None
    next_attempt_at: UtcTime | None

    @classmethod
    def of(cls, run: Run) -> "ReportForm":
        return cls(
            run_id=run.key.run_id,
            status=run.status,
            attempt=run.attempt,
            lease_until=run.lease_until,
            next_attempt_at=run.next_attempt_at,
        )


ReportedRun = Annotated[str, Path(description="The `run_id` in the address that the target got.")]
_PATH = "/completions/<run_id>"
_REFUSALS = (Kind.NOT_FOUND, Kind.CONTENDED, Kind.REPORT_REFUSED, Kind.TOO_MANY_REQUESTS)


class CompletionRoutes(Resource):
    """Each method answers one route; all need `Authorization: Bearer` with the attempt's token."""

    def __init__(self, routes: Routes, service: CompletionService, telemetry: Telemetry) -> None:
        super().__init__(routes)
        self._service = service
        self._telemetry = telemetry

    @route(
        f"POST {_PATH}/complete",
        "Report that a run is complete",
        {200: "The run, which has succeeded"},
        *_REFUSALS,
        is_open=True,
        role=None,
    )
    def complete_run(
        self, run_id: ReportedRun, body: Annotated[CompleteBody | None, Body()] = None
    ) -> Response[ReportForm]:
        """Ends the run of a target with `completion` as succeeded. The token that its target got is
        the bearer token: 404 for any other, 409 for one whose attempt has ended otherwise. A
        repetition answers the same."""
        text = (body or CompleteBody()).result
        size_bytes = len(text.encode())
        if size_bytes > RESULT_LIMIT_BYTES:
            raise PayloadTooLargeError("result", size_bytes, RESULT_LIMIT_BYTES)
        result = completing.result_text(text)
        return self._answer(lambda token: self._service.complete(run_id, token, result))

    @route(
        f"POST {_PATH}/fail",
        "Report that a run has failed",
        {200: "The run, which is dead, or retrying"},
        *_REFUSALS,
        is_open=True,
        role=None,
    )
    def fail_run(
        self, run_id: ReportedRun, body: Annotated[FailBody, Body()]
    ) -> Response[ReportForm]:
        """Ends the attempt as failed; its job's retry policy decides what follows. Token and
        repetitions as for `complete`."""
        error = RunError(body.kind, one_line(body.message), body.permanent)
        return self._answer(lambda token: self._service.fail(run_id, token, error))

    @route(
        f"POST {_PATH}/heartbeat",
        "Report that a run is under way",
        {200: "The run, and until when the next report is due"},
        *_REFUSALS,
        is_open=True,
        role=None,
    )
    def send_heartbeat(self, run_id: ReportedRun) -> Response[ReportForm]:
        """Moves the instant by which the next report is due. Token as for `complete`; 409 once the
        attempt has ended, or another has taken over."""
        return self._answer(lambda token: self._service.heartbeat(run_id, token))

    def _answer(self, report: Callable[[str], Run]) -> Response[ReportForm]:
        """The run as `report` makes it, by the request's token."""
        given = str(self._app.current_event.headers.get("authorization") or "")
        scheme, _, token = given.partition(" ")
        try:
            run = report(token.strip() if scheme.lower() == "bearer" else "")
        except ReportRefusedError as error:
            raise ProblemError(Kind.REPORT_REFUSED, str(error)) from error
        if run.status is not RunStatus.RUNNING:
            run_id, status = run.key.run_id, run.status.value
            self._telemetry.record(
                Action.RUN_REPORTED, run_id=run_id, owner=run.key.owner, status=status
            )
        return Response(200, JSON, ReportForm.of(run))
