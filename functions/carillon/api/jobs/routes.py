"""The resource /jobs."""

from typing import Annotated

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body, Header, Path, Query

from carillon.api.http.callers import Caller
from carillon.api.http.problems import Kind
from carillon.api.http.requests import (
    KEY_PATTERN,
    IfMatch,
    etag,
    expected_revision,
    idempotency_key,
    precondition,
)
from carillon.api.http.routing import Resource, Routes, route
from carillon.api.jobs.request_models import (
    JobPatch,
    ManagedQuery,
    NameQuery,
    ParentQuery,
    PauseBody,
    TagQuery,
    filter_of,
    pause_of,
)
from carillon.api.jobs.response_models import JobForm, JobPage, JobReport
from carillon.api.jobs.service import JobService
from carillon.api.jobs.summaries import (
    RECENT,
    IncludeQuery,
    JobDetail,
    JobSummaryPage,
    RunBrief,
    SearchQuery,
    ShownState,
    StateQuery,
    SummaryService,
    View,
    ViewQuery,
    included_of,
)
from carillon.api.schedules.outlook import outlook_of
from carillon.api.schedules.preview import report_of
from carillon.clock import Clock
from carillon.domain.calendar import Calendar
from carillon.domain.execution.recent import failures_in_a_row, last_run
from carillon.domain.job import Job
from carillon.domain.spec.job_spec import JobSpec
from carillon.domain.spec.teams import Role
from carillon.errors import InvalidFieldError, UnreadableRowError
from carillon.services.calendar_reader import CalendarReader
from carillon.services.history import History
from carillon.stores.ports import JobFilter, Page, VersionedRows
from carillon.stores.recording import Acts
from carillon.telemetry import Action, Telemetry

JSON = "application/json"

JobId = Annotated[str, Path(description="The `job_id` that the creation answered.")]
IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        description="1 to 255 printable ASCII characters; under one key it happens once.",
        json_schema_extra={"pattern": KEY_PATTERN},
    ),
]
Limit = Annotated[int, Query(ge=1, le=100, description="Most items of the page.")]
Cursor = Annotated[
    str | None,
    Query(
        max_length=4096,
        description="The `next_cursor` of the page before.",
        json_schema_extra={"pattern": "^[A-Za-z0-9_-]+$"},
    ),
]
Force = Annotated[
    bool, Query(description="Also where a manifest or stack manages it, which reports drift then.")
]

ETAG = {"ETag": "The job's revision, for If-Match."}
_PATH = "/jobs/<job_id>"
_CONTENDED = (Kind.NOT_FOUND, Kind.CONTENDED)


class JobAnswers:
    """Answers of which each is a job, as it is at this moment."""

    def __init__(
        self,
        history: History,
        calendars: VersionedRows[Calendar],
        clock: Clock,
        longest_timeout_seconds: int,
    ) -> None:
        self._history = history
        self._calendars = calendars
        self._clock = clock
        self._longest_seconds = longest_timeout_seconds

    def answer(self, job: Job) -> Response[JobForm]:
        outlook = outlook_of(job, CalendarReader(self._calendars), self._clock.now())
        form = JobForm.of(job, outlook, self._longest_seconds)
        return Response(200, JSON, form, {"ETag": etag(job.revision)})

    def answer_report(
        self, job: Job, status: int = 200, headers: dict[str, str] | None = None
    ) -> Response[JobReport]:
        return Response(
            status, JSON, self.report(job), {"ETag": etag(job.revision), **(headers or {})}
        )

    def report(self, job: Job) -> JobReport:
        now, calendars = self._clock.now(), CalendarReader(self._calendars)
        report = report_of(calendars.opened(job), now)
        outlook = outlook_of(job, calendars, now)
        return JobReport.with_report(job, outlook, self._longest_seconds, report)

    def detail(self, job: Job) -> Response[JobDetail]:
        """With what its history says."""
        outlook = outlook_of(job, CalendarReader(self._calendars), self._clock.now())
        recent = self._history.latest(job.owner, job.job_id, RECENT)
        newest = last_run(recent)
        form = JobDetail.model_construct(
            **JobForm.of(job, outlook, self._longest_seconds).__dict__,
            last_run=None if newest is None else RunBrief.of(newest),
            failures_in_a_row=failures_in_a_row(recent),
        )
        return Response(200, JSON, form, {"ETag": etag(job.revision)})

    def page(self, page: Page[Job], state: ShownState | None) -> JobPage:
        """Those of its jobs that show this state, if one is given."""
        calendars, now = CalendarReader(self._calendars), self._clock.now()
        pairs = [(job, outlook_of(job, calendars, now)) for job in page.items]
        shown = [pair for pair in pairs if state is None or pair[1].state.value == state.value]
        return JobPage.of(page, shown, self._longest_seconds)


