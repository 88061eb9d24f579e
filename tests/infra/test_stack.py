"""The stack as a whole: its outputs, its alarms, where it can be deployed, cdk-nag."""

import json
from pathlib import Path

import pytest
from aws_cdk import Stack
from aws_cdk import aws_sqs as sqs

from infra.app import STACK_NAME, build
from tests.infra.stacks import SynthesizedStack, default_context

OUTPUTS = {
    "ApiId",
    "ApiUrl",
    "UserPoolId",
    "UserPoolClientId",
    "JobsTable",
    "WheelTable",
    "RunsTable",
    "QueueUrlHigh",
    "QueueUrlNormal",
    "QueueUrlLow",
    "QueueUrlSlow",
    "DeadLetterQueueUrlHigh",
    "DeadLetterQueueUrlNormal",
    "DeadLetterQueueUrlLow",
    "DeadLetterQueueUrlSlow",
    "WebhookSecretArn",
    "TickFunction",
    "ExecutorFunctionHigh",
    "ExecutorFunctionNormal",
    "ExecutorFunctionLow",
    "ExecutorFunctionSlow",
}

USER_POOL = {"UserPoolId", "UserPoolClientId"}
EVENT_BUS = {"EventBusName", "EventBusArn"}


def test_the_outputs_are_an_interface(
    production: SynthesizedStack, unusual: SynthesizedStack
) -> None:
    assert set(production.template["Outputs"]) == OUTPUTS
    assert set(unusual.template["Outputs"]) == OUTPUTS - USER_POOL | EVENT_BUS


def test_the_template_belongs_to_no_account(production: SynthesizedStack) -> None:
    manifest = json.loads((production.directory / "manifest.json").read_text())
    assert (
        manifest["artifacts"][STACK_NAME]["environment"] == "aws://unknown-account/unknown-region"
    )
    assert "missing" not in manifest  # nothing to look up in an account


def test_cdk_nag_finds_nothing(production: SynthesizedStack, unusual: SynthesizedStack) -> None:
    for stack in (production, unusual):
        report = json.loads((stack.directory / "validation-report.json").read_text())
        assert report["pluginReports"] == []


def test_a_finding_without_a_reason_fails_synthesis(tmp_path: Path) -> None:
    app = build({**default_context(), "aws:cdk:bundling-stacks": []}, str(tmp_path))
    stack = app.node.find_child(STACK_NAME)
    assert isinstance(stack, Stack)
    sqs.Queue(stack, "Careless")
    with pytest.raises(RuntimeError, match="AwsSolutions-SQS4"):
        app.synth()


def test_an_operator_hears_of_these(production: SynthesizedStack) -> None:
    alarms = production.properties("CloudWatch::Alarm")
    watched = sorted(str(alarm["MetricName"]) for alarm in alarms.values())
    assert watched == sorted(
        ["Invocations", "Errors", "ApproximateNumberOfMessagesVisible"]
        + 4 * ["ApproximateNumberOfMessagesVisible", "ApproximateAgeOfOldestMessage"]
    )
    (silence,) = [one for one in alarms.values() if one["MetricName"] == "Invocations"]
    assert silence["ComparisonOperator"] == "LessThanThreshold"
    assert silence["TreatMissingData"] == "breaching"
    others = [one for one in alarms.values() if one is not silence]
    assert {one["TreatMissingData"] for one in others} == {"notBreaching"}
