"""Lambda functions: the payload is the event.

A synchronous call also carries the run's facts in the client context (`custom`, as AWS's runtimes
show it); Lambda passes none to asynchronous ones: there a template puts them in the payload.
"""

import base64
import json
from typing import Any

from carillon.clock import Clock
from carillon.domain.run import RunError
from carillon.domain.targets import LambdaTarget
from carillon.executor.targets.aws_client import AwsCaller
from carillon.executor.targets.call import Call, Failure, Outcome, Success
from carillon.executor.targets.run_facts import facts
from carillon.executor.task_process.one_line import one_line
from carillon.settings import Settings

READ_LIMIT_BYTES = 64 * 1024
"""A result is read up to here; the history keeps only its beginning."""


def create_caller(settings: Settings, clock: Clock) -> AwsCaller:
    """One more kind of failure: `function_error`, the function raised or was stopped."""
    return AwsCaller("lambda", send)


def send(client: Any, target: LambdaTarget, call: Call) -> Outcome:
    arguments: dict[str, Any] = {"FunctionName": target.function_arn, "Payload": call.payload}
    if target.invocation == "event":
        client.invoke(InvocationType="Event", **arguments)
        return Success("queued")
    context = json.dumps({"custom": facts(call)}).encode()
    arguments["ClientContext"] = base64.b64encode(context).decode("ascii")
    answer = client.invoke(InvocationType="RequestResponse", **arguments)
    with answer["Payload"] as body:
        text = body.read(READ_LIMIT_BYTES).decode("utf-8", "replace")
    if answer.get("FunctionError"):
        return Failure(RunError("function_error", one_line(_raised(text))))
    return Success(one_line(text))


def _raised(text: str) -> str:
    """What the function raised, from the JSON that Lambda tells of it."""
    try:
        told = json.loads(text)
        return f"{told['errorType']}: {told['errorMessage']}"
    except (ValueError, KeyError, TypeError):
        return text or "the function failed"
