"""What the collector makes of an account's answers, on moto: by the stack's resources alone."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from carillon.clock import ManualClock
from carillon.doctor.collecting import Collector
from carillon.doctor.dispatching import examine
from carillon.doctor.facts import (
    MappingFacts,
    QueueFacts,
    RuleFacts,
    SetAside,
    Snapshot,
    TableFacts,
    Unknown,
)
from carillon.doctor.verdicts import Level
from carillon.domain.wheel.entry import entry_of_message
from carillon.domain.wheel.segment import first_control
from carillon.errors import StoreUnavailableError, UnreadableRowError
from carillon.settings import Settings
from carillon.stores.dynamo import open_stores
from tests.contract.samples import a_message
from tests.support.tables import create_deployment

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
        "Description": "Runs a lane (release 1f2e)",
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
                "ScalingConfig": {"MaximumConcurrency": 5},
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
    assert isinstance(mapping, MappingFacts)
    assert isinstance(lane, QueueFacts)
    assert (mapping.queue_arn, mapping.function) == (lane.arn, function.name)
    assert (mapping.uuid, mapping.qualifier) == (of_type("AWS::Lambda::EventSourceMapping"), "")
    assert function.release == "1f2e"
    assert lane.visibility_seconds == 360
    (rule,) = seen.rules
    assert isinstance(rule, RuleFacts)
    assert (rule.enabled, rule.targets) == (False, 0)
    tables = {role: each for role, each in seen.tables.items() if isinstance(each, TableFacts)}
    assert {role: table.status for role, table in tables.items()} == dict.fromkeys(
        ("jobs", "wheel", "runs"), "ACTIVE"
    )
    assert tables["jobs"].recovers is False
    assert len(seen.controls) == account.segments


def test_what_was_deleted_by_hand_ends_no_check_but_its_own(account: Settings) -> None:
    boto3.client("events").delete_rule(Name=of_type("AWS::Events::Rule"))
    boto3.client("sqs").delete_queue(QueueUrl=of_type("AWS::SQS::Queue"))
    boto3.client("dynamodb").delete_table(TableName=account.wheel_table)
    red = {each.check: each for each in examine(snapshot(account)) if each.level is Level.WRONG}
    assert "no tick comes" in red["rule"].text
    assert of_type("AWS::SQS::Queue").rpartition("/")[2] in red["queue"].text
    assert account.wheel_table in red["table wheel"].text


@pytest.mark.parametrize(
    ("service", "operation", "check"),
    [
        ("events", "describe_rule", "rule"),
        ("sqs", "get_queue_attributes", "queue"),
        ("dynamodb", "describe_table", "table wheel"),
        ("cloudwatch", "describe_alarms", "alarms"),
    ],
)
def test_what_the_credentials_do_not_allow_is_not_known_here(
    account: Settings, monkeypatch: pytest.MonkeyPatch, service: str, operation: str, check: str
) -> None:
    def refuse(**_: object) -> None:
        raise ClientError(
            {"Error": {"Code": "AccessDenied", "Message": "not authorized"}}, operation
        )

    collector = Collector("Carillon", account, open_stores(account, ManualClock(NOW)), NOW)
    client_of, ids = collector._client, collector._ids

    def client(name: str) -> Any:
        made = client_of(name)
        if name == service:
            monkeypatch.setattr(made, operation, refuse)
        return made

    monkeypatch.setattr(collector, "_client", client)
    monkeypatch.setattr(collector, "_ids", lambda kind: ids(kind) or ["one"] * ("Alarm" in kind))
    found = next(each for each in examine(collector.snapshot()) if each.check == check)
    assert found.level is Level.UNKNOWN
    assert "not authorized" in found.text


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
    (lane,) = seen.queues
    assert isinstance(lane, QueueFacts)
    assert isinstance(lane.oldest_seconds, Unknown)


@pytest.mark.parametrize(
    ("code", "left"), [("ResourceNotFoundException", 0), ("AccessDeniedException", 1)]
)
def test_only_a_mapping_that_is_not_there_is_none(
    account: Settings, monkeypatch: pytest.MonkeyPatch, code: str, left: int
) -> None:
    class Refusing:
        def get_event_source_mapping(self, **_: object) -> None:
            raise ClientError({"Error": {"Code": code, "Message": "no"}}, "GetEventSourceMapping")

    collector = Collector("Carillon", account, open_stores(account, ManualClock(NOW)), NOW)
    monkeypatch.setattr(collector, "_client", lambda service: Refusing())
    found = list(collector._mappings())
    assert [each.code for each in found if isinstance(each, Unknown)] == [code] * left


def test_the_alias_that_a_mapping_calls_is_known(
    account: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Answering:
        def get_event_source_mapping(self, **_: object) -> dict[str, Any]:
            called = "arn:aws:lambda:eu-west-1:1:function:executor:live"
            scaling = {"MaximumConcurrency": 5}
            found = {"EventSourceArn": "arn:queue", "State": "Enabled", "ScalingConfig": scaling}
            return {**found, "FunctionArn": called}

    collector = Collector("Carillon", account, open_stores(account, ManualClock(NOW)), NOW)
    monkeypatch.setattr(collector, "_client", lambda service: Answering())
    uuid = of_type("AWS::Lambda::EventSourceMapping")
    expected = MappingFacts(uuid, "arn:queue", "executor", "live", "Enabled", 5)
    assert list(collector._mappings()) == [expected]


def test_only_what_no_function_has_reserved_is_left(
    account: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Answering:
        def get_account_settings(self) -> dict[str, Any]:
            limits = {"ConcurrentExecutions": 1000, "UnreservedConcurrentExecutions": 150}
            return {"AccountLimit": limits}

    collector = Collector("Carillon", account, open_stores(account, ManualClock(NOW)), NOW)
    monkeypatch.setattr(collector, "_client", lambda service: Answering())
    assert collector._unreserved() == 150


def test_segments_beyond_a_lowered_number_are_looked_at(account: Settings) -> None:
    stores = open_stores(account, ManualClock(NOW))
    for segment in range(account.segments + 2):
        stores.wheel.put_control(first_control(segment, NOW), None)
    assert len(snapshot(account).controls) == account.segments + 2


@pytest.mark.parametrize(
    ("is_broken", "check", "level"),
    [(True, "segment 0", Level.WRONG), (False, "segment 0", Level.UNKNOWN)],
)
def test_only_a_control_item_that_is_broken_is_to_be_mended(
    account: Settings,
    monkeypatch: pytest.MonkeyPatch,
    is_broken: bool,
    check: str,
    level: Level,
) -> None:
    """One that these credentials may not read, or that is throttled, is as it was."""
    stores = open_stores(account, ManualClock(NOW))

    def refuse(_: int) -> None:
        kind = UnreadableRowError if is_broken else StoreUnavailableError
        raise kind("token, or AccessDeniedException")

    monkeypatch.setattr(stores.wheel, "get_control", refuse)
    found = examine(Collector("Carillon", account, stores, NOW).snapshot())
    (told,) = [each for each in found if each.check == check]
    assert told.level is level
    assert ("mend-segment 0" in told.advice) == is_broken
    last = next(each for each in found if each.check == "last tick")
    assert last.level is Level.UNKNOWN, "nobody knows that there was none"


def test_an_entry_that_was_written_anew_is_readable(account: Settings) -> None:
    stores = open_stores(account, ManualClock(NOW))
    entry = entry_of_message(a_message("owner", due_at=NOW))
    stores.wheel.put_entries([entry])
    told = SetAside(entry.segment, entry.slot.key, entry.key, "KeyError")
    collector = Collector("Carillon", account, stores, NOW)
    assert collector._is_readable(told, entry.slot)
    item = {
        "segment_slot": {"S": f"{entry.segment}#{entry.slot.key}"},
        "entry_key": {"S": entry.key},
    }
    boto3.client("dynamodb").put_item(TableName=account.wheel_table, Item=item)
    assert stores.wheel.holds(entry.segment, entry.slot, entry.key)
    assert not collector._is_readable(told, entry.slot)


def test_an_entry_that_ticks_tell_of_each_minute_hides_no_other(account: Settings) -> None:
    """Nor does one that was mended since: CloudWatch answers the oldest lines first."""
    group, stores = {"logGroupName": "ticks"}, open_stores(account, ManualClock(NOW))
    dues = NOW - timedelta(days=2), NOW
    entries = [entry_of_message(a_message("owner", due_at=each)) for each in dues]
    stores.wheel.put_entries(entries[1:])
    logs = boto3.client("logs")
    logs.create_log_group(**group)
    logs.create_log_stream(**group, logStreamName="one")
    for entry, days, lines in ((entries[0], 2, 1_001), (entries[1], 0, 1)):
        where = {"segment": entry.segment, "slot": entry.slot.key, "entry": entry.key}
        line = json.dumps({"action": "entry.set_aside", "reason": "KeyError", **where})
        at = int((NOW - timedelta(days=days, minutes=1)).timestamp() * 1000)
        events = [{"timestamp": at, "message": line}] * lines
        logs.put_log_events(**group, logStreamName="one", logEvents=events)
    found = Collector("Carillon", account, stores, NOW)._set_aside(["ticks"])
    assert [each.slot for each in found] == [entries[1].slot.key]
