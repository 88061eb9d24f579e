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
    """A queue, a topic, an event bus, a state machine, a function, and a task and a job with
    containers, as the smoke test takes them: ARNs, or targets in JSON."""
    with ExitStack() as made:
        makers = (_queue, _topic, _bus, _machine, _function, _task, _batch)
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


def _task(deployment: Deployment, made: ExitStack) -> str:
    """Nothing is run there: the emulator has no containers."""
    client = deployment.client("ecs")
    cluster = client.create_cluster(clusterName=_NAME)["cluster"]["clusterArn"]
    made.callback(client.delete_cluster, cluster=cluster)
    definition = client.register_task_definition(
        family=_NAME,
        networkMode="awsvpc",
        requiresCompatibilities=["FARGATE"],
        cpu="256",
        memory="512",
        containerDefinitions=[{"name": "main", "image": "none"}],
    )["taskDefinition"]["taskDefinitionArn"]
    target = {"type": "ecs", "task_definition_arn": definition, "cluster_arn": cluster}
    return json.dumps({**target, "subnets": ["subnet-0a1b2c3d"], "container": "main"})


def _batch(deployment: Deployment, made: ExitStack) -> str:
    client = deployment.client("batch")
    environment = client.create_compute_environment(computeEnvironmentName=_NAME, type="UNMANAGED")
    order = {"order": 1, "computeEnvironment": environment["computeEnvironmentArn"]}
    queue = client.create_job_queue(
        jobQueueName=_NAME, priority=1, computeEnvironmentOrder=[order]
    )["jobQueueArn"]
    definition = client.register_job_definition(
        jobDefinitionName=_NAME,
        type="container",
        containerProperties={"image": "none", "vcpus": 1, "memory": 128},
    )["jobDefinitionArn"]
    return json.dumps({"type": "batch", "job_definition_arn": definition, "job_queue_arn": queue})


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
