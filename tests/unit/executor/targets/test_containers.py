"""What ECS and Batch are asked, and what their answers mean for a run."""

import dataclasses
from datetime import UTC, datetime
from threading import Event
from typing import Any

import pytest

from carillon.domain.run import AttemptRecord, RunError, RunStatus
from carillon.domain.targets import BatchTarget, EcsTarget
from carillon.executor.runs.call import PreparedCall
from carillon.executor.targets.aws_client import AwsCaller
from carillon.executor.targets.call import Failure, Outcome, ReportTo, Success, variables
from carillon.executor.targets.containers import client_token, job_name, run_task, submit_job
from tests.unit.domain import samples
from tests.unit.domain.test_container_targets import AT, BATCH, DEFINITION, ECS
from tests.unit.executor.targets.test_aws import CALL, client_error

TASK = f"arn:aws:ecs:{AT}:task/jobs/0123"
TARGET = EcsTarget.model_validate(ECS)
JOB = BatchTarget.model_validate({**BATCH, "parameters": {"input": "a"}})
VARIABLES = {
    "CARILLON_RUN_ID": CALL.run_id,
    "CARILLON_JOB_ID": "abc",
    "CARILLON_JOB_NAME": "name",
    "CARILLON_ATTEMPT": "2",
    "CARILLON_FIRE_AT": "2026-03-01T12:00:17Z",
    "CARILLON_PAYLOAD": '{"a":1}',
}
PAIRS = [{"name": name, "value": value} for name, value in VARIABLES.items()]


