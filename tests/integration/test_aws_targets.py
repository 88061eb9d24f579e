"""Targets in AWS, and owners' secrets, against a real server (MiniStack): every type is called."""

import io
import json
import time
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from uuid import uuid4

import boto3
import pytest

from carillon.clock import SystemClock
from carillon.domain.targets import (
    BatchTarget,
    EcsTarget,
    EventBridgeTarget,
    LambdaTarget,
    ParameterReference,
    SecretReference,
    SnsTarget,
    SqsTarget,
    StepFunctionsTarget,
)
from carillon.executor.deadlines import Deadline
from carillon.executor.targets import Failure, ReportTo, Success, Targets
from carillon.executor.targets.secrets import AwsSecrets, OwnerSecrets, SecretError
from carillon.settings import Settings
from tests.integration.executor.sending import call as call_of
from tests.integration.executor.sending import refusal
from tests.integration.executor.test_targets import ENVIRONMENT

pytestmark = pytest.mark.ministack

ACCOUNT = "000000000000"
ALLOWED = ",".join(
    f"arn:aws:{service}:*:{ACCOUNT}:*"
    for service in ("lambda", "sqs", "sns", "events", "states", "ecs", "batch")
)
ROLE = f"arn:aws:iam::{ACCOUNT}:role/any"
CALL = call_of('{"a":"ü"}', timeout_seconds=20)
FUNCTION = """
import time
def handler(event, context):
    if event.get("fail"):
        raise ValueError("no such order")
    time.sleep(event.get("seconds", 0))
    return {"event": event}
"""


@pytest.fixture
def targets(ministack: str) -> Iterator[Targets]:
    settings = Settings.from_environment({**ENVIRONMENT, "TARGET_ARNS": ALLOWED})
    with Targets(settings, SystemClock()) as targets:
        yield targets


def client(service: str) -> Any:
    session: Any = boto3.Session()
    return session.client(service)


def unique(name: str) -> str:
    return f"{name}-{uuid4().hex[:8]}"


def new_queue(name: str, **attributes: str) -> tuple[str, str]:
    """The URL and ARN of a new queue."""
    sqs = client("sqs")
    url = sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
    told = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
    return url, told["Attributes"]["QueueArn"]


def received(url: str, count: int = 1, seconds: float = 10) -> list[Any]:
    """The messages that came, at least so many, with all that was told with them."""
    messages: list[Any] = []
    ends_at = time.monotonic() + seconds
    while len(messages) < count and time.monotonic() < ends_at:
        answer = client("sqs").receive_message(
            QueueUrl=url,
            MaxNumberOfMessages=10,
            WaitTimeSeconds=1,
            MessageAttributeNames=["All"],
            AttributeNames=["All"],
        )
        messages += answer.get("Messages", [])
    return messages


@pytest.fixture
def function_arn(ministack: str) -> str:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("index.py", FUNCTION)
    created = client("lambda").create_function(
        FunctionName=unique("echo"),
        Runtime="python3.12",
        Role=ROLE,
        Handler="index.handler",
        Code={"ZipFile": archive.getvalue()},
        Timeout=30,
    )
    client("lambda").get_waiter("function_active_v2").wait(FunctionName=created["FunctionName"])
    return str(created["FunctionArn"])


def test_a_function_is_called_with_the_payload(targets: Targets, function_arn: str) -> None:
    outcome = targets.deliver(LambdaTarget(function_arn=function_arn), CALL)
    assert isinstance(outcome, Success)
    assert json.loads(outcome.result or "") == {"event": {"a": "ü"}}


def test_what_a_function_raises_fails_the_attempt(targets: Targets, function_arn: str) -> None:
    call = replace(CALL, payload='{"fail":true}')
    outcome = targets.deliver(LambdaTarget(function_arn=function_arn), call)
    assert isinstance(outcome, Failure)
    assert (outcome.error.kind, outcome.error.permanent) == ("function_error", False)
    assert "no such order" in outcome.error.message


def test_a_slow_function_is_waited_for_no_longer_than_the_limit(
    targets: Targets, function_arn: str
) -> None:
    target = LambdaTarget(function_arn=function_arn)
    targets.deliver(target, CALL)  # started once, so that the next call is quick
    call = replace(CALL, payload='{"seconds":6}', timeout_seconds=1)
    began = time.monotonic()
    outcome = targets.deliver(target, call)
    assert time.monotonic() - began < 3
    assert isinstance(outcome, Failure)
    assert (outcome.error.kind, outcome.timed_out) == ("timeout", True)


def test_an_event_is_queued_for_a_function(targets: Targets, function_arn: str) -> None:
    target = LambdaTarget(function_arn=function_arn, invocation="event")
    call = replace(CALL, payload='{"fail":true}')
    assert targets.deliver(target, call) == Success("queued")


