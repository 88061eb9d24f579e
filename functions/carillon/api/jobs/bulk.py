"""/jobs/bulk, and changes by filter: routes and models."""

from collections.abc import Collection, Sequence
from typing import Annotated, Any

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body
from pydantic import BaseModel, Field

from carillon.api.http.fields import SameForm
from carillon.api.http.problems import Kind, Problem, problem_members
from carillon.api.http.requests import MOST_KEY_CHARACTERS, idempotency_key
from carillon.api.http.routing import Resource, Routes, route
from carillon.api.jobs.bulk_service import (
    KEY_FIELD,
    MOST_ERRORS,
    BulkService,
    Item,
    Tell,
)
from carillon.api.jobs.request_models import (
    EveryQuery,
    ParentQuery,
    PauseBody,
    TagQuery,
    pause_of,
    required_filter,
)
from carillon.api.jobs.routes import JSON, Cursor, Force, IdempotencyKey
from carillon.domain.job import Job
from carillon.domain.spec.fields import Document
from carillon.domain.spec.teams import Role
from carillon.telemetry import Action, Telemetry

MOST_ITEMS = 1_000


class BulkBody(Document):
    """Up to 1,000 jobs; the whole body may take 1 MiB."""

    items: Annotated[
        list[Any],
        Field(
            min_length=1,
            max_length=MOST_ITEMS,
            description="Each a body of `POST /jobs` (JobSpec), and beside its members "
            f"`{KEY_FIELD}`: text or null, 1 to 255 printable ASCII characters. An item that "
            "cannot be used is told so in its place in the answer.",
        ),
    ]


class BulkChangeBody(Document):
    """Changes of up to 1,000 jobs; the whole body may take 1 MiB."""

    items: Annotated[
        list[Any],
        Field(
            min_length=1,
            max_length=MOST_ITEMS,
            description="Each with `job_id` and `patch`, a body of `PATCH /jobs/{job_id}`, and "
            "`force` for a job that a manifest or stack manages. An item that cannot be used is "
            "told so in its place in the answer.",
        ),
    ]


class BulkItemForm(BaseModel):
    """`status` and `problem` are what the item would be answered alone: 201, 200 or a refusal with
    its first 10 errors; 503 where it was not reached in time, or may have had an effect or not."""

    index: int
    status: int
    job_id: str | None
    problem: Problem | None

    @classmethod
    def of(cls, index: int, item: Item, instance: str) -> "BulkItemForm":
        if item.created is not None:
            status = 201 if item.created.is_new else 200
            return cls(index=index, status=status, job_id=item.created.job.job_id, problem=None)
        if item.changed is not None:
            return cls(index=index, status=200, job_id=item.changed.job_id, problem=None)
        assert item.problem is not None
        members = problem_members(item.problem, instance)
        problem = Problem(**{**members, "errors": members["errors"][:MOST_ERRORS]})
        return cls(index=index, status=problem.status, job_id=None, problem=problem)


class BulkForm(BaseModel):
    """One item for each that was sent, in their order; the four numbers add up to theirs.

    With any `unavailable` send the same call again: what has a key is not created twice.
    """

    items: list[BulkItemForm]
    created: int
    existing: int
    refused: int
    unavailable: int

    @classmethod
    def of(cls, items: Sequence[Item], instance: str) -> "BulkForm":
        return cls(**_counted(items, instance, created=[201], existing=[200]))


class BulkChangedForm(BaseModel):
    """One item for each that was sent, in their order; the three numbers add up to theirs.

    With any `unavailable` send the same call again.
    """

    items: list[BulkItemForm]
    changed: int
    refused: int
    unavailable: int

    @classmethod
    def of(cls, items: Sequence[Item], instance: str) -> "BulkChangedForm":
        return cls(**_counted(items, instance, changed=[200]))


class ChangedForm(SameForm):
    """`changed` counts the jobs that this call changed, `managed` those that it left to the
    manifest or stack which manages them. Repeat it with the cursor until that is
    null; jobs that are created meanwhile may be left out."""

    changed: int
    managed: int
    next_cursor: str | None


def _counted(items: Sequence[Item], instance: str, **successes: Collection[int]) -> dict[str, Any]:
    """The items' forms, and how many of them have each outcome: one of `successes`, by its
    statuses, or a refusal, or an outage."""
    forms = [BulkItemForm.of(index, item, instance) for index, item in enumerate(items)]
    outcomes = {**successes, "refused": range(400, 500), "unavailable": range(500, 600)}
    counts = {
        name: sum(form.status in statuses for form in forms) for name, statuses in outcomes.items()
    }
    return {"items": forms, **counts}


