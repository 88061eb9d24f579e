"""/jobs/named/{name}: jobs by the names that their owners gave them."""

from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import unquote

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body, Path, Query
from pydantic import BaseModel, Field, ValidationError, create_model

from carillon.api.http.fields import field_errors
from carillon.api.http.problems import InvalidFieldsError, Kind
from carillon.api.http.requests import IfMatch, IfNoneMatch, etag, precondition
from carillon.api.http.routing import route
from carillon.api.jobs.changes import Put, PutAction
from carillon.api.jobs.response_models import JobReport
from carillon.api.jobs.routes import ETAG, JSON, Force, JobResource
from carillon.api.jobs.summaries import JobDetail
from carillon.domain.changes.change import differences
from carillon.domain.spec.job_spec import JobSpec, Name
from carillon.domain.spec.names import folded, job_id_of
from carillon.domain.spec.teams import Role
from carillon.errors import InvalidFieldError
from carillon.telemetry import Action

if TYPE_CHECKING:
    NamedJob = JobSpec
else:
    NamedJob = create_model(
        "NamedJob",
        __base__=JobSpec,
        __doc__="""All settings of a job: what is left out gets its default. The `name` may be left
        out, too; it may differ from that of the path in its case.""",
        name=(Name | None, None),
    )

_ACTIONS = {
    PutAction.CREATE: Action.JOB_CREATED,
    PutAction.REVIVE: Action.JOB_CREATED,
    PutAction.CHANGE: Action.JOB_CHANGED,
}
_PATH = "/jobs/named/<name>"

NamePath = Annotated[
    str, Path(min_length=1, max_length=1536, description="The job's name, whatever its case.")
]
DryRun = Annotated[bool, Query(description="Only say what would happen; nothing is written.")]


class ChangeForm(BaseModel):
    """A member that is changed, as `retry.max_attempts`; null where there was, or is, none."""

    path: str
    before: Any
    after: Any


class PutReport(BaseModel):
    """`action`: create, change, revive (of a job that was deleted) or none. `changes` are from the
    settings before, of a new or revived job from nothing. `reindexes`: it fires by new entries."""

    action: PutAction
    changes: Annotated[list[ChangeForm], Field(description="Empty where nothing is written.")]
    reindexes: bool
    job: JobReport

    @classmethod
    def of(cls, put: Put, job: JobReport) -> "PutReport":
        before: dict[str, Any] = {}
        if put.action in (PutAction.CHANGE, PutAction.NONE) and put.before is not None:
            before = put.before.spec.document
        changes = differences(before, put.job.spec.document)
        forms = [ChangeForm(path=path, before=old, after=new) for path, old, new in changes]
        return cls(action=put.action, changes=forms, reindexes=put.reindexes, job=job)


class NamedJobRoutes(JobResource):
    """Each method answers one route. They are to be registered before other paths of jobs, as
    `/jobs/{job_id}/runs`, which a job named `runs` could be taken for: the first that fits answers.
    """

    @route(
        f"PUT {_PATH}",
        "Create or replace the job of a name",
        {201: "The new or revived job", 200: "The job as it is, or would be, now"},
        Kind.INVALID_HEADER,
        Kind.NOT_FOUND,  # of a name that no path can carry
        Kind.CONTENDED,
        Kind.MANAGED,
        Kind.REVISION_MISMATCH,
        headers={**ETAG, "Location": "The path of the job by its id."},
        role=Role.EDITOR,
    )
    def put_job(
        self,
        name: NamePath,
        body: Annotated[NamedJob, Body()],
        dry_run: DryRun = False,
        force: Force = False,
        if_match: IfMatch = None,
        if_none_match: IfNoneMatch = None,
    ) -> Response[PutReport]:
        """Creates it, or gives it these settings and no others. Sent again it changes nothing.

        A job that was deleted is revived: it fires from now on, and keeps its history. A paused one
        stays paused. A change of when it fires counts from now on, `max_runs` anew.
        """
        spec = _spec_of(unquote(name), body)
        caller = self._caller()
        put = self._service.put(
            caller.owner,
            spec,
            precondition(self._app),
            caller.author,
            dry_run=dry_run,
            force=force,
        )
        if not dry_run and put.action in _ACTIONS:
            self._report(_ACTIONS[put.action], put.job, caller)
        is_new = not dry_run and put.action in (PutAction.CREATE, PutAction.REVIVE)
        report = PutReport.of(put, self._answers.report(put.job))
        headers = {"Location": f"/jobs/{put.job.job_id}"}
        stored = put.before if dry_run else put.job
        if stored is not None and not stored.is_tombstone:
            headers["ETag"] = etag(stored.revision)
        return Response(201 if is_new else 200, JSON, report, headers)

    @route(
        f"GET {_PATH}",
        "Read the job of a name",
        {200: "The job"},
        Kind.NOT_FOUND,
        headers=ETAG,
        role=Role.VIEWER,
    )
    def get_named_job(self, name: NamePath) -> Response[JobDetail]:
        """A deleted job is not found."""
        return self._answers.detail(self._service.named(self._owner(), unquote(name)))

    @route(
        f"DELETE {_PATH}",
        "Delete the job of a name",
        {204: "Deleted"},
        Kind.INVALID_HEADER,
        Kind.NOT_FOUND,
        Kind.CONTENDED,
        Kind.MANAGED,
        Kind.REVISION_MISMATCH,
        role=Role.EDITOR,
    )
    def delete_named_job(
        self, name: NamePath, force: Force = False, if_match: IfMatch = None
    ) -> Response[None]:
        """No run starts any more; the history stays until it expires, and belongs to the job again
        when one of this name is created. Again: not found."""
        return self._delete(job_id_of(self._owner(), unquote(name)), force=force)


def _spec_of(name: str, body: JobSpec) -> JobSpec:
    """The settings of a body under the path's name; raises InvalidFieldError,
    InvalidFieldsError."""
    spelt = body.name or name
    if folded(spelt) != folded(name):
        raise InvalidFieldError("name", "must be that of the path, or left out")
    members = body.model_dump(mode="json", by_alias=True, exclude_unset=True)
    try:
        return JobSpec.model_validate({**members, "name": spelt})
    except ValidationError as error:
        raise InvalidFieldsError(field_errors(error.errors())) from error
