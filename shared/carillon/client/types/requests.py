"""Bodies of requests. `make client-types` writes this file from the API's OpenAPI description."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

# ruff: noqa: E501
# fmt: off
BackoffType = Literal["exponential", "fixed"]
CalendarRule = Literal["skip", "next_business_day", "previous_business_day"]
CatchUp = Literal["skip", "latest", "all"]
DeadReason = Literal["refused", "exhausted", "executor_died", "never_started", "unreadable"]
Fold = Literal["first", "second", "both"]
Gap = Literal["run_after", "skip"]
InitialState = Literal["active", "paused"]
OnComplete = Literal["keep", "delete"]
Only = Literal["all", "missed"]
Outcome = Literal["succeeded", "failed", "finished"]
Overlap = Literal["allow", "skip", "queue_one"]
ResultKept = Literal["beginning", "full"]
Told = Literal["run.dead", "run.missed", "job.paused", "job.slowed", "run.recovered"]
class BulkBody(TypedDict):
    items: list[Any]
class BulkChangeBody(TypedDict):
    items: list[Any]
class CompleteBody(TypedDict):
    result: NotRequired[Any]
class ParameterReference(TypedDict):
    parameter: str
class SecretReference(TypedDict):
    secret: str
class CalendarUseInput(TypedDict):
    name: str
    rule: NotRequired[CalendarRule | None]
class CalendarUsePatch(TypedDict):
    name: NotRequired[str | None]
    rule: NotRequired[CalendarRule | None]
class CompletionSpec(TypedDict):
    within: NotRequired[str]
    heartbeat: NotRequired[str | None]
class ConcurrencyInput(TypedDict):
    key: str
    limit: int
class ConcurrencyPatch(TypedDict):
    key: NotRequired[str | None]
    limit: NotRequired[int | None]
class DstRuleInput(TypedDict):
    gap: NotRequired[Gap | None]
    fold: NotRequired[Fold | None]
class DstRulePatch(TypedDict):
    gap: NotRequired[Gap | None]
    fold: NotRequired[Fold | None]
class EmailChannel(TypedDict):
    type: Literal["email"]
    address: str
class PauseBody(TypedDict):
    reason: NotRequired[str | None]
    until: NotRequired[str | None]
_RangeFormWords = TypedDict("_RangeFormWords", {"from": "str"})
class RangeForm(_RangeFormWords):
    to: str
class RunBody(TypedDict):
    payload: NotRequired[Any]
    note: NotRequired[str | None]
class SlackChannel(TypedDict):
    type: Literal["slack"]
    url: SecretReference | ParameterReference
class TaskTarget(TypedDict):
    type: Literal["task"]
    name: str
class AfterInput(TypedDict):
    job: str
    when: NotRequired[Outcome | None]
    within: NotRequired[str | None]
class AfterPatch(TypedDict):
    job: NotRequired[str | None]
    when: NotRequired[Outcome | None]
    within: NotRequired[str | None]
class FailBody(TypedDict):
    message: str
    kind: NotRequired[str]
    permanent: NotRequired[bool]
class RateInput(TypedDict):
    limit: int
    per: str
    key: NotRequired[str | None]
class RatePatch(TypedDict):
    limit: NotRequired[int | None]
    per: NotRequired[str | None]
    key: NotRequired[str | None]
class RetryPolicyInput(TypedDict):
    max_attempts: NotRequired[int | None]
    backoff: NotRequired[BackoffInput | None]
    retry_on: NotRequired[list[str] | None]
class RetryPolicyPatch(TypedDict):
    max_attempts: NotRequired[int | None]
    backoff: NotRequired[BackoffPatch | None]
    retry_on: NotRequired[list[str] | None]
class StepFunctionsTarget(TypedDict):
    type: Literal["stepfunctions"]
    completion: NotRequired[CompletionSpec | None]
    state_machine_arn: str
_BackfillBodyWords = TypedDict("_BackfillBodyWords", {"from": "str"})
class BackfillBody(_BackfillBodyWords):
    to: str
    only: NotRequired[Only]
    per_minute: NotRequired[int]
class BackoffInput(TypedDict):
    base_seconds: NotRequired[int | None]
    factor: NotRequired[float | None]
    cap_seconds: NotRequired[int | None]
    type: NotRequired[BackoffType | None]
class BackoffPatch(TypedDict):
    base_seconds: NotRequired[int | None]
    factor: NotRequired[float | None]
    cap_seconds: NotRequired[int | None]
    type: NotRequired[BackoffType | None]
class LambdaTarget(TypedDict):
    type: Literal["lambda"]
    completion: NotRequired[CompletionSpec | None]
    function_arn: str
    invocation: NotRequired[Literal["sync", "event"]]
class SqsTarget(TypedDict):
    type: Literal["sqs"]
    completion: NotRequired[CompletionSpec | None]
    queue_arn: str
    message_group_id: NotRequired[str | None]
class CalendarBody(TypedDict):
    weekdays: NotRequired[list[str]]
    dates: NotRequired[list[str]]
    ranges: NotRequired[list[RangeForm]]
    description: NotRequired[str]
    icalendar: NotRequired[str | None]
class CalendarChoice(TypedDict):
    weekdays: NotRequired[list[str]]
    dates: NotRequired[list[str]]
    ranges: NotRequired[list[RangeForm]]
    name: NotRequired[str | None]
    rule: NotRequired[CalendarRule]
class EventBridgeTarget(TypedDict):
    type: Literal["eventbridge"]
    completion: NotRequired[CompletionSpec | None]
    bus_arn: str
    source: str
    detail_type: str
class NotificationBody(TypedDict):
    on: list[Told]
    to: SlackChannel | WebhookTarget | SnsTarget | EmailChannel
    jobs: NotRequired[str | None]
    tags: NotRequired[dict[str, Any] | None]
    at_most_every: NotRequired[str | None]
class QuotaBody(TypedDict):
    jobs: NotRequired[int | None]
    scheduled_per_minute: NotRequired[int | None]
    starts_per_minute: NotRequired[int | None]
    concurrent_runs: NotRequired[int | None]
    requests_per_second: NotRequired[int | None]
class SnsTarget(TypedDict):
    type: Literal["sns"]
    completion: NotRequired[CompletionSpec | None]
    topic_arn: str
    subject: NotRequired[str | None]
    message_group_id: NotRequired[str | None]
class BatchTarget(TypedDict):
    type: Literal["batch"]
    completion: NotRequired[CompletionSpec | None]
    job_definition_arn: str
    job_queue_arn: str
    parameters: NotRequired[dict[str, str]]
    environment: NotRequired[dict[str, Any]]
class HandOverBody(TypedDict):
    to: str
    all: NotRequired[Literal[True] | None]
    job_id: NotRequired[str | None]
    parent: NotRequired[str | None]
    tags: NotRequired[dict[str, Any] | None]
    force: NotRequired[bool]
class WebhookTarget(TypedDict):
    type: Literal["webhook"]
    completion: NotRequired[CompletionSpec | None]
    url: str
    method: NotRequired[Literal["GET", "POST", "PUT", "PATCH", "DELETE"]]
    headers: NotRequired[dict[str, str | SecretReference | ParameterReference]]
    signing_secret: NotRequired[SecretReference | ParameterReference | None]
_DeadLetterBodyWords = TypedDict("_DeadLetterBodyWords", {"from": "NotRequired[str]"})
class DeadLetterBody(_DeadLetterBodyWords):
    all: NotRequired[Literal[True]]
    job_id: NotRequired[str]
    reason: NotRequired[DeadReason]
    error: NotRequired[str]
    to: NotRequired[str]
    per_minute: NotRequired[int]
class ApplyBody(TypedDict):
    manifest: str
    jobs: NotRequired[dict[str, dict[str, Any]]]
    calendars: NotRequired[dict[str, dict[str, Any]]]
    keep: NotRequired[list[str] | None]
    dry_run: NotRequired[bool]
    force: NotRequired[bool]
    adopt: NotRequired[bool]
    expect: NotRequired[str | None]
_PreviewBodyWords = TypedDict("_PreviewBodyWords", {"except": "NotRequired[list[str | dict[str, Any]] | None]"})
class PreviewBody(_PreviewBodyWords):
    schedule: str | dict[str, Any] | list[str | dict[str, Any]]
    timezone: NotRequired[str | None]
    start_at: NotRequired[str | None]
    end_at: NotRequired[str | None]
    max_runs: NotRequired[int | None]
    dst: NotRequired[DstRuleInput | None]
    window: NotRequired[str | None]
    calendar: NotRequired[CalendarChoice | None]
    after: NotRequired[str | None]
    count: NotRequired[int | None]
class EcsTarget(TypedDict):
    type: Literal["ecs"]
    completion: NotRequired[CompletionSpec | None]
    task_definition_arn: str
    cluster_arn: NotRequired[str | None]
    launch_type: NotRequired[Literal["FARGATE", "EC2", "EXTERNAL"] | None]
    capacity_provider: NotRequired[str | None]
    subnets: NotRequired[list[str]]
    security_groups: NotRequired[list[str]]
    assign_public_ip: NotRequired[bool]
    container: NotRequired[str | None]
    command: NotRequired[list[str]]
    environment: NotRequired[dict[str, Any]]
_JobPatchWords = TypedDict("_JobPatchWords", {"except": "NotRequired[list[str | dict[str, Any]] | None]"})
class JobPatch(_JobPatchWords):
    schedule: NotRequired[str | dict[str, Any] | list[str | dict[str, Any]] | None]
    timezone: NotRequired[str | None]
    start_at: NotRequired[str | None]
    end_at: NotRequired[str | None]
    max_runs: NotRequired[int | None]
    dst: NotRequired[DstRulePatch | None]
    after: NotRequired[str | AfterPatch | None]
    window: NotRequired[str | None]
    calendar: NotRequired[CalendarUsePatch | None]
    name: NotRequired[str | None]
    description: NotRequired[str | None]
    target: NotRequired[dict[str, Any] | None]
    payload: NotRequired[Any]
    template: NotRequired[bool | None]
    priority: NotRequired[Literal["high", "normal", "low"] | None]
    catch_up: NotRequired[CatchUp | None]
    grace: NotRequired[str | None]
    overlap: NotRequired[Overlap | None]
    tolerance: NotRequired[str | None]
    concurrency: NotRequired[ConcurrencyPatch | None]
    rate: NotRequired[RatePatch | None]
    retry: NotRequired[RetryPolicyPatch | None]
    timeout_seconds: NotRequired[int | None]
    pause_after_failures: NotRequired[int | None]
    expect_within: NotRequired[str | None]
    on_success: NotRequired[dict[str, Any] | None]
    on_failure: NotRequired[dict[str, Any] | None]
    events: NotRequired[list[Literal["run.started", "run.succeeded", "run.failed", "run.retrying", "run.dead", "run.skipped", "run.missed", "job.completed", "job.changed", "job.paused", "job.slowed", "job.recovered"]] | None]
    result: NotRequired[ResultKept | None]
    on_complete: NotRequired[OnComplete | None]
    initial_state: NotRequired[InitialState | None]
    parent: NotRequired[str | None]
    tags: NotRequired[dict[str, Any] | None]
_JobSpecWords = TypedDict("_JobSpecWords", {"except": "NotRequired[list[str | dict[str, Any]] | None]"})
class JobSpec(_JobSpecWords):
    schedule: NotRequired[str | dict[str, Any] | list[str | dict[str, Any]] | None]
    timezone: NotRequired[str | None]
    start_at: NotRequired[str | None]
    end_at: NotRequired[str | None]
    max_runs: NotRequired[int | None]
    dst: NotRequired[DstRuleInput | None]
    after: NotRequired[str | AfterInput | None]
    window: NotRequired[str | None]
    calendar: NotRequired[CalendarUseInput | None]
    name: str
    description: NotRequired[str | None]
    target: TaskTarget | WebhookTarget | LambdaTarget | SqsTarget | SnsTarget | EventBridgeTarget | StepFunctionsTarget | EcsTarget | BatchTarget
    payload: NotRequired[Any]
    template: NotRequired[bool | None]
    priority: NotRequired[Literal["high", "normal", "low"] | None]
    catch_up: NotRequired[CatchUp | None]
    grace: NotRequired[str | None]
    overlap: NotRequired[Overlap | None]
    tolerance: NotRequired[str | None]
    concurrency: NotRequired[ConcurrencyInput | None]
    rate: NotRequired[RateInput | None]
    retry: NotRequired[RetryPolicyInput | None]
    timeout_seconds: NotRequired[int | None]
    pause_after_failures: NotRequired[int | None]
    expect_within: NotRequired[str | None]
    on_success: NotRequired[TaskTarget | WebhookTarget | LambdaTarget | SqsTarget | SnsTarget | EventBridgeTarget | StepFunctionsTarget | EcsTarget | BatchTarget | None]
    on_failure: NotRequired[TaskTarget | WebhookTarget | LambdaTarget | SqsTarget | SnsTarget | EventBridgeTarget | StepFunctionsTarget | EcsTarget | BatchTarget | None]
    events: NotRequired[list[Literal["run.started", "run.succeeded", "run.failed", "run.retrying", "run.dead", "run.skipped", "run.missed", "job.completed", "job.changed", "job.paused", "job.slowed", "job.recovered"]] | None]
    result: NotRequired[ResultKept | None]
    on_complete: NotRequired[OnComplete | None]
    initial_state: NotRequired[InitialState | None]
    parent: NotRequired[str | None]
    tags: NotRequired[dict[str, Any] | None]
_NamedJobWords = TypedDict("_NamedJobWords", {"except": "NotRequired[list[str | dict[str, Any]] | None]"})
class NamedJob(_NamedJobWords):
    schedule: NotRequired[str | dict[str, Any] | list[str | dict[str, Any]] | None]
    timezone: NotRequired[str | None]
    start_at: NotRequired[str | None]
    end_at: NotRequired[str | None]
    max_runs: NotRequired[int | None]
    dst: NotRequired[DstRuleInput | None]
    after: NotRequired[str | AfterInput | None]
    window: NotRequired[str | None]
    calendar: NotRequired[CalendarUseInput | None]
    name: NotRequired[str | None]
    description: NotRequired[str | None]
    target: TaskTarget | WebhookTarget | LambdaTarget | SqsTarget | SnsTarget | EventBridgeTarget | StepFunctionsTarget | EcsTarget | BatchTarget
    payload: NotRequired[Any]
    template: NotRequired[bool | None]
    priority: NotRequired[Literal["high", "normal", "low"] | None]
    catch_up: NotRequired[CatchUp | None]
    grace: NotRequired[str | None]
    overlap: NotRequired[Overlap | None]
    tolerance: NotRequired[str | None]
    concurrency: NotRequired[ConcurrencyInput | None]
    rate: NotRequired[RateInput | None]
    retry: NotRequired[RetryPolicyInput | None]
    timeout_seconds: NotRequired[int | None]
    pause_after_failures: NotRequired[int | None]
    expect_within: NotRequired[str | None]
    on_success: NotRequired[TaskTarget | WebhookTarget | LambdaTarget | SqsTarget | SnsTarget | EventBridgeTarget | StepFunctionsTarget | EcsTarget | BatchTarget | None]
    on_failure: NotRequired[TaskTarget | WebhookTarget | LambdaTarget | SqsTarget | SnsTarget | EventBridgeTarget | StepFunctionsTarget | EcsTarget | BatchTarget | None]
    events: NotRequired[list[Literal["run.started", "run.succeeded", "run.failed", "run.retrying", "run.dead", "run.skipped", "run.missed", "job.completed", "job.changed", "job.paused", "job.slowed", "job.recovered"]] | None]
    result: NotRequired[ResultKept | None]
    on_complete: NotRequired[OnComplete | None]
    initial_state: NotRequired[InitialState | None]
    parent: NotRequired[str | None]
    tags: NotRequired[dict[str, Any] | None]