def test_a_message_is_sent_to_a_queue(targets: Targets) -> None:
    url, arn = new_queue(unique("q"))
    for _ in range(2):
        outcome = targets.deliver(SqsTarget(queue_arn=arn), CALL)
    assert isinstance(outcome, Success)
    first, second = received(url, count=2)
    assert first["Body"] == second["Body"] == CALL.payload
    attributes = first["MessageAttributes"]
    assert attributes["carillon-run-id"]["StringValue"] == CALL.run_id
    assert attributes["carillon-attempt"] == {"DataType": "Number", "StringValue": "2"}
    assert attributes["carillon-fire-at"]["StringValue"] == "2026-03-01T12:00:17Z"
    assert first["MessageId"] != second["MessageId"]
    assert outcome.result in {f"message {each['MessageId']}" for each in (first, second)}


def test_a_message_says_where_the_end_is_reported(targets: Targets) -> None:
    url, arn = new_queue(unique("q"))
    told = ReportTo("https://api.example.com/completions/run", "owner.secret")
    targets.deliver(SqsTarget(queue_arn=arn), replace(CALL, report_to=told))
    (message,) = received(url, count=1)
    attributes = message["MessageAttributes"]
    assert attributes["carillon-completion-url"]["StringValue"] == told.url
    assert attributes["carillon-completion-token"]["StringValue"] == told.token
    assert message["Body"] == CALL.payload


def test_a_fifo_queue_keeps_one_message_of_all_attempts(targets: Targets) -> None:
    url, arn = new_queue(unique("q") + ".fifo", FifoQueue="true")
    target = SqsTarget(queue_arn=arn, message_group_id="orders")
    for attempt in (1, 2):
        outcome = targets.deliver(target, replace(CALL, attempt=attempt))
        assert isinstance(outcome, Success)
    (message,) = received(url, count=2, seconds=2)
    assert message["Attributes"]["MessageGroupId"] == "orders"
    assert message["Attributes"]["MessageDeduplicationId"] == CALL.run_id


def test_a_message_is_published_to_a_topic(targets: Targets) -> None:
    sns = client("sns")
    topic_arn = sns.create_topic(Name=unique("t"))["TopicArn"]
    url, queue_arn = new_queue(unique("q"))
    sns.subscribe(TopicArn=topic_arn, Protocol="sqs", Endpoint=queue_arn)
    outcome = targets.deliver(SnsTarget(topic_arn=topic_arn, subject="An order"), CALL)
    assert isinstance(outcome, Success)
    (message,) = received(url)
    told = json.loads(message["Body"])
    assert (told["Message"], told["Subject"]) == (CALL.payload, "An order")
    assert told["MessageAttributes"]["carillon-run-id"]["Value"] == CALL.run_id
    assert outcome.result == f"message {told['MessageId']}"


@pytest.mark.parametrize(
    ("payload", "detail"), [('{"a":"ü"}', {"a": "ü"}), ("[1,2]", {"payload": [1, 2]})]
)
def test_an_event_is_put_on_a_bus(targets: Targets, payload: str, detail: Any) -> None:
    events, name = client("events"), unique("bus")
    bus_arn = events.create_event_bus(Name=name)["EventBusArn"]
    url, queue_arn = new_queue(unique("q"))
    events.put_rule(Name="all", EventBusName=name, EventPattern='{"source":["shop"]}')
    events.put_targets(Rule="all", EventBusName=name, Targets=[{"Id": "queue", "Arn": queue_arn}])
    target = EventBridgeTarget(bus_arn=bus_arn, source="shop", detail_type="PreparedCall")
    outcome = targets.deliver(target, replace(CALL, payload=payload))
    assert isinstance(outcome, Success)
    (message,) = received(url)
    event = json.loads(message["Body"])
    assert (event["detail"], event["detail-type"]) == (detail, "PreparedCall")
    assert event["resources"] == [CALL.run_id]
    assert outcome.result == f"event {event['id']}"


def test_a_run_starts_one_execution_whatever_its_attempts(targets: Targets) -> None:
    machines = client("stepfunctions")
    definition = {"StartAt": "Pass", "States": {"Pass": {"Type": "Pass", "End": True}}}
    arn = machines.create_state_machine(
        name=unique("m"), definition=json.dumps(definition), roleArn=ROLE
    )["stateMachineArn"]
    target = StepFunctionsTarget(state_machine_arn=arn)
    for attempt in (1, 2):
        payload = f'{{"attempt":{attempt}}}'
        outcome = targets.deliver(target, replace(CALL, attempt=attempt, payload=payload))
        assert isinstance(outcome, Success)
    (execution,) = machines.list_executions(stateMachineArn=arn)["executions"]
    assert execution["name"] == CALL.run_id
    started = machines.describe_execution(executionArn=execution["executionArn"])
    assert json.loads(started["input"]) == {"attempt": 1}


def new_task_definition() -> str:
    definition = client("ecs").register_task_definition(
        family=unique("report"),
        networkMode="awsvpc",
        requiresCompatibilities=["FARGATE"],
        cpu="256",
        memory="512",
        containerDefinitions=[{"name": "main", "image": "none"}],
    )
    return str(definition["taskDefinition"]["taskDefinitionArn"])


