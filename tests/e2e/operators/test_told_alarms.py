"""Alarms of the deployed stack: raised by what the deployed functions measured, heard at the topic.

MiniStack makes no metrics of what functions log, so a bridge puts their lines as metrics, as
CloudWatch does on AWS. It has no rule for missing data either: that silence is an
alarm is a matter of the template (tests/infra/test_alarms.py).
"""

import json
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Any

import pytest

from carillon.domain.canary import CANARY_JOB_ID
from carillon.domain.job import Job, JobState
from carillon.domain.message import encode
from carillon.domain.wheel.entry import message_of
from carillon.local.deployment import STACK_NAME, Deployment
from carillon.stores.dynamo.jobs import job_of
from tests.e2e.conftest import SEGMENTS, Json, Person, seconds_ahead, task, until

pytestmark = pytest.mark.e2e

PATIENCE_SECONDS = 30


class Topic:
    """A queue that hears what the stack's alarms tell."""

    def __init__(self, deployment: Deployment) -> None:
        self._sqs = deployment.client("sqs")
        alarms = deployment.client("cloudwatch").describe_alarms(AlarmNamePrefix=STACK_NAME)
        topics = {tuple(alarm["AlarmActions"]) for alarm in alarms["MetricAlarms"]}
        assert topics == {tuple(alarm["OKActions"]) for alarm in alarms["MetricAlarms"]}
        ((topic,),) = topics
        self._url = self._sqs.create_queue(QueueName="hears-alarms")["QueueUrl"]
        wanted = ["QueueArn"]
        found = self._sqs.get_queue_attributes(QueueUrl=self._url, AttributeNames=wanted)
        deployment.client("sns").subscribe(
            TopicArn=topic, Protocol="sqs", Endpoint=found["Attributes"]["QueueArn"]
        )
        self._heard: list[Json] = []

    def hears(self, alarm: str, state: str) -> Json:
        """The notification that the alarm came into the state."""
        give_up_at = monotonic() + PATIENCE_SECONDS
        name = f"{STACK_NAME}-{alarm}"
        while monotonic() < give_up_at:
            for told in self._heard:
                if (told["AlarmName"], told["NewStateValue"]) == (name, state):
                    return told
            received = self._sqs.receive_message(
                QueueUrl=self._url, MaxNumberOfMessages=10, WaitTimeSeconds=1
            )
            for message in received.get("Messages", ()):
                self._heard.append(json.loads(json.loads(message["Body"])["Message"]))
        raise AssertionError(f"{name} was not told to be {state}: {self._heard}")


@pytest.fixture(scope="module")
def topic(deployment: Deployment) -> Topic:
    return Topic(deployment)


def measured(deployment: Deployment, output: str, since: datetime, metric: str) -> list[Json]:
    """The lines with a metric that a function has logged, waited for."""
    functions, logs = deployment.client("lambda"), deployment.client("logs")
    configuration = functions.get_function_configuration(FunctionName=deployment.outputs[output])

    def logged() -> list[Json]:
        found = logs.filter_log_events(
            logGroupName=configuration["LoggingConfig"]["LogGroup"],
            startTime=int(since.timestamp() * 1000),
            filterPattern=f'"{metric}"',
        )
        lines = [event["message"] for event in found["events"]]
        records = [json.loads(line) for line in lines if line.startswith("{")]
        return [record for record in records if metric in record and "_aws" in record]

    return until(logged, PATIENCE_SECONDS)


def bridge(deployment: Deployment, records: list[Json]) -> None:
    """Put what CloudWatch would make of the lines."""
    cloudwatch = deployment.client("cloudwatch")
    for record in records:
        (directive,) = record["_aws"]["CloudWatchMetrics"]
        (names,) = directive["Dimensions"]
        dimensions = [{"Name": name, "Value": record[name]} for name in names]
        data: list[Any] = [
            {
                "MetricName": metric["Name"],
                "Unit": metric["Unit"],
                "Dimensions": dimensions,
                "Values": listed(record[metric["Name"]]),
            }
            for metric in directive["Metrics"]
        ]
        cloudwatch.put_metric_data(Namespace=directive["Namespace"], MetricData=data)


def listed(value: Any) -> list[float]:
    return value if isinstance(value, list) else [value]


