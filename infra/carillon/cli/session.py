"""The global options, the stored sign-in, and the API client they make."""

from dataclasses import dataclass
from typing import Annotated

import typer

from carillon.cli.client import ApiClient, as_command_errors
from carillon.cli.completing import job_names
from carillon.cli.exits import CliError, ExitCode
from carillon.cli.output import is_wide, write_error
from carillon.client import settings
from carillon.client import sign_in as client_sign_in
from carillon.client.settings import credentials_path
from carillon.client.sign_in import Credentials, checked_url, load_credentials
from carillon.client.tokens import Token


@as_command_errors()
def stored_sign_in() -> Credentials | None:
    """The sign-in that is stored; raises CliError when the file is damaged."""
    return load_credentials(credentials_path())


@dataclass(slots=True)
class Invocation:
    """The global options of this call; `as_json` also if `--json` comes after the command."""

    api_url: str | None = None
    token: str | None = None
    as_json: bool = False
    team: str | None = None


def invocation_of(ctx: typer.Context) -> Invocation:
    """The call's options."""
    return ctx.ensure_object(Invocation)


def _note_json(ctx: typer.Context, value: bool) -> bool:
    """Noted as it is read, so that any later error is written as JSON."""
    invocation = invocation_of(ctx)
    invocation.as_json = invocation.as_json or value
    return value


def _note_wide(value: bool) -> bool:
    if value:
        is_wide.set(True)
    return value


ApiUrlOption = Annotated[
    str | None,
    typer.Option("--api-url", help="The deployment's address (else CARILLON_API_URL, or login)."),
]
TokenOption = Annotated[
    str | None,
    typer.Option("--token", help="The bearer token (else CARILLON_TOKEN, or login)."),
]
TeamOption = Annotated[
    str | None,
    typer.Option("--team", help="Act for this team (else CARILLON_TEAM, or for yourself)."),
]
JsonOption = Annotated[
    bool,
    typer.Option("--json", help="Print JSON, problems on stderr too.", callback=_note_json),
]
WideOption = Annotated[
    bool,
    typer.Option("--wide", help="Whole tables, wider than the terminal.", callback=_note_wide),
]
JobArgument = Annotated[
    str,
    typer.Argument(
        metavar="JOB", help="Its name, or its id.", show_default=False, autocompletion=job_names
    ),
]
OptionalJobArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="JOB", help="Its name, or its id.", show_default=False, autocompletion=job_names
    ),
]
IdempotencyKeyOption = Annotated[
    str | None,
    typer.Option(help="Repeating this under the same key does nothing a second time."),
]


@dataclass(frozen=True, slots=True)
class OutputOptions:
    """The options of every command; `ctx` is the call's own context."""

    ctx: typer.Context
    as_json: JsonOption = False
    wide: WideOption = False

    @property
    def is_json(self) -> bool:
        """True if `--json` was given, before the command or behind it."""
        return invocation_of(self.ctx).as_json


@dataclass(frozen=True, slots=True)
class SessionOptions(OutputOptions):
    """The options of every command that calls the API."""

    api_url: ApiUrlOption = None
    token: TokenOption = None
    team: TeamOption = None

    @property
    def acts_for(self) -> str | None:
        """The team, with None for oneself."""
        return invocation_of(self.ctx).team if self.team is None else self.team

    def connect(self) -> ApiClient:
        """A client for the API; closed with the context. Raises as `sign_in_of`."""
        client = ApiClient(*sign_in_of(self), team=self.acts_for, note=write_error)
        self.ctx.call_on_close(client.close)
        return client


def sign_in_of(session: SessionOptions) -> tuple[str, Token]:
    """The API's address and the token for it.

    Address and token: the command's option, the global option or environment variable, the
    stored sign-in, in this order. Raises CliError when one is missing.
    """
    invocation = invocation_of(session.ctx)
    with as_command_errors():
        given = session.token or invocation.token or settings.source_of_tokens()
    url, token = client_sign_in.sign_in_of(
        session.api_url or invocation.api_url, given, stored_sign_in
    )
    if url is None:
        detail = "run `carillon login`, or give --api-url or CARILLON_API_URL"
        raise CliError.local(ExitCode.USAGE, "No API address", detail)
    with as_command_errors():
        url = checked_url(url, "api_url")
    if token is None:
        detail = (
            "run `carillon login`, or give --token or CARILLON_TOKEN; "
            "a machine, CARILLON_CLIENT_ID and CARILLON_CLIENT_SECRET"
        )
        raise CliError.local(ExitCode.NOT_ALLOWED, f"Not signed in to {url}", detail)
    return url, token