class FakeClient:
    """Notes what it is asked."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked: dict[str, Any] = {}

    def run_task(self, **arguments: Any) -> Any:
        self.asked = arguments
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    submit_job = run_task


STARTED = {"tasks": [{"taskArn": TASK}], "failures": []}


def run(answer: Any, target: EcsTarget = TARGET) -> Outcome:
    return run_task(FakeClient(answer), target, CALL)


def test_a_task_is_run_on_fargate_with_the_payload() -> None:
    client = FakeClient(STARTED)
    assert run_task(client, TARGET, CALL) == Success(f"task {TASK}")
    network = {
        "subnets": ECS["subnets"],
        "securityGroups": [],
        "assignPublicIp": "DISABLED",
    }
    assert client.asked == {
        "taskDefinition": f"{DEFINITION}:7",
        "count": 1,
        "clientToken": f"{CALL.run_id}_2",
        "startedBy": CALL.run_id,
        "launchType": "FARGATE",
        "networkConfiguration": {"awsvpcConfiguration": network},
        "overrides": {"containerOverrides": [{"name": "main", "environment": PAIRS}]},
    }


@pytest.mark.parametrize(
    ("members", "asked"),
    [
        ({"launch_type": "EC2", "subnets": []}, {"launchType": "EC2"}),
        (
            {"capacity_provider": "gpu", "subnets": []},
            {"capacityProviderStrategy": [{"capacityProvider": "gpu", "weight": 1}]},
        ),
    ],
)
def test_a_task_is_run_where_its_target_says(
    members: dict[str, Any], asked: dict[str, Any]
) -> None:
    client = FakeClient(STARTED)
    cluster = f"arn:aws:ecs:{AT}:cluster/jobs"
    target = EcsTarget.model_validate({**ECS, **members, "container": None, "cluster_arn": cluster})
    run_task(client, target, CALL)
    for each in ("taskDefinition", "count", "clientToken", "startedBy"):
        del client.asked[each]
    assert client.asked == {"cluster": cluster, "overrides": {}, **asked}


def test_a_task_without_room_may_be_tried_again() -> None:
    lack = {"arn": "arn:aws:ecs:x", "reason": "RESOURCE:MEMORY", "detail": None}
    outcome = run({"tasks": [], "failures": [lack]})
    assert outcome == Failure(RunError("not_placed", "RESOURCE:MEMORY: arn:aws:ecs:x"))


def test_nor_is_one_refused_for_good_whose_cluster_has_no_instance_yet() -> None:
    """As one that was scaled to none: ECS tells it as an invalid parameter."""
    told = "No Container Instances were found in your cluster."
    outcome = run(client_error("InvalidParameterException", told))
    assert outcome == Failure(RunError("not_placed", told))


def test_a_token_in_use_names_the_task_of_an_earlier_attempt() -> None:
    """The variables of two attempts differ, which ECS tells as a conflict."""
    conflict = client_error("ConflictException")
    conflict.response["resourceIds"] = [TASK]  # type: ignore[typeddict-unknown-key]
    assert run(conflict) == Success(f"task {TASK} (an earlier attempt started it)")


class OneClient:
    def __init__(self, client: Any) -> None:
        self._client = client

    def get(self, region: str, limit_seconds: float) -> Any:
        assert region == "eu-west-1"
        return self._client


@pytest.mark.parametrize(
    ("code", "message", "kind", "permanent"),
    [
        ("ConflictException", "", "ConflictException", False),
        ("ThrottlingException", "", "throttled", False),
        (
            "InvalidParameterException",
            "Error retrieving security group information: Request limit exceeded. (ErrorCode: "
            "RequestLimitExceeded)",
            "throttled",
            False,
        ),
        ("InvalidParameterException", "Container name is not there.", "invalid_request", True),
        ("PlatformTaskDefinitionIncompatibilityException", "", "invalid_request", True),
        ("ClusterNotFoundException", "", "not_found", True),
        ("AccessDeniedException", "", "access_denied", True),
        # Of an unknown definition, but of a reached quota, too.
        ("ClientException", "Capacity limit exceeded.", "ClientException", False),
        ("ServerException", "", "ServerException", False),
    ],
)
def test_what_refusals_mean(code: str, message: str, kind: str, permanent: bool) -> None:
    for send, target in ((run_task, TARGET), (submit_job, JOB)):
        if (kind, send) == ("throttled", submit_job) and message:
            continue
        caller = AwsCaller("any", send)
        caller._clients = OneClient(FakeClient(client_error(code, message)))  # type: ignore[assignment]
        outcome = caller.deliver(target, CALL)
        assert isinstance(outcome, Failure)
        assert (outcome.error.kind, outcome.error.permanent) == (kind, permanent)


def test_a_payload_beyond_the_limit_is_refused_without_a_call() -> None:
    client = FakeClient(AssertionError("called"))
    call = dataclasses.replace(CALL, payload=9000 * "x")
    for outcome in (run_task(client, TARGET, call), submit_job(client, JOB, call)):
        assert isinstance(outcome, Failure)
        assert (outcome.error.kind, outcome.error.permanent) == ("payload_too_large", True)
        assert "the payload makes 9" in outcome.error.message
    assert client.asked == {}


def test_attempts_without_an_answer_ask_under_one_token() -> None:
    """So that a task which the lost call started is not started again."""
    first = dataclasses.replace(CALL, attempt=1)
    second = dataclasses.replace(CALL, attempt=2, unanswered=1)
    third = dataclasses.replace(CALL, attempt=3, unanswered=2)
    answered = dataclasses.replace(CALL, attempt=4)
    tokens = [client_token(TARGET, each) for each in (first, second, third, answered)]
    assert tokens[0] == tokens[1] == tokens[2] != tokens[3]
    long = client_token(TARGET, dataclasses.replace(CALL, run_id=128 * "r"))
    assert len(long) == 64


def test_each_attempt_of_a_run_that_stays_open_starts_a_task_of_its_own() -> None:
    target = EcsTarget.model_validate({**ECS, "completion": {"within": "1h"}})
    second = dataclasses.replace(CALL, attempt=2, unanswered=1)
    assert client_token(target, second) == f"{CALL.run_id}_2"


@pytest.mark.parametrize(
    ("kinds", "unanswered"),
    [
        ((), 0),
        (("timeout",), 1),
        (("timeout", "not_placed"), 0),
        (("timeout", "ConflictException"), 0),
        (("not_placed", "executor_died", "network_error", "ServerException"), 3),
        # Of the task that the first may have started, these know nothing.
        (("timeout", "throttled", "ClientException"), 3),
        (("connect_error", "timeout", "no_credentials"), 2),
        (("throttled", "throttled"), 0),
        # Any answer that is not known to be a refusal may have come after the start.
        (("InternalFailure",), 1),
        (("503", "ResponseParserError"), 2),
    ],
)
def test_attempts_from_the_first_whose_effect_nobody_knows_are_counted(
    kinds: tuple[str, ...], unanswered: int
) -> None:
    assert unanswered_after(*(RunError(kind, "") for kind in kinds)) == unanswered


def test_an_attempt_that_was_to_report_its_end_is_none_of_them() -> None:
    """It had a token of its own, and its task may have reported that it failed."""
    assert unanswered_after(RunError("failed", ""), token_hash="digest") == 0
    assert unanswered_after(RunError("timeout", ""), token_hash="digest") == 0


def unanswered_after(*errors: RunError, token_hash: str = "") -> int:
    now = datetime(2026, 3, 1, tzinfo=UTC)
    records = (AttemptRecord(n, now, now, each, token_hash) for n, each in enumerate(errors, 1))
    tried = samples.run(RunStatus.RUNNING, len(errors) + 1, attempts=tuple(records))
    return PreparedCall(TARGET, "null").call(tried, samples.job(), 10, Event()).unanswered


def test_a_container_that_is_to_report_knows_where() -> None:
    told = dataclasses.replace(CALL, report_to=ReportTo("https://api/completions/r", "token"))
    assert variables(told) == variables(CALL) | {
        "CARILLON_COMPLETION_URL": "https://api/completions/r",
        "CARILLON_COMPLETION_TOKEN": "token",
    }


def test_a_job_is_submitted_with_the_payload() -> None:
    client = FakeClient({"jobId": "0123"})
    assert submit_job(client, JOB, CALL) == Success("job 0123")
    assert client.asked == {
        "jobName": "name",
        "jobQueue": BATCH["job_queue_arn"],
        "jobDefinition": BATCH["job_definition_arn"],
        "parameters": {"input": "a"},
        "containerOverrides": {"environment": PAIRS},
    }


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("nightly report (EU)", "nightly-report-EU-"),
        ("-_a", "a"),
        ("месяц", "abc"),
        (128 * "é" + "x", "x"),
        (128 * "x", 128 * "x"),
    ],
)
def test_a_job_of_batch_has_a_name_that_batch_takes(name: str, told: str) -> None:
    assert job_name(dataclasses.replace(CALL, job_name=name)) == told