@pytest.fixture
def since() -> datetime:
    return datetime.now(UTC) - timedelta(seconds=1)


def test_a_dead_run_is_told(
    deployment: Deployment, alice: Person, topic: Topic, since: datetime
) -> None:
    job = alice.create(seconds_ahead(2), target=task("fail"), retry={"max_attempts": 1})
    (run,) = alice.ended_runs(job, 1)
    assert run["status"] == "dead"
    bridge(deployment, measured(deployment, "ExecutorFunctionNormal", since, "RunsDead"))
    told = topic.hears("RunsDead", "ALARM")
    assert told["AlarmDescription"].startswith("TICKET: 1 runs or more have failed")
    assert told["AlarmDescription"].endswith("docs/operate.md#runsdead")


def test_ticks_that_stood_still_are_told_by_the_next_one(
    deployment: Deployment, topic: Topic, since: datetime
) -> None:
    """The watermark is where it would be had there been no tick for ten minutes."""
    dynamodb = deployment.client("dynamodb")
    segment = unused_segment(deployment)
    dynamodb.update_item(
        TableName=deployment.outputs["WheelTable"],
        Key={"segment_slot": {"S": f"{segment}#control"}, "entry_key": {"S": "control"}},
        UpdateExpression="ADD watermark :back",
        ConditionExpression="attribute_exists(watermark)",
        ExpressionAttributeValues={":back": {"N": "-13"}},
    )
    deployment.client("lambda").invoke(
        FunctionName=deployment.outputs["TickFunction"], Payload=b"{}"
    )

    def told() -> list[Json]:
        """This tick's line, or that of the rule's own one if that was quicker."""
        records = measured(deployment, "TickFunction", since, "WatermarkLag")
        is_late = max(max(listed(record["WatermarkLag"])) for record in records) >= 540
        return records if is_late else []

    bridge(deployment, until(told, PATIENCE_SECONDS))
    assert topic.hears("WatermarkLag", "ALARM")["AlarmDescription"].startswith("PAGE: ")


def unused_segment(deployment: Deployment) -> int:
    """One that no active job is in, so that nothing is sent once more."""
    pages = deployment.client("dynamodb").get_paginator("scan")
    found = pages.paginate(TableName=deployment.outputs["JobsTable"])
    items = [item for page in found for item in page["Items"]]
    jobs = [job_of(item) for item in items if "segment" in item]
    used = {job.segment for job in jobs if job.state is JobState.ACTIVE}
    return min(set(range(SEGMENTS)) - used)


def test_the_canary_is_filed_by_the_deployed_tick_and_run_by_the_deployed_executor(
    deployment: Deployment, topic: Topic, since: datetime
) -> None:
    """Sent now, as a tick sends it every five minutes."""
    at = (datetime.now(UTC) + timedelta(seconds=1)).replace(microsecond=0)
    deployment.client("sqs").send_message(
        QueueUrl=deployment.outputs["QueueUrlNormal"],
        MessageBody=encode(message_of(canary(deployment), at)),
    )
    (record,) = measured(deployment, "ExecutorFunctionNormal", since, "CanaryLag")
    assert 0 <= max(listed(record["CanaryLag"])) < 10
    bridge(deployment, [record])
    told = topic.hears("CanarySilent", "OK")
    assert told["AlarmDescription"].endswith("docs/operate.md#canarysilent")


def canary(deployment: Deployment) -> Job:
    """As the first tick indexed it, waited for."""
    dynamodb, table = deployment.client("dynamodb"), deployment.outputs["JobsTable"]
    key = {"pk": {"S": CANARY_JOB_ID}, "sk": {"S": "job"}}
    return job_of(until(lambda: dynamodb.get_item(TableName=table, Key=key).get("Item"), 90))


def test_a_drill_is_told_when_it_begins_and_when_it_ends(
    deployment: Deployment, topic: Topic
) -> None:
    cloudwatch = deployment.client("cloudwatch")
    for state in ("ALARM", "OK"):
        cloudwatch.set_alarm_state(
            AlarmName=f"{STACK_NAME}-ApiErrors", StateValue=state, StateReason="drill"
        )
        assert topic.hears("ApiErrors", state)["NewStateReason"] == "drill"
