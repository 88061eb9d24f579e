"""`carillon login`: get a token, or take one, and store it."""

import os
import sys
from typing import Annotated

import typer

from carillon.cli.client import checked_token, checked_url
from carillon.cli.commands.cognito import pool_of, sign_in
from carillon.cli.credentials import Credentials, load_credentials, save_credentials
from carillon.cli.exits import CliError, ExitCode
from carillon.cli.output import write_json, write_line
from carillon.cli.session import ApiUrlOption, JsonOption, invocation_of

UsernameOption = Annotated[
    str | None, typer.Option(envvar="CARILLON_USERNAME", help="Asked for when left out.")
]
ClientIdOption = Annotated[
    str | None,
    typer.Option(envvar="CARILLON_CLIENT_ID", help="Of the user pool; else the API tells it."),
]
EndpointOption = Annotated[
    str | None,
    typer.Option(envvar="CARILLON_COGNITO_ENDPOINT", help="Cognito elsewhere, such as local."),
]
StoredTokenOption = Annotated[
    str | None,
    typer.Option("--token", help="Store this token of any issuer instead; - reads stdin."),
]


def login(
    ctx: typer.Context,
    username: UsernameOption = None,
    client_id: ClientIdOption = None,
    cognito_endpoint: EndpointOption = None,
    token: StoredTokenOption = None,
    api_url: ApiUrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Sign in and store the API's address and a token, readable by you only.

    The password is asked for, or taken from CARILLON_PASSWORD. Where it is a temporary one, a new
    one is asked for, or taken from CARILLON_NEW_PASSWORD.
    A stored token is only ever sent to the API that it was stored for.
    """
    invocation = invocation_of(ctx)
    url = checked_url(_api_url(api_url or invocation.api_url), "api_url")
    if token is None:
        name = username or _ask("Username", "--username")
        if client_id is None or cognito_endpoint is None:
            endpoint, client = pool_of(url)
            cognito_endpoint, client_id = cognito_endpoint or endpoint, client_id or client
        password = os.environ.get("CARILLON_PASSWORD") or _ask("Password", "CARILLON_PASSWORD")
        secret = sign_in(cognito_endpoint, client_id, name, password, _new_password)
    else:
        secret = sys.stdin.readline() if token == "-" else token
    path = str(save_credentials(Credentials(url, checked_token(secret))))
    if invocation.as_json:
        write_json({"api_url": url, "credentials": path})
    else:
        write_line(f"signed in to {url}; stored in {path}")


def _api_url(given: str | None) -> str:
    if given is not None:
        return given
    stored = load_credentials()
    if stored is None:
        detail = "give --api-url or CARILLON_API_URL (the stack's output ApiUrl)"
        raise CliError.local(ExitCode.USAGE, "No API address", detail)
    return stored.api_url


def _new_password() -> str:
    given = os.environ.get("CARILLON_NEW_PASSWORD")
    return given or _ask("New password", "CARILLON_NEW_PASSWORD", twice=True)


def _ask(what: str, otherwise: str, *, twice: bool = False) -> str:
    if not sys.stdin.isatty():
        raise typer.BadParameter(f"no terminal to ask for the {what.lower()}: give {otherwise}")
    is_hidden = "password" in what.lower()
    return str(typer.prompt(what, hide_input=is_hidden, confirmation_prompt=twice, err=True))
