"""`carillon admin machine-clients`: the clients of programs, and their secrets."""

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from carillon.cli.commands.admin.stores import AdminOptions
from carillon.cli.commands.admin.user_pool import UserPool, joined, opened
from carillon.cli.exits import CliError, ExitCode
from carillon.cli.output import write_done, write_items

if TYPE_CHECKING:
    from mypy_boto3_cognito_idp.type_defs import (
        ClientSecretDescriptorTypeTypeDef,
        UserPoolClientTypeTypeDef,
    )

MachineArgument = Annotated[
    str, typer.Argument(metavar="[NAME]", help="One of them.", show_default=False)
]
SecretOption = Annotated[bool, typer.Option("--secret", help="Print its secret, for a shell.")]
RotateOption = Annotated[
    bool, typer.Option("--rotate", help="Make a second secret, and print it; both count.")
]
EndRotationOption = Annotated[
    bool, typer.Option("--end-rotation", help="Delete the older of two secrets.")
]
_COLUMNS = ("name", "client_id", "roles")
_GRANT = "client_credentials"


def machine_clients(
    name: MachineArgument = "",
    *,
    secret: SecretOption = False,
    rotate: RotateOption = False,
    end_rotation: EndRotationOption = False,
    options: AdminOptions,
) -> None:
    """List the clients by which programs sign in, with their roles; or show the secret of one.

    The stack's option `machine_clients` makes them. Tokens that are there stay good until they
    end, an hour at most, whatever becomes of the secret.
    """
    if sum((secret, rotate, end_rotation)) > 1:
        raise typer.BadParameter("give one of --secret, --rotate, --end-rotation")
    if not name and (secret or rotate or end_rotation):
        raise typer.BadParameter("name the machine: carillon admin machine-clients NAME")
    with opened(options.stack, "No machine was read or changed") as pool:
        if not name:
            write_items(
                [_row(each) for each in machines_of(pool)], _COLUMNS, options.is_json, joined
            )
            return
        client = next(machines_of(pool, name), None)
        if client is None:
            detail = f"the option `machine_clients` names no {name}"
            raise CliError.local(ExitCode.NOT_FOUND, "No such machine", detail)
        if end_rotation:
            deleted = _without_the_older(pool, client)
            told = {"name": name, "client_id": client["ClientId"], "deleted": deleted}
            write_done(f"{name}: the older secret is deleted ({deleted})", told, options.is_json)
            return
        if rotate:
            client["ClientSecret"] = _second_secret(pool, client)
        row = _row(client)
        if secret or rotate:
            row["client_secret"] = client["ClientSecret"]
            write_done(_exports(pool, client), row, options.is_json)
        else:
            write_items([row], _COLUMNS, options.is_json, joined)


def machines_of(pool: UserPool, name: str = "") -> "Iterator[UserPoolClientTypeTypeDef]":
    """Those of the pool's clients that sign in by themselves; with a name the one of that."""
    pages = pool.cognito.get_paginator("list_user_pool_clients").paginate(UserPoolId=pool.id)
    for page in pages:
        for each in page["UserPoolClients"]:
            if name not in ("", each["ClientName"]):
                continue
            client = pool.cognito.describe_user_pool_client(
                UserPoolId=pool.id, ClientId=each["ClientId"]
            )["UserPoolClient"]
            if _GRANT in client.get("AllowedOAuthFlows", []):
                yield client


def _row(client: "UserPoolClientTypeTypeDef") -> dict[str, Any]:
    from carillon.domain.spec.teams import SCOPE_PREFIX

    roles = [each.removeprefix(SCOPE_PREFIX) for each in client.get("AllowedOAuthScopes", [])]
    return {"name": client["ClientName"], "client_id": client["ClientId"], "roles": sorted(roles)}


def _exports(pool: UserPool, client: "UserPoolClientTypeTypeDef") -> str:
    variables = {
        "CARILLON_API_URL": pool.outputs["ApiUrl"],
        "CARILLON_CLIENT_ID": client["ClientId"],
        "CARILLON_CLIENT_SECRET": client["ClientSecret"],
    }
    return "\n".join(f"export {key}={shlex.quote(value)}" for key, value in variables.items())


def _second_secret(pool: UserPool, client: "UserPoolClientTypeTypeDef") -> str:
    """Cognito keeps two at most, and tells a new one once."""
    there = _by_age(pool, client)
    if len(there) > 1:
        detail = (
            "--end-rotation ends the older at once: only when every program has the newer one. Has"
            " nobody kept that, delete it, and --rotate again: aws cognito-idp"
            f" delete-user-pool-client-secret --user-pool-id {pool.id} --client-id"
            f" {client['ClientId']} --client-secret-id {there[-1]['ClientSecretId']}"
        )
        raise CliError.local(ExitCode.CONFLICT, "There are two secrets already", detail)
    made = pool.cognito.add_user_pool_client_secret(UserPoolId=pool.id, ClientId=client["ClientId"])
    return made["ClientSecretDescriptor"]["ClientSecretValue"]


def _without_the_older(pool: UserPool, client: "UserPoolClientTypeTypeDef") -> str:
    secrets = _by_age(pool, client)
    if len(secrets) < 2:
        detail = "there is one secret: --rotate makes the next"
        raise CliError.local(ExitCode.CONFLICT, "No rotation is under way", detail)
    older = secrets[0]["ClientSecretId"]
    pool.cognito.delete_user_pool_client_secret(
        UserPoolId=pool.id, ClientId=client["ClientId"], ClientSecretId=older
    )
    return older


def _by_age(
    pool: UserPool, client: "UserPoolClientTypeTypeDef"
) -> "list[ClientSecretDescriptorTypeTypeDef]":
    """The client's secrets, the oldest first."""
    found = pool.cognito.list_user_pool_client_secrets(
        UserPoolId=pool.id, ClientId=client["ClientId"]
    )["ClientSecrets"]
    return sorted(found, key=lambda each: each["ClientSecretCreateDate"])
