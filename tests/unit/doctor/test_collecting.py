"""What the collector makes of an account's answers, on moto: by the stack's resources alone."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from moto import mock_aws

from infra.doctor.collecting import Collector
from infra.doctor.facts import Snapshot, Unknown
from shared.clock import ManualClock
from shared.settings import Settings
from shared.stores.dynamo import open_stores
from tests.tables import create_deployment

NOW = datetime.now(UTC)
VARIABLES = {"POWERTOOLS_SERVICE_NAME": "executor", "PYTHONTZPATH": "/none"}
ROLE: dict[str, Any] = {
    "Type": "AWS::IAM::Role",
    "Properties": {"AssumeRolePolicyDocument": {"Version": "2012-10-17", "Statement": []}},
}
FUNCTION: dict[str, Any] = {
    "Type": "AWS::Lambda::Function",
    "Properties": {
        "Code": {"ZipFile": "def handler(event, context): ..."},
        "Handler": "index.handler",
        "Runtime": "python3.11",
        "Role": {"Fn::GetAtt": ["Role", "Arn"]},
        "Timeout": 60,
        "Environment": {"Variables": VARIABLES},
    },
}
TEMPLATE: dict[str, Any] = {
    "Resources": {
        "Role": ROLE,
        "Executor": FUNCTION,
        "Lane": {"Type": "AWS::SQS::Queue", "Properties": {"VisibilityTimeout": 360}},
        "Mapping": {
            "Type": "AWS::Lambda::EventSourceMapping",
            "Properties": {
                "EventSourceArn": {"Fn::GetAtt": ["Lane", "Arn"]},
                "FunctionName": {"Ref": "Executor"},
            },
        },
        "Rule": {
            "Type": "AWS::Events::Rule",
            "Properties": {"ScheduleExpression": "rate(1 minute)", "State": "DISABLED"},
        },
    },
}


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Iterator[Settings]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with mock_aws():
        client = boto3.client("cloudformation")
        client.create_stack(
            StackName="Carillon",
            TemplateBody=json.dumps(TEMPLATE),
            Capabilities=["CAPABILITY_IAM"],
        )
        name = of_type("AWS::Lambda::Function")
        functions = boto3.client("lambda")
        version = functions.publish_version(FunctionName=name)["Version"]
        functions.create_alias(FunctionName=name, Name="live", FunctionVersion=version)
        yield create_deployment("test")


def of_type(kind: str) -> str:
    found = boto3.client("cloudformation").list_stack_resources(StackName="Carillon")
    resources = found["StackResourceSummaries"]
    return next(r["PhysicalResourceId"] for r in resources if r["ResourceType"] == kind)


def snapshot(settings: Settings) -> Snapshot:
    stores = open_stores(settings, ManualClock(NOW))
    return Collector("Carillon", settings, stores, NOW).snapshot()


def test_the_facts_are_those_of_the_stack_s_own_resources(account: Settings) -> None:
    boto3.client("sqs").create_queue(QueueName="somebody-else-s")
    seen = snapshot(account)
    (function,) = seen.functions
    assert (function.service, function.timeout_seconds) == ("executor", 60)
    assert function.variables["PYTHONTZPATH"] == "/none"
    (mapping,) = seen.mappings
    (lane,) = seen.queues
    assert (mapping.queue_arn, mapping.function) == (lane.arn, function.name)
    assert lane.visibility_seconds == 360
    assert [(rule.enabled, rule.targets) for rule in seen.rules] == [(False, 0)]
    assert {role: table.status for role, table in seen.tables.items()} == dict.fromkeys(
        ("jobs", "wheel", "runs"), "ACTIVE"
    )
    assert seen.tables["jobs"].recovers is False
    assert len(seen.controls) == account.segments


def test_what_the_account_refuses_is_unknown_with_its_words(account: Settings) -> None:
    seen = snapshot(account)
    assert isinstance(seen.secret, Unknown)
    assert "GetSecretValue" in seen.secret.reason or "secret" in seen.secret.reason.lower()


def test_an_emulator_s_answers_about_what_it_does_not_keep_are_not_believed(
    account: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    collector = Collector("Carillon", account, open_stores(account, ManualClock(NOW)), NOW)
    monkeypatch.setattr(collector, "_on_aws", False)
    seen = collector.snapshot()
    (function,) = seen.functions
    assert isinstance(function.reserved, Unknown)
    assert isinstance(function.recursive_loop, Unknown)
    assert isinstance(seen.queues[0].oldest_seconds, Unknown)