def test_a_task_is_started_with_the_payload_in_its_environment(targets: Targets) -> None:
    """Nothing runs in it: the emulator has no containers. It knows no tokens either."""
    ecs = client("ecs")
    cluster = ecs.create_cluster(clusterName=unique("c"))["cluster"]["clusterArn"]
    target = EcsTarget(
        task_definition_arn=new_task_definition(),
        cluster_arn=cluster,
        subnets=("subnet-0a1b2c3d",),
        container="main",
        environment={"AREA": "eu"},
    )
    outcome = targets.deliver(target, CALL)
    assert isinstance(outcome, Success)
    (arn,) = ecs.list_tasks(cluster=cluster, startedBy=CALL.run_id)["taskArns"]
    assert outcome.result == f"task {arn}"
    (task,) = ecs.describe_tasks(cluster=cluster, tasks=[arn])["tasks"]
    assert (task["taskDefinitionArn"], task["launchType"]) == (
        target.task_definition_arn,
        "FARGATE",
    )
    (override,) = task["overrides"]["containerOverrides"]
    got = {each["name"]: each["value"] for each in override["environment"]}
    assert (override["name"], got["AREA"]) == ("main", "eu")
    assert (got["CARILLON_PAYLOAD"], got["CARILLON_RUN_ID"]) == (CALL.payload, CALL.run_id)


def test_a_job_is_submitted_to_a_queue_of_batch(targets: Targets) -> None:
    """The emulator shows neither its parameters nor its environment."""
    batch, name = client("batch"), unique("b")
    made = batch.create_compute_environment(computeEnvironmentName=name, type="UNMANAGED")
    order = {"order": 1, "computeEnvironment": made["computeEnvironmentArn"]}
    queue = batch.create_job_queue(jobQueueName=name, priority=1, computeEnvironmentOrder=[order])
    definition = batch.register_job_definition(
        jobDefinitionName=name,
        type="container",
        containerProperties={"image": "none", "vcpus": 1, "memory": 128},
    )
    target = BatchTarget(
        job_definition_arn=definition["jobDefinitionArn"],
        job_queue_arn=queue["jobQueueArn"],
        parameters={"input": "s3://orders"},
    )
    outcome = targets.deliver(target, CALL)
    assert isinstance(outcome, Success)
    job_id = (outcome.result or "").removeprefix("job ")
    (job,) = batch.describe_jobs(jobs=[job_id])["jobs"]
    assert (job["jobName"], job["jobQueue"]) == (CALL.job_name, queue["jobQueueArn"])
    assert job["jobDefinition"] == definition["jobDefinitionArn"]


def test_a_task_of_a_definition_that_does_not_exist_is_refused(targets: Targets) -> None:
    gone = f"arn:aws:ecs:us-east-1:{ACCOUNT}:task-definition/gone:1"
    target = EcsTarget(task_definition_arn=gone, launch_type="EC2")
    assert refusal(targets.deliver(target, CALL)) == ("ClientException", False)


@pytest.mark.parametrize(
    "target",
    [
        LambdaTarget(function_arn=f"arn:aws:lambda:us-east-1:{ACCOUNT}:function:gone"),
        SqsTarget(queue_arn=f"arn:aws:sqs:us-east-1:{ACCOUNT}:gone"),
        SnsTarget(topic_arn=f"arn:aws:sns:us-east-1:{ACCOUNT}:gone"),
        StepFunctionsTarget(
            state_machine_arn=f"arn:aws:states:us-east-1:{ACCOUNT}:stateMachine:gone"
        ),
    ],
    ids=lambda target: target.type,
)
def test_what_does_not_exist_is_refused_for_good(targets: Targets, target: Any) -> None:
    outcome = targets.deliver(target, CALL)
    assert refusal(outcome) == ("not_found", True)


def test_a_service_that_cannot_be_reached_may_be_tried_again(
    targets: Targets, aws_environment: pytest.MonkeyPatch
) -> None:
    aws_environment.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    target = SqsTarget(queue_arn=f"arn:aws:sqs:us-east-1:{ACCOUNT}:q")
    outcome = targets.deliver(target, CALL)
    assert refusal(outcome) == ("connect_error", False)


def test_owners_secrets_are_read_where_they_lie(ministack: str) -> None:
    prefix = unique("carillon")
    client("secretsmanager").create_secret(Name=f"{prefix}/user/ann_40x/token", SecretString="s1")
    client("ssm").put_parameter(
        Name=f"/{prefix}/user/ann_40x/tenant", Value="p1", Type="SecureString"
    )
    owners = OwnerSecrets(AwsSecrets(), prefix, SystemClock())
    token, tenant = SecretReference(secret="token"), ParameterReference(parameter="tenant")
    assert owners.text("user/ann@x", token, Deadline.after(10)) == "s1"
    assert owners.text("user/ann@x", tenant, Deadline.after(10)) == "p1"
    for reference in (token, tenant):
        with pytest.raises(SecretError, match="does not exist") as caught:
            owners.text("user/bob", reference, Deadline.after(10))
        assert caught.value.kind == "secret_missing"
