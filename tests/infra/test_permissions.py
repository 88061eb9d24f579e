"""Each function may do what its protocol needs, on its own resources, and nothing else."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.infra.stacks import SynthesizedStack, deployed, referred

LANES = ("QueueUrlHigh", "QueueUrlNormal", "QueueUrlLow")
CONSUME = {
    "sqs:ReceiveMessage",
    "sqs:DeleteMessage",
    "sqs:ChangeMessageVisibility",
    "sqs:GetQueueAttributes",
    "sqs:GetQueueUrl",
}
GET, PUT, DELETE = "dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:DeleteItem"
BATCH, QUERY = "dynamodb:BatchWriteItem", "dynamodb:Query"
SEND_TO_LANES = {lane: {"sqs:SendMessage"} for lane in LANES}

RUNNING = {
    "JobsTable": {GET, PUT},
    "RunsTable": {GET, PUT, DELETE, QUERY},
    "WheelTable": {GET, PUT, DELETE, BATCH},
}


def executor(lane: str) -> dict[str, set[str]]:
    own_queue = {f"QueueUrl{lane}": {"sqs:SendMessage"} | CONSUME}
    secret = {"WebhookSecretArn": {"secretsmanager:GetSecretValue"}}
    return {**RUNNING, **SEND_TO_LANES, **own_queue, **secret}


ALLOWED: dict[str, dict[str, set[str]]] = {
    "tick": {
        "JobsTable": {GET},
        "WheelTable": {GET, PUT, DELETE, BATCH, QUERY},
        **SEND_TO_LANES,
        # Lambda delivers the record of a failed tick with the tick's own role.
        "failed ticks": {"sqs:SendMessage", "sqs:GetQueueAttributes", "sqs:GetQueueUrl"},
    },
    "executor-high": executor("High"),
    "executor-normal": executor("Normal"),
    "executor-low": executor("Low"),
    "dead-letter-consumer": {
        **RUNNING,
        **SEND_TO_LANES,
        **{f"DeadLetter{lane}": CONSUME for lane in LANES},
    },
    "api": {
        "JobsTable": {GET, PUT, DELETE, QUERY},
        "RunsTable": {GET, PUT, QUERY},
        "RunsTable/index/dead_letters": {QUERY},
        "WheelTable": {GET, PUT, BATCH},
        **SEND_TO_LANES,
    },
}


@pytest.mark.parametrize("name", sorted(ALLOWED))
def test_a_function_may_do_exactly_this(production: SynthesizedStack, name: str) -> None:
    granted: dict[str, set[str]] = {}
    for statement in statements_of(production, name):
        assert statement["Effect"] == "Allow"
        for resource in listed(statement["Resource"]):
            named = resource_name(production, resource)
            granted.setdefault(named, set()).update(listed(statement["Action"]))
    logs = granted.pop("own log group")
    assert logs == {"logs:CreateLogStream", "logs:PutLogEvents"}
    assert granted == ALLOWED[name]


def test_no_role_carries_a_managed_policy(production: SynthesizedStack) -> None:
    for role in production.properties("IAM::Role").values():
        assert "ManagedPolicyArns" not in role
        assert "Policies" not in role


def test_nothing_is_allowed_on_everything(production: SynthesizedStack) -> None:
    for policy in production.properties("IAM::Policy").values():
        for statement in policy["PolicyDocument"]["Statement"]:
            wildcards = [
                *listed(statement["Action"]),
                *map(deployed, listed(statement["Resource"])),
            ]
            assert not [text for text in wildcards if "*" in text]


def test_only_one_rule_and_one_api_may_invoke(production: SynthesizedStack) -> None:
    invokers = {
        (
            str(permission["Principal"]),
            production.function_name(referred(permission["FunctionName"])),
        )
        for permission in production.properties("Lambda::Permission").values()
    }
    assert invokers == {("events.amazonaws.com", "tick"), ("apigateway.amazonaws.com", "api")}
    for permission in production.properties("Lambda::Permission").values():
        assert "SourceArn" in permission


def statements_of(stack: SynthesizedStack, name: str) -> Iterator[Mapping[str, Any]]:
    role = referred(stack.functions()[name]["Role"])
    for policy in stack.properties("IAM::Policy").values():
        if role in [referred(one) for one in policy["Roles"]]:
            yield from policy["PolicyDocument"]["Statement"]


def resource_name(stack: SynthesizedStack, resource: object) -> str:
    """The output that names a resource, with a suffix like /index/…, or a word of our own."""
    logical_id, slash, suffix = deployed(resource).partition("/")
    if logical_id in stack.resources("Logs::LogGroup"):
        return "own log group"
    for output in stack.template["Outputs"]:
        value = stack.template["Outputs"][output]["Value"]
        if value == {"Ref": logical_id}:
            return f"{output}{slash}{suffix}"
    assert logical_id in stack.resources("SQS::Queue"), logical_id
    return "failed ticks"


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
