"""The API, put together of its services: from an event of the gateway to its answer."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response
from aws_lambda_powertools.event_handler.api_gateway import ResponseBuilder, Route
from aws_lambda_powertools.event_handler.openapi.models import HTTPBearer
from aws_lambda_powertools.utilities.typing import LambdaContext

from carillon.api.activity.routes import ActivityRoutes
from carillon.api.activity.service import ActivityService
from carillon.api.apply.routes import ApplyRoutes
from carillon.api.apply.service import ApplyService
from carillon.api.calendars.routes import CalendarRoutes
from carillon.api.calendars.service import CalendarService
from carillon.api.changes.routes import ChangeRoutes
from carillon.api.changes.service import ChangeService
from carillon.api.deployment import DeploymentRoutes
from carillon.api.http.callers import TEAM_HEADER, caller_of, for_team
from carillon.api.http.problems import (
    Kind,
    ProblemError,
    answer_errors,
    problem_of,
    problem_response,
)
from carillon.api.http.requests import with_checked_body
from carillon.api.http.routing import Resource, Routes, route
from carillon.api.http.throttle import Throttle
from carillon.api.jobs.bulk import BulkRoutes
from carillon.api.jobs.bulk_service import BulkService
from carillon.api.jobs.named import NamedJobRoutes
from carillon.api.jobs.routes import JSON, JobAnswers, JobRoutes
from carillon.api.jobs.service import JobService
from carillon.api.jobs.summaries import SummaryService
from carillon.api.notifications.routes import NotificationRoutes
from carillon.api.notifications.service import NotificationService
from carillon.api.operations.routes import BackfillRoutes, OperationRoutes
from carillon.api.operations.service import MissedService, OperationService
from carillon.api.quotas import QuotaRoutes, QuotaService
from carillon.api.runs.completions import CompletionRoutes, CompletionService
from carillon.api.runs.dead_letters import DeadLetterRoutes, DeadLetterService
from carillon.api.runs.logs import LogRoutes, LogService
from carillon.api.runs.routes import RunRoutes
from carillon.api.runs.service import RunService
from carillon.api.schedules.preview import PreviewService
from carillon.api.schedules.routes import ScheduleRoutes
from carillon.api.schedules.upcoming import ForecastService, OccurrenceService
from carillon.api.status import OverviewService, StatusRoutes
from carillon.api.well_known import WellKnownRoutes
from carillon.clock import Clock, Entropy
from carillon.domain.quotas import Exceeded, Quota
from carillon.domain.spec.teams import TEAM_NAME
from carillon.errors import CarillonError
from carillon.services.activity import Activity
from carillon.services.history import History
from carillon.services.indexer import Indexer
from carillon.services.job_quotas import JobQuotas
from carillon.services.notices import Notices
from carillon.services.quotas import Quotas
from carillon.services.redrive import Redriver
from carillon.services.summing import Summing
from carillon.settings import Settings
from carillon.stores.ports import Stores
from carillon.stores.recording import Acts, ChangeEvents
from carillon.stores.task_logs import MemoryTaskLogs, TaskLogs
from carillon.telemetry import Telemetry

VERSION = "1.0"
_TEAM_PARAMETER = {
    "name": TEAM_HEADER.lower(),
    "in": "header",
    "required": False,
    "description": "The team to act for; without it you act for yourself.",
    "schema": {"type": "string", "pattern": f"^{TEAM_NAME}$"},
}
_UNCACHED = {"Cache-Control": "no-store"}
"""One address has an answer for each owner: no cache may give one the answer of another."""
_RESOLVERS_OWN = ("HTTPValidationError", "ValidationError", "ResponseValidationError")
"""Schemas of what the resolver itself would answer; all of ours are problems."""


class Api:
    """Answers events of an API Gateway HTTP API (payload format 2.0)."""

    def __init__(
        self,
        *,
        stores: Stores,
        clock: Clock,
        entropy: Entropy,
        settings: Settings,
        telemetry: Telemetry,
        task_logs: TaskLogs | None = None,
    ) -> None:
        self.app = _resolver()
        self._stores, self._clock, self._entropy = stores, clock, entropy
        self._settings, self._telemetry = settings, telemetry
        self._task_logs = task_logs or MemoryTaskLogs()
        self._throttle = Throttle(settings.owner_requests_burst)
        self._routes = Routes(self.app, settings)
        self.app.permit = self._routes.permit
        self._history = History.of(stores, clock, settings.run_lifetime)
        self._indexer = Indexer.of(stores, clock)
        told = ChangeEvents(stores.events, telemetry.events_lost)
        self._acts = Acts(stores.jobs, stores.changes, told, clock)
        answer_errors(self.app, telemetry, self._routes.no_route)
        self._quotas = Quotas(settings.limits, stores.quotas, clock)
        job_quotas = JobQuotas(self._quotas, stores.jobs, stores.uses, clock, entropy)
        jobs = JobService(stores, self._indexer, job_quotas, clock, entropy, settings, telemetry)
        quotas = QuotaService(stores, self._quotas, job_quotas, self._throttle, clock)
        QuotaRoutes(self._routes, quotas, telemetry)
        self._serve_jobs(jobs)
        self._serve_runs(jobs)
        self._serve_notifications()
        self._serve_views(jobs)
        ChangeRoutes(self._routes, ChangeService(stores))

    def _serve_jobs(self, service: JobService) -> None:
        """Jobs, calendars, and manifests of both."""
        routes, clock, telemetry = self._routes, self._clock, self._telemetry
        calendars = self._stores.calendars
        answers = JobAnswers(
            self._history, calendars, clock, self._settings.longest_timeout_seconds
        )
        NamedJobRoutes(routes, service, answers, self._acts, telemetry)
        summaries = SummaryService(self._stores.jobs, self._history, calendars, clock)
        JobRoutes(routes, service, answers, self._acts, telemetry, summaries)
        BulkRoutes(routes, BulkService(service, clock), telemetry)
        calendar_service = CalendarService(service, calendars, self._stores.changes, clock)
        CalendarRoutes(routes, calendar_service, telemetry)
        applying = ApplyService(service, calendar_service, clock)
        ApplyRoutes(routes, applying, calendars, clock, telemetry)

    def _serve_runs(self, jobs: JobService) -> None:
        """Runs, dead letters, and operations on many of them."""
        stores, routes, history = self._stores, self._routes, self._history
        clock, entropy = self._clock, self._entropy
        settings, telemetry = self._settings, self._telemetry
        acts = self._acts
        calendars, records, indexer = stores.calendars, stores.idempotency_records, self._indexer
        runs, queue = stores.runs, stores.queue
        service = RunService(jobs, runs, history, queue, clock, entropy, settings, records)
        RunRoutes(routes, service, acts, telemetry)
        LogRoutes(routes, LogService(history, self._task_logs, clock))
        feed = Activity(stores.activity)
        summing = Summing(feed, history, calendars, clock)
        lifetimes = settings.activity_lifetime, settings.run_lifetime
        activity = ActivityService(jobs, history, feed, summing, clock, *lifetimes)
        ActivityRoutes(routes, activity, service, clock)
        reports = CompletionService(
            stores.jobs, stores.runs, indexer, clock, entropy, self._refuse_flood_of
        )
        CompletionRoutes(routes, reports, telemetry)
        rows = (stores.operations, records)
        operations = OperationService(
            jobs, calendars, history, *rows, indexer, clock, entropy, settings
        )
        OperationRoutes(routes, operations, acts, telemetry)
        redriver = Redriver(stores.runs, indexer, clock, entropy, settings.run_lifetime)
        letters = DeadLetterService(jobs, stores.notifications, history, redriver, clock)
        DeadLetterRoutes(routes, letters, service, operations, acts, telemetry)
        missed = MissedService(jobs, calendars, history, clock, settings.run_lifetime)
        BackfillRoutes(routes, missed, operations, acts, telemetry)

    def _serve_notifications(self) -> None:
        stores, clock, settings = self._stores, self._clock, self._settings
        notices = Notices(stores.idempotency_records, stores.queue, clock, settings.run_lifetime)
        rows = (stores.notifications, stores.windows, stores.changes)
        service = NotificationService(*rows, self._history, notices, clock, settings)
        NotificationRoutes(self._routes, service, self._telemetry)

    def _serve_views(self, jobs: JobService) -> None:
        """Views: times to come, the owner's status, the deployment."""
        routes, clock, settings, history = self._routes, self._clock, self._settings, self._history
        calendars = self._stores.calendars
        ScheduleRoutes(
            routes,
            OccurrenceService(jobs, calendars, history, clock),
            PreviewService(calendars, clock),
            ForecastService(jobs, calendars, clock),
        )
        overview = OverviewService(self._stores, history, clock, settings)
        StatusRoutes(routes, overview)
        DeploymentRoutes(routes, settings, VERSION)
        WellKnownRoutes(routes, settings, VERSION)
        DescriptionRoutes(routes, self.describe)

    def answer(self, event: Mapping[str, Any], context: LambdaContext) -> dict[str, Any]:
        """The answer to one event, in the gateway's form."""
        asked_path = str(event.get("rawPath", ""))
        try:
            event = for_team(event)
            self._refuse_flood(event)
            checked = with_checked_body(event)
        except (ProblemError, CarillonError) as error:
            response = problem_response(problem_of(error), str(event.get("rawPath", "/")))
            return {
                "statusCode": response.status_code,
                "headers": {**response.headers, **_UNCACHED},
                "body": response.body,
                "isBase64Encoded": False,
            }
        answer = self.app.resolve(checked, context)
        headers = {**(answer.get("headers") or {}), **_UNCACHED}
        if "Location" in headers:  # as the path that was asked for: /aws/{team}/jobs/...
            headers["Location"] = asked_path.removesuffix(event["rawPath"]) + headers["Location"]
        # The gateway takes null for "no body", MiniStack does not.
        return {**answer, "headers": headers, "body": answer.get("body") or ""}

    def _refuse_flood(self, event: Mapping[str, Any]) -> None:
        """Before the body is read, and any store; who has no owner is refused by the route."""
        try:
            owner = caller_of(event, self._settings).owner
        except ProblemError:
            return
        self._refuse_flood_of(owner)

    def _refuse_flood_of(self, owner: str) -> None:
        now, limit = self._clock.now(), self._quotas.of(owner)[Quota.REQUESTS]
        wait_seconds = self._throttle.wait_seconds(owner, limit, now)
        if wait_seconds:
            use = self._throttle.use(owner, limit, now)
            raise ProblemError(
                Kind.TOO_MANY_REQUESTS,
                "you have sent more requests than this deployment serves each owner: send fewer "
                "in a second, or many jobs in one by POST /jobs/bulk",
                headers={"Retry-After": str(wait_seconds)},
                exceeded=Exceeded(Quota.REQUESTS, limit, use),
            )

    def describe(self) -> dict[str, Any]:
        """The OpenAPI description."""
        text = self.app.get_openapi_json_schema(
            title="Carillon",
            version=VERSION,
            description="Jobs that fire to the second, and the history of their runs.",
            security_schemes={"jwt": HTTPBearer(bearerFormat="JWT")},
            security=[{"jwt": []}],
        )
        description: dict[str, Any] = json.loads(text)
        for name in _RESOLVERS_OWN:
            description["components"]["schemas"].pop(name, None)
        for path, operations in description["paths"].items():
            for operation in operations.values():
                for parameter in operation.get("parameters", ()):
                    parameter["schema"] = _without_null(parameter["schema"])
                responses = operation["responses"]
                if operation.get("security") != []:
                    operation.setdefault("parameters", []).append(_TEAM_PARAMETER)
                responses["500"] = {**responses["503"], "description": Kind.INTERNAL.title}
                if self._routes.is_ambiguous(path):
                    responses["405"] = {
                        **responses["413"],
                        "description": Kind.METHOD_NOT_ALLOWED.title,
                        "headers": {"Allow": {"schema": {"type": "string"}}},
                    }
        return description


