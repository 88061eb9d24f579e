"""/runs: what has run, across jobs."""

from aws_lambda_powertools.event_handler import Response

from carillon.api.activity.models import (
    ActivityForm,
    AfterQuery,
    BucketForm,
    ByQuery,
    CountsForm,
    FromQuery,
    GroupQuery,
    JobQuery,
    KindQuery,
    LagForm,
    RunSummary,
    RunWithJob,
    StatusQuery,
    SumFrom,
    SummaryForm,
    SumTo,
    ToQuery,
    values_of,
)
from carillon.api.activity.service import ActivityService, Span
from carillon.api.http.fields import rest_of
from carillon.api.http.problems import Kind
from carillon.api.http.routing import Resource, Routes, route
from carillon.api.jobs.request_models import TagQuery, filter_of
from carillon.api.jobs.routes import JSON, Cursor, Limit
from carillon.api.runs.routes import RunDetail, RunId
from carillon.api.runs.service import RunService
from carillon.clock import Clock
from carillon.domain.run import RunKind, RunStatus
from carillon.domain.spec.teams import Role
from carillon.services.activity import ActivityFilter


class ActivityRoutes(Resource):
    """Each method answers one route."""

    def __init__(
        self, routes: Routes, service: ActivityService, runs: RunService, clock: Clock
    ) -> None:
        super().__init__(routes)
        self._service = service
        self._runs = runs
        self._clock = clock

    @route(
        "GET /runs",
        "List what has run",
        {200: "A page of the activity"},
        Kind.NOT_FOUND,
        role=Role.VIEWER,
    )
    def list_activity(
        self,
        status: StatusQuery = None,
        kind: KindQuery = None,
        job: JobQuery = None,
        tag: TagQuery = None,
        from_at: FromQuery = None,
        to: ToQuery = None,
        after: AfterQuery = None,
        limit: Limit = 25,
        cursor: Cursor = None,
    ) -> Response[ActivityForm]:
        """The ends of attempts of all your jobs, those recorded last first, for as long as the
        activity feed reaches back. All that went otherwise than planned is there, and successes
        that came in numbers.

        A page ends with a whole record: it may have a few items more than `limit`. With `job` the
        answer is that job's history, newest fire time first, with all successes.
        """
        as_of = self._clock.now()
        chosen = filter_of(None, tag)
        only = ActivityFilter(
            values_of("status", status, RunStatus),
            values_of("kind", kind, RunKind),
            () if chosen is None else chosen.tags,
        )
        owner, span = self._owner(), Span(from_at, to, after)
        if job is None:
            page = self._service.across_jobs(owner, only, span, limit, cursor)
        else:
            page = self._service.of_job(owner, job, only, span, limit, cursor)
        items = [RunSummary.of(result) for result in page.items]
        successes = "counted" if job is None else "all"
        form = ActivityForm(items=items, as_of=as_of, successes=successes, **rest_of(page))
        return Response(200, JSON, form)

    @route("GET /runs/summary", "Sum up what has run", {200: "The sums"}, role=Role.VIEWER)
    def sum_up(
        self,
        from_at: SumFrom = None,
        to: SumTo = None,
        by: ByQuery = "hour",
        group: GroupQuery = "status",
    ) -> Response[SummaryForm]:
        """The outcomes of all that fired, by fire time. Successes are counted where a run shows
        them, never for want of failures: an occurrence without a trace is `unknown`.

        Occurrences are known from the last change of a job's schedule on; callbacks and deliveries
        of notifications are left out.
        """
        as_of = self._clock.now()
        found, is_complete = self._service.summary(self._owner(), from_at, to, by, group)
        forms = [
            BucketForm(at=at, key=key, counts=CountsForm(**bucket.counts), lag=LagForm.of(bucket))
            for (at, key), bucket in found.items()
        ]
        return Response(200, JSON, SummaryForm(buckets=forms, complete=is_complete, as_of=as_of))

    @route(
        "GET /runs/<run_id>",
        "Read a run by its id alone",
        {200: "The run"},
        Kind.NOT_FOUND,
        role=Role.VIEWER,
    )
    def get_run_of_any_job(self, run_id: RunId) -> Response[RunWithJob]:
        """With each of its attempts, and the name of its job."""
        run, job_name, asked = self._runs.find(self._owner(), run_id)
        detail = RunDetail.of(run, asked)
        return Response(200, JSON, RunWithJob(**detail.__dict__, job_name=job_name))
