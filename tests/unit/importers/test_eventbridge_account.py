"""An account of EventBridge Scheduler (moto) with schedules of every kind: imported, read back,
simulated, and compared with the times that AWS's documentation says.

The expected times are literals, read off a calendar: 2027-03-12 is a Friday. The clocks change in
New York on 14 March (02:00 EST to 03:00 EDT), in Riga on the 28th (03:00 EET to 04:00 EEST), and in
Sydney on 4 April (03:00 AEDT to 02:00 AEST).
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
import time_machine
from botocore.exceptions import ClientError
from moto import mock_aws

from carillon.importers.eventbridge.account import eventbridge_entries
from carillon.importers.eventbridge.schedules import remarks_on
from carillon.importers.importing import Imported
from tests.unit.importers.kit import fire_times, losses, made_of, read_back, told

CREATED = datetime(2027, 3, 1, 0, 0, 30, tzinfo=UTC)
BEGIN, END = "2027-03-12T00:00:00", "2027-04-06T00:00:00"
MOST = 8
ACCOUNT = "us-east-1:123456789012"
ROLE = "arn:aws:iam::123456789012:role/scheduler"
LAMBDA = f"arn:aws:lambda:{ACCOUNT}:function:report"
QUEUE = f"arn:aws:sqs:{ACCOUNT}:orders"
FIFO = f"arn:aws:sqs:{ACCOUNT}:orders.fifo"
TOPIC = f"arn:aws:sns:{ACCOUNT}:news"
BUS = f"arn:aws:events:{ACCOUNT}:event-bus/default"
TASK = f"arn:aws:ecs:{ACCOUNT}:task-definition/report"
MACHINE = f"arn:aws:states:{ACCOUNT}:stateMachine:invoices"
USUAL = ["Target.RoleArn"]
"""What every schedule of the account loses. Its retry policy is such that all of it fits."""

# By name: expression, zone, and the fire times in the span, of which at most MOST are written.
CRON: dict[str, tuple[str, str, str]] = {
    # "Run at 10:00 am every day."
    "every-day": ("cron(0 10 * * ? *)", "UTC", "12T10:00 13T10:00 14T10:00 15T10:00 16T10:00 "
                  "17T10:00 18T10:00 19T10:00"),
    # "Run at 6:00 pm every Monday through Friday."
    "weekdays": ("cron(0 18 ? * MON-FRI *)", "UTC", "12T18:00 15T18:00 16T18:00 17T18:00 18T18:00 "
                 "19T18:00 22T18:00 23T18:00"),
    # "L ... the last day of the month"; of the week it is Saturday, 7.
    "last-day": ("cron(30 23 L * ? *)", "UTC", "31T23:30"),
    "last-of-week": ("cron(0 0 ? * L *)", "UTC", "13T00:00 20T00:00 27T00:00 04-03T00:00"),
    # "3W specifies the weekday closest to the third day of the month": 3 April is a Saturday.
    "nearest-weekday": ("cron(0 8 3W * ? *)", "UTC", "04-02T08:00"),
    "last-weekday": ("cron(0 7 LW * ? *)", "UTC", "31T07:00"),
    # "3#2 would be the second Tuesday of the month": so 6#3 is a Friday.
    "third-friday": ("cron(15 10 ? * 6#3 *)", "UTC", "19T10:15"),
    "fifth-tuesday": ("cron(0 9 ? * 3#5 *)", "UTC", "30T09:00"),
    # "Runs at 10:15 am on the last Friday of each month during the years 2022 to 2023": these here.
    "last-friday": ("cron(15 10 ? * 6L 2026-2027)", "UTC", "26T10:15"),
    # Hours may go over midnight: the small ones belong to their own weekday.
    "over-midnight": ("cron(0/30 20-1 ? * SAT *)", "UTC", "13T00:00 13T00:30 13T01:00 13T01:30 "
                      "13T20:00 13T20:30 13T21:00 13T21:30"),
    # "1/10 ... the 11th, 21st, and 31st minute": lists and steps, in April alone.
    "list-and-step": ("cron(1/20 9,17 ? 4 2-3 *)", "UTC", "04-05T09:01 04-05T09:21 04-05T09:41 "
                      "04-05T17:01 04-05T17:21 04-05T17:41"),
    # "When the time shifts forward in the Spring, ... your schedule invocation is skipped."
    "skipped-hour": ("cron(30 2 12-15 3 ? *)", "America/New_York", "12T07:30 13T07:30 15T06:30"),
    "six-in-riga": ("cron(0 6 ? * SUN *)", "Europe/Riga", "14T04:00 21T04:00 28T03:00 04-04T03:00"),
    # "When the time shifts backwards in the Fall, your schedule runs only once."
    "repeated-hour": ("cron(30 2 ? * SUN *)", "Australia/Sydney", "13T15:30 20T15:30 27T15:30 "
                      "04-03T15:30"),
    "repeated-minutes": ("cron(0/20 2 4 4 ? 2027)", "Australia/Sydney", "04-03T15:00 04-03T15:20 "
                         "04-03T15:40"),
}  # fmt: skip


def times(text: str) -> list[str]:
    """Instants in UTC; of March, where no month is said."""
    words = (word if word.count("-") else f"03-{word}" for word in text.split())
    return [f"2027-{word}:00Z" if word.count(":") == 1 else f"2027-{word}Z" for word in words]


def target(arn: str = LAMBDA, **more: Any) -> dict[str, Any]:
    policy = {"MaximumRetryAttempts": 2, "MaximumEventAgeInSeconds": 3600}
    return {"Arn": arn, "RoleArn": ROLE, "Input": '{"a":1}', "RetryPolicy": policy, **more}


def schedules() -> Iterator[dict[str, Any]]:
    """What is created, as the arguments of CreateSchedule."""
    for name, (expression, zone, _) in CRON.items():
        yield {
            "Name": name,
            "ScheduleExpression": expression,
            "ScheduleExpressionTimezone": zone,
            "Target": target(),
        }
    yield {
        "Name": "rate-from-start",
        "ScheduleExpression": "rate(6 hours)",
        "StartDate": datetime(2027, 3, 12, 5, tzinfo=UTC),
        "EndDate": datetime(2027, 3, 12, 23, tzinfo=UTC),
        "Target": target(QUEUE, Input="plain text"),
    }
    yield {
        "Name": "rate-from-creation",
        "ScheduleExpression": "rate(7 days)",
        "Target": target(FIFO, SqsParameters={"MessageGroupId": "eu"}),
    }
    yield {
        "Name": "bounded",
        "ScheduleExpression": "cron(0 0 * * ? *)",
        "StartDate": datetime(2027, 3, 14, tzinfo=UTC),
        "EndDate": datetime(2027, 3, 16, tzinfo=UTC),
        "Target": target(TOPIC),
    }
    yield {
        "Name": "once",
        "ScheduleExpression": "at(2027-03-20T09:00:00)",
        "ScheduleExpressionTimezone": "America/New_York",
        "ActionAfterCompletion": "DELETE",
        "Description": "the quarter's invoices",
        "Target": target(MACHINE),
    }
    yield {
        "Name": "in-a-window",
        "GroupName": "billing",
        "ScheduleExpression": "at(2027-03-13T12:00:00)",
        "FlexibleTimeWindow": {"Mode": "FLEXIBLE", "MaximumWindowInMinutes": 15},
        "Target": target(
            BUS,
            Input='{"at": "<aws.scheduler.scheduled-time>"}',
            EventBridgeParameters={"Source": "billing", "DetailType": "due"},
        ),
    }
    yield {
        "Name": "Disabled",
        "ScheduleExpression": "cron(0 1 * * ? *)",
        "State": "DISABLED",
        "KmsKeyArn": f"arn:aws:kms:{ACCOUNT}:key/0123",
        "Target": target(
            RetryPolicy={"MaximumRetryAttempts": 185, "MaximumEventAgeInSeconds": 86400},
            DeadLetterConfig={"Arn": QUEUE},
        ),
    }
    yield {
        "Name": "disabled",
        "GroupName": "billing",
        "ScheduleExpression": "cron(0 1 * * ? *)",
        "State": "DISABLED",
        "Target": {"Arn": LAMBDA, "RoleArn": ROLE},
    }
    universal = "arn:aws:scheduler:::aws-sdk:sqs:sendMessage"
    yield {"Name": "universal", "ScheduleExpression": "rate(1 day)", "Target": target(universal)}
    yield {
        "Name": "container",
        "ScheduleExpression": "rate(1 day)",
        "Target": target(f"arn:aws:codebuild:{ACCOUNT}:project/jobs"),
    }
    network = {"Subnets": ["subnet-0a1b2c3d"], "AssignPublicIp": "ENABLED"}
    main = {"name": "main", "command": ["report"], "environment": [{"name": "A", "value": "b"}]}
    yield {
        "Name": "task",
        "ScheduleExpression": "cron(0 4 15 * ? *)",
        "Target": target(
            f"arn:aws:ecs:{ACCOUNT}:cluster/jobs",
            Input=json.dumps({"containerOverrides": [main]}),
            EcsParameters={
                "TaskDefinitionArn": TASK,
                "LaunchType": "FARGATE",
                "NetworkConfiguration": {"awsvpcConfiguration": network},
                "PlatformVersion": "1.4.0",
            },
        ),
    }
    yield {
        "Name": "over",
        "ScheduleExpression": "at(2027-03-10T00:00:00)",
        "Target": target(),
    }


@pytest.fixture(scope="module")
def found() -> Iterator[Imported]:
    """The account's schedules, imported a day before the span."""
    with pytest.MonkeyPatch.context() as patch, mock_aws():
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            patch.setenv(name, "test")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        patch.delenv("AWS_ENDPOINT_URL", raising=False)
        client = boto3.client("scheduler")
        with time_machine.travel(CREATED, tick=False):
            client.create_schedule_group(Name="billing")
            for each in schedules():
                client.create_schedule(**{"FlexibleTimeWindow": {"Mode": "OFF"}, **each})
        entries = list(eventbridge_entries(None, None))
        yield made_of(entries, remarks_on(entries))


