"""GET /deployment: what a client may offer here, and whom the API takes it for."""

from aws_lambda_powertools.event_handler import Response
from pydantic import BaseModel

from carillon.api.apply.models import MOST_ITEMS
from carillon.api.http.requests import BODY_LIMIT_BYTES
from carillon.api.http.routing import Resource, Routes, route
from carillon.api.jobs.routes import JSON
from carillon.domain.job import PAYLOAD_LIMIT_BYTES, Lane
from carillon.domain.run import RESULT_LIMIT_BYTES
from carillon.domain.spec.job_spec import MOST_TAGS
from carillon.domain.spec.owners import AuthorKind
from carillon.domain.spec.teams import Role
from carillon.settings import Settings


class LimitsForm(BaseModel):
    """The largest values; 0 is no limit where a number is that of an owner."""

    timeout_seconds: int
    payload_bytes: int
    body_bytes: int
    result_bytes: int
    items_of_a_request: int
    tags: int
    run_retention_days: int
    activity_days: int
    owner_jobs: int
    owner_scheduled_per_minute: int
    owner_requests_per_second: int
    owner_starts_per_minute: int
    owner_concurrent_runs: int


class FeaturesForm(BaseModel):
    """`events`: lifecycle events go to a bus. `private_webhooks`: webhooks may call some private
    networks. `personal_jobs`: people may have jobs of their own, for no team."""

    events: bool
    personal_jobs: bool
    private_webhooks: bool


class CallerForm(BaseModel):
    """The caller: the owner of what requests name, the role there (null where the caller may do
    nothing without a team), the name that changes are noted under, and all teams with the roles."""

    owner: str
    role: Role | None
    kind: AuthorKind
    name: str
    is_operator: bool
    teams: dict[str, Role]


class DeploymentForm(BaseModel):
    """`lanes` are the priorities of jobs. `tasks` are the names that jobs may call, empty where
    only executors know them; `target_patterns` the ARNs that they may call."""

    version: str
    limits: LimitsForm
    lanes: list[str]
    tasks: list[str]
    target_patterns: list[str]
    features: FeaturesForm
    caller: CallerForm


class DeploymentRoutes(Resource):
    """One route; nothing is read for it."""

    def __init__(self, routes: Routes, settings: Settings, version: str) -> None:
        super().__init__(routes)
        self._settings = settings
        self._version = version

    @route(
        "GET /deployment",
        "Read what this deployment offers",
        {200: "Its choices and limits"},
        role=None,
    )
    def get_deployment(self) -> Response[DeploymentForm]:
        """Its version, limits, tasks and allowed targets, and whom it takes the caller for."""
        caller, settings = self._caller(), self._settings
        form = DeploymentForm(
            version=self._version,
            limits=_limits(settings),
            lanes=[lane.value for lane in Lane if lane is not Lane.SLOW],
            tasks=sorted(settings.task_names),
            target_patterns=list(settings.target_arns),
            features=FeaturesForm(
                events=bool(settings.event_bus),
                personal_jobs=settings.personal_jobs,
                private_webhooks=bool(settings.webhook_allowed_networks),
            ),
            caller=CallerForm(
                owner=caller.owner,
                role=caller.role,
                kind=caller.kind,
                name=caller.name,
                is_operator=caller.is_operator,
                teams=dict(caller.teams),
            ),
        )
        return Response(200, JSON, form)


def _limits(settings: Settings) -> LimitsForm:
    return LimitsForm(
        timeout_seconds=settings.longest_timeout_seconds,
        payload_bytes=PAYLOAD_LIMIT_BYTES,
        body_bytes=BODY_LIMIT_BYTES,
        result_bytes=RESULT_LIMIT_BYTES,
        items_of_a_request=MOST_ITEMS,
        tags=MOST_TAGS,
        run_retention_days=settings.run_retention_days,
        activity_days=settings.activity_days,
        owner_jobs=settings.owner_jobs,
        owner_scheduled_per_minute=settings.owner_scheduled_per_minute,
        owner_requests_per_second=settings.owner_requests_per_second,
        owner_starts_per_minute=settings.owner_starts_per_minute,
        owner_concurrent_runs=settings.owner_concurrent_runs,
    )