class DescriptionRoutes(Resource):
    """The API's description; it needs no token."""

    def __init__(self, routes: Routes, describe: Callable[[], dict[str, Any]]) -> None:
        super().__init__(routes)
        self._describe = describe
        self._description: dict[str, Any] = {}

    @route(
        "GET /openapi.json",
        "Read the API's OpenAPI description",
        {200: "The description"},
        is_open=True,
        role=None,
    )
    def get_description(self) -> Response[dict[str, Any]]:
        """This description; it needs no token."""
        if not self._description:
            self._description = self._describe()
        return Response(200, JSON, self._description)


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """A query or a header is left out; it cannot be null."""
    forms = [form for form in schema.get("anyOf", ()) if form != {"type": "null"}]
    if len(forms) != 1:
        return schema
    rest = {name: value for name, value in schema.items() if name != "anyOf"}
    return {**forms[0], **rest}


def _resolver() -> "_Resolver":
    # A wrong answer of ours must not read as a wrong request: hence a status of its own.
    return _Resolver(enable_validation=True, response_validation_error_http_code=500)


class _Resolver(APIGatewayHttpResolver):
    """Takes every letter for a part of a path; powertools' own takes few besides those of words.
    Asks who may do what before anything of the request is looked at."""

    permit: Callable[[str], None]
    """Raises ProblemError where the caller may not do the operation of this id."""

    def _call_route(self, route: Route, route_arguments: dict[str, str]) -> ResponseBuilder[Any]:
        try:
            self.permit(str(route.operation_id))
        except ProblemError as error:
            refused = self._call_exception_handler(error, route)
            assert refused is not None  # `answer_errors` has a handler of every error
            return refused
        return super()._call_route(route, route_arguments)

    @staticmethod
    def _compile_regex(rule: str, base_regex: str = "^{}$") -> "re.Pattern[str]":
        return re.compile(base_regex.format(re.sub(r"<(\w+)>", r"(?P<\1>[^/]+)", rule)))
