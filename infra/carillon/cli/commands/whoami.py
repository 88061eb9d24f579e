"""`carillon whoami`: whose token is in use, and until when."""

import json
from base64 import urlsafe_b64decode
from datetime import UTC, datetime
from typing import Any

import typer

from carillon.cli.exits import CliError, ExitCode
from carillon.cli.instants import utc_text
from carillon.cli.option_groups import with_option_groups
from carillon.cli.output import write_answer
from carillon.cli.session import SessionOptions, invocation_of, sign_in_of

_NAMES = ("username", "cognito:username", "preferred_username", "email")


@with_option_groups
def whoami(ctx: typer.Context, *, session: SessionOptions) -> None:
    """Show who you are to the API: the name, the owner of your jobs, and when the token expires.

    Read off the token; the API is not asked. Exit code 5 where it has expired.
    """
    api_url, token = sign_in_of(ctx, session)
    claims = _claims(token)
    expires_at = datetime.fromtimestamp(int(claims.get("exp", 0)), UTC)
    expired = expires_at <= datetime.now(UTC)
    told = {
        "api_url": api_url,
        "name": next((claims[name] for name in _NAMES if name in claims), None),
        "owner": claims.get("sub"),
        "expires_at": utc_text(expires_at),
        "expired": expired,
    }
    write_answer(told, invocation_of(ctx).as_json)
    if expired:
        raise typer.Exit(ExitCode.NOT_ALLOWED)


def _claims(token: str) -> dict[str, Any]:
    """What a token says, whose signature the API checks; raises CliError for one that says none."""
    try:
        part = token.split(".")[1]
        claims: dict[str, Any] = json.loads(urlsafe_b64decode(part + "=" * (-len(part) % 4)))
        int(claims.get("exp", 0))
    except (IndexError, ValueError, TypeError, AttributeError) as error:
        detail = "it tells neither name nor owner; `carillon login` gets another"
        title = "The token is not a JSON web token"
        raise CliError.local(ExitCode.NOT_ALLOWED, title, detail) from error
    return claims
