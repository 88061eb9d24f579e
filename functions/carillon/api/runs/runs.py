"""The resource /jobs/{job_id}/runs: manual runs, the history, cancelling."""

from typing import Annotated

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Path

from carillon.api.http.problems import Kind
from carillon.api.http.requests import caller_of, idempotency_key
from carillon.api.http.routing import Routes
from carillon.api.jobs.routes import JSON, Cursor, IdempotencyKey, JobId, Limit
from carillon.api.runs.routes import RunDetail, RunPage
from carillon.api.runs.service import RunService
from carillon.api.schedules.spans import FireTimeFrom, FireTimeTo
from carillon.telemetry import Action, Telemetry

RunId = Annotated[str, Path(description="A `run_id` of the job's history.")]


class RunRoutes:
    """Each method answers one route."""

    def __init__(self, routes: Routes, service: RunService, telemetry: Telemetry) -> None:
        self._app = routes.app
        self._service = service
        self._telemetry = telemetry
        self._add(routes)

    def run_job(self, job_id: JobId, key: IdempotencyKey = None) -> Response[RunDetail]:
        """Runs it now, whatever its schedule says, and even while it is paused.

        With an Idempotency-Key a repetition answers the same run; after a 503 it sends it again.
        """
        run = self._service.request(self._owner(), job_id, idempotency_key(self._app))
        self._telemetry.record(Action.RUN_REQUESTED, run_id=run.key.run_id, owner=run.key.owner)
        location = f"/jobs/{job_id}/runs/{run.key.run_id}"
        return Response(202, JSON, RunDetail.of(run), {"Location": location})

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
        return Response(200, JSON, RunPage.of(page))

    def get_run(self, job_id: JobId, run_id: RunId) -> Response[RunDetail]:
        """With each of its attempts, the last one too."""
        run = self._service.get(self._owner(), job_id, run_id)
        return Response(200, JSON, RunDetail.of(run))

    def cancel_run(self, job_id: JobId, run_id: RunId) -> Response[RunDetail]:
        """A run that waits, for its start or for a retry, does not start any more. One that was
        cancelled before stays as it is; one that is running or has ended is not cancelled."""
        run = self._service.cancel(self._owner(), job_id, run_id)
        self._telemetry.record(Action.RUN_CANCELLED, run_id=run_id, owner=run.key.owner)
        return Response(200, JSON, RunDetail.of(run))

    def _add(self, routes: Routes) -> None:
        routes.add(
            "POST",
            "/jobs/<job_id>/run",
            self.run_job,
            summary="Run a job now",
            answers={202: "The run, which starts in a moment"},
            problems=(Kind.INVALID_HEADER, Kind.NOT_FOUND, Kind.CONTENDED),
            headers={"Location": "The run's path."},
        )
        routes.add(
            "GET",
            "/jobs/<job_id>/runs",
            self.list_runs,
            summary="List a job's runs",
            answers={200: "A page of runs"},
            problems=(Kind.NOT_FOUND,),
        )
        routes.add(
            "GET",
            "/jobs/<job_id>/runs/<run_id>",
            self.get_run,
            summary="Read a run",
            answers={200: "The run"},
            problems=(Kind.NOT_FOUND,),
        )
        routes.add(
            "POST",
            "/jobs/<job_id>/runs/<run_id>/cancel",
            self.cancel_run,
            summary="Cancel a run that waits",
            answers={200: "The cancelled run"},
            problems=(Kind.NOT_FOUND, Kind.CONTENDED, Kind.NOT_CANCELLABLE),
        )

    def _owner(self) -> str:
        return caller_of(self._app.current_event.raw_event).owner
