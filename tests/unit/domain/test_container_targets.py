"""Tasks of ECS and jobs of Batch as targets: what is taken, what a container gets, and how much."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from carillon.domain.run import OWN_PAYLOAD, RunKey, RunKind
from carillon.domain.spec.containers import (
    LONGEST_RUN_ID,
    OVERRIDES_LIMIT_CHARACTERS,
    longest_values,
    run_variables,
)
from carillon.domain.targets import BatchTarget, EcsTarget, arns_called, target_adapter
from tests.unit.domain.test_targets import SQS, refusal

AT = "eu-west-1:123456789012"
DEFINITION = f"arn:aws:ecs:{AT}:task-definition/report"
ECS: dict[str, Any] = {
    "type": "ecs",
    "task_definition_arn": f"{DEFINITION}:7",
    "subnets": ["subnet-0a1b2c3d", "subnet-0123456789abcdef0"],
    "container": "main",
}
JOB_DEFINITION = f"arn:aws:batch:{AT}:job-definition/report"
QUEUE = f"arn:aws:batch:{AT}:job-queue/nightly"
BATCH: dict[str, Any] = {
    "type": "batch",
    "job_definition_arn": f"{JOB_DEFINITION}:3",
    "job_queue_arn": QUEUE,
}


@pytest.mark.parametrize(
    ("members", "arns"),
    [
        (ECS, {"task_definition_arn": f"{DEFINITION}:7"}),
        (ECS | {"task_definition_arn": DEFINITION}, {"task_definition_arn": f"{DEFINITION}:*"}),
        (
            {
                **ECS,
                "cluster_arn": f"arn:aws:ecs:{AT}:cluster/jobs",
                "capacity_provider": "FARGATE_SPOT",
                "security_groups": ["sg-0a1b2c3d"],
                "assign_public_ip": True,
                "command": ["report", "--all"],
                "environment": {"REGION": "eu"},
            },
            {"task_definition_arn": f"{DEFINITION}:7"},
        ),
        (
            {"type": "ecs", "task_definition_arn": DEFINITION, "launch_type": "EC2"},
            {"task_definition_arn": f"{DEFINITION}:*"},
        ),
        (
            {"type": "ecs", "task_definition_arn": DEFINITION, "capacity_provider": "gpu"},
            {"task_definition_arn": f"{DEFINITION}:*"},
        ),
        (BATCH, {"job_definition_arn": f"{JOB_DEFINITION}:3", "job_queue_arn": QUEUE}),
        (
            {
                **BATCH,
                "job_definition_arn": JOB_DEFINITION,
                "parameters": {"input": "s3://x"},
                "environment": {"REGION": "eu"},
            },
            {"job_definition_arn": f"{JOB_DEFINITION}:*", "job_queue_arn": QUEUE},
        ),
    ],
)
def test_they_are_read_and_written(members: dict[str, Any], arns: dict[str, str]) -> None:
    """A definition without a revision is allowed by what allows each of them."""
    target = target_adapter.validate_python(members)
    assert arns_called(target) == arns
    assert target_adapter.validate_json(target_adapter.dump_json(target)) == target
    assert members.items() <= json.loads(target_adapter.dump_json(target)).items()


def test_others_name_their_one_resource_or_none() -> None:
    assert arns_called(target_adapter.validate_python(SQS)) == {"queue_arn": SQS["queue_arn"]}
    assert arns_called(target_adapter.validate_python({"type": "task", "name": "a"})) == {}


OTHER = "arn:aws:{}:eu-west-2:123456789012:{}"


@pytest.mark.parametrize(
    ("form", "changed", "field", "said"),
    [
        (ECS, {"task_definition_arn": "report:7"}, "task_definition_arn", "an ECS task definition"),
        (ECS, {"task_definition_arn": f"{DEFINITION}:*"}, "task_definition_arn", "an ECS task"),
        (ECS, {"cluster_arn": "jobs"}, "cluster_arn", "an ECS cluster"),
        (ECS, {"cluster_arn": OTHER.format("ecs", "cluster/c")}, "cluster_arn", "the region and"),
        (ECS, {"launch_type": "LAMBDA"}, "launch_type", "'FARGATE', 'EC2' or 'EXTERNAL'"),
        (
            ECS,
            {"launch_type": "FARGATE", "capacity_provider": "FARGATE_SPOT"},
            "capacity_provider",
            "one of them",
        ),
        (ECS, {"subnets": []}, "subnets", "must be given on Fargate"),
        (ECS, {"subnets": [], "capacity_provider": "FARGATE_SPOT"}, "subnets", "on Fargate"),
        (ECS, {"subnets": ["vpc-0a1b2c3d"]}, "subnets", "subnet-"),
        (ECS, {"subnets": ["subnet-0a1b2c3d"] * 17}, "subnets", "at most 16"),
        (ECS, {"security_groups": ["web"]}, "security_groups", "sg-"),
        (
            ECS,
            {"launch_type": "EC2", "subnets": [], "assign_public_ip": True},
            "assign_public_ip",
            "needs subnets",
        ),
        (ECS, {"container": None, "command": ["a"]}, "command", "needs container"),
        (ECS, {"container": None, "environment": {"A": "b"}}, "environment", "needs container"),
        (ECS, {"environment": {"CARILLON_RUN_ID": "x"}}, "environment", "must not set"),
        (BATCH, {"environment": {"AWS_BATCH_JOB_ID": "x"}}, "environment", "must not set"),
        (BATCH, {"environment": {"TRACEPARENT": "x"}}, "environment", "must not set"),
        (BATCH, {"environment": {"A-B": "x"}}, "environment", "pattern"),
        (BATCH, {"job_queue_arn": JOB_DEFINITION}, "job_queue_arn", "a Batch job queue"),
        (BATCH, {"job_queue_arn": OTHER.format("batch", "job-queue/q")}, "job_queue_arn", "region"),
        (BATCH, {"job_definition_arn": QUEUE}, "job_definition_arn", "a Batch job definition"),
        (BATCH, {"parameters": {"a": 1}}, "parameters", "string"),
    ],
)
def test_what_is_wrong_is_told_by_its_field(
    form: dict[str, Any], changed: dict[str, Any], field: str, said: str
) -> None:
    told = refusal({**form, **changed})
    assert f"'{field}'" in told
    assert said in told


VARIABLES = {"CARILLON_RUN_ID": "r", "CARILLON_PAYLOAD": '{"a":1}'}
PAIRS = [
    {"name": "REGION", "value": "eu"},
    {"name": "CARILLON_RUN_ID", "value": "r"},
    {"name": "CARILLON_PAYLOAD", "value": '{"a":1}'},
]


def ecs(**members: Any) -> EcsTarget:
    return EcsTarget.model_validate({**ECS, **members})


def test_the_named_container_gets_the_variables() -> None:
    target = ecs(environment={"REGION": "eu"})
    override = {"name": "main", "environment": PAIRS}
    assert target.overrides(VARIABLES) == {"containerOverrides": [override]}
    command = ecs(environment={"REGION": "eu"}, command=["a", "b"]).overrides(VARIABLES)
    assert command == {"containerOverrides": [override | {"command": ["a", "b"]}]}
    assert ecs(container=None).overrides(VARIABLES) == {}
    batch = BatchTarget.model_validate({**BATCH, "environment": {"REGION": "eu"}})
    assert batch.overrides(VARIABLES) == {"environment": PAIRS}


def test_overrides_end_at_the_limit_of_aws() -> None:
    room = OVERRIDES_LIMIT_CHARACTERS - len(json.dumps(ecs().overrides({"P": ""})))
    fitting = ecs().overrides({"P": room * "x"})
    assert len(json.dumps(fitting)) == OVERRIDES_LIMIT_CHARACTERS
    with pytest.raises(ValueError, match=r"8193 characters .* AWS takes 8192"):
        ecs().overrides({"P": room * "x" + "x"})
    with pytest.raises(ValueError, match="AWS takes 8192"):
        ecs().overrides({"P": (room // 6 + 1) * "ü"})
    with pytest.raises(ValueError, match="AWS takes 7168"):
        BatchTarget.model_validate(BATCH).overrides({"P": room * "x"})


def test_no_run_has_longer_variables_than_those_that_creation_reckons_with() -> None:
    fire_at = datetime(2026, 12, 1, tzinfo=UTC)
    digest = f"{OWN_PAYLOAD}{64 * 'f'}"
    keys = [
        RunKey("user/o", 26 * "j", kind, fire_at, request, 9999)
        for kind in (RunKind.SCHEDULED, RunKind.MANUAL, RunKind.BACKFILL)
        for request in ("", digest)
    ]
    assert max(len(key.run_id) for key in keys) <= LONGEST_RUN_ID
    variables = run_variables(longest_values("report", {}), "null")
    assert variables["CARILLON_FIRE_AT"] == "9999-12-31T23:59:59Z"
    assert variables["CARILLON_ATTEMPT"] == "100"
