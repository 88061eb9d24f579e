"""The executors' permissions for targets: allow-listed resources, and owners' secrets."""

from collections.abc import Sequence

from aws_cdk import ArnFormat, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_

from carillon.cdk.constructs.helpers import acknowledge
from carillon.cdk.options import ALL_STAGES
from carillon.cdk.target_arns import grants

_ALLOW, _DENY = iam.Effect.ALLOW, iam.Effect.DENY


def allow_targets(
    executor: lambda_.Function, patterns: Sequence[str], private_queues: Sequence[str]
) -> None:
    """Grant the calls of what the patterns allow; nothing without patterns.

    The functions of all stages of Carillon, and the deployment's `private_queues` (ARNs), are
    denied whatever the patterns: an owner who could call them through a job could act as any owner.
    """
    if not patterns:
        return
    for grant in grants(patterns):
        _state(executor, _ALLOW, grant.actions, grant.resources)
    for pattern in patterns:
        _acknowledge_wildcards(executor, pattern, "the operator's own list of what jobs may call")
    # By name: the role cannot refer to functions that depend on it.
    own = _own_arn(executor, "lambda", f"function:{ALL_STAGES}-*")
    _state(executor, _DENY, ["lambda:InvokeFunction"], [own])
    _state(executor, _DENY, ["sqs:SendMessage"], private_queues)


def allow_secrets(executor: lambda_.Function, signing_secret_arn: str, prefix: str) -> None:
    """Let the signing secret be read, and every secret and parameter under the prefix.

    No grant of KMS: the key policies of aws/secretsmanager and aws/ssm let the whole account
    decrypt through those services. Who encrypts with a key of their own names this role there.
    """
    secrets, parameters = f"secret:{prefix}/*", f"parameter/{prefix}/*"
    all_secrets = [signing_secret_arn, _own_arn(executor, "secretsmanager", secrets)]
    _state(executor, _ALLOW, ["secretsmanager:GetSecretValue"], all_secrets)
    _state(executor, _ALLOW, ["ssm:GetParameter"], [_own_arn(executor, "ssm", parameters)])
    for service, resource in (("secretsmanager", secrets), ("ssm", parameters)):
        # As cdk-nag writes an ARN of the account and region of deployment.
        arn = f"arn:<AWS::Partition>:{service}:<AWS::Region>:<AWS::AccountId>:{resource}"
        reason = "they come after the deployment; the prefix is its own"
        _acknowledge_wildcards(executor, arn, reason)


def _state(
    executor: lambda_.Function, effect: iam.Effect, actions: Sequence[str], resources: Sequence[str]
) -> None:
    executor.add_to_role_policy(
        iam.PolicyStatement(effect=effect, actions=list(actions), resources=list(resources))
    )


def _acknowledge_wildcards(executor: lambda_.Function, resource: str, reason: str) -> None:
    if "*" in resource and executor.role is not None:
        acknowledge(executor.role, f"AwsSolutions-IAM5[Resource::{resource}]", reason)


def _own_arn(executor: lambda_.Function, service: str, resource: str) -> str:
    """The ARN of a resource in the deployment's own account and region."""
    return Stack.of(executor).format_arn(
        service=service, resource=resource, arn_format=ArnFormat.NO_RESOURCE_NAME
    )
