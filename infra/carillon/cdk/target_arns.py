"""The allow-list of resources that jobs may call: IAM patterns, and what calls need."""

import re
from dataclasses import dataclass

ARN = re.compile(
    r"arn:(?P<partition>aws(-[a-z]+)*):(?P<service>[^:]*):(?P<region>[^:]*):(?P<account>[^:]*)"
    r":(?P<resource>.+)"
)
REGION = re.compile(r"[a-z0-9*?-]+")
ACCOUNT = re.compile(r"[0-9*?]{1,12}")
EXAMPLE = "arn:aws:lambda:eu-west-1:123456789012:function:report-*"


ROLE = re.compile(r"arn:aws(-[a-z]+)*:iam::[0-9]{12}:role/[A-Za-z0-9_+=,.@/-]{1,576}")
_WITH_REVISION = r"([A-Za-z0-9_*?-]+:[0-9*?]+|[A-Za-z0-9_?-]*\*)"
"""AWS asks for the permission of a revision; a last * stands for name and revision."""


@dataclass(frozen=True, slots=True)
class _Service:
    """The form of one AWS service's ARNs, and the actions of a call."""

    resource: re.Pattern[str]
    looks_like: str
    actions: tuple[str, ...]


_SERVICES = {
    "batch": _Service(
        re.compile(r"job-queue/[A-Za-z0-9_*?-]+|job-definition/" + _WITH_REVISION),
        "job-queue/NAME, job-definition/NAME:REVISION or job-definition/NAME:*",
        ("batch:SubmitJob",),
    ),
    "ecs": _Service(
        re.compile(r"task-definition/" + _WITH_REVISION),
        "task-definition/FAMILY:REVISION or task-definition/FAMILY:*",
        ("ecs:RunTask",),
    ),
    "lambda": _Service(
        re.compile(r"function:[A-Za-z0-9_*?-]+(:[A-Za-z0-9_$*?-]+)?"),
        "function:NAME",
        ("lambda:InvokeFunction",),
    ),
    "sqs": _Service(
        re.compile(r"[A-Za-z0-9_.*?-]+"), "QUEUE", ("sqs:GetQueueUrl", "sqs:SendMessage")
    ),
    "sns": _Service(re.compile(r"[A-Za-z0-9_.*?-]+"), "TOPIC", ("sns:Publish",)),
    "events": _Service(
        re.compile(r"event-bus/[A-Za-z0-9_./*?-]+"), "event-bus/NAME", ("events:PutEvents",)
    ),
    "states": _Service(
        re.compile(r"stateMachine:[A-Za-z0-9_.*?-]+(:[A-Za-z0-9_.*?-]+)?"),
        "stateMachine:NAME",
        ("states:StartExecution",),
    ),
}


def target_pattern(text: str) -> str:
    """The text, if it is an IAM pattern of resources that jobs can call; raises ValueError.

    Partition and service are literal; the rest may have `*` and `?`.
    """
    parts = ARN.fullmatch(text)
    if parts is None:
        raise ValueError(f"{text!r} is no ARN or pattern of ARNs: expected such as {EXAMPLE}")
    service = _SERVICES.get(parts["service"])
    if service is None:
        known = ", ".join(sorted(_SERVICES))
        raise ValueError(f"{text!r} is of service {parts['service']!r}: jobs can call {known}")
    if not REGION.fullmatch(parts["region"]):
        raise ValueError(f"{text!r} has {parts['region']!r} for a region: * stands for every one")
    if not ACCOUNT.fullmatch(parts["account"]):
        raise ValueError(f"{text!r} has {parts['account']!r} for an account: expected 12 digits")
    if not service.resource.fullmatch(parts["resource"]):
        raise ValueError(
            f"{text!r} has {parts['resource']!r} for a resource: expected {service.looks_like}"
        )
    return text


def role_arn(text: str) -> str:
    """The text, if it is the ARN of one role: what may be passed is named, never a pattern."""
    if not ROLE.fullmatch(text):
        example = "arn:aws:iam::123456789012:role/report-task"
        raise ValueError(f"{text!r} is not the ARN of one role: expected such as {example}")
    return text


def actions_of(service: str) -> tuple[str, ...]:
    """The permissions that a call of a resource of the service needs."""
    return _SERVICES[service].actions
