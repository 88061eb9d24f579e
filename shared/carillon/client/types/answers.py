"""Bodies of answers. `make client-types` writes this file from the API's OpenAPI description."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

from carillon.client.types.requests import (
    BackoffType,
    BatchTarget,
    CalendarRule,
    CatchUp,
    EcsTarget,
    EventBridgeTarget,
    Fold,
    Gap,
    InitialState,
    LambdaTarget,
    OnComplete,
    Only,
    Outcome,
    Overlap,
    RangeForm,
    ResultKept,
    SnsTarget,
    SqsTarget,
    StepFunctionsTarget,
    TaskTarget,
    WebhookTarget,
)

# ruff: noqa: E501
# fmt: off
Action = Literal["create", "change", "pause", "resume", "delete", "complete", "rename", "move", "hand_over", "run", "cancel", "backfill", "redrive", "discard"]
AuthorKind = Literal["person", "machine", "role", "system"]
ItemAction = Literal["create", "change", "revive", "rename", "none", "delete", "drift", "refused", "unavailable"]
ItemKind = Literal["calendar", "job"]
JobState = Literal["active", "paused", "deleted", "completed", "renamed"]
Lane = Literal["high", "normal", "low", "slow"]
OperationKind = Literal["backfill", "redrive", "discard", "hand_over"]
OperationState = Literal["running", "succeeded", "failed", "cancelled"]
PutAction = Literal["create", "change", "revive", "rename", "none"]
Quota = Literal["jobs", "scheduled_per_minute", "starts_per_minute", "concurrent_runs", "requests_per_second"]
Resolution = Literal["redriven", "discarded"]
Role = Literal["viewer", "editor", "admin"]
RunKind = Literal["scheduled", "manual", "backfill", "callback", "after", "notice", "missed", "watch", "operation", "resume", "window"]
RunStatus = Literal["scheduled", "running", "retrying", "succeeded", "dead", "timed_out", "skipped", "cancelled", "missed"]
SlotKind = Literal["hourly", "daily", "dated"]
Subject = Literal["job", "calendar", "notification", "quota", "operation"]
Via = Literal["api", "cli", "console", "apply", "stack", "system"]
WarningCode = Literal["dst", "many_fires", "day_or_weekday", "day_and_weekday", "not_every_month", "far_away"]
class GatewayMessage(TypedDict):
    message: str
class TestForm(TypedDict):
    run_id: str
class CalendarUseOutput(TypedDict):
    name: str
    rule: CalendarRule | None
class ConcurrencyOutput(TypedDict):
    key: str
    limit: int
class DstRuleOutput(TypedDict):
    gap: Gap | None
    fold: Fold | None
class FieldProblem(TypedDict):
    field: str
    message: str
class HourForm(TypedDict):
    hour: str
    fires: int
class LogPage(TypedDict):
    items: list[LogLineForm]
    next_cursor: str | None
class MinuteForm(TypedDict):
    minute: str
    fires: int
class OutcomesForm(TypedDict):
    counts: dict[str, int]
    next_cursor: str | None
class QuotasForm(TypedDict):
    owner: str
    quotas: list[QuotaForm]
class SlotsForm(TypedDict):
    kind: SlotKind
    count: int
class SlowForm(TypedDict):
    since: str
    reason: str
class UnreadableForm(TypedDict):
    id: str
    reason: str
class UpcomingForm(TypedDict):
    items: list[OccurrenceForm]
    complete: bool
class WarningForm(TypedDict):
    code: WarningCode
    message: str
class ActorForm(TypedDict):
    kind: AuthorKind
    id: str
    name: str
class AfterOutput(TypedDict):
    job: str
    when: Outcome | None
    within: str | None
class CalendarPage(TypedDict):
    next_cursor: str | None
    unreadable: NotRequired[list[UnreadableForm]]
    items: list[CalendarForm]
class ChangeForm(TypedDict):
    path: str
    before: Any
    after: Any
class ChangePage(TypedDict):
    next_cursor: str | None
    unreadable: NotRequired[list[UnreadableForm]]
    items: list[RecordedChange]
class ChangedForm(TypedDict):
    changed: int
    managed: int
    next_cursor: str | None
class ErrorForm(TypedDict):
    kind: str
    message: str
    permanent: bool
class ExceededForm(TypedDict):
    name: Quota
    limit: int
    use: int | float
class FeaturesForm(TypedDict):
    events: bool
    personal_jobs: bool
    private_webhooks: bool
class JobPage(TypedDict):
    next_cursor: str | None
    unreadable: NotRequired[list[UnreadableForm]]
    items: list[JobForm]
class JobSummaryPage(TypedDict):
    next_cursor: str | None
    unreadable: NotRequired[list[UnreadableForm]]
    items: list[JobSummaryForm]
class MemberForm(TypedDict):
    path: str
    before: Any
    after: Any
class MinuteJobsForm(TypedDict):
    minute: str
    items: list[MinuteJobForm]
    complete: bool
_MissedListWords = TypedDict("_MissedListWords", {"from": "str"})
class MissedList(_MissedListWords):
    items: list[MissedForm]
    complete: bool
class NotificationPage(TypedDict):
    next_cursor: str | None
    unreadable: NotRequired[list[UnreadableForm]]
    items: list[NotificationForm]
class OperationPage(TypedDict):
    next_cursor: str | None
    unreadable: NotRequired[list[UnreadableForm]]
    items: list[OperationForm]
class PeakForm(TypedDict):
    minute: str
    fires: int
    jobs: list[str]
class RateOutput(TypedDict):
    limit: int
    per: str
    key: str | None
class RetryPolicyOutput(TypedDict):
    max_attempts: int | None
    backoff: BackoffOutput | None
    retry_on: list[str] | None
class RunPage(TypedDict):
    next_cursor: str | None
    unreadable: NotRequired[list[UnreadableForm]]
    items: list[RunForm]
class SummaryForm(TypedDict):
    buckets: list[BucketForm]
    complete: bool
    as_of: str
class AttemptForm(TypedDict):
    attempt: int
    started_at: str
    finished_at: str | None
    error: ErrorForm | None
class AuthorForm(TypedDict):
    kind: AuthorKind
    id: str
    name: str
    via: Via
class BackoffOutput(TypedDict):
    base_seconds: int | None
    factor: float | None
    cap_seconds: int | None
    type: BackoffType | None
class BucketForm(TypedDict):
    at: str
    key: str | None
    counts: CountsForm
    lag: LagForm | None
class BulkChangedForm(TypedDict):
    items: list[BulkItemForm]
    changed: int
    refused: int
    unavailable: int
class BulkItemForm(TypedDict):
    index: int
    status: int
    job_id: str | None
    problem: Problem | None
class LagForm(TypedDict):
    p50: float
    p95: float
    p99: float
    max: float
class LogLineForm(TypedDict):
    at: str
    level: str
    message: str
    attempt: int | None
class MissedForm(TypedDict):
    fire_at: str
    status: RunStatus | None
    reason: str | None
    run_id: str | None
class PreviewedForm(TypedDict):
    fire_at: str
    local: str
    effective_at: str | None
    note: str | None
class PutReport(TypedDict):
    action: PutAction
    changes: list[ChangeForm]
    reindexes: bool
    job: JobReport
class QuotaForm(TypedDict):
    name: Quota
    limit: int
    own: bool
    use: int | float | None
class ActivityForm(TypedDict):
    next_cursor: str | None
    unreadable: NotRequired[list[UnreadableForm]]
    items: list[RunSummary]
    as_of: str
    successes: Literal["all", "counted"]
class ApplyForm(TypedDict):
    items: list[ApplyItemForm]
    counts: dict[str, int]
    written: bool
    complete: bool
    digest: str
class BulkForm(TypedDict):
    items: list[BulkItemForm]
    created: int
    existing: int
    refused: int
    unavailable: int
class MinuteJobForm(TypedDict):
    job_id: str
    name: str
    fires: int
    most_per_day: int
    window: str | None
class ReportForm(TypedDict):
    run_id: str
    status: RunStatus
    attempt: int
    lease_until: str | None
    next_attempt_at: str | None
class CallerForm(TypedDict):
    owner: str
    role: Role | None
    kind: AuthorKind
    name: str
    is_operator: bool
    teams: dict[str, Role]
class DeliveryForm(TypedDict):
    run_id: str
    status: str
    at: str
    attempt: int
    error_kind: str | None
    error_message: str | None
class DeploymentForm(TypedDict):
    version: str
    limits: LimitsForm
    lanes: list[str]
    tasks: list[str]
    target_patterns: list[str]
    features: FeaturesForm
    caller: CallerForm
class OccurrenceForm(TypedDict):
    fire_at: str
    local: str
    effective_at: str
    effective_local: str
    note: str | None
    job_id: str
    name: str
class Problem(TypedDict):
    type: str
    title: str
    status: int
    detail: str
    instance: str
    errors: list[FieldProblem]
    quota: NotRequired[ExceededForm | None]
class RunBrief(TypedDict):
    run_id: str
    kind: RunKind
    status: RunStatus
    fire_at: str
    lag_seconds: float | None
    duration_seconds: float | None
    error_kind: str | None
class SegmentForm(TypedDict):
    segment: int
    watermark_at: NotRequired[str | None]
    horizon_at: NotRequired[str | None]
    lag_minutes: NotRequired[int]
    backlog_minutes: NotRequired[int]
    lease_until: NotRequired[str | None]
    unreadable: NotRequired[str | None]
class SignInForm(TypedDict):
    version: str
    issuer: str
    client_id: str
    sign_in: Literal["cognito", "oidc"]
    console_client_id: str | None
    sign_in_url: str | None
    token_url: str | None
class TransitionForm(TypedDict):
    transition_at: str
    kind: str
    local_from: str
    local_until: str
    count: int | None
    first_local: str
    effect: str
class CalendarForm(TypedDict):
    name: str
    revision: int
    description: str
    weekdays: list[str]
    dates: list[str]
    ranges: list[RangeForm]
    created_at: str
    updated_at: str
class ApplyItemForm(TypedDict):
    kind: ItemKind
    name: str
    action: ItemAction
    changes: list[ChangeForm]
    reindexes: bool
    sentence: str | None
    next_fire_at: str | None
    warnings: list[WarningForm]
    problem: Problem | None
class CountsForm(TypedDict):
    succeeded: NotRequired[int]
    dead: NotRequired[int]
    timed_out: NotRequired[int]
    skipped: NotRequired[int]
    missed: NotRequired[int]
    cancelled: NotRequired[int]
    retrying: NotRequired[int]
    pending: NotRequired[int]
    unknown: NotRequired[int]
_ForecastFormWords = TypedDict("_ForecastFormWords", {"from": "str"})
class ForecastForm(_ForecastFormWords):
    to: str
    complete: bool
    jobs_counted: int
    jobs_after_finish: int
    total: int
    peaks: list[PeakForm]
    minutes: list[MinuteForm]
    hours: list[HourForm]
class NotificationForm(TypedDict):
    name: str
    revision: int
    on: list[str]
    to: dict[str, Any]
    jobs: str
    tags: dict[str, str]
    at_most_every: str
    created_at: str
    updated_at: str
    last_delivery: DeliveryForm | None
    is_dead: bool
class StatusForm(TypedDict):
    state: Literal["idle", "processing"]
    as_of: str
    active_jobs: int
    paused_jobs: int
    completed_jobs: int
    waiting_runs: int
    retrying_runs: int
    dead_letters: int
    complete: bool
    unreadable_jobs: NotRequired[int]
    segments: NotRequired[list[SegmentForm] | None]
class LimitsForm(TypedDict):
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
class RunSummary(TypedDict):
    run_id: str
    job_id: str
    job_name: str
    kind: RunKind
    status: RunStatus
    attempt: int
    fire_at: str
    at: str
    lag_seconds: float | None
    duration_seconds: float | None
    reason: str | None
    error_kind: str | None
    tags: dict[str, str]
class RecordedChange(TypedDict):
    change_id: str
    at: str
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
class JobSummaryForm(TypedDict):
    job_id: str
    name: str
    state: JobState
    resume_at: str | None
    note: str | None
    schedule: str | None
    sentence: str
    timezone: str
    calendar: str | None
    window: str | None
    parent: str | None
    tags: dict[str, str]
    managed_by: str | None
    next_fire_at: str | None
    ends_at: str | None
    last_run: RunBrief | None
    recent: list[RunBrief] | None
_PreviewFormWords = TypedDict("_PreviewFormWords", {"except": "list[str]"})
class PreviewForm(_PreviewFormWords):
    schedule: str | list[str]
    timezone: str
    start_at: str | None
    end_at: str | None
    max_runs: int | None
    dst: DstRuleOutput
    window: str | None
    window_seconds: int
    description: str
    occurrences: list[PreviewedForm]
    skipped: list[PreviewedForm]
    ends_at: str | None
    warnings: list[WarningForm]
    transitions: list[TransitionForm]
    slots: SlotsForm
    fires_per_month: int
    dollars_per_month: float
_OperationFormWords = TypedDict("_OperationFormWords", {"from": "str | None"})
class OperationForm(_OperationFormWords):
    operation_id: str
    kind: OperationKind
    state: OperationState
    job_id: str | None
    to: str | None
    only: Only | None
    reason: str | None
    error: str | None
    per_minute: int
    done: int
    passed_over: int
    reached: str | None
    note: str | None
    new_owner: str | None
    parent: str | None
    tags: dict[str, str] | None
    left: list[str]
    created_at: str
    updated_at: str
class RunForm(TypedDict):
    run_id: str
    job_id: str
    kind: RunKind
    fire_at: str
    effective_at: str
    redrive: int
    status: RunStatus
    attempt: int
    lag_seconds: float | None
    started_at: str | None
    finished_at: str | None
    next_attempt_at: str | None
    updated_at: str
    result: str | None
    result_bytes: int | None
    error: ErrorForm | None
    reason: str | None
    note: str | None
    settled: Resolution | None
    covers_from: str | None
    covers_count: int | None
class RunDetail(RunForm):
    attempts: list[AttemptForm]
    payload_overridden: bool
    request_note: str | None
class RunWithJob(RunDetail):
    job_name: str
_JobFormWords = TypedDict("_JobFormWords", {"except": "list[str | dict[str, Any]] | None"})
class JobForm(_JobFormWords):
    schedule: str | dict[str, Any] | list[str | dict[str, Any]] | None
    timezone: str
    start_at: str | None
    end_at: str | None
    max_runs: int | None
    dst: DstRuleOutput | None
    after: AfterOutput | None
    window: str | None
    calendar: CalendarUseOutput | None
    name: str
    description: str | None
    target: TaskTarget | WebhookTarget | LambdaTarget | SqsTarget | SnsTarget | EventBridgeTarget | StepFunctionsTarget | EcsTarget | BatchTarget
    payload: Any
    template: bool
    priority: Literal["high", "normal", "low"]
    catch_up: CatchUp
    grace: str | None
    overlap: Overlap
    tolerance: str | None
    concurrency: ConcurrencyOutput | None
    rate: RateOutput | None
    retry: RetryPolicyOutput
    timeout_seconds: int | None
    pause_after_failures: int | None
    expect_within: str | None
    on_success: TaskTarget | WebhookTarget | LambdaTarget | SqsTarget | SnsTarget | EventBridgeTarget | StepFunctionsTarget | EcsTarget | BatchTarget | None
    on_failure: TaskTarget | WebhookTarget | LambdaTarget | SqsTarget | SnsTarget | EventBridgeTarget | StepFunctionsTarget | EcsTarget | BatchTarget | None
    events: list[Literal["run.started", "run.succeeded", "run.failed", "run.retrying", "run.dead", "run.skipped", "run.missed", "job.completed", "job.changed", "job.paused", "job.slowed", "job.recovered"]]
    result: ResultKept
    on_complete: OnComplete
    initial_state: InitialState
    parent: str | None
    tags: dict[str, Any]
    job_id: str
    state: JobState
    note: str | None
    resume_at: str | None
    revision: int
    sentence: str
    spread_seconds: int
    lane: Lane
    slow: SlowForm | None
    time_limit_seconds: int
    next_fire_at: str | None
    next_effective_at: str | None
    ends_at: str | None
    managed_by: str | None
    renamed_from: str | None
    handed_over_from: str | None
    successors: list[str]
    changed_by: AuthorForm
    created_at: str
    updated_at: str
class JobDetail(JobForm):
    last_run: RunBrief | None
    failures_in_a_row: int
class JobReport(JobForm):
    warnings: list[WarningForm]
    transitions: list[TransitionForm]