PATH = "/jobs/bulk"
_CHANGED = {200: "How many were changed, and whether to go on"}


class BulkRoutes(Resource):
    """Each method answers one route."""

    def __init__(self, routes: Routes, service: BulkService, telemetry: Telemetry) -> None:
        super().__init__(routes)
        self._service = service
        self._telemetry = telemetry

    @route(
        f"POST {PATH}",
        "Create up to 1,000 jobs",
        {200: "What became of each item"},
        Kind.INVALID_HEADER,
        role=Role.EDITOR,
    )
    def create_jobs(
        self, body: Annotated[BulkBody, Body()], key: IdempotencyKey = None
    ) -> Response[BulkForm]:
        """Item by item: a refused one hinders no other. With an Idempotency-Key K the items that
        have no `idempotency_key` of their own have `K/0`, `K/1`, ... by their places; K has at most
        251 characters then.

        Without any key a repetition finds the name of what it created taken (409).
        """
        longest = MOST_KEY_CHARACTERS - len(f"/{MOST_ITEMS - 1}")
        key = idempotency_key(self._app, longest)
        items = self._service.create(
            self._caller(), body.items, key, self._teller(Action.JOB_CREATED)
        )
        return Response(200, JSON, BulkForm.of(items, PATH))

    @route(
        f"PATCH {PATH}",
        "Change up to 1,000 jobs",
        {200: "What became of each item"},
        role=Role.EDITOR,
    )
    def change_jobs(self, body: Annotated[BulkChangeBody, Body()]) -> Response[BulkChangedForm]:
        """Item by item, each as by `PATCH /jobs/{job_id}` with `If-Match: *`: a refused one hinders
        no other, and a repetition changes nothing more."""
        items = self._service.change(self._caller(), body.items, self._teller(Action.JOB_CHANGED))
        return Response(200, JSON, BulkChangedForm.of(items, PATH))

    @route(
        "POST /jobs/pause",
        "Pause jobs by parent or tags",
        _CHANGED,
        Kind.CONTENDED,
        role=Role.EDITOR,
    )
    def pause_jobs(
        self,
        body: Annotated[PauseBody | None, Body()] = None,
        parent: ParentQuery = None,
        tag: TagQuery = None,
        every: EveryQuery = None,
        cursor: Cursor = None,
    ) -> Response[ChangedForm]:
        """Those of a parent, with some tags, or both, or all of them, each as by
        `POST /jobs/{job_id}/pause`. Jobs that are paused until then already stay as they are; those
        that are paused otherwise are resumed then, too."""
        only, tell = required_filter(parent, tag, every), self._teller(Action.JOB_PAUSED)
        page = self._service.pause(self._caller(), only, cursor, tell, *pause_of(body))
        return Response(200, JSON, ChangedForm.of(page))

    @route(
        "POST /jobs/resume",
        "Resume jobs by parent or tags",
        _CHANGED,
        Kind.CONTENDED,
        role=Role.EDITOR,
    )
    def resume_jobs(
        self,
        parent: ParentQuery = None,
        tag: TagQuery = None,
        every: EveryQuery = None,
        cursor: Cursor = None,
    ) -> Response[ChangedForm]:
        """Those of a parent, with some tags, or both, or all of them. Active jobs stay as they
        are."""
        only, tell = required_filter(parent, tag, every), self._teller(Action.JOB_RESUMED)
        page = self._service.resume(self._caller(), only, cursor, tell)
        return Response(200, JSON, ChangedForm.of(page))

    @route(
        "DELETE /jobs", "Delete jobs by parent or tags", _CHANGED, Kind.CONTENDED, role=Role.ADMIN
    )
    def delete_jobs(
        self,
        parent: ParentQuery = None,
        tag: TagQuery = None,
        force: Force = False,
        cursor: Cursor = None,
    ) -> Response[ChangedForm]:
        """Those of a parent, with some tags, or both; their histories stay until they expire."""
        only, tell = required_filter(parent, tag), self._teller(Action.JOB_DELETED)
        page = self._service.delete(self._caller(), only, cursor, tell, force=force)
        return Response(200, JSON, ChangedForm.of(page))

    def _teller(self, action: Action) -> Tell:
        author = self._caller().author

        def tell(job: Job) -> None:
            self._telemetry.record(
                action, by=author, owner=job.owner, job_id=job.job_id, revision=job.revision
            )

        return tell
