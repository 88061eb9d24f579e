"""`carillon admin add-user`: an account of the deployment's user pool, with AWS credentials."""

import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from carillon.cli.commands.admin.stores import AdminOptions, outputs_of
from carillon.cli.exits import CliError, ExitCode
from carillon.cli.output import write_done

if TYPE_CHECKING:
    from mypy_boto3_cognito_idp import CognitoIdentityProviderClient
    from mypy_boto3_cognito_idp.type_defs import AttributeTypeTypeDef

NameArgument = Annotated[str, typer.Argument(metavar="NAME", show_default=False)]
EmailOption = Annotated[str | None, typer.Option(help="To sign in by, and to recover by.")]
OperatorOption = Annotated[
    bool, typer.Option("--operator", help="May see the whole deployment's status.")
]


def add_user(
    name: NameArgument,
    *,
    email: EmailOption = None,
    operator: OperatorOption = False,
    options: AdminOptions,
) -> None:
    """Add a user, with a temporary password that `carillon login` replaces by one of the user's.

    Of a user that is there nothing changes, but that --operator makes an operator of it.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        told = _added(outputs_of(options.stack), name, email, operator)
    except (BotoCoreError, ClientError) as error:
        detail = f"stack {options.stack}: {error}"
        raise CliError.local(ExitCode.NOT_ALLOWED, f"{name} was not added", detail) from error
    text = "\n".join(f"{key}: {value}" for key, value in told.items())
    write_done(text, told, options.is_json)


def _added(
    outputs: Mapping[str, str], name: str, email: str | None, operator: bool
) -> dict[str, str]:
    """The message for the user. Nothing is sent by e-mail."""
    import boto3
    from botocore.exceptions import ClientError

    from carillon.settings import OPERATORS_GROUP

    if "UserPoolId" not in outputs:
        detail = "the deployment has an issuer of its own: add users there"
        raise CliError.local(ExitCode.NOT_FOUND, "No user pool", detail)
    pool_id = outputs["UserPoolId"]
    cognito: CognitoIdentityProviderClient = boto3.client("cognito-idp")
    # Any password policy of Cognito takes it.
    password = f"aA1!{secrets.token_urlsafe(16)}"
    told = {"user": name}
    try:
        cognito.admin_create_user(
            UserPoolId=pool_id,
            Username=name,
            TemporaryPassword=password,
            MessageAction="SUPPRESS",
            UserAttributes=_attributes(email),
        )
        told["temporary_password"] = password
    except cognito.exceptions.UsernameExistsException as error:
        if not operator:
            raise CliError.local(ExitCode.CONFLICT, f"{name} is there already") from error
    if operator:
        try:
            cognito.admin_add_user_to_group(
                UserPoolId=pool_id, Username=name, GroupName=OPERATORS_GROUP
            )
        except ClientError as error:  # the password is shown once: now
            known = told.get("temporary_password", "the one that was shown before")
            detail = f"temporary password: {known}; repeat the command to make an operator: {error}"
            title = f"{name} is there, and no operator"
            raise CliError.local(ExitCode.NOT_ALLOWED, title, detail) from error
        told["group"] = OPERATORS_GROUP
    told["sign_in"] = f"carillon login --api-url {outputs['ApiUrl']} --username {name}"
    return told


def _attributes(email: str | None) -> "list[AttributeTypeTypeDef]":
    if email is None:
        return []
    return [{"Name": "email", "Value": email}, {"Name": "email_verified", "Value": "true"}]
