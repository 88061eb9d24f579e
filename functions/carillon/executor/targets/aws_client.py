"""Shared by the targets in AWS: clients, limits, and the meaning of AWS's refusals.

An attempt calls once: the SDK repeats nothing, since a call without an answer may have had its
effect. Repeating is the retry policy's matter.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from threading import Lock
from time import monotonic
from typing import Any

from carillon.domain.run import RunError, one_line
from carillon.domain.spec.arns import region_of
from carillon.executor.deadlines import Deadline, call_within
from carillon.executor.targets.call import Call, Caller, Failure, Outcome
from carillon.executor.targets.secrets import Recent
from carillon.executor.task_process.wire import exception_line

CONNECT_SECONDS = 5
MOST_CONNECTIONS = 50
"""Kept open by one client; more calls at once open others, which are closed after them."""
KEEP_SECONDS = 30.0
"""A connection is used for the next call, too, if that comes within this time. A process stands
still between its invocations and may not hear that one has ended, and behind a NAT it never does: a
call by it would fail, or hang until its limit, as nothing is repeated."""
MOST_CLIENTS = 32
"""Of one service: jobs may name regions at will, and a client takes megabytes."""

THROTTLED = frozenset(
    {
        "EC2ThrottledException",
        "KMSThrottling",
        "KmsThrottled",
        "KmsThrottlingException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "Throttled",
        "ThrottledException",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
    }
)
PERMANENT_KINDS: dict[str, str] = {
    "AWS.SimpleQueueService.NonExistentQueue": "not_found",
    "AuthorizationError": "access_denied",
    "AuthorizationErrorException": "access_denied",
    "BadRequestException": "invalid_request",
    "ClusterNotFoundException": "not_found",
    "InvalidArgument": "invalid_request",
    "InvalidArn": "invalid_request",
    "InvalidExecutionInput": "invalid_request",
    "InvalidMessageContents": "invalid_request",
    "InvalidParameter": "invalid_request",
    "InvalidParameterException": "invalid_request",
    "InvalidParameterValue": "invalid_request",
    "InvalidParameterValueException": "invalid_request",
    "InvalidRequestContentException": "invalid_request",
    "MalformedDetail": "invalid_request",
    "MissingParameter": "invalid_request",
    "NotAuthorizedForDetailTypeException": "access_denied",
    "NotAuthorizedForSourceException": "access_denied",
    "NotFound": "not_found",
    "NotFoundException": "not_found",
    "ParameterValueInvalid": "invalid_request",
    "PlatformTaskDefinitionIncompatibilityException": "invalid_request",
    "QueueDoesNotExist": "not_found",
    "RequestEntityTooLargeException": "payload_too_large",
    "RequestTooLargeException": "payload_too_large",
    "ResourceNotFoundException": "not_found",
    "SerializedRequestEntityTooLargeException": "payload_too_large",
    "StateMachineDoesNotExist": "not_found",
    "StateMachineDeleting": "not_found",
    "UnsupportedFeatureException": "invalid_request",
    "UnsupportedMediaTypeException": "invalid_request",
    "ValidationError": "invalid_request",
    "ValidationException": "invalid_request",
}
"""AWS's codes for what no repetition changes; any other code is itself the kind."""
_DENIAL = "AccessDenied"
"""Holds in codes of many forms, such as `KMS.AccessDeniedException`."""

Send = Callable[[Any, Any, Call], Outcome]
"""Client, target and call to an outcome; raises botocore's errors."""
LookUp = Callable[[Any, Any], object]
"""Client and target to what a `Send` needs to know besides, and keeps; raises the same."""


@dataclass(slots=True)
class _Kept:
    """A client, and when it was last asked for."""

    client: Any
    used_at: float


