"""What the members of targets may hold. Pure; every check raises ValueError in plain words."""

import re

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
    "stepfunctions": (
        r"stateMachine:[A-Za-z0-9_-]{1,80}(:[A-Za-z0-9_-]{1,80})?",
        "a Step Functions state machine",
        "states:eu-west-1:123456789012:stateMachine:name",
    ),
}
"""By target type: the resource's pattern, what it is, and an example after `arn:aws:`."""

_REGION = r"(?=[a-z0-9-]{1,25}:)[a-z]{2,}(-[a-z]+)+-[0-9]+"
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}")
_FIELD_VALUE = re.compile(r"[!-~]([\t -~]{0,1022}[!-~])?")
_SUBJECT = re.compile(r"[!-~][ -~]{0,99}")

_OURS = frozenset({"content-type", "idempotency-key", "user-agent"})
_CONNECTIONS = frozenset(
    {
        "connection",
        "content-encoding",
        "content-length",
        "expect",
        "host",
        "http2-settings",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_RESERVED_BEGINNINGS = ("carillon-", "webhook-", "proxy-")


def arn_of(target_type: str, arn: str) -> str:
    """The ARN, if it is one of this type's resources, in any partition and region."""
    pattern, what, example = _ARN_FORMS[target_type]
    service = example.partition(":")[0]
    form = rf"arn:aws(-[a-z]+)*:{service}:{_REGION}:[0-9]{{12}}:{pattern}"
    if not re.fullmatch(form, arn):
        raise ValueError(f"must be the ARN of {what}, such as arn:aws:{example}")
    return arn


def region_of(arn: str) -> str:
    """The region of an ARN that `arn_of` has let through."""
    return arn.split(":")[3]


def check_header_name(name: str) -> None:
    """A name that the owner of a job may set on its webhook."""
    if not _TOKEN.fullmatch(name):
        raise ValueError(f"names {name[:40]!r}, which is no name of a header")
    lowered = name.lower()
    if lowered in _OURS or lowered in _CONNECTIONS or lowered.startswith(_RESERVED_BEGINNINGS):
        raise ValueError(f"must not set {name!r}: Carillon sets it, or the connection does")


def check_header_value(value: str) -> str:
    """Visible ASCII, blanks within; what stands in a secret is judged when it is read."""
    if value and not _FIELD_VALUE.fullmatch(value):
        raise ValueError("must be printable ASCII, at most 1024 characters, without blanks around")
    return value


def check_subject(subject: str) -> str:
    """What SNS takes as the subject of a message."""
    if not _SUBJECT.fullmatch(subject):
        raise ValueError("must be printable ASCII on one line, at most 100 characters")
    return subject
