"""One schedule of EventBridge Scheduler, as GetSchedule answers it, as a job."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from carillon.importers.eventbridge.schedules import entry_of
from carillon.importers.importing import Imported
from tests.unit.importers.kit import made_of, told

ARN = "arn:aws:scheduler:us-east-1:123456789012:schedule/default/nightly"
QUEUE = "arn:aws:sqs:us-east-1:123456789012:orders"
LAMBDA = "arn:aws:lambda:us-east-1:123456789012:function:report"


def made(target: dict[str, Any] | None = None, **more: Any) -> Imported:
    schedule = {
        "Arn": ARN,
        "Name": "nightly",
        "GroupName": "default",
        "ScheduleExpression": "cron(0 3 * * ? *)",
        "Target": {"Arn": QUEUE, "Input": "1", **(target or {})},
        **more,
    }
    return made_of([entry_of(schedule)])


def job(target: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return made(target, **more).jobs["nightly"]


@pytest.mark.parametrize(
    ("retries", "age", "attempts"),
    [
        (0, 86_400, 1),
        (3, 3_600, 4),
        # 2 + 4 + 8 + 16 s fit into a minute, 32 more do not.
        (185, 60, 5),
        # Eleven delays up to 2048 s take 4,094 s; of an hour each, 22 more fit into the day.
        (185, 86_400, 34),
        (33, 86_400, 34),
        (10, 62, 6),
    ],
)
def test_retries_are_those_that_fit_into_the_time(retries: int, age: int, attempts: int) -> None:
    policy = {"MaximumRetryAttempts": retries, "MaximumEventAgeInSeconds": age}

    found = made({"RetryPolicy": policy})

    assert found.jobs["nightly"]["retry"] == {"max_attempts": attempts}
    fields = [note.field for note in found.lines[0].entry.notes]
    assert ("Target.RetryPolicy" in fields) == (attempts <= retries)


def test_a_policy_that_is_not_stated_is_the_default_of_aws() -> None:
    assert job()["retry"] == {"max_attempts": 34}


@pytest.mark.parametrize(
    ("text", "payload", "is_told"),
    [
        ('{"a": [1, 2.5, null]}', {"a": [1, 2.5, None]}, False),
        ('"quoted"', "quoted", False),
        ("plain text", "plain text", True),
        ("", "", True),
        # JSON of Python alone, and what no number holds.
        ("NaN", "NaN", True),
        ("1e999", "1e999", True),
    ],
)
def test_the_input_is_the_payload(text: str, payload: object, is_told: bool) -> None:
    found = made({"Input": text})

    assert found.jobs["nightly"]["payload"] == payload
    assert "template" not in found.jobs["nightly"]
    fields = [note.field for note in found.lines[0].entry.notes]
    assert ("Target.Input" in fields) == is_told


def test_context_attributes_are_placeholders() -> None:
    text = json.dumps(
        {
            "time": "<aws.scheduler.scheduled-time>",
            "said": "try <aws.scheduler.attempt-number> of {{this}}",
            "id": ["<aws.scheduler.execution-id>"],
            "arn": "<aws.scheduler.schedule-arn>",
        }
    )

    found = made({"Input": text})
    body = found.jobs["nightly"]

    changed = [note.message for note in found.lines[0].entry.notes if note.field == "Target.Input"]
    assert [message.partition(" ")[0] for message in changed] == ["execution-id", "attempt-number"]
    assert body["template"] is True
    assert body["payload"] == {
        "time": "{{fire_at}}",
        "said": "try {{attempt}} of {{{{this}}",
        "id": ["{{run_id}}"],
        "arn": ARN,
    }


def test_attributes_that_cannot_be_replaced_are_told() -> None:
    found = made({"Input": '{"<aws.scheduler.scheduled-time>": "<aws.scheduler.mood>"}'})

    messages = [note.message for note in found.lines[0].entry.notes]
    assert any("mood, scheduled-time" in message for message in messages)


def test_attributes_beside_braces_in_a_name_stay_as_they_are() -> None:
    found = made({"Input": '{"{{x": "<aws.scheduler.scheduled-time>"}'})

    assert found.jobs["nightly"]["payload"] == {"{{x": "<aws.scheduler.scheduled-time>"}
    assert "template" not in found.jobs["nightly"]
    assert "sent as they are" in told(found, "default/nightly", "Target.Input")


def test_lambda_is_invoked_without_waiting_as_at_aws() -> None:
    assert job({"Arn": LAMBDA})["target"]["invocation"] == "event"


@pytest.mark.parametrize(
    ("arn", "said"),
    [
        ("arn:aws:scheduler:::aws-sdk:ec2:stopInstances", "ec2:stopInstances"),
        ("arn:aws:kinesis:us-east-1:123456789012:stream/s", "no target here calls kinesis"),
        ("nonsense", "no target here calls this"),
    ],
)
def test_targets_without_an_equal_are_left_out(arn: str, said: str) -> None:
    found = made({"Arn": arn})

    assert (found.jobs, found.left_out) == ({}, 1)
    assert said in told(found, "default/nightly", "Target.Arn")


def test_a_target_that_the_api_would_refuse_is_left_out() -> None:
    found = made({"Arn": "arn:aws:events:us-east-1:123456789012:event-bus/b"})

    assert found.jobs == {}
    assert told(found, "default/nightly", "target.source")


def test_other_parameters_of_a_target_are_told() -> None:
    found = made({"KinesisParameters": {"PartitionKey": "k"}})

    message = told(found, "default/nightly", "Target.KinesisParameters")
    assert message == 'not carried over: {"PartitionKey":"k"}'


def test_a_one_time_schedule_has_no_bounds_as_at_aws() -> None:
    found = made(
        ScheduleExpression="at(2027-04-01T09:00:00)",
        StartDate=datetime(2027, 5, 1, tzinfo=UTC),
    )

    assert "start_at" not in found.jobs["nightly"]
    assert told(found, "default/nightly", "StartDate, EndDate")


def test_bounds_are_whole_seconds_within_those_of_aws() -> None:
    body = job(
        StartDate=datetime(2027, 4, 1, 0, 0, 0, 500_000, UTC),
        EndDate=datetime(2027, 5, 1, 0, 0, 0, 500_000, UTC),
    )

    assert (body["start_at"], body["end_at"]) == ("2027-04-01T00:00:01Z", "2027-05-01T00:00:00Z")


def test_an_interval_without_any_date_counts_from_the_epoch() -> None:
    found = made(ScheduleExpression="rate(5 minutes)")

    assert "start_at" not in found.jobs["nightly"]
    assert "epoch" in told(found, "default/nightly", "ScheduleExpression")


def test_a_schedule_that_cannot_be_read_is_left_out() -> None:
    found = made(ScheduleExpression="rate(5 fortnights)")

    assert found.left_out == 1
    assert "fortnights" in found.lines[0].entry.notes[0].message


TASK = {
    "Arn": "arn:aws:ecs:us-east-1:123456789012:cluster/jobs",
    "Input": None,
    "EcsParameters": {
        "TaskDefinitionArn": "arn:aws:ecs:us-east-1:123456789012:task-definition/report:2",
        "LaunchType": "EC2",
    },
}


def task(more: dict[str, Any], overrides: object = None) -> Imported:
    text = None if overrides is None else json.dumps(overrides)
    parameters = {**TASK["EcsParameters"], **more}  # type: ignore[dict-item]
    return made({**TASK, "Input": text, "EcsParameters": parameters})


@pytest.mark.parametrize(
    ("more", "field", "said"),
    [
        ({"TaskCount": 2}, "TaskCount", "a run starts one task"),
        (
            {"CapacityProviderStrategy": [{"capacityProvider": "a"}, {"capacityProvider": "b"}]},
            "CapacityProviderStrategy",
            "several providers",
        ),
    ],
)
def test_a_task_without_an_equal_is_left_out(more: dict[str, Any], field: str, said: str) -> None:
    found = task(more)
    assert found.jobs == {}
    assert said in told(found, "default/nightly", f"Target.EcsParameters.{field}")


def test_a_task_on_the_cluster_s_default_is_told_to_be_on_fargate() -> None:
    network = {"awsvpcConfiguration": {"Subnets": ["subnet-0a1b2c3d"]}}
    parameters = {"TaskDefinitionArn": TASK["EcsParameters"]["TaskDefinitionArn"]}  # type: ignore[index]
    found = made({**TASK, "EcsParameters": {**parameters, "NetworkConfiguration": network}})
    assert "launch_type" not in found.jobs["nightly"]["target"]
    assert "FARGATE here" in told(found, "default/nightly", "Target.EcsParameters.LaunchType")


@pytest.mark.parametrize(
    ("overrides", "container", "said"),
    [
        ({"containerOverrides": [{"name": "a"}, {"name": "b"}]}, "a", "only the first container"),
        ({"containerOverrides": [{"name": "a", "cpu": 5}]}, "a", "only the first container"),
        ({"containerOverrides": [{"name": "a"}], "cpu": "512"}, "a", "only the first container"),
        (
            {"containerOverrides": [{"name": "a", "command": ["<aws.scheduler.execution-id>"]}]},
            "a",
            "sent as they are",
        ),
        ({"cpu": "512"}, None, "is no override of a container"),
        ([1], None, "is no override of a container"),
    ],
)
def test_overrides_that_are_lost_are_told(
    overrides: object, container: str | None, said: str
) -> None:
    found = task({}, overrides)
    assert found.jobs["nightly"]["target"].get("container") == container
    assert said in told(found, "default/nightly", "Target.Input")
