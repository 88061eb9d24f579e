from collections.abc import Mapping
from typing import Any

import pytest

from tests.infra.stacks import SynthesizedStack, referred

LANES = ["High", "Normal", "Low", "Slow"]
DAY = 86_400


def queue(stack: SynthesizedStack, output: str) -> Mapping[str, Any]:
    return stack.properties("SQS::Queue")[stack.output(output)]


@pytest.mark.parametrize("lane", LANES)
def test_a_lane_gives_up_after_twenty_receptions(production: SynthesizedStack, lane: str) -> None:
    redrive = queue(production, f"QueueUrl{lane}")["RedrivePolicy"]
    assert redrive["maxReceiveCount"] == 20
    assert referred(redrive["deadLetterTargetArn"]) == production.output("DeadLetterQueueUrl")


@pytest.mark.parametrize("lane", LANES)
def test_messages_are_kept_ten_days_and_dead_ones_fourteen(
    production: SynthesizedStack, lane: str
) -> None:
    assert queue(production, f"QueueUrl{lane}")["MessageRetentionPeriod"] == 10 * DAY
    assert queue(production, "DeadLetterQueueUrl")["MessageRetentionPeriod"] == 14 * DAY


def test_the_functions_know_the_queues_retention(production: SynthesizedStack) -> None:
    for function in production.functions().values():
        days = int(function["Environment"]["Variables"]["QUEUE_RETENTION_DAYS"])
        for lane in LANES:
            assert queue(production, f"QueueUrl{lane}")["MessageRetentionPeriod"] == days * DAY


@pytest.mark.parametrize("stack_name", ["production", "unusual"])
def test_a_queue_hides_messages_six_times_as_long_as_its_function_may_run(
    request: pytest.FixtureRequest, stack_name: str
) -> None:
    stack: SynthesizedStack = request.getfixturevalue(stack_name)
    functions = stack.functions()
    mappings = stack.properties("Lambda::EventSourceMapping").values()
    assert len(mappings) == 5
    for mapping in mappings:
        timeout = functions[stack.called(mapping["FunctionName"])]["Timeout"]
        source = stack.properties("SQS::Queue")[referred(mapping["EventSourceArn"])]
        assert source["VisibilityTimeout"] >= 6 * timeout


def test_every_queue_is_encrypted_and_refuses_plain_connections(
    production: SynthesizedStack,
) -> None:
    queues = production.properties("SQS::Queue")
    assert len(queues) == 5  # of four lanes, and their dead-letter queue
    for logical_id, properties in queues.items():
        assert properties["SqsManagedSseEnabled"] is True
        assert plain_connections_denied(production, logical_id)


def plain_connections_denied(stack: SynthesizedStack, logical_id: str) -> bool:
    statements = [
        statement
        for policy in stack.properties("SQS::QueuePolicy").values()
        if logical_id in [referred(one) for one in policy["Queues"]]
        for statement in policy["PolicyDocument"]["Statement"]
    ]
    return any(
        statement["Effect"] == "Deny"
        and statement["Action"] == "sqs:*"
        and statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
        for statement in statements
    )
