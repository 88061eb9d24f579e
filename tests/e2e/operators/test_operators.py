"""What operators run, on the deployed stack: its wheel is emptied and filled again, the whole is
driven by the smoke test, and the doctor finds what is planted and nothing else."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from functools import partial
from time import sleep

import pytest

from carillon.domain.job import segment_of
from carillon.domain.spec.names import job_id_of
from carillon.local.deployment import STACK_NAME, Deployment, aws_environment
from carillon.resources import resources_of
from tests.e2e.conftest import COMMAND, NEVER, SEGMENTS, Json, Person, person
from tests.e2e.operators.targets import one_of_each_type

pytestmark = pytest.mark.e2e

BEYOND_THE_HORIZON = timedelta(seconds=200)
"""No tick has announced it, so that only its entry can bring it."""


def run(
    deployment: Deployment, *arguments: str, token: str = "", **variables: str
) -> "subprocess.CompletedProcess[str]":
    """The installed command with AWS credentials, and as a user where there is a token."""
    environment = aws_environment(deployment.endpoint_url, os.environ) | variables
    if token:
        environment |= {"CARILLON_API_URL": deployment.api_url, "CARILLON_TOKEN": token}
    return subprocess.run(
        [str(COMMAND), *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )


def empty_wheel(deployment: Deployment) -> int:
    client, table = deployment.client("dynamodb"), deployment.outputs["WheelTable"]
    keys = "segment_slot, entry_key"
    pages = client.get_paginator("scan").paginate(TableName=table, ProjectionExpression=keys)
    items = [item for page in pages for item in page["Items"]]
    for item in items:
        client.delete_item(TableName=table, Key=item)
    return len(items)


def spread_to_one_segment_and_back(deployment: Deployment, owner: Person) -> None:
    """As an operator who lowers `segments` and raises them again; ticks serve all meanwhile."""
    for _ in range(8):
        owner.create(NEVER, name="to be moved")
    function = deployment.client("lambda").get_function_configuration(
        FunctionName=deployment.outputs["ApiFunction"]
    )
    variables = function["Environment"]["Variables"]
    lowered = run(deployment, "admin", "spread", "--json", **variables | {"SEGMENTS": "1"})
    assert lowered.returncode == 0, lowered.stderr
    raised = run(deployment, "admin", "spread", "--json")
    assert raised.returncode == 0, raised.stderr
    there = {each["from"]: each["jobs"] for each in json.loads(lowered.stdout)["moved"]}
    back = {each["to"]: each["jobs"] for each in json.loads(raised.stdout)["moved"]}
    assert back == there != {}


def wait_for_the_next_tick() -> None:
    """What is due before it has been worked off is late: a lost wheel is an outage of ticks."""
    sleep(65 - datetime.now(UTC).second)


@pytest.fixture(scope="module")
def owner(deployment: Deployment) -> Iterator[Person]:
    with person(deployment, "operators-drill") as owner:
        yield owner


@pytest.fixture(scope="module", autouse=True)
def later(owner: Person) -> Json:
    """A one-shot whose entry is lost meanwhile; looked at by the last test."""
    at = datetime.now(UTC) + BEYOND_THE_HORIZON
    return owner.create(f"at {at:%Y-%m-%dT%H:%M:%S}", name="later")


def test_a_lost_wheel_is_filled_again_and_the_stack_holds_what_it_promises(
    deployment: Deployment, owner: Person, later: Json
) -> None:
    assert empty_wheel(deployment) > SEGMENTS
    filled = run(deployment, "admin", "reindex", "--json")
    assert filled.returncode == 0, filled.stderr
    assert json.loads(filled.stdout)["entries"] > 0
    again = run(deployment, "admin", "reindex")
    assert again.returncode == 0, again.stderr
    spread_to_one_segment_and_back(deployment, owner)
    wait_for_the_next_tick()
    token = owner.http.headers["authorization"].removeprefix("Bearer ")
    with one_of_each_type(deployment) as targets:
        # Executors start cold here, beside another stack on the same two cores.
        drive = ["admin", "smoke", "--quick", "--most-lag", "20"]
        drive += [text for target in targets for text in ("--target", target)]
        driven = run(deployment, *drive, token=token)
    assert driven.returncode == 0, driven.stdout + driven.stderr
    assert driven.stdout.count("ok ") >= 21, driven.stdout
    for kind in ("sqs", "sns", "eventbridge", "stepfunctions", "lambda", "ecs", "batch"):
        assert f"{kind} " in driven.stdout, driven.stdout


def doctor(deployment: Deployment) -> tuple[int, dict[str, Json]]:
    """The exit code, and what is wrong by check."""
    told = run(deployment, "doctor", "--json")
    assert told.stdout, told.stderr
    verdicts = json.loads(told.stdout)
    return told.returncode, {v["check"]: v for v in verdicts if v["level"] == "wrong"}


def test_the_doctor_finds_a_healthy_stack_healthy(deployment: Deployment) -> None:
    told = run(deployment, "doctor")
    assert told.returncode == 0, told.stdout + told.stderr
    (release,) = json.loads(run(deployment, "admin", "release", "--json").stdout)
    assert release["live"] == "7 of 7 functions"
    assert run(deployment, "admin", "release", release["release"]).returncode == 0


def own(deployment: Deployment, kind: str, word: str = "") -> str:
    """The physical id of a resource of the stack, the first of its type with the word in its
    logical id: the emulator has other people's stacks besides."""
    resources = resources_of(deployment.client("cloudformation"), STACK_NAME)
    return next(
        physical for each, logical, physical in resources if each == kind and word in logical
    )


