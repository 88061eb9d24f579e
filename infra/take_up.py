"""Take a destroyed production stack up again, with what its removal has left.

`make take-up OPTIONS="-c …"`, or `python -m infra.take_up [--stack Carillon] [options of cdk]`:
CloudFormation knows for 90 days what a deleted stack has left. Tables, queues and user pool are
imported into a stack of the same name, which is then deployed as ever, with the options given. The
secret that signs webhooks is a new one, with the value of the old one.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3

_CDK = Path(__file__).resolve().parents[1] / "node_modules" / ".bin" / "cdk"
_IDENTIFIERS = {
    "AWS::Cognito::UserPool": "UserPoolId",
    "AWS::DynamoDB::Table": "TableName",
    "AWS::SQS::Queue": "QueueUrl",
}
"""By which property CloudFormation imports a resource (the primary identifier of its schema)."""


class CannotTakeUpError(Exception):
    """There is nothing to take up, or a step has failed; the message says which."""


@dataclass(frozen=True)
class Left:
    """What a removal has left: the mapping for `cdk import` (identifiers by logical id), and the
    ARN or name of the secret."""

    mapping: Mapping[str, Mapping[str, str]]
    secret_id: str | None

    @classmethod
    def of(cls, events: Iterable[Mapping[str, Any]]) -> "Left":
        """From the events of a deleted stack, as DescribeStackEvents gives them."""
        skipped = [each for each in events if each.get("ResourceStatus") == "DELETE_SKIPPED"]
        mapping = {
            each["LogicalResourceId"]: {
                _IDENTIFIERS[each["ResourceType"]]: each["PhysicalResourceId"]
            }
            for each in skipped
            if each["ResourceType"] in _IDENTIFIERS
        }
        secrets = [
            each["PhysicalResourceId"]
            for each in skipped
            if each["ResourceType"] == "AWS::SecretsManager::Secret"
        ]
        return cls(dict(sorted(mapping.items())), secrets[0] if secrets else None)


def find_left(cloudformation: Any, stack_name: str) -> Left:
    """What the newest removal of the stack has left. Raises CannotTakeUpError."""
    pages = cloudformation.get_paginator("list_stacks").paginate()
    stacks = [s for page in pages for s in page["StackSummaries"] if s["StackName"] == stack_name]
    if any(stack["StackStatus"] != "DELETE_COMPLETE" for stack in stacks):
        raise CannotTakeUpError(f"the stack {stack_name} is there: update it by `make deploy`")
    if not stacks:
        raise CannotTakeUpError(f"no stack {stack_name} was deleted here in the last 90 days")
    newest = max(stacks, key=lambda stack: stack["CreationTime"])
    events = cloudformation.get_paginator("describe_stack_events")
    pages = events.paginate(StackName=newest["StackId"])
    left = Left.of(event for page in pages for event in page["StackEvents"])
    if not left.mapping:
        raise CannotTakeUpError(f"the removal of {newest['StackId']} has left nothing")
    return left


def take_up(stack_name: str, options: Sequence[str]) -> None:
    """Import, deploy, keep the secret's value. Raises CannotTakeUpError."""
    cloudformation, secrets = boto3.client("cloudformation"), boto3.client("secretsmanager")
    left = find_left(cloudformation, stack_name)
    secret = left.secret_id and secrets.get_secret_value(SecretId=left.secret_id)["SecretString"]
    with tempfile.TemporaryDirectory() as directory:
        mapping = Path(directory) / "mapping.json"
        mapping.write_text(json.dumps(left.mapping, indent=1))
        print(f"{stack_name}: to be imported:\n{mapping.read_text()}", flush=True)
        _cdk("import", stack_name, "--resource-mapping", str(mapping), *options)
    _cdk("deploy", stack_name, *options)
    if secret:
        described = cloudformation.describe_stacks(StackName=stack_name)["Stacks"][0]
        arns = {each["OutputKey"]: each["OutputValue"] for each in described["Outputs"]}
        secrets.put_secret_value(SecretId=arns["WebhookSecretArn"], SecretString=secret)
        print(f"{stack_name}: webhooks are signed as before; {left.secret_id} may be deleted")


def _cdk(*arguments: str) -> None:
    code = subprocess.run([str(_CDK), *arguments], check=False).returncode
    if code != 0:
        raise CannotTakeUpError(f"cdk {arguments[0]} ended with code {code}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m infra.take_up")
    parser.add_argument("--stack", default="Carillon", help="its name (Carillon)")
    known, others = parser.parse_known_args()
    try:
        take_up(known.stack, others)
    except CannotTakeUpError as error:
        sys.exit(f"not taken up: {error}")