def test_jobs_fire_when_aws_says(found: Imported) -> None:
    expected = {name: times(row[2]) for name, row in CRON.items()}
    expected |= {
        # "Use the StartDate property to set the first occurrence of the schedule."
        "rate-from-start": times("12T05:00 12T11:00 12T17:00 12T23:00"),
        # "If you do not provide a StartDate, your schedule starts invoking the target immediately."
        "rate-from-creation": times("15T00:00:30 22T00:00:30 29T00:00:30 04-05T00:00:30"),
        # Dates are in UTC, and may be occurrences themselves.
        "bounded": times("14T00:00 15T00:00 16T00:00"),
        "once": times("20T13:00"),
        "in-a-window": times("13T12:00"),
        "task": times("15T04:00"),
        "disabled": [],
        "Disabled-2": [],
    }

    assert fire_times(read_back(found), BEGIN, END, MOST) == expected
    assert len(expected) == 23


def test_every_loss_is_listed(found: Imported) -> None:
    usual = {f"default/{name}": USUAL for name in CRON}

    assert losses(found) == usual | {
        "default/rate-from-start": ["StartDate", "Target.Input", *USUAL],
        "default/rate-from-creation": ["ScheduleExpression", *USUAL],
        "default/bounded": USUAL,
        "default/once": USUAL,
        "billing/in-a-window": ["FlexibleTimeWindow", *USUAL],
        "default/Disabled": [
            *USUAL, "Target.RetryPolicy", "KmsKeyArn", "Target.DeadLetterConfig", "name",
        ],
        "billing/disabled": ["Target.Input", *USUAL, "Target.RetryPolicy"],
        "default/task": ["Target.EcsParameters.PlatformVersion", *USUAL],
        "default/universal": ["Target.Arn"],
        "default/container": ["Target.Arn"],
        "default/over": [*USUAL, "schedule"],
    }  # fmt: skip
    assert "sqs:sendMessage" in told(found, "default/universal", "Target.Arn")
    assert "is past" in told(found, "default/over", "schedule")
    assert [line.entry.place for line in found.lines if line.job is None] == [
        "default/container", "default/over", "default/universal",
    ]  # fmt: skip


