"""The targets of jobs: each function gives the member `target` of a job's settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, cast

if TYPE_CHECKING:
    from carillon.client.types.requests import (
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
) -> WebhookTarget:
    """A signed HTTPS request, which its receiver checks by `verify`."""
    members = {"method": method, "headers": headers, "signing_secret": signing_secret}
    return cast("WebhookTarget", _target("webhook", url=url, **members))


def Lambda(
    function_arn: str, *, invocation: Literal["sync", "event"] | None = None
) -> LambdaTarget:
    """A function; by `event` only its queueing is waited for."""
    return cast("LambdaTarget", _target("lambda", function_arn=function_arn, invocation=invocation))


def Sqs(queue_arn: str, *, message_group_id: str | None = None) -> SqsTarget:
    """A message in a queue."""
    members = {"queue_arn": queue_arn, "message_group_id": message_group_id}
    return cast("SqsTarget", _target("sqs", **members))


def Sns(
    topic_arn: str, *, subject: str | None = None, message_group_id: str | None = None
) -> SnsTarget:
    """A message to the subscribers of a topic."""
    members = {"topic_arn": topic_arn, "subject": subject, "message_group_id": message_group_id}
    return cast("SnsTarget", _target("sns", **members))


def EventBridge(bus_arn: str, *, source: str, detail_type: str) -> EventBridgeTarget:
    """An event on a bus."""
    return {
        "type": "eventbridge", "bus_arn": bus_arn, "source": source, "detail_type": detail_type
    }  # fmt: skip


def StepFunctions(state_machine_arn: str) -> StepFunctionsTarget:
    """An execution of a state machine."""
    return {"type": "stepfunctions", "state_machine_arn": state_machine_arn}


def _target(kind: str, **members: Any) -> dict[str, Any]:
    given = {name: value for name, value in members.items() if value is not None}
    return {"type": kind, **given}
