"""Calls of targets as OpenTelemetry's semantic conventions name them. Pure."""

from enum import IntEnum
from urllib.parse import urlsplit

from carillon.domain.targets import AnyTarget, TaskTarget, WebhookTarget

Attributes = dict[str, str | int]


class Kind(IntEnum):
    """SpanKind of OTLP."""

    INTERNAL = 1
    CLIENT = 3
    PRODUCER = 4
    CONSUMER = 5


_OPERATIONS = {
    "batch": ("Batch", "SubmitJob"),
    "ecs": ("ECS", "RunTask"),
    "eventbridge": ("EventBridge", "PutEvents"),
    "lambda": ("Lambda", "Invoke"),
    "sns": ("SNS", "Publish"),
    "sqs": ("SQS", "SendMessage"),
    "stepfunctions": ("SFN", "StartExecution"),
}
_MESSAGING = {"eventbridge": "aws.eventbridge", "sns": "aws.sns", "sqs": "aws_sqs"}
"""The system, of targets that are sent messages."""


def call_of(target: AnyTarget) -> tuple[str, Kind, Attributes]:
    """The name, kind and attributes of a call's span."""
    if isinstance(target, TaskTarget):
        return f"task {target.name}", Kind.INTERNAL, {"code.function.name": target.name}
    if isinstance(target, WebhookTarget):
        return target.method, Kind.CLIENT, _http(target)
    if target.type not in _OPERATIONS or target.resource_arn is None:
        return target.type, Kind.CLIENT, {}
    service, operation = _OPERATIONS[target.type]
    arn = target.resource_arn
    attributes: Attributes = {
        "rpc.system": "aws-api",
        "rpc.service": service,
        "rpc.method": operation,
        "cloud.resource_id": arn,
    }
    kind = Kind.CLIENT
    region, name = arn.split(":")[3], arn.split(":", 5)[5].rpartition("/")[2]
    if target.type in _MESSAGING:
        kind = Kind.PRODUCER
        attributes |= {
            "messaging.system": _MESSAGING[target.type],
            "messaging.operation.type": "send",
            "messaging.operation.name": operation,
            "messaging.destination.name": name,
        }
    if target.type == "lambda":
        attributes |= {
            "faas.invoked_name": name.split(":")[1],
            "faas.invoked_provider": "aws",
            "faas.invoked_region": region,
        }
    return f"{service}.{operation}", kind, attributes


def _http(target: WebhookTarget) -> Attributes:
    """Without path and query: an owner's address may hold what is secret."""
    parts = urlsplit(target.url)
    return {
        "http.request.method": target.method,
        "url.scheme": parts.scheme,
        "server.address": str(parts.hostname),
        "server.port": parts.port or (443 if parts.scheme == "https" else 80),
    }
