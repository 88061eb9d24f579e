"""The targets of jobs: each function gives the member `target` of a job's settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, cast

if TYPE_CHECKING:
    from carillon.client.types.requests import (
        BatchTarget,
        CompletionSpec,
        EcsTarget,
        EventBridgeTarget,
        LambdaTarget,
        ParameterReference,
        SecretReference,
        SnsTarget,
        SqsTarget,
        StepFunctionsTarget,
        TaskTarget,
        WebhookTarget,
    )

    Reference = SecretReference | ParameterReference


def Task(name: str) -> TaskTarget:
    """A Python task of the deployment."""
    return {"type": "task", "name": name}


def Webhook(
    url: str,
    *,
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"] | None = None,
    headers: Mapping[str, str | Reference] | None = None,
    signing_secret: Reference | None = None,
    completion: CompletionSpec | None = None,
) -> WebhookTarget:
    """A signed HTTPS request, which its receiver checks by `verify`; with `completion` it may
    answer 202, and report the end of the run later (`Completion`)."""
    members = {"method": method, "headers": headers, "signing_secret": signing_secret}
    return cast("WebhookTarget", _target("webhook", url=url, **members, completion=completion))


def Lambda(
    function_arn: str,
    *,
    invocation: Literal["sync", "event"] | None = None,
    completion: CompletionSpec | None = None,
) -> LambdaTarget:
    """A function; by `event` only its queueing is waited for."""
    members = {"invocation": invocation, "completion": completion}
    return cast("LambdaTarget", _target("lambda", function_arn=function_arn, **members))


def Sqs(
    queue_arn: str,
    *,
    message_group_id: str | None = None,
    completion: CompletionSpec | None = None,
) -> SqsTarget:
    """A message in a queue."""
    members = {"message_group_id": message_group_id, "completion": completion}
    return cast("SqsTarget", _target("sqs", queue_arn=queue_arn, **members))


def Sns(
    topic_arn: str,
    *,
    subject: str | None = None,
    message_group_id: str | None = None,
    completion: CompletionSpec | None = None,
) -> SnsTarget:
    """A message to the subscribers of a topic."""
    members = {"topic_arn": topic_arn, "subject": subject, "message_group_id": message_group_id}
    return cast("SnsTarget", _target("sns", **members, completion=completion))


def EventBridge(
    bus_arn: str, *, source: str, detail_type: str, completion: CompletionSpec | None = None
) -> EventBridgeTarget:
    """An event on a bus."""
    members = {"bus_arn": bus_arn, "source": source, "detail_type": detail_type}
    return cast("EventBridgeTarget", _target("eventbridge", **members, completion=completion))


def StepFunctions(
    state_machine_arn: str, *, completion: CompletionSpec | None = None
) -> StepFunctionsTarget:
    """An execution of a state machine."""
    members = {"state_machine_arn": state_machine_arn, "completion": completion}
    return cast("StepFunctionsTarget", _target("stepfunctions", **members))


def Ecs(
    task_definition_arn: str,
    *,
    cluster_arn: str | None = None,
    launch_type: Literal["FARGATE", "EC2", "EXTERNAL"] | None = None,
    capacity_provider: str | None = None,
    subnets: Sequence[str] = (),
    security_groups: Sequence[str] = (),
    assign_public_ip: bool = False,
    container: str | None = None,
    command: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    completion: CompletionSpec | None = None,
) -> EcsTarget:
    """A task of Amazon ECS, whose `container` gets the payload as an environment variable."""
    members = {
        "task_definition_arn": task_definition_arn,
        "cluster_arn": cluster_arn,
        "launch_type": launch_type,
        "capacity_provider": capacity_provider,
        "subnets": list(subnets),
        "security_groups": list(security_groups),
        "assign_public_ip": assign_public_ip,
        "container": container,
        "command": list(command),
        "environment": environment,
        "completion": completion,
    }
    return cast("EcsTarget", _target("ecs", **members))


def Batch(
    job_definition_arn: str,
    job_queue_arn: str,
    *,
    parameters: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
    completion: CompletionSpec | None = None,
) -> BatchTarget:
    """A job of AWS Batch, whose container gets the payload as an environment variable."""
    members = {"parameters": parameters, "environment": environment, "completion": completion}
    named = {"job_definition_arn": job_definition_arn, "job_queue_arn": job_queue_arn}
    return cast("BatchTarget", _target("batch", **named, **members))


def _target(kind: str, **members: Any) -> dict[str, Any]:
    given = {name: value for name, value in members.items() if value is not None}
    return {"type": kind, **given}
