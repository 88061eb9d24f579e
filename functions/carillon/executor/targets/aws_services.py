"""The AWS targets: Lambda, SQS, SNS, EventBridge and Step Functions."""

import base64
import json
from typing import Any

from botocore.exceptions import ClientError

from carillon.clock import Clock
from carillon.domain.run import RunError, kept_text, one_line
from carillon.domain.targets import (
    EventBridgeTarget,
    LambdaTarget,
    SnsTarget,
    SqsTarget,
    StepFunctionsTarget,
)
from carillon.executor.targets.aws_client import AwsCaller, coded
from carillon.executor.targets.call import (
    Call,
    Failure,
    Outcome,
    Success,
    body_of,
    call_id,
    facts,
    message_attributes,
    order,
    short_id,
)
from carillon.executor.targets.secrets import Recent
from carillon.settings import Settings

READ_LIMIT_BYTES = 64 * 1024
"""A result is read up to here; the history keeps only its beginning."""


def create_lambda(settings: Settings, clock: Clock) -> AwsCaller:
    """One more kind of failure: `function_error`, the function raised or was stopped."""
    return AwsCaller("lambda", invoke)


def invoke(client: Any, target: LambdaTarget, call: Call) -> Outcome:
    arguments: dict[str, Any] = {"FunctionName": target.function_arn, "Payload": body_of(call)}
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
    return Success(kept_text(text, whole=call.keeps_whole))


def _raised(text: str) -> str:
    """The exception of the function, from the JSON in which Lambda reports it."""
    try:
        told = json.loads(text)
        return f"{told['errorType']}: {told['errorMessage']}"
    except (ValueError, KeyError, TypeError, RecursionError):  # it may say whatever it likes
        return text or "the function failed"


MOST_URLS = 1000
"""Of queues that were sent to lately, so that each message does not ask for its queue's."""


def create_sqs(settings: Settings, clock: Clock) -> AwsCaller:
    sender = QueueSender()
    return AwsCaller("sqs", sender.send, sender.url)


class QueueSender:
    """Sends to queues by their ARNs; each one's URL is read once and kept for a while."""

    def __init__(self) -> None:
        self._urls: Recent[str, str] = Recent(MOST_URLS)

    def send(self, client: Any, target: SqsTarget, call: Call) -> Outcome:
        answer = client.send_message(
            QueueUrl=self.url(client, target),
            MessageBody=call.payload,
            MessageAttributes=message_attributes(call),
            **_system_attributes(call),
            **order(target.queue_arn, target.message_group_id, call),
        )
        return Success(f"message {answer['MessageId']}")

    def url(self, client: Any, target: SqsTarget) -> str:
        arn = target.queue_arn
        known = self._urls.get(arn)
        if known is not None:
            return known
        account, name = arn.split(":")[4:6]
        answer = client.get_queue_url(QueueName=name, QueueOwnerAWSAccountId=account)
        return self._urls.keep(arn, str(answer["QueueUrl"]))


def _system_attributes(call: Call) -> dict[str, Any]:
    """The trace as a function that the queue invokes goes on with it."""
    if call.trace is None:
        return {}
    header = {"DataType": "String", "StringValue": call.trace.xray}
    return {"MessageSystemAttributes": {"AWSTraceHeader": header}}


def create_sns(settings: Settings, clock: Clock) -> AwsCaller:
    return AwsCaller("sns", publish)


def publish(client: Any, target: SnsTarget, call: Call) -> Outcome:
    subject = {} if target.subject is None else {"Subject": target.subject}
    answer = client.publish(
        TopicArn=target.topic_arn,
        Message=call.payload,
        MessageAttributes=message_attributes(call),
        **subject,
        **order(target.topic_arn, target.message_group_id, call),
    )
    return Success(f"message {answer['MessageId']}")


def create_eventbridge(settings: Settings, clock: Clock) -> AwsCaller:
    return AwsCaller("events", put_event)


def put_event(client: Any, target: EventBridgeTarget, call: Call) -> Outcome:
    entry: dict[str, Any] = {
        "EventBusName": target.bus_arn,
        "Source": target.source,
        "DetailType": target.detail_type,
        "Detail": detail(body_of(call)),
        "Time": call.fire_at,
        "Resources": [call.run_id],
        **({} if call.trace is None else {"TraceHeader": call.trace.xray}),
    }
    (told,) = client.put_events(Entries=[entry])["Entries"]
    if told.get("ErrorCode"):
        return coded(str(told["ErrorCode"]), str(told.get("ErrorMessage", "")))
    return Success(f"event {told['EventId']}")


def detail(payload: str) -> str:
    """The payload, or an object that holds it; both are compact JSON text."""
    return payload if payload.startswith("{") else f'{{"payload":{payload}}}'


NAME_LIMIT_CHARACTERS = 80


def create_stepfunctions(settings: Settings, clock: Clock) -> AwsCaller:
    return AwsCaller("stepfunctions", start_execution)


def start_execution(client: Any, target: StepFunctionsTarget, call: Call) -> Outcome:
    name = short_id(call_id(call), NAME_LIMIT_CHARACTERS)
    trace = {} if call.trace is None else {"traceHeader": call.trace.xray}
    try:
        answer = client.start_execution(
            stateMachineArn=target.state_machine_arn, name=name, input=body_of(call), **trace
        )
    except ClientError as error:
        if error.response.get("Error", {}).get("Code") != "ExecutionAlreadyExists":
            raise
        return Success(f"execution {name} (an earlier attempt started it)")
    return Success(f"execution {answer['executionArn']}")
