"""The global options, the stored sign-in, and the API client they make."""

import json
import os
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from carillon.cli.client import ApiClient, checked_token, checked_url
from carillon.cli.exits import CliError, ExitCode


@dataclass(frozen=True, slots=True)
class Credentials:
    """A token and the API it is for; it is never sent to another one."""

    api_url: str
    token: str


def credentials_path() -> Path:
    configured = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    # The XDG base directory specification has relative values ignored.
    base = configured if configured.is_absolute() else Path.home() / ".config"
    return base / "carillon" / "credentials.json"


def load_credentials() -> Credentials | None:
    """The credentials that `save_credentials` stored; raises CliError when the file is damaged."""
    path = credentials_path()
    try:
        stored = json.loads(path.read_bytes())
        return Credentials(api_url=str(stored["api_url"]), token=str(stored["token"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        detail = f"{path}: {error!r}; run `carillon login` again"
        raise CliError.local(
            ExitCode.NOT_ALLOWED, "The stored sign-in cannot be read", detail
        ) from error


def save_credentials(credentials: Credentials) -> Path:
    """Replace the stored sign-in at once and whole, mode 0600; returns where it is."""
    path = credentials_path()
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # mkstemp creates with mode 0600: at no moment can another user read the token.
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".credentials-")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(asdict(credentials), file)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    return path


@dataclass(slots=True)
class Invocation:
    """The global options of this call; `as_json` also if `--json` comes after the command."""

    api_url: str | None = None
    token: str | None = None
    as_json: bool = False


def invocation_of(ctx: typer.Context) -> Invocation:
    """The call's options."""
    return ctx.ensure_object(Invocation)


def _note_json(ctx: typer.Context, value: bool) -> bool:
    """Noted as it is read, so that any later error is written as JSON."""
    invocation = invocation_of(ctx)
    invocation.as_json = invocation.as_json or value
    return value


ApiUrlOption = Annotated[
    str | None,
    typer.Option("--api-url", help="The deployment's address (else CARILLON_API_URL, or login)."),
]
TokenOption = Annotated[
    str | None,
    typer.Option("--token", help="The bearer token (else CARILLON_TOKEN, or login)."),
]
JsonOption = Annotated[
    bool,
    typer.Option("--json", help="Print JSON, problems on stderr too.", callback=_note_json),
]
JobArgument = Annotated[
    str, typer.Argument(metavar="JOB", help="Its name, or its id.", show_default=False)
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

    @property
    def is_json(self) -> bool:
        """True if `--json` was given, before the command or behind it."""
        return invocation_of(self.ctx).as_json


@dataclass(frozen=True, slots=True)
class SessionOptions(OutputOptions):
    """The options of every command that calls the API."""

    api_url: ApiUrlOption = None
    token: TokenOption = None

    def connect(self) -> ApiClient:
        """A client for the API; closed with the context. Raises as `sign_in_of`."""
        client = ApiClient(*sign_in_of(self))
        self.ctx.call_on_close(client.close)
        return client


def sign_in_of(session: SessionOptions) -> tuple[str, str]:
    """The API's address and the token for it.

    Address and token: the command's option, the global option or environment variable, the
    stored sign-in, in this order. Raises CliError when one is missing.
    """
    invocation = invocation_of(session.ctx)
    url = session.api_url or invocation.api_url
    secret = session.token or invocation.token
    if url is None or secret is None:
        stored = load_credentials()
        if url is None and stored is not None:
            url = stored.api_url
        # Compared with the slash cut, and never sent to an API that it was not stored for.
        if secret is None and stored and url and url.rstrip("/") == stored.api_url:
            secret = stored.token
    if url is None:
        detail = "run `carillon login`, or give --api-url or CARILLON_API_URL"
        raise CliError.local(ExitCode.USAGE, "No API address", detail)
    checked = checked_url(url, "api_url")
    if secret is None:
        detail = "run `carillon login`, or give --token or CARILLON_TOKEN"
        raise CliError.local(ExitCode.NOT_ALLOWED, f"Not signed in to {checked}", detail)
    return checked, checked_token(secret)