Undo = Callable[[], object]
Plant = Callable[[Deployment], Undo]


def a_mapping_is_disabled(deployment: Deployment) -> Undo:
    client = deployment.client("lambda")
    uuid = own(deployment, "AWS::Lambda::EventSourceMapping", "Slow")
    client.update_event_source_mapping(UUID=uuid, Enabled=False)
    return partial(client.update_event_source_mapping, UUID=uuid, Enabled=True)


def visibility_is_short(deployment: Deployment) -> Undo:
    client, url = deployment.client("sqs"), deployment.outputs["QueueUrlLow"]
    name = "VisibilityTimeout"
    before = client.get_queue_attributes(QueueUrl=url, AttributeNames=[name])["Attributes"][name]
    client.set_queue_attributes(QueueUrl=url, Attributes={name: "20"})
    return partial(client.set_queue_attributes, QueueUrl=url, Attributes={name: before})


def the_rule_is_disabled(deployment: Deployment) -> Undo:
    client = deployment.client("events")
    name = own(deployment, "AWS::Events::Rule")
    client.disable_rule(Name=name)
    return partial(client.enable_rule, Name=name)


def nothing_expires(deployment: Deployment) -> Undo:
    client, table = deployment.client("dynamodb"), deployment.outputs["RunsTable"]

    def switch(enabled: bool) -> None:
        wanted = {"Enabled": enabled, "AttributeName": "ttl"}
        client.update_time_to_live(TableName=table, TimeToLiveSpecification=wanted)

    switch(False)
    return partial(switch, True)


def jobs_do_not_recover(deployment: Deployment) -> Undo:
    client, table = deployment.client("dynamodb"), deployment.outputs["JobsTable"]
    name = "PointInTimeRecoveryEnabled"
    switch = partial(client.update_continuous_backups, TableName=table)
    switch(PointInTimeRecoverySpecification={name: False})
    return partial(switch, PointInTimeRecoverySpecification={name: True})


def the_secret_is_short(deployment: Deployment) -> Undo:
    client, arn = deployment.client("secretsmanager"), deployment.outputs["WebhookSecretArn"]
    before = client.get_secret_value(SecretId=arn)["SecretString"]
    client.put_secret_value(SecretId=arn, SecretString="short")
    return partial(client.put_secret_value, SecretId=arn, SecretString=before)


def an_alarm_is_mute(deployment: Deployment) -> Undo:
    client = deployment.client("cloudwatch")
    names = [own(deployment, "AWS::CloudWatch::Alarm")]
    client.disable_alarm_actions(AlarmNames=names)
    return partial(client.enable_alarm_actions, AlarmNames=names)


def a_control_item_is_spoilt(deployment: Deployment) -> Undo:
    client, table = deployment.client("dynamodb"), deployment.outputs["WheelTable"]
    segment = segment_of(job_id_of("nobody", "spoilt"), SEGMENTS)
    key = {"segment_slot": {"S": f"{segment}#control"}, "entry_key": {"S": "control"}}
    client.update_item(
        TableName=table,
        Key=key,
        UpdateExpression="SET watermark = :text",
        ExpressionAttributeValues={":text": {"S": "spoilt"}},
    )

    def mend() -> None:
        assert run(deployment, "admin", "mend-segment", str(segment)).returncode == 0

    return mend


PLANTED: list[tuple[Plant, str, str]] = [
    (a_mapping_is_disabled, "mapping: ", "update-event-source-mapping --uuid"),
    (visibility_is_short, "visibility: ", "--revert-drift"),
    (nothing_expires, "expiry of runs", "--revert-drift"),
    (jobs_do_not_recover, "recovery of jobs", "switch it on"),
    (the_secret_is_short, "signing secret", "24 characters"),
    (an_alarm_is_mute, "alarm actions", "enable-alarm-actions"),
    (a_control_item_is_spoilt, "segment ", "mend-segment"),
    # Last, since a tick that does not come is one more finding.
    (the_rule_is_disabled, "rule", "enable-rule"),
]


def test_the_doctor_finds_each_planted_fault_and_says_what_to_do(deployment: Deployment) -> None:
    with ExitStack() as planted:
        for plant, _, _ in PLANTED:
            planted.callback(plant(deployment))
        code, wrong = doctor(deployment)
    assert code == 1
    for _, check, advice in PLANTED:
        assert any(name.startswith(check) for name in wrong), (check, list(wrong))
        (found,) = (wrong.pop(name) for name in [*wrong] if name.startswith(check))
        assert advice in found["advice"], found
    assert wrong == {}, "and nothing that was not planted"


def test_what_lay_beyond_the_horizon_of_the_lost_wheel_has_run(owner: Person, later: Json) -> None:
    (ended,) = owner.ended_runs(later, 1, within_seconds=BEYOND_THE_HORIZON.total_seconds())
    assert ended["status"] == "succeeded"
    assert ended["lag_seconds"] < 3