def test_the_manifest_is_read_back_equal(found: Imported) -> None:
    manifest = read_back(found)

    assert (manifest.name, manifest.jobs) == ("imported", found.jobs)
    assert len(manifest.jobs) == 23
    assert manifest.jobs["task"]["target"] == {
        "type": "ecs",
        "task_definition_arn": TASK,
        "cluster_arn": f"arn:aws:ecs:{ACCOUNT}:cluster/jobs",
        "launch_type": "FARGATE",
        "subnets": ["subnet-0a1b2c3d"],
        "assign_public_ip": True,
        "container": "main",
        "command": ["report"],
        "environment": {"A": "b"},
    }
    assert manifest.jobs["Disabled-2"]["initial_state"] == "paused"
    assert manifest.jobs["in-a-window"] == {
        "schedule": "at(2027-03-13T12:00:00)",
        "target": {
            "type": "eventbridge", "bus_arn": BUS, "source": "billing", "detail_type": "due",
        },
        "payload": {"at": "{{fire_at}}"},
        "template": True,
        "retry": {"max_attempts": 3},
        "window": "15m",
        "parent": "billing",
    }  # fmt: skip
    assert manifest.jobs["once"]["on_complete"] == "delete"
    assert manifest.jobs["once"]["description"] == "the quarter's invoices"
    assert manifest.jobs["rate-from-creation"]["start_at"] == "2027-03-01T00:00:30Z"
    assert manifest.jobs["rate-from-creation"]["target"]["message_group_id"] == "eu"


def test_the_allow_list_is_told(found: Imported) -> None:
    assert found.remarks == (
        "The deployment must allow the targets: target_arns "
        + json.dumps(
            sorted([BUS, LAMBDA, TOPIC, QUEUE, FIFO, MACHINE, f"{TASK}:*"]), separators=(",", ":")
        ),
        "Its executors must pass the roles of the task definitions: pass_role_arns",
    )


def test_one_group_alone(found: Imported) -> None:
    places = [entry.place for entry in eventbridge_entries("billing", "us-east-1")]
    assert places == ["billing/disabled", "billing/in-a-window"]
    with pytest.raises(ClientError, match="ResourceNotFound"):
        list(eventbridge_entries("bliling", None))
