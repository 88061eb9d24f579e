"""Statements for the functions' roles that several constructs make."""

from collections.abc import Sequence

from aws_cdk import ArnFormat, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_

from carillon.cdk.constructs.helpers import acknowledge


def allow(function: lambda_.Function, actions: Sequence[str], resources: Sequence[str]) -> None:
    function.add_to_role_policy(
        iam.PolicyStatement(actions=list(actions), resources=list(resources))
    )


def allow_secrets(executor: lambda_.Function, signing_secret_arn: str, prefix: str) -> None:
    """Let the signing secret be read, and every secret and parameter under the prefix.

    No grant of KMS: the key policies of aws/secretsmanager and aws/ssm let the whole account
    decrypt through those services. Who encrypts with a key of their own names this role there.
    """
    secrets, parameters = f"secret:{prefix}/*", f"parameter/{prefix}/*"
    all_secrets = [signing_secret_arn, _own_arn(executor, "secretsmanager", secrets)]
    allow(executor, ["secretsmanager:GetSecretValue"], all_secrets)
    allow(executor, ["ssm:GetParameter"], [_own_arn(executor, "ssm", parameters)])
    reason = "they come after the deployment; the prefix is its own"
    for service, resource in (("secretsmanager", secrets), ("ssm", parameters)):
        _acknowledge_wildcard(executor, service, resource, reason)


def allow_email(function: lambda_.Function, sender: str) -> None:
    """Let e-mail be sent from this address, by whichever identity of the account has it, and by
    the configuration set that the identity may have: SES asks for the permission of both."""
    used = ("identity/*", "configuration-set/*")
    function.add_to_role_policy(
        iam.PolicyStatement(
            actions=["ses:SendEmail"],
            resources=[_own_arn(function, "ses", each) for each in used],
            conditions={"StringEquals": {"ses:FromAddress": sender}},
        )
    )
    reason = "an address is sent from by its own identity or its domain's; the condition names it"
    for each in used:
        _acknowledge_wildcard(function, "ses", each, reason)


def allow_to_invoke_itself(function: lambda_.Function, alias: lambda_.Alias) -> None:
    """Let a function invoke its own live version.

    By a policy of its own: the function is made after the policy of its role, the alias after the
    function, and this one after the alias.
    """
    statement = iam.PolicyStatement(
        actions=["lambda:InvokeFunction"], resources=[alias.function_arn]
    )
    policy = iam.Policy(function, "InvokesItself", statements=[statement])
    if function.role is not None:
        policy.attach_to_role(function.role)


def allow_parameters(function: lambda_.Function, path: str) -> None:
    """Let all parameters below `path` be read at once."""
    below = [f"parameter{path}", f"parameter{path}/*"]
    allow(function, ["ssm:GetParametersByPath"], [_own_arn(function, "ssm", x) for x in below])
    _acknowledge_wildcard(function, "ssm", below[1], "a path is read as one")


def allow_spans(executor: lambda_.Function) -> None:
    """Let spans be sent to X-Ray, which knows no resource that they could be limited to."""
    actions = ["xray:PutSpans", "xray:PutSpansForIndexing", "xray:PutTraceSegments"]
    allow(executor, actions, ["*"])
    acknowledge_wildcard(executor, "*", "X-Ray has no resources for spans")


def acknowledge_wildcard(function: lambda_.Function, resource: str, reason: str) -> None:
    if "*" in resource and function.role is not None:
        acknowledge(function.role, f"AwsSolutions-IAM5[Resource::{resource}]", reason)


def _acknowledge_wildcard(
    function: lambda_.Function, service: str, resource: str, reason: str
) -> None:
    # As cdk-nag writes an ARN of the account and region of deployment.
    arn = f"arn:<AWS::Partition>:{service}:<AWS::Region>:<AWS::AccountId>:{resource}"
    acknowledge_wildcard(function, arn, reason)


def _own_arn(function: lambda_.Function, service: str, resource: str) -> str:
    """The ARN of a resource in the deployment's own account and region."""
    return Stack.of(function).format_arn(
        service=service, resource=resource, arn_format=ArnFormat.NO_RESOURCE_NAME
    )
