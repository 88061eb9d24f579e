"""Targets of a run, and the rules of their members."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    TypeAdapter,
    ValidationInfo,
    field_validator,
)

from carillon.domain.spec.arns import arn_of, every_revision, is_beside
from carillon.domain.spec.completion_spec import CompletionSpec
from carillon.domain.spec.containers import (
    BATCH_RESERVE_CHARACTERS,
    Command,
    EcsName,
    Environment,
    Parameters,
    SecurityGroupIds,
    SubnetIds,
    overrides_of,
    refuse_excess,
)
from carillon.domain.spec.headers import check_header_name, check_header_value, check_subject

MOST_HEADERS = 20
"""Headers of its own that a webhook may have."""

SecretName = Annotated[str, Field(max_length=128, pattern=r"^[A-Za-z0-9_.-]+$")]
GroupId = Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[!-~]+$")]


def _with_required_type(schema: dict[str, Any]) -> None:
    """Code may leave the type out, a document never: the type distinguishes targets."""
    if "type" in schema["properties"]:
        schema["required"] = ["type", *schema.get("required", ())]
        del schema["properties"]["type"]["default"]


class Spec(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", json_schema_extra=_with_required_type)


class _Completable(Spec):
    """A target whose runs may end later than its call, by a report."""

    type: str = ""
    completion: CompletionSpec | None = None


class SecretReference(Spec):
    """The text of a secret of the job's owner in Secrets Manager."""

    secret: SecretName


class ParameterReference(Spec):
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


class TaskTarget(Spec):
    """A Python function registered with `@task` in one of the deployment's task modules."""

    completion: ClassVar[None] = None
    """A task's process ends with its call."""

    type: Literal["task"] = "task"
    name: str = Field(min_length=1, max_length=128, pattern=r"^[A-Za-z_][A-Za-z0-9_.-]*$")

    @property
    def resource_arn(self) -> str | None:
        return None


class WebhookTarget(_Completable):
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


class LambdaTarget(_Completable):
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


class SqsTarget(_Completable):
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


class SnsTarget(_Completable):
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


class EventBridgeTarget(_Completable):
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


class StepFunctionsTarget(_Completable):
    """A state machine; of a standard workflow one execution is started for a run, whatever its
    attempts. Of an express one, and with `completion`, each attempt has an execution of its own."""

    type: Literal["stepfunctions"] = "stepfunctions"
    state_machine_arn: str

    @property
    def resource_arn(self) -> str | None:
        return self.state_machine_arn

    @field_validator("state_machine_arn")
    @classmethod
    def _arn(cls, arn: str) -> str:
        return arn_of("stepfunctions", arn)


class EcsTarget(_Completable):
    """A task of Amazon ECS. The run ends when ECS has accepted it, without a `completion`.

    It is started on Fargate, unless `launch_type` or `capacity_provider` says otherwise, which for
    the network needs `subnets`. The `container` gets the payload, as an environment variable.
    """

    type: Literal["ecs"] = "ecs"
    task_definition_arn: str
    cluster_arn: str | None = None
    launch_type: Literal["FARGATE", "EC2", "EXTERNAL"] | None = None
    capacity_provider: EcsName | None = None
    subnets: SubnetIds = Field(default=(), validate_default=True)
    security_groups: SecurityGroupIds = ()
    assign_public_ip: bool = False
    container: EcsName | None = None
    command: Command = ()
    environment: Environment = Field(default_factory=dict)

    @property
    def resource_arn(self) -> str | None:
        return every_revision(self.task_definition_arn)

    def overrides(self, variables: Mapping[str, str]) -> dict[str, Any]:
        """Those of RunTask; raises ValueError beyond AWS's limit."""
        if self.container is None:
            return {}
        command = list(self.command)
        made = overrides_of(self.environment, variables, name=self.container, command=command)
        refuse_excess({"containerOverrides": [made]})
        return {"containerOverrides": [made]}

    @field_validator("task_definition_arn")
    @classmethod
    def _arn(cls, arn: str) -> str:
        return arn_of("ecs", arn)

    @field_validator("cluster_arn")
    @classmethod
    def _cluster(cls, arn: str | None, info: ValidationInfo) -> str | None:
        return arn and is_beside(arn_of("cluster", arn), info.data.get("task_definition_arn"))

    @field_validator("capacity_provider")
    @classmethod
    def _one_of_both(cls, name: str | None, info: ValidationInfo) -> str | None:
        if name is not None and info.data.get("launch_type") is not None:
            raise ValueError("cannot go with launch_type: say one of them")
        return name

    @field_validator("subnets")
    @classmethod
    def _network_of_fargate(cls, ids: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        chosen = info.data.get("launch_type"), info.data.get("capacity_provider")
        if not ids and _is_on_fargate(*chosen):
            raise ValueError("must be given on Fargate: a list, such as subnet-0a1b2c3d")
        return ids

    @field_validator("security_groups", "assign_public_ip")
    @classmethod
    def _of_the_network(cls, value: Any, info: ValidationInfo) -> Any:
        if value and info.data.get("subnets") == ():
            raise ValueError("needs subnets")
        return value

    @field_validator("command", "environment")
    @classmethod
    def _of_the_container(cls, value: Any, info: ValidationInfo) -> Any:
        if value and info.data.get("container") is None:
            raise ValueError("needs container, the name of the one that gets it")
        return value


def _is_on_fargate(launch_type: str | None, capacity_provider: str | None) -> bool:
    return (launch_type or capacity_provider or "FARGATE").startswith("FARGATE")


class BatchTarget(_Completable):
    """A job of AWS Batch. The run ends when Batch has accepted it, without a `completion`.

    The container gets the payload, as an environment variable. `parameters` are those of the job
    definition.
    """

    type: Literal["batch"] = "batch"
    job_definition_arn: str
    job_queue_arn: str
    parameters: Parameters = Field(default_factory=dict)
    environment: Environment = Field(default_factory=dict)

    @property
    def resource_arn(self) -> str | None:
        return every_revision(self.job_definition_arn)

    def overrides(self, variables: Mapping[str, str]) -> dict[str, Any]:
        """Those of SubmitJob; raises ValueError beyond AWS's limit."""
        made = overrides_of(self.environment, variables)
        refuse_excess(made, BATCH_RESERVE_CHARACTERS)
        return made

    @field_validator("job_definition_arn")
    @classmethod
    def _arn(cls, arn: str) -> str:
        return arn_of("batch", arn)

    @field_validator("job_queue_arn")
    @classmethod
    def _queue(cls, arn: str, info: ValidationInfo) -> str:
        return is_beside(arn_of("job queue", arn), info.data.get("job_definition_arn"))


AnyTarget = (
    TaskTarget
    | WebhookTarget
    | LambdaTarget
    | SqsTarget
    | SnsTarget
    | EventBridgeTarget
    | StepFunctionsTarget
    | EcsTarget
    | BatchTarget
)
Target = Annotated[AnyTarget, Field(discriminator="type")]

target_adapter: TypeAdapter[AnyTarget] = TypeAdapter(Target)
"""Reads and writes a target's JSON form; raises pydantic.ValidationError."""


def arns_called(target: AnyTarget) -> dict[str, str]:
    """The AWS resources that a call of the target uses, each of which the deployment must allow, by
    the member that names it; a definition without a revision stands for every one (`:*`)."""
    if target.resource_arn is None:
        return {}
    definition = target.resource_arn.removesuffix(":*")
    member = next(name for name, value in target if value in (target.resource_arn, definition))
    queue = {"job_queue_arn": target.job_queue_arn} if isinstance(target, BatchTarget) else {}
    return {member: target.resource_arn, **queue}
