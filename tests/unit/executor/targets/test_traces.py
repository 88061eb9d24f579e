"""The trace as each service in AWS passes it on to what it calls."""

import dataclasses
from typing import Any

from carillon.domain.targets import EventBridgeTarget
from carillon.domain.tracing import TraceContext
from carillon.executor.targets import aws_services
from carillon.executor.targets.call import facts, message_attributes, variables
from tests.unit.executor.targets.test_aws import CALL, MACHINE, QUEUE

TRACED = dataclasses.replace(CALL, trace=TraceContext.of_call(CALL.run_id, 2, 100))


class Recorder:
    """A client of any service: its one call is kept."""

    def __init__(self, answer: dict[str, Any]) -> None:
        self.answer = answer
        self.asked: dict[str, Any] = {}

    def __getattr__(self, operation: str) -> Any:
        def ask(**arguments: Any) -> dict[str, Any]:
            self.asked = arguments
            return self.answer

        return ask


def test_a_trace_goes_along_in_the_form_that_each_service_passes_on() -> None:
    assert TRACED.trace is not None
    traceparent, xray = TRACED.trace.traceparent, TRACED.trace.xray
    assert facts(TRACED)["traceparent"] == traceparent
    assert message_attributes(TRACED)["traceparent"]["StringValue"] == traceparent

    queue = Recorder({"QueueUrl": "https://sqs/q", "MessageId": "1"})
    aws_services.QueueSender().send(queue, QUEUE, TRACED)
    header = queue.asked["MessageSystemAttributes"]["AWSTraceHeader"]
    assert header == {"DataType": "String", "StringValue": xray}

    bus = EventBridgeTarget(
        bus_arn="arn:aws:events:us-east-1:000000000000:event-bus/b", source="s", detail_type="d"
    )
    events = Recorder({"Entries": [{"EventId": "1"}]})
    aws_services.put_event(events, bus, TRACED)
    assert events.asked["Entries"][0]["TraceHeader"] == xray

    machine = Recorder({"executionArn": "arn"})
    aws_services.start_execution(machine, MACHINE, TRACED)
    assert machine.asked["traceHeader"] == xray
    assert variables(TRACED)["TRACEPARENT"] == traceparent


def test_without_tracing_nothing_of_it_goes_along() -> None:
    queue = Recorder({"QueueUrl": "https://sqs/q", "MessageId": "1"})
    aws_services.QueueSender().send(queue, QUEUE, CALL)
    assert queue.asked.keys() == {"QueueUrl", "MessageBody", "MessageAttributes"}
    assert "traceparent" not in queue.asked["MessageAttributes"]
    assert "TRACEPARENT" not in variables(CALL)
