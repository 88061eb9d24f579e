"""/changes and /jobs/{job_id}/changes: who changed what."""

from typing import Annotated, Any

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Query
from pydantic import BaseModel

from carillon.api.changes.service import ChangeService
from carillon.api.http.fields import ListForm, UtcTime
from carillon.api.http.problems import Kind
from carillon.api.http.routing import Resource, Routes, route
from carillon.api.jobs.routes import JSON, Cursor, JobId, Limit
from carillon.domain.changes.change import Action, Change, Subject
from carillon.domain.spec.fields import Instant
from carillon.domain.spec.owners import AuthorKind, Via
from carillon.domain.spec.teams import Role
from carillon.errors import InvalidFieldError
from carillon.stores.ports import ChangeFilter

NAME_PATTERN = "^[a-z0-9][a-z0-9._-]{0,63}$"

FromQuery = Annotated[Instant | None, Query(alias="from", description="Made then or later.")]
ToQuery = Annotated[Instant | None, Query(description="Made then or earlier.")]
ByQuery = Annotated[
    str | None,
    Query(min_length=1, max_length=255, description="Only of the one with this id or name."),
]
ActionQuery = Annotated[Action | None, Query(description="Only these.")]
JobQuery = Annotated[
    str | None, Query(min_length=1, max_length=64, description="Only of this job, by its id.")
]
CalendarQuery = Annotated[
    str | None, Query(pattern=NAME_PATTERN, description="Only of the calendar of this name.")
]
NotificationQuery = Annotated[
    str | None, Query(pattern=NAME_PATTERN, description="Only of the notification of this name.")
]


class ActorForm(BaseModel):
    """The one who made a change: `id` is the token's subject or the role's ARN, `name` what people
    know it by."""

    kind: AuthorKind
    id: str
    name: str


class MemberForm(BaseModel):
    """A member that differs, null where there was or is none. A long value is a text that ends in
    `…`; a payload, and the value of a header, is a digest."""

    path: str
    before: Any
    after: Any


class RecordedChange(BaseModel):
    """A change: who did what, and by which way it came. `revision` is the one that it made,
    `name` what the subject was called then, `source` the manifest or stack that applies a job's
    settings. `job_id` and `job_name` are null where the subject is no job. `ref` is the id of the
    run or of the operation that was asked for, or changed."""

    change_id: str
    at: UtcTime
    by: ActorForm
    via: Via
    subject: Subject
    name: str
    job_id: str | None
    job_name: str | None
    action: Action
    revision: int
    changed: list[MemberForm]
    note: str | None
    source: str | None
    ref: str | None

    @classmethod
    def of(cls, change: Change) -> "RecordedChange":
        author, is_job = change.author, change.subject is Subject.JOB
        return cls(
            change_id=change.change_id,
            at=change.at,
            by=ActorForm.model_validate(author.who),
            via=author.via,
            subject=change.subject,
            name=change.name,
            job_id=change.key if is_job else None,
            job_name=change.name if is_job else None,
            action=change.action,
            revision=change.revision,
            changed=[MemberForm(**each) for each in change.members],
            note=change.note or None,
            source=change.source or None,
            ref=change.ref or None,
        )


class ChangePage(ListForm):
    items: list[RecordedChange]


class ChangeRoutes(Resource):
    """Each method answers one route."""

    def __init__(self, routes: Routes, service: ChangeService) -> None:
        super().__init__(routes)
        self._service = service

    @route(
        "GET /changes",
        "List who changed what",
        {200: "A page of changes"},
        Kind.NOT_FOUND,
        role=Role.VIEWER,
    )
    def list_changes(
        self,
        from_at: FromQuery = None,
        to: ToQuery = None,
        by: ByQuery = None,
        action: ActionQuery = None,
        job: JobQuery = None,
        calendar: CalendarQuery = None,
        notification: NotificationQuery = None,
        limit: Limit = 25,
        cursor: Cursor = None,
    ) -> Response[ChangePage]:
        """The changes of all your jobs, calendars and notifications, newest first, for as long as
        the deployment keeps them. A change may be some seconds late; with `job`, `calendar` or
        `notification`, of which one may be given, none is."""
        only, owner = ChangeFilter(from_at, to, by or "", action), self._owner()
        named = [job, calendar, notification]
        if sum(each is not None for each in named) > 1:
            raise InvalidFieldError("job", "goes without calendar and notification: give one")
        if job is not None:
            return self._of_job(job, only, limit, cursor)
        if calendar is not None:
            subject = Subject.CALENDAR
            page = self._service.of_row(owner, subject, calendar, limit, cursor, only)
        elif notification is not None:
            subject = Subject.NOTIFICATION
            page = self._service.of_row(owner, subject, notification, limit, cursor, only)
        else:
            page = self._service.of_owner(owner, limit, cursor, only)
        return Response(200, JSON, ChangePage.of_page(page, RecordedChange.of))

    @route(
        "GET /jobs/<job_id>/changes",
        "List who changed a job",
        {200: "A page of changes"},
        Kind.NOT_FOUND,
        role=Role.VIEWER,
    )
    def list_changes_of_a_job(
        self,
        job_id: JobId,
        from_at: FromQuery = None,
        to: ToQuery = None,
        by: ByQuery = None,
        action: ActionQuery = None,
        limit: Limit = 25,
        cursor: Cursor = None,
    ) -> Response[ChangePage]:
        """All that was done to a job, by whom, and what differed, newest first. A deleted job
        has them, too."""
        only = ChangeFilter(from_at, to, by or "", action)
        return self._of_job(job_id, only, limit, cursor)

    def _of_job(
        self, job_id: str, only: ChangeFilter, limit: int, cursor: str | None
    ) -> Response[ChangePage]:
        page = self._service.of_job(self._owner(), job_id, limit, cursor, only)
        return Response(200, JSON, ChangePage.of_page(page, RecordedChange.of))
