"""The targets as the handler composes them."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws

from carillon.clock import SystemClock
from carillon.domain.canary import CANARY_TASK
from carillon.domain.run import RunError
from carillon.domain.targets import SqsTarget, TaskTarget, WebhookTarget
from carillon.executor.targets import Call, Failure, Success, Targets, aws_services
from carillon.executor.targets.secrets import AwsSecrets, SecretError
from carillon.settings import Settings
from tests.integration.executor.endpoints import endpoint
from tests.integration.executor.sending import call

ROOT = Path(__file__).resolve().parents[3]
ENVIRONMENT = {
    "JOBS_TABLE": "jobs",
    "WHEEL_TABLE": "wheel",
    "RUNS_TABLE": "runs",
    "LANE_QUEUES": '{"high": "https://h", "normal": "https://n", "low": "https://l", "slow": "https://s"}',
    "SEGMENTS": "16",
    "WEBHOOK_ALLOWED_NETWORKS": "127.0.0.0/8",
}
QUEUES = "arn:aws:sqs:us-east-1:000000000000"
CALL = call('{"a":1}', timeout_seconds=20)


@pytest.fixture
def secret_arn(aws_environment: pytest.MonkeyPatch) -> Iterator[str]:
    with mock_aws():
        client = boto3.client("secretsmanager")
        yield client.create_secret(Name="webhooks", SecretString="s" * 48)["ARN"]


def test_each_type_of_target_is_delivered_to(secret_arn: str) -> None:
    settings = Settings.from_environment({**ENVIRONMENT, "WEBHOOK_SECRET_ARN": secret_arn})
    with Targets(settings, SystemClock()) as targets:
        targets.prepare(1)
        assert targets.deliver(TaskTarget(name="echo"), CALL) == Success('{"a":1}')
    # moto bears one thread at a time: there is one webhook, so one read of the secret.
    with endpoint() as hook, Targets(settings, SystemClock()) as targets:
        assert targets.deliver(WebhookTarget(url=hook.url), CALL) == Success("200 thanks")
        assert len(hook.received) == 1


def test_the_canary_s_task_is_there_whatever_modules_a_deployment_names() -> None:
    settings = Settings.from_environment({**ENVIRONMENT, "TASK_MODULES": "json"})
    with Targets(settings, SystemClock()) as targets:
        assert targets.deliver(TaskTarget(name=CANARY_TASK), CALL) == Success(None)


def test_a_defect_of_ours_ends_in_the_history_too() -> None:
    members: dict[str, Any] = {"type": "pigeon", "url": "https://example.com/"}
    settings = Settings.from_environment(ENVIRONMENT)
    with Targets(settings, SystemClock()) as targets:
        outcome = targets.deliver(WebhookTarget.model_construct(**members), CALL)
    assert outcome == Failure(RunError("KeyError", "'pigeon'"))


class NoSqs:
    def deliver(self, target: Any, call: Call) -> Success:
        return Success(f"sent to {target.queue_arn}")

    def close(self) -> None:
        pass


def test_what_the_deployment_no_longer_allows_is_not_called(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    environment = {**ENVIRONMENT, "TARGET_ARNS": f"{QUEUES}:*", "OWN_ARNS": f"{QUEUES}:lane"}
    monkeypatch.setattr(aws_services, "create_sqs", lambda settings, clock: NoSqs())
    with Targets(Settings.from_environment(environment), SystemClock()) as targets:
        allowed = targets.deliver(SqsTarget(queue_arn=f"{QUEUES}:orders"), CALL)
        assert allowed == Success(f"sent to {QUEUES}:orders")
        own, other = (
            f"{QUEUES}:lane",
            QUEUES.replace("us-east", "eu-west") + ":orders",
        )
        for arn in (own, other):
            outcome = targets.deliver(SqsTarget(queue_arn=arn), CALL)
            assert isinstance(outcome, Failure)
            assert (outcome.error.kind, outcome.error.permanent) == ("not_allowed", True)
            assert outcome.error.message.startswith(f"{arn} is not allowed in this deployment")


def test_the_secret_is_read_from_secrets_manager(secret_arn: str) -> None:
    secrets = AwsSecrets()
    assert secrets.secret(secret_arn) == "s" * 48
    with pytest.raises(SecretError, match="ResourceNotFoundException") as caught:
        secrets.secret(secret_arn.replace("webhooks", "others"))
    assert caught.value.kind == "secret_missing"


def test_a_target_is_imported_when_it_is_first_used() -> None:
    program = (
        "import sys, carillon.executor.targets; "
        "print('httpcore2' in sys.modules, 'carillon.executor.targets.task' in sys.modules)"
    )
    answer = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert answer.stdout.split() == ["False", "False"]
