"""The resource /jobs, many at once: bulk creation; pause, resume and deletion by filter."""

from typing import Annotated

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body

from carillon.api.http.problems import Kind
from carillon.api.http.requests import MOST_KEY_CHARACTERS, caller_of, idempotency_key
from carillon.api.http.routing import Routes
from carillon.api.jobs.bulk_forms import MOST_ITEMS, BulkBody, BulkForm, ChangedForm
from carillon.api.jobs.bulk_service import BulkService, Tell
from carillon.api.jobs.filters import ParentQuery, TagQuery, required_filter
from carillon.api.jobs.routes import JSON, Cursor, IdempotencyKey
from carillon.domain.job import Job
from carillon.telemetry import Action, Telemetry

PATH = "/jobs/bulk"


class BulkRoutes:
    """Each method answers one route."""

    def __init__(self, routes: Routes, service: BulkService, telemetry: Telemetry) -> None:
        self._app = routes.app
        self._service = service
        self._telemetry = telemetry
        self._add(routes)

    def create_jobs(
        self, body: Annotated[BulkBody, Body()], key: IdempotencyKey = None
    ) -> Response[BulkForm]:
        """Item by item: a refused one hinders no other. With an Idempotency-Key K the items that
        have no `idempotency_key` of their own have `K/0`, `K/1`, ... by their places; K has at most
        251 characters then.

        Without any key a repetition creates an item again.
        """
        longest = MOST_KEY_CHARACTERS - len(f"/{MOST_ITEMS - 1}")
        key = idempotency_key(self._app, longest)
        items = self._service.create(
            self._owner(), body.items, key, self._teller(Action.JOB_CREATED)
        )
        return Response(200, JSON, BulkForm.of(items, PATH))

    def pause_jobs(
        self, parent: ParentQuery = None, tag: TagQuery = None, cursor: Cursor = None
    ) -> Response[ChangedForm]:
        """Those of a parent, with some tags, or both, each as by `POST /jobs/{job_id}/pause`.
        Paused jobs stay as they are."""
        only, tell = required_filter(parent, tag), self._teller(Action.JOB_PAUSED)
        page = self._service.pause(self._owner(), only, cursor, tell)
        return Response(200, JSON, ChangedForm.of(page))

    def resume_jobs(
        self, parent: ParentQuery = None, tag: TagQuery = None, cursor: Cursor = None
    ) -> Response[ChangedForm]:
        """Those of a parent, with some tags, or both. Active jobs stay as they are."""
        only, tell = required_filter(parent, tag), self._teller(Action.JOB_RESUMED)
        page = self._service.resume(self._owner(), only, cursor, tell)
        return Response(200, JSON, ChangedForm.of(page))

    def delete_jobs(
        self, parent: ParentQuery = None, tag: TagQuery = None, cursor: Cursor = None
    ) -> Response[ChangedForm]:
        """Those of a parent, with some tags, or both; their histories stay until they expire."""
        only, tell = required_filter(parent, tag), self._teller(Action.JOB_DELETED)
        page = self._service.delete(self._owner(), only, cursor, tell)
        return Response(200, JSON, ChangedForm.of(page))

    def _add(self, routes: Routes) -> None:
        routes.add(
            "POST",
            PATH,
            self.create_jobs,
            summary="Create up to 1,000 jobs",
            answers={200: "What became of each item"},
            problems=(Kind.INVALID_HEADER,),
        )
        for method, path, call, verb in (
            ("POST", "/jobs/pause", self.pause_jobs, "Pause"),
            ("POST", "/jobs/resume", self.resume_jobs, "Resume"),
            ("DELETE", "/jobs", self.delete_jobs, "Delete"),
        ):
            routes.add(
                method,
                path,
                call,
                summary=f"{verb} jobs by parent or tags",
                answers={200: "How many were changed, and whether to go on"},
                problems=(Kind.CONTENDED,),
            )

    def _owner(self) -> str:
        return caller_of(self._app.current_event.raw_event).owner

    def _teller(self, action: Action) -> Tell:
        def tell(job: Job) -> None:
            self._telemetry.record(
                action, owner=job.owner, job_id=job.job_id, revision=job.revision
            )

        return tell
