"""Targets of a run, and the rules of their members."""

import re
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    TypeAdapter,
    field_validator,
)

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
    """Visible ASCII, with blanks inside; the content of a secret is checked when it is read."""
    if value and not _FIELD_VALUE.fullmatch(value):
        raise ValueError("must be printable ASCII, at most 1024 characters, without blanks around")
    return value


def check_subject(subject: str) -> str:
    """The subject of a message, as SNS accepts it."""
    if not _SUBJECT.fullmatch(subject):
        raise ValueError("must be printable ASCII on one line, at most 100 characters")
    return subject


MOST_HEADERS = 20
"""Headers of its own that a webhook may have."""

SecretName = Annotated[str, Field(max_length=128, pattern=r"^[A-Za-z0-9_.-]+$")]
GroupId = Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[!-~]+$")]


def _with_required_type(schema: dict[str, Any]) -> None:
    """Code may leave the type out, a document never: the type distinguishes targets."""
    if "type" in schema["properties"]:
        schema["required"] = ["type", *schema.get("required", ())]
        del schema["properties"]["type"]["default"]


class _Spec(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", json_schema_extra=_with_required_type)


class SecretReference(_Spec):
    """The text of a secret of the job's owner in Secrets Manager."""

    secret: SecretName


class ParameterReference(_Spec):
    """The text of a parameter of the job's owner in SSM, decrypted."""

    parameter: SecretName


def _form_of(value: Any) -> str | None:
    match value:
        case str():
            return "text"
        case SecretReference() | {"secret": _}:
            return "secret"
        case ParameterReference() | {"parameter": _}:
            return "parameter"
    return None


_Secret = Annotated[SecretReference, Tag("secret")]
_Parameter = Annotated[ParameterReference, Tag("parameter")]
Reference = Annotated[
    _Secret | _Parameter,
    Discriminator(
        _form_of,
        custom_error_type="reference",
        custom_error_message='must be {"secret": name} or {"parameter": name}',
    ),
]
HeaderValue = Annotated[
    Annotated[str, AfterValidator(check_header_value), Tag("text")] | _Secret | _Parameter,
    Discriminator(
        _form_of,
        custom_error_type="header_value",
        custom_error_message='must be text, {"secret": name} or {"parameter": name}',
    ),
]


class TaskTarget(_Spec):
    """A Python function registered with `@task` in one of the deployment's task modules."""

    type: Literal["task"] = "task"
    name: str = Field(min_length=1, max_length=128, pattern=r"^[A-Za-z_][A-Za-z0-9_.-]*$")

    @property
    def resource_arn(self) -> str | None:
        return None


class WebhookTarget(_Spec):
    """An HTTPS endpoint that is called, signed by Standard Webhooks.

    POST, PUT and PATCH carry the payload; GET and DELETE have no body, and the signature is over
    the empty text. `signing_secret` replaces the deployment's key.
    """

    type: Literal["webhook"] = "webhook"
    url: str = Field(min_length=8, max_length=2048)
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"] = "POST"
    headers: dict[str, HeaderValue] = Field(default_factory=dict, max_length=MOST_HEADERS)
    signing_secret: Reference | None = None

    @property
    def resource_arn(self) -> str | None:
        return None

    @property
    def address(self) -> str:
        """The host that it calls, and the port where the URL names one."""
        parts = urlsplit(self.url)
        return f"{parts.hostname}" if parts.port is None else f"{parts.hostname}:{parts.port}"

    @property
    def is_bodiless(self) -> bool:
        """True if its method carries no payload."""
        return self.method in ("GET", "DELETE")

    @field_validator("url")
    @classmethod
    def _absolute_http(cls, url: str) -> str:
        parts = urlsplit(url)
        if parts.scheme not in ("https", "http") or not parts.hostname:
            raise ValueError("must be an absolute https URL, such as https://example.com/hook")
        if parts.username is not None or parts.password is not None:
            raise ValueError("must not carry a user name or password")
        if parts.fragment:
            raise ValueError("must not carry a fragment")
        parts.port  # noqa: B018 - raises ValueError for a port that is no number below 65536
        return url

    @field_validator("headers")
    @classmethod
    def _free_names(cls, headers: dict[str, HeaderValue]) -> dict[str, HeaderValue]:
        seen: set[str] = set()
        for name in headers:
            check_header_name(name)
            if name.lower() in seen:
                raise ValueError(f"names {name!r} twice: upper and lower case are the same")
            seen.add(name.lower())
        return headers


class LambdaTarget(_Spec):
    """A Lambda function. `sync` waits for its result; `event` ends when the event is queued."""

    type: Literal["lambda"] = "lambda"
    function_arn: str
    invocation: Literal["sync", "event"] = "sync"

    @property
    def resource_arn(self) -> str | None:
        return self.function_arn

    @field_validator("function_arn")
    @classmethod
    def _arn(cls, arn: str) -> str:
        return arn_of("lambda", arn)


class SqsTarget(_Spec):
    """A queue. In a FIFO queue the group is `message_group_id`, else the job's id."""

    type: Literal["sqs"] = "sqs"
    queue_arn: str
    message_group_id: GroupId | None = None

    @property
    def resource_arn(self) -> str | None:
        return self.queue_arn

    @field_validator("queue_arn")
    @classmethod
    def _arn(cls, arn: str) -> str:
        return arn_of("sqs", arn)


class SnsTarget(_Spec):
    """A topic. In a FIFO topic the group is `message_group_id`, else the job's id."""

    type: Literal["sns"] = "sns"
    topic_arn: str
    subject: Annotated[str, AfterValidator(check_subject)] | None = None
    message_group_id: GroupId | None = None

    @property
    def resource_arn(self) -> str | None:
        return self.topic_arn

    @field_validator("topic_arn")
    @classmethod
    def _arn(cls, arn: str) -> str:
        return arn_of("sns", arn)


class EventBridgeTarget(_Spec):
    """An event bus. The event's detail is the payload, or {"payload": …} if it is no object."""

    type: Literal["eventbridge"] = "eventbridge"
    bus_arn: str
    source: str = Field(min_length=1, max_length=256)
    detail_type: str = Field(min_length=1, max_length=128)

    @property
    def resource_arn(self) -> str | None:
        return self.bus_arn

    @field_validator("bus_arn")
    @classmethod
    def _arn(cls, arn: str) -> str:
        return arn_of("eventbridge", arn)

    @field_validator("source")
    @classmethod
    def _not_of_aws(cls, source: str) -> str:
        if re.match(r"aws\.", source, re.IGNORECASE):
            raise ValueError("must not begin with 'aws.': these sources are AWS's own")
        return source


class StepFunctionsTarget(_Spec):
    """A state machine; one execution of it is started for a run, whatever its attempts."""

    type: Literal["stepfunctions"] = "stepfunctions"
    state_machine_arn: str

    @property
    def resource_arn(self) -> str | None:
        return self.state_machine_arn

    @field_validator("state_machine_arn")
    @classmethod
    def _arn(cls, arn: str) -> str:
        return arn_of("stepfunctions", arn)


AnyTarget = (
    TaskTarget
    | WebhookTarget
    | LambdaTarget
    | SqsTarget
    | SnsTarget
    | EventBridgeTarget
    | StepFunctionsTarget
)
Target = Annotated[AnyTarget, Field(discriminator="type")]

target_adapter: TypeAdapter[AnyTarget] = TypeAdapter(Target)
"""Reads and writes a target's JSON form; raises pydantic.ValidationError."""
