"""AWS resources beside the deployed stack, one of each type that jobs may call."""

import io
import json
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from carillon.local.deployment import Deployment
from carillon.local.emulator import ACCOUNT_ID

_NAME = "smoke-target"
_ROLE = f"arn:aws:iam::{ACCOUNT_ID}:role/{_NAME}"
_FUNCTION = "def handler(event, context):\n    return event\n"
_MACHINE = {"StartAt": "Done", "States": {"Done": {"Type": "Succeed"}}}


@contextmanager
def one_of_each_type(deployment: Deployment) -> Iterator[list[str]]:
    """The ARNs of a queue, a topic, an event bus, a state machine and a function."""
    with ExitStack() as made:
        makers = (_queue, _topic, _bus, _machine, _function)
        yield [make(deployment, made) for make in makers]


def _queue(deployment: Deployment, made: ExitStack) -> str:
    client = deployment.client("sqs")
    url = client.create_queue(QueueName=_NAME)["QueueUrl"]
    made.callback(client.delete_queue, QueueUrl=url)
    answer = client.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
    return str(answer["Attributes"]["QueueArn"])


def _topic(deployment: Deployment, made: ExitStack) -> str:
    client = deployment.client("sns")
    arn = str(client.create_topic(Name=_NAME)["TopicArn"])
    made.callback(client.delete_topic, TopicArn=arn)
    return arn


def _bus(deployment: Deployment, made: ExitStack) -> str:
    client = deployment.client("events")
    arn = str(client.create_event_bus(Name=_NAME)["EventBusArn"])
    made.callback(client.delete_event_bus, Name=_NAME)
    return arn


def _machine(deployment: Deployment, made: ExitStack) -> str:
    client = deployment.client("stepfunctions")
    definition = json.dumps(_MACHINE)
    answer = client.create_state_machine(name=_NAME, definition=definition, roleArn=_ROLE)
    arn = str(answer["stateMachineArn"])
    made.callback(client.delete_state_machine, stateMachineArn=arn)
    return arn


def _function(deployment: Deployment, made: ExitStack) -> str:
    """Called once already: starting its worker may take longer than a run may."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as files:
        files.writestr("main.py", _FUNCTION)
    client = deployment.client("lambda")
    answer = client.create_function(
        FunctionName=_NAME,
        Runtime="python3.12",
        Role=_ROLE,
        Handler="main.handler",
        Code={"ZipFile": archive.getvalue()},
    )
    made.callback(client.delete_function, FunctionName=_NAME)
    client.get_waiter("function_active_v2").wait(FunctionName=_NAME)
    client.invoke(FunctionName=_NAME, Payload=b"{}")
    return str(answer["FunctionArn"])
