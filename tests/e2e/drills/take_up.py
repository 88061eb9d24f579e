"""A production stack that was destroyed, taken up again: its jobs, its history, its users.

`make drill-take-up`: on MiniStack, the whole `cdk destroy`, and `python -m carillon.cdk.take_up` as
an operator runs it. One job fires `every 5s` and catches up on all; every occurrence from its first
to its last must have succeeded, those of the time without a stack as well.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import sleep

from carillon.local.deployment import (
    CDK,
    Deployment,
    User,
    aws_environment,
    create_user,
    deploy,
    find_deployment,
    sign_in,
    synthesize,
)
from carillon.local.deployment import run as run_command
from carillon.local.emulator import REPOSITORY, Emulator
from tests.e2e.conftest import Json, Person
from tests.e2e.drills.bad_items import succeeded_of, times

STACK = "Carillon"
_FIRES_BEFORE = timedelta(minutes=2, seconds=30)
_WITHOUT_A_STACK = timedelta(minutes=2)
_FIRES_AFTER = timedelta(minutes=4)


@dataclass(frozen=True)
class Drill:
    """How many occurrences there were, how many did not succeed, and whether webhooks are signed
    with the secret of before."""

    occurrences: int
    missing: Sequence[datetime]
    same_secret: bool

    @property
    def holds(self) -> bool:
        return self.occurrences > 0 and not self.missing and self.same_secret

    def __str__(self) -> str:
        missing = ", ".join(f"{at:%H:%M:%S}" for at in self.missing) or "none"
        return (
            f"occurrences before, between and after: {self.occurrences}; not run: {missing}\n"
            f"webhooks are signed {'as before' if self.same_secret else 'with another secret'}"
        )


def drill(emulator: Emulator, directory: Path) -> Drill:
    endpoint_url = emulator.endpoint_url
    assembly = synthesize(endpoint_url, directory, context={"stage": "production"})
    before = deploy(endpoint_url, assembly, stack_name=STACK)
    secret = _secret(before)
    user = create_user(before, "alice")
    with _person(before, user) as alice:
        job = alice.create("every 5s", catch_up="all")
    first = datetime.now(UTC) + timedelta(seconds=5)
    sleep(_FIRES_BEFORE.total_seconds())
    environment, log = aws_environment(endpoint_url, os.environ), directory / "destroy.log"
    run_command(
        [str(CDK), "destroy", STACK, "--app", str(assembly), "--force"],
        environment,
        log,
    )
    sleep(_WITHOUT_A_STACK.total_seconds())
    command = [sys.executable, "-m", "carillon.cdk.take_up", "--app", str(assembly)]
    subprocess.run(command, cwd=REPOSITORY, env=environment, check=True)
    after = find_deployment(endpoint_url, STACK)
    last = datetime.now(UTC) + _FIRES_AFTER
    sleep(_FIRES_AFTER.total_seconds() + 60)
    with _person(after, user) as alice:
        ran = succeeded_of(alice, job, first, last)
    due = times(first, last)
    return Drill(len(due), [at for at in due if at not in ran], _secret(after) == secret)


def _person(deployment: Deployment, user: User) -> Person:
    return Person(deployment.api_url, sign_in(deployment, user).access_token)


def _secret(deployment: Deployment) -> str:
    secrets = deployment.client("secretsmanager")
    value: Json = secrets.get_secret_value(SecretId=deployment.outputs["WebhookSecretArn"])
    text: str = value["SecretString"]
    return text


if __name__ == "__main__":
    with Emulator() as started, tempfile.TemporaryDirectory() as work:
        found = drill(started, Path(work))
    sys.stdout.write(f"{found}\nthe promise {'holds' if found.holds else 'does not hold'}\n")
    sys.exit(0 if found.holds else 1)
