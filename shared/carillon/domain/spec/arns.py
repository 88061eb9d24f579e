"""The ARNs of what jobs call."""

import re
from fnmatch import fnmatchcase

_ARN_FORMS = {
    "lambda": (
        r"function:[A-Za-z0-9_-]{1,64}(:(\$LATEST|[A-Za-z0-9_-]{1,128}))?",
        "a Lambda function",
        "lambda:eu-west-1:123456789012:function:name",
    ),
    "sqs": (
        r"([A-Za-z0-9_-]{1,80}|[A-Za-z0-9_-]{1,75}\.fifo)",
        "an SQS queue",
        "sqs:eu-west-1:123456789012:name",
    ),
    "sns": (
        r"([A-Za-z0-9_-]{1,256}|[A-Za-z0-9_-]{1,251}\.fifo)",
        "an SNS topic",
        "sns:eu-west-1:123456789012:name",
    ),
    "eventbridge": (
        r"event-bus/[A-Za-z0-9_./-]{1,256}",
        "an EventBridge bus",
        "events:eu-west-1:123456789012:event-bus/name",
    ),
    "ecs": (
        r"task-definition/[A-Za-z0-9_-]{1,255}(:[0-9]{1,9})?",
        "an ECS task definition",
        "ecs:eu-west-1:123456789012:task-definition/name",
    ),
    "cluster": (
        r"cluster/[A-Za-z0-9_-]{1,255}",
        "an ECS cluster",
        "ecs:eu-west-1:123456789012:cluster/name",
    ),
    "batch": (
        r"job-definition/[A-Za-z0-9_-]{1,128}(:[0-9]{1,9})?",
        "a Batch job definition",
        "batch:eu-west-1:123456789012:job-definition/name",
    ),
    "job queue": (
        r"job-queue/[A-Za-z0-9_-]{1,128}",
        "a Batch job queue",
        "batch:eu-west-1:123456789012:job-queue/name",
    ),
    "stepfunctions": (
        r"stateMachine:[A-Za-z0-9_-]{1,80}(:[A-Za-z0-9_-]{1,80})?",
        "a Step Functions state machine",
        "states:eu-west-1:123456789012:stateMachine:name",
    ),
}
"""By target type, or what a target names besides: the resource's pattern, what it is, and an
example after `arn:aws:`."""

_REGION = r"(?=[a-z0-9-]{1,25}:)[a-z]{2,}(-[a-z]+)+-[0-9]+"


def arn_of(kind: str, arn: str) -> str:
    """The ARN, if it is one of the resources of `kind`, in any partition and region."""
    pattern, what, example = _ARN_FORMS[kind]
    service = example.partition(":")[0]
    form = rf"arn:aws(-[a-z]+)*:{service}:{_REGION}:[0-9]{{12}}:{pattern}"
    if not re.fullmatch(form, arn):
        raise ValueError(f"must be the ARN of {what}, such as arn:aws:{example}")
    return arn


def region_of(arn: str) -> str:
    """The region of an ARN that `arn_of` has let through."""
    return arn.split(":")[3]


def is_beside(arn: str, other: str | None) -> str:
    """The ARN, if it is of the same region and account as the other, where there is one."""
    if other is not None and arn.split(":")[3:5] != other.split(":")[3:5]:
        raise ValueError(f"must be in the region and account of {other}")
    return arn


def every_revision(arn: str) -> str:
    """The ARN of a definition, with `:*` where it names no revision: the latest is meant then, and
    AWS asks for the permission of that one."""
    return arn if re.search(":[0-9]+$", arn) else f"{arn}:*"


def covers(pattern: str, arn: str) -> bool:
    """True if an ARN matches segment by segment, so that no wildcard reaches into the next.

    IAM lets one reach further; what IAM alone would allow is refused here.
    """
    patterns, segments = _segments(pattern), _segments(arn)
    return len(segments) == len(patterns) and all(
        fnmatchcase(segment, each.replace("[", "[[]"))
        for segment, each in zip(segments, patterns, strict=True)
    )


def _segments(arn: str) -> list[str]:
    """arn, partition, service, region, account and resource, the last with all its colons."""
    return arn.split(":", 5)