class AwsClients:
    """The clients of one service, by region and limit, made on first use; for several threads.

    A limit is rounded up to a power of two: few clients, none of which waits twice as long.
    """

    def __init__(self, service: str) -> None:
        self._service = service
        self._session: Any = None
        self._clients: Recent[tuple[str | None, int], _Kept] = Recent(MOST_CLIENTS)
        self._lock = Lock()

    def get(self, region: str | None, limit_seconds: float) -> Any:
        """The client for a region; None: the deployment's own."""
        read_seconds = 1 << max(0, ceil(limit_seconds) - 1).bit_length()
        key = (region, read_seconds)
        with self._lock:  # a session makes one client at a time
            kept, now = self._clients.get(key), monotonic()
            if kept is None:
                kept = self._clients.keep(key, _Kept(self._create(region, read_seconds), now))
            elif now - kept.used_at > KEEP_SECONDS:
                kept.client.close()  # the idle connections only: a client goes on
            kept.used_at = now
            return kept.client

    def _create(self, region: str | None, read_seconds: int) -> Any:
        # Half a second of imports that a deployment without such targets never pays for.
        import boto3
        from botocore.config import Config

        config = Config(
            connect_timeout=min(CONNECT_SECONDS, read_seconds),
            read_timeout=read_seconds,
            retries={"total_max_attempts": 1},
            max_pool_connections=MOST_CONNECTIONS,
            tcp_keepalive=True,
        )
        if self._session is None:
            self._session = boto3.Session()
        return self._session.client(self._service, region_name=region, config=config)


class AwsCaller(Caller):
    """Calls one AWS service under the call's limit.

    Kinds of failure: `timeout`, `throttled`, `connect_error`, `network_error`, `no_credentials`;
    for good `access_denied`, `not_found`, `invalid_request`, `payload_too_large`; else AWS's code.
    """

    def __init__(self, service: str, send: Send, look_up: LookUp = lambda *_: None) -> None:
        self._clients = AwsClients(service)
        self._send = send
        self._look_up = look_up

    def deliver(self, target: Any, call: Call) -> Outcome:
        deadline = call.deadline()
        try:
            return call_within(deadline, lambda: self._call(target, call, deadline))
        except TimeoutError:
            return call.timed_out(f"no answer within {call.timeout_seconds:g} s")

    def _call(self, target: Any, call: Call, deadline: Deadline) -> Outcome:
        from botocore.exceptions import BotoCoreError, ClientError

        arn = target.resource_arn
        region = None if arn is None else region_of(arn)
        client = self._clients.get(region, call.timeout_seconds)
        try:
            self._look_up(client, target)
            if deadline.passed:  # nobody waits any more: it must not be called
                raise TimeoutError
            return self._send(client, target, call)
        except ClientError as error:
            return refusal(error.response)
        except BotoCoreError as error:
            return no_answer(error)


def refusal(response: Any) -> Failure:
    """The meaning of an error answer of AWS; `response` is that of botocore's ClientError."""
    told = response.get("Error", {})
    metadata = response.get("ResponseMetadata", {})
    wanted = str(metadata.get("HTTPHeaders", {}).get("retry-after", ""))
    after_seconds = float(wanted) if re.fullmatch("[0-9]{1,9}", wanted) else None
    return coded(
        str(told.get("Code", "")),
        str(told.get("Message", "")),
        metadata.get("HTTPStatusCode"),
        after_seconds,
    )


def coded(
    code: str, message: str, status: int | None = None, retry_after_seconds: float | None = None
) -> Failure:
    """The failure for AWS's error code."""
    kind = "access_denied" if _DENIAL in code else PERMANENT_KINDS.get(code)
    if kind == "access_denied":
        message = "this deployment is not allowed to call it"  # AWS's words name its roles
    text = one_line(f"{code}: {message}" if message else code)
    if kind is not None:
        return Failure(RunError(kind, text, permanent=True))
    throttled = code in THROTTLED or status == 429
    kind = "throttled" if throttled else one_line(code)[:64] or "aws_error"
    return Failure(RunError(kind, text), retry_after_seconds=retry_after_seconds)


def no_answer(error: Exception) -> Failure:
    """The failure when AWS was not reached, or did not answer."""
    from botocore import exceptions

    match error:
        case exceptions.ConnectTimeoutError() | exceptions.EndpointConnectionError():
            kind = "connect_error"
        case exceptions.ReadTimeoutError():
            return Failure(RunError("timeout", exception_line(error)), timed_out=True)
        case exceptions.HTTPClientError():
            kind = "network_error"
        case exceptions.NoCredentialsError() | exceptions.PartialCredentialsError():
            kind = "no_credentials"
        case exceptions.ParamValidationError():
            return Failure(RunError("invalid_request", exception_line(error), permanent=True))
        case _:
            kind = type(error).__name__
    return Failure(RunError(kind, exception_line(error)))
