"""Take a destroyed production stack up again, with what its removal has left.

`make take-up OPTIONS="-c …"`, or
`python -m carillon.cdk.take_up [--stack Carillon] [options of cdk]`: CloudFormation knows for 90
days what a deleted stack has left. Tables, queues and user pool are imported into a stack of the
same name, which is then deployed as ever, with the options given. The secret that signs webhooks is
a new one, with the value of the old one.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import dropwhile
from pathlib import Path
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError

_IDENTIFIERS = {
    "AWS::Cognito::UserPool": "UserPoolId",
    "AWS::DynamoDB::Table": "TableName",
    "AWS::SQS::Queue": "QueueUrl",
}
"""By which property CloudFormation imports a resource (the primary identifier of its schema)."""

_NOT_THERE = {"DELETE_COMPLETE", "REVIEW_IN_PROGRESS"}
"""A stack whose import failed is under review: it has nothing, and is imported into again."""


class CannotTakeUpError(Exception):
    """There is nothing to take up, or a step has failed; the message has the reason."""


@dataclass(frozen=True)
class Left:
    """The remains of a removal: the mapping for `cdk import` (identifiers by logical id), and the
    ARN or name of the secret."""

    mapping: Mapping[str, Mapping[str, str]]
    secret_id: str | None

    @classmethod
    def of(cls, events: Iterable[Mapping[str, Any]]) -> "Left":
        """From the events of a deleted stack, as DescribeStackEvents gives them: newest first.

        Where an update replaced a resource, the one of before was left under the same logical id:
        the newest event is that of the last one."""
        mapping: dict[str, Mapping[str, str]] = {}
        secret_id = None
        for event in events:
            if event.get("ResourceStatus") != "DELETE_SKIPPED":
                continue
            kind, physical_id = event["ResourceType"], event["PhysicalResourceId"]
            if kind in _IDENTIFIERS:
                mapping.setdefault(event["LogicalResourceId"], {_IDENTIFIERS[kind]: physical_id})
            elif kind == "AWS::SecretsManager::Secret":
                secret_id = secret_id or physical_id
        return cls(dict(sorted(mapping.items())), secret_id)


def find_left(cloudformation: Any, stack_name: str) -> Left:
    """The remains of the newest removal of the stack that left any; the secret may be one removal
    older, where a take-up was cut off before it had made its own. Raises CannotTakeUpError."""
    pages = cloudformation.get_paginator("list_stacks").paginate()
    stacks = [s for page in pages for s in page["StackSummaries"] if s["StackName"] == stack_name]
    stacks.sort(key=lambda stack: stack["CreationTime"], reverse=True)
    removed = [stack for stack in stacks if stack["StackStatus"] == "DELETE_COMPLETE"]
    of_each = (_left_by(cloudformation, stack["StackId"]) for stack in removed)
    removals = list(dropwhile(lambda left: not left.mapping, of_each))
    secret_id = next((each.secret_id for each in removals if each.secret_id), None)
    if any(stack["StackStatus"] not in _NOT_THERE for stack in stacks):
        cut_off = (
            "; it has the jobs of the one that was removed only if it was taken up"
            f" (docs/deploy.md); was a take-up cut off? {_by_hand(stack_name, secret_id)}"
            if secret_id
            else ""
        )
        raise CannotTakeUpError(
            f"the stack {stack_name} is there: update it by `make deploy`{cut_off}"
        )
    if not removed:
        raise CannotTakeUpError(f"no stack {stack_name} was deleted here in the last 90 days")
    if not removals:
        raise CannotTakeUpError(f"the removal of {removed[0]['StackId']} has left nothing")
    return Left(removals[0].mapping, secret_id)


def _left_by(cloudformation: Any, stack_id: str) -> Left:
    pages = cloudformation.get_paginator("describe_stack_events").paginate(StackName=stack_id)
    return Left.of(event for page in pages for event in page["StackEvents"])


def take_up(stack_name: str, options: Sequence[str]) -> None:
    """Import, deploy, keep the secret's value. Raises CannotTakeUpError."""
    if shutil.which("cdk") is None:
        raise CannotTakeUpError("there is no command cdk on the path: npm install aws-cdk")
    cloudformation, secrets = boto3.client("cloudformation"), boto3.client("secretsmanager")
    left = find_left(cloudformation, stack_name)
    secret = left.secret_id and _value(secrets, left.secret_id)
    by_hand = _by_hand(stack_name, left.secret_id) if left.secret_id and secret else None
    if by_hand:
        print(f"{stack_name}: should this be cut off: {by_hand}\n")
    with tempfile.TemporaryDirectory() as directory:
        mapping = Path(directory) / "mapping.json"
        mapping.write_text(json.dumps(left.mapping, indent=1))
        print(f"{stack_name}: to be imported:\n{mapping.read_text()}", flush=True)
        _cdk(by_hand, "import", stack_name, "--resource-mapping", str(mapping), *options)
    _cdk(by_hand, "deploy", stack_name, *_approval(options), *options)
    if secret:
        try:
            described = cloudformation.describe_stacks(StackName=stack_name)["Stacks"][0]
            arns = {each["OutputKey"]: each["OutputValue"] for each in described["Outputs"]}
            secrets.put_secret_value(SecretId=arns["WebhookSecretArn"], SecretString=secret)
        except (BotoCoreError, ClientError) as error:
            raise CannotTakeUpError(
                f"the new secret has not the old value: {error}; {by_hand}"
            ) from error
        print(f"{stack_name}: webhooks are signed as before; {left.secret_id} may be deleted")


def _value(secrets: Any, secret_id: str) -> str | None:
    """None where somebody has deleted the old secret: webhooks get another one then."""
    try:
        return str(secrets.get_secret_value(SecretId=secret_id)["SecretString"])
    except secrets.exceptions.ResourceNotFoundException:
        print(f"{secret_id} is gone: webhooks will be signed with a new secret")
        return None
    except ClientError as error:
        raise CannotTakeUpError(f"the signing secret {secret_id}: {error}") from error


def _by_hand(stack_name: str, secret_id: str) -> str:
    """The command that ends a take-up that was cut off after its import."""
    arn = "Stacks[0].Outputs[?OutputKey=='WebhookSecretArn'].OutputValue"
    return (
        "run `make take-up` again, or, where the stack is there by now, `make deploy` with the same"
        f" options; then give the new secret the value of {secret_id}:\n"
        "aws secretsmanager put-secret-value"
        f' --secret-id "$(aws cloudformation describe-stacks --stack-name {stack_name}'
        f' --query "{arn}" --output text)"'
        f' --secret-string "$(aws secretsmanager get-secret-value --secret-id {secret_id}'
        ' --query SecretString --output text)"'
    )


def _approval(options: Sequence[str]) -> list[str]:
    """The stack's own roles are made anew: nobody is asked about them who does not ask for it."""
    asked = any(option.startswith("--require-approval") for option in options)
    return [] if asked else ["--require-approval", "never"]


def _cdk(by_hand: str | None, *arguments: str) -> None:
    code = subprocess.run(["cdk", *arguments], check=False).returncode
    if code != 0:
        advice = f"; {by_hand}" if by_hand else ""
        raise CannotTakeUpError(f"cdk {arguments[0]} ended with code {code}{advice}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m carillon.cdk.take_up")
    parser.add_argument("--stack", default="Carillon", help="its name (Carillon)")
    known, others = parser.parse_known_args()
    try:
        take_up(known.stack, others)
    except CannotTakeUpError as error:
        sys.exit(f"not taken up: {error}")
