"""Containers in AWS: a task of ECS, a job of Batch. Each call ends when the service has accepted
it."""

import re
from typing import Any

from botocore.exceptions import ClientError

from carillon.clock import Clock
from carillon.domain.run import RunError, one_line
from carillon.domain.targets import BatchTarget, EcsTarget
from carillon.executor.targets.aws_client import THROTTLED, AwsCaller, coded
from carillon.executor.targets.call import Call, Failure, Outcome, Success, short_id, variables
from carillon.settings import Settings

TOKEN_CHARACTERS = 64
STARTED_BY_CHARACTERS = 128
JOB_NAME_CHARACTERS = 128


def create_ecs(settings: Settings, clock: Clock) -> AwsCaller:
    """One more kind of failure: `not_placed`, there is no room for the task."""
    return AwsCaller("ecs", run_task)


def run_task(client: Any, target: EcsTarget, call: Call) -> Outcome:
    try:
        overrides = target.overrides(variables(call))
    except ValueError as error:
        return _too_large(error)
    try:
        answer = client.run_task(
            taskDefinition=target.task_definition_arn,
            count=1,
            clientToken=client_token(target, call),
            startedBy=short_id(call.run_id, STARTED_BY_CHARACTERS),
            overrides=overrides,
            **_place(target),
        )
    except ClientError as error:
        return _refusal_of_ecs(error)
    if answer["failures"]:
        return _not_placed(answer["failures"][0])
    return Success(f"task {answer['tasks'][0]['taskArn']}")


def client_token(target: EcsTarget, call: Call) -> str:
    """The token under which ECS starts one task: of the attempt that asked first, until an answer
    says that nothing runs under it. An attempt of a run that stays open until the task reports has
    its own: reports of an earlier one's task count no more."""
    is_open = target.completion is not None
    first = call.attempt if is_open else call.attempt - call.unanswered
    return short_id(f"{call.run_id}_{first}", TOKEN_CHARACTERS)


def _place(target: EcsTarget) -> dict[str, Any]:
    place: dict[str, Any] = {}
    if target.cluster_arn is not None:
        place["cluster"] = target.cluster_arn
    if target.capacity_provider is None:
        place["launchType"] = target.launch_type or "FARGATE"
    else:
        provider = {"capacityProvider": target.capacity_provider, "weight": 1}
        place["capacityProviderStrategy"] = [provider]
    if target.subnets:
        network = {
            "subnets": list(target.subnets),
            "securityGroups": list(target.security_groups),
            "assignPublicIp": "ENABLED" if target.assign_public_ip else "DISABLED",
        }
        place["networkConfiguration"] = {"awsvpcConfiguration": network}
    return place


def _refusal_of_ecs(error: ClientError) -> Outcome:
    """The meaning of refusals that only ECS has; raises the error of any other.

    A token that was used with other variables, such as the number of the attempt, is a conflict,
    and names the task that was started under it. The throttling of what ECS calls itself, such as
    the network's interfaces, is told as an invalid parameter; so is a cluster without instances.
    """
    response: Any = error.response
    code, message = response["Error"].get("Code"), str(response["Error"].get("Message", ""))
    if code == "ConflictException" and response.get("resourceIds"):
        return Success(f"task {response['resourceIds'][0]} (an earlier attempt started it)")
    if message.startswith("No Container Instances"):
        return _not_placed({"reason": message})
    inner = re.search(r"\(ErrorCode: (\w+)", message)
    if inner is not None and inner[1] in THROTTLED:
        return coded(inner[1], message)
    raise error


def _not_placed(failure: Any) -> Failure:
    told = (failure.get("reason"), failure.get("detail"), failure.get("arn"))
    return Failure(RunError("not_placed", one_line(": ".join(filter(None, told)))))


def create_batch(settings: Settings, clock: Clock) -> AwsCaller:
    return AwsCaller("batch", submit_job)


def submit_job(client: Any, target: BatchTarget, call: Call) -> Outcome:
    """Batch knows no token: a call whose answer was lost may have submitted a job."""
    try:
        overrides = target.overrides(variables(call))
    except ValueError as error:
        return _too_large(error)
    answer = client.submit_job(
        jobName=job_name(call),
        jobQueue=target.job_queue_arn,
        jobDefinition=target.job_definition_arn,
        parameters=target.parameters,
        containerOverrides=overrides,
    )
    return Success(f"job {answer['jobId']}")


def job_name(call: Call) -> str:
    """The job's name as Batch takes it, or its id where nothing of it is left."""
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", call.job_name).lstrip("-_")
    return plain[:JOB_NAME_CHARACTERS] or call.job_id


def _too_large(error: ValueError) -> Failure:
    message = one_line(f"the payload {error}")
    return Failure(RunError("payload_too_large", message, permanent=True))