class JobResource(Resource):
    """The parts that jobs by id and by name have in common."""

    def __init__(
        self,
        routes: Routes,
        service: JobService,
        answers: JobAnswers,
        acts: Acts,
        telemetry: Telemetry,
    ) -> None:
        super().__init__(routes)
        self._service = service
        self._answers = answers
        self._acts = acts
        self._telemetry = telemetry

    def _delete(self, job_id: str, *, force: bool) -> Response[None]:
        caller, condition = self._caller(), precondition(self._app)
        try:
            deleted = self._service.delete(
                caller.owner, job_id, condition.revision, caller.author, force=force
            )
            self._report(Action.JOB_DELETED, deleted.job, caller)
        except UnreadableRowError:
            self._acts.of_unreadable(caller.owner, job_id, caller.author)
            if not self._service.remove_unreadable(caller.owner, job_id):
                raise
            self._telemetry.record(
                Action.JOB_DELETED,
                by=caller.author,
                owner=caller.owner,
                job_id=job_id,
                reason="unreadable",
            )
        return Response(204)

    def _report(self, action: Action, job: Job, caller: Caller) -> None:
        self._telemetry.record(
            action, by=caller.author, owner=job.owner, job_id=job.job_id, revision=job.revision
        )


class JobRoutes(JobResource):
    """Each method answers one route."""

    def __init__(
        self,
        routes: Routes,
        service: JobService,
        answers: JobAnswers,
        acts: Acts,
        telemetry: Telemetry,
        summaries: SummaryService,
    ) -> None:
        super().__init__(routes, service, answers, acts, telemetry)
        self._summaries = summaries

    @route(
        "POST /jobs",
        "Create a job",
        {201: "The new job", 200: "The job that the key had created"},
        Kind.INVALID_HEADER,
        Kind.CONTENDED,
        Kind.GONE,
        Kind.NAME_TAKEN,
        headers={**ETAG, "Location": "The job's path."},
        role=Role.EDITOR,
    )
    def create_job(
        self, body: Annotated[JobSpec, Body()], key: IdempotencyKey = None
    ) -> Response[JobReport]:
        """With an Idempotency-Key a repetition answers 200 with the job, whatever it is by now. The
        name of a deleted job is free again: the new one continues its history.

        The payload may take 65,536 bytes as compact JSON. A one-shot must lie in the future, and a
        calendar must be there. `warnings` has what may not be meant, `transitions` the clock
        changes within a year that affect the job.
        """
        caller, key = self._caller(), idempotency_key(self._app)
        created = self._service.create(caller.owner, body, key, caller.author)
        job = created.job
        if created.is_new:
            self._report(Action.JOB_CREATED, job, caller)
        return self._answers.answer_report(
            job, 201 if created.is_new else 200, {"Location": f"/jobs/{job.job_id}"}
        )

    @route("GET /jobs", "List your jobs", {200: "A page of jobs"}, role=Role.VIEWER)
    def list_jobs(
        self,
        limit: Limit = 20,
        cursor: Cursor = None,
        parent: ParentQuery = None,
        tag: TagQuery = None,
        name: NameQuery = None,
        managed_by: ManagedQuery = None,
        state: StateQuery = None,
        q: SearchQuery = None,
        view: ViewQuery = View.FULL,
        include: IncludeQuery = None,
    ) -> Response[JobPage | JobSummaryPage]:
        """By name. A page can be shorter than `limit`, even empty; `next_cursor` is null on the
        last one. Jobs that cannot be read are in `unreadable`; they can be deleted.

        `view=summary` answers what lists show, read from an index, which is a few seconds behind at
        most; `include=last_run,recent_runs` adds runs to it. A page without filters, or by the
        beginning of names, reads what it answers; one by `state`, `tag`, `parent` or `managed_by`
        may read all your jobs.
        """
        owner = self._owner()
        included = included_of(view, include)
        only = filter_of(parent, tag, q or name, managed_by, state and state.stored) or JobFilter()
        if q is not None and name is not None:
            raise InvalidFieldError("name", "goes without q, which takes the beginning of a name")
        if view is View.SUMMARY:
            summaries = self._summaries.page(owner, limit, cursor, only, state, included)
            return Response(200, JSON, summaries)
        found = self._summaries.of_id(owner, only)
        page = found or self._service.list(owner, limit, cursor, only)
        return Response(200, JSON, self._answers.page(page, state))

    @route(
        f"GET {_PATH}",
        "Read a job",
        {200: "The job"},
        Kind.NOT_FOUND,
        headers=ETAG,
        role=Role.VIEWER,
    )
    def get_job(self, job_id: JobId) -> Response[JobDetail]:
        """A deleted job is not found, nor is a completed one that was to be deleted then."""
        return self._answers.detail(self._service.get(self._owner(), job_id))

    @route(
        f"PATCH {_PATH}",
        "Change a job",
        {200: "The job"},
        Kind.INVALID_HEADER,
        Kind.MANAGED,
        Kind.NOT_FOUND,
        Kind.REVISION_MISMATCH,
        Kind.REVISION_REQUIRED,
        headers=ETAG,
        role=Role.EDITOR,
    )
    def change_job(
        self,
        job_id: JobId,
        body: Annotated[JobPatch, Body()],
        force: Force = False,
        if_match: IfMatch = None,
    ) -> Response[JobReport]:
        """Merges the fields given; null sets one to its default. Needs If-Match.

        A change of when it fires counts from now on, `max_runs` anew.
        """
        caller, revision = self._caller(), expected_revision(self._app)
        job = self._service.change(caller.owner, job_id, body, revision, caller.author, force=force)
        self._report(Action.JOB_CHANGED, job, caller)
        return self._answers.answer_report(job)

    @route(
        f"DELETE {_PATH}",
        "Delete a job",
        {204: "Deleted"},
        *_CONTENDED,
        Kind.INVALID_HEADER,
        Kind.MANAGED,
        Kind.REVISION_MISMATCH,
        role=Role.EDITOR,
    )
    def delete_job(
        self, job_id: JobId, force: Force = False, if_match: IfMatch = None
    ) -> Response[None]:
        """No run starts any more; the history stays until it expires. Again: not found. So is a job
        deleted that cannot be read."""
        return self._delete(job_id, force=force)

    @route(
        f"POST {_PATH}/pause",
        "Pause a job",
        {200: "The job"},
        *_CONTENDED,
        headers=ETAG,
        role=Role.EDITOR,
    )
    def pause_job(
        self, job_id: JobId, body: Annotated[PauseBody | None, Body()] = None
    ) -> Response[JobForm]:
        """No scheduled run, retry of one or backfill starts until it is resumed, or `until` an
        instant; manual runs, redrives and callbacks do. What is due from that instant on runs,
        however late the job is resumed: its `catch_up` decides. A paused job stays paused, until
        the new instant."""
        caller = self._caller()
        reason, until = pause_of(body)
        resume_at = self._service.planner.end_of_pause(until)
        job = self._service.pause(
            caller.owner, job_id, caller.author, reason=reason, resume_at=resume_at
        ).job
        self._report(Action.JOB_PAUSED, job, caller)
        return self._answers.answer(job)

    @route(
        f"POST {_PATH}/resume",
        "Resume a job",
        {200: "The job"},
        *_CONTENDED,
        headers=ETAG,
        role=Role.EDITOR,
    )
    def resume_job(self, job_id: JobId) -> Response[JobForm]:
        """Fires again from now on; what was missed stays so. An active job stays as it is."""
        caller = self._caller()
        job = self._service.resume(caller.owner, job_id, caller.author).job
        self._report(Action.JOB_RESUMED, job, caller)
        return self._answers.answer(job)
