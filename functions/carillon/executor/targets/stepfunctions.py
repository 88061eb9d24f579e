"""Step Functions: one execution of a state machine per run, with the payload as its input.

Its name is the run's id, so that a second attempt finds what the first one started. (Express state
machines keep no names: there each attempt starts one.) A run succeeds when the execution started.
"""

from typing import Any

from botocore.exceptions import ClientError

from carillon.clock import Clock
from carillon.domain.targets import StepFunctionsTarget
from carillon.executor.targets.aws_client import AwsCaller
from carillon.executor.targets.call import Call, Outcome, Success
from carillon.executor.targets.run_facts import short_id
from carillon.settings import Settings

NAME_LIMIT_CHARACTERS = 80


def create_caller(settings: Settings, clock: Clock) -> AwsCaller:
    return AwsCaller("stepfunctions", send)


def send(client: Any, target: StepFunctionsTarget, call: Call) -> Outcome:
    name = short_id(call.run_id, NAME_LIMIT_CHARACTERS)
    try:
        answer = client.start_execution(
            stateMachineArn=target.state_machine_arn, name=name, input=call.payload
        )
    except ClientError as error:
        if error.response.get("Error", {}).get("Code") != "ExecutionAlreadyExists":
            raise
        return Success(f"execution {name} (an earlier attempt started it)")
    return Success(f"execution {answer['executionArn']}")
