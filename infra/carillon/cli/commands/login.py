"""`carillon login` and `carillon whoami`: sign-in with Cognito."""

import json
import os
import re
import sys
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from carillon.cli.client import ApiClient, as_command_errors
from carillon.cli.exits import CliError, ExitCode
from carillon.cli.instants import utc_text
from carillon.cli.output import write_answer, write_json, write_line
from carillon.cli.session import (
    ApiUrlOption,
    JsonOption,
    SessionOptions,
    invocation_of,
    sign_in_of,
    stored_sign_in,
)
from carillon.client.clock import Clock
from carillon.client.drivers import Driver
from carillon.client.session import Json
from carillon.client.settings import credentials_path
from carillon.client.sign_in import (
    Credentials,
    Refresh,
    checked_token,
    checked_url,
    save_credentials,
)
from carillon.client.steps import Lost, sent
from carillon.client.tokens import BUSY, pool_request
from carillon.client.web_tokens import claims_of

_COGNITO = re.compile(r"https://cognito-idp\.[a-z0-9-]+\.amazonaws\.com(\.cn)?(?=/)")
_NEW_PASSWORD = "NEW_PASSWORD_REQUIRED"
_NOT_ALLOWED = frozenset(
    {
        "NotAuthorizedException",
        "UserNotFoundException",
        "UserNotConfirmedException",
        "PasswordResetRequiredException",
    }
)


def pool_of(api_url: str) -> tuple[str, str]:
    """Cognito's address and the client that users of a deployment sign in to, from its API.

    Raises CliError where it cannot be reached, or has an issuer of another kind: a password is
    sent to Cognito only.
    """
    with closing(ApiClient(api_url, None)) as api:
        told = api.get("/.well-known/carillon")
    issuer, client_id = str(told.get("issuer", "")), str(told.get("client_id", ""))
    address = _COGNITO.match(issuer)
    if address is None or not client_id:
        detail = f"its users sign in at {issuer or 'another issuer'}: give its token by --token"
        raise CliError.local(ExitCode.USAGE, f"{api_url} has no user pool", detail)
    return address[0], client_id


def sign_in(
    endpoint: str,
    client_id: str,
    username: str,
    password: str,
    new_password: Callable[[], str],
) -> Json:
    """Cognito's tokens for the user: `AccessToken`, good for an hour unless the pool is set
    otherwise, and `RefreshToken`, for which there are new ones.

    `new_password` is asked where the password is a temporary one: that of an account which an
    administrator has made. Raises CliError: not allowed, unreachable, or what else Cognito answers.
    """
    pool = _Pool(endpoint, client_id)
    parameters = {"USERNAME": username, "PASSWORD": password}
    answer = pool.ask(
        "InitiateAuth", {"AuthFlow": "USER_PASSWORD_AUTH", "AuthParameters": parameters}
    )
    if answer.get("ChallengeName") == _NEW_PASSWORD:
        known = answer.get("ChallengeParameters", {})
        responses = {
            # An alias, such as an e-mail address, is no user name here.
            "USERNAME": known.get("USER_ID_FOR_SRP", username),
            "NEW_PASSWORD": new_password(),
        }
        members = {"ChallengeName": _NEW_PASSWORD, "ChallengeResponses": responses}
        session = {"Session": answer["Session"]} if "Session" in answer else {}
        answer = pool.ask("RespondToAuthChallenge", members | session)
    return _result_of(answer)


class _Pool:
    """The app client of a user pool at Cognito's address."""

    def __init__(self, endpoint: str, client_id: str) -> None:
        with as_command_errors():
            self._url = checked_url(endpoint, "cognito_endpoint")
        self._client_id = client_id

    def ask(self, action: str, members: Json) -> Json:
        """The answer to one unsigned request; raises CliError where that is an error."""
        request = pool_request(self._url, self._client_id, action, members)
        with closing(Driver.to(self._url, Clock())) as driver, as_command_errors():
            got = driver.run(sent(request))
        if isinstance(got, Lost):
            title, detail = "Cognito cannot be reached", f"{self._url}: {got.reason}"
            raise CliError.local(ExitCode.UNREACHABLE, title, detail)
        try:
            answer = json.loads(got.content)
        except ValueError:
            answer = None
        answer = answer if isinstance(answer, dict) else {}
        if got.status != 200:
            raise _refusal(answer, got.status)
        return answer


def revoke(refresh: Refresh) -> None:
    """Make the means for new tokens useless; raises CliError where Cognito does not."""
    _Pool(refresh.endpoint, refresh.client_id).ask("RevokeToken", {"Token": refresh.token})


def _result_of(answer: Json) -> Json:
    result = answer.get("AuthenticationResult")
    if isinstance(result, dict) and isinstance(result.get("AccessToken"), str):
        return result
    challenge = answer.get("ChallengeName")
    if challenge is None:
        raise _refusal(answer, 200)
    detail = f"the user pool asks for {challenge} first: this command cannot answer that"
    raise CliError.local(ExitCode.NOT_ALLOWED, "Not signed in", detail)


def _refusal(answer: Json, status: int) -> CliError:
    kind = str(answer.get("__type", "")).rpartition("#")[2]
    message = str(answer.get("message") or answer.get("Message") or kind or f"status {status}")
    if kind in _NOT_ALLOWED:
        return CliError.local(ExitCode.NOT_ALLOWED, "Not signed in", message)
    if kind == "InvalidPasswordException":
        return CliError.bad_field("new_password", message)
    code = ExitCode.UNREACHABLE if kind in BUSY or status in (429, 503) else ExitCode.UNEXPECTED
    if kind in ("InvalidParameterException", "ResourceNotFoundException"):
        code = ExitCode.BAD_INPUT
    return CliError.local(code, "Cognito refused the sign-in", message)


UsernameOption = Annotated[
    str | None, typer.Option(envvar="CARILLON_USERNAME", help="Asked for when left out.")
]
ClientIdOption = Annotated[
    str | None,
    typer.Option(help="Of the user pool; by default from the API."),
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
    A stored token is only ever sent to the API that it was stored for. One of Cognito is renewed
    by itself.
    """
    invocation = invocation_of(ctx)
    with as_command_errors():
        url = checked_url(_api_url(api_url or invocation.api_url), "api_url")
    refresh: Refresh | None = None
    if token is None:
        name = username or _ask("Username", "--username")
        if client_id is None or cognito_endpoint is None:
            endpoint, client = pool_of(url)
            cognito_endpoint, client_id = cognito_endpoint or endpoint, client_id or client
        password = os.environ.get("CARILLON_PASSWORD") or _ask("Password", "CARILLON_PASSWORD")
        result = sign_in(cognito_endpoint, client_id, name, password, _new_password)
        secret = str(result["AccessToken"])
        if "RefreshToken" in result:
            refresh = Refresh(cognito_endpoint, client_id, str(result["RefreshToken"]))
    else:
        secret = sys.stdin.readline() if token == "-" else token
    path = credentials_path()
    try:
        with as_command_errors():
            save_credentials(path, Credentials(url, checked_token(secret), refresh))
    except OSError as error:
        title = "The sign-in cannot be stored"
        raise CliError.local(ExitCode.USAGE, title, f"{path}: {error.strerror or error}") from error
    if invocation.as_json:
        write_json({"api_url": url, "credentials": str(path)})
    else:
        write_line(f"signed in to {url}; stored in {path}")


def _api_url(given: str | None) -> str:
    if given is not None:
        return given
    stored = stored_sign_in()
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


_NAMES = ("username", "cognito:username", "preferred_username", "email")


def whoami(*, session: SessionOptions) -> None:
    """Show who you are to the API: the name, the owner of your jobs, your teams with your role in
    each, and when the token expires. A machine has no jobs of its own.

    The token is renewed where it can be. Exit code 5 where it has expired.
    """
    # For no team: who is not in the one that is set is to learn that here.
    api = ApiClient(*sign_in_of(session))
    session.ctx.call_on_close(api.close)
    claims = _claims(api.run(api.session.token()))
    expires_at = datetime.fromtimestamp(int(claims.get("exp", 0)), UTC)
    expired = expires_at <= datetime.now(UTC)
    caller = {} if expired else api.get("/deployment").get("caller", {})
    is_machine = caller.get("kind") == "machine"
    told = {
        "api_url": api.api_url,
        "name": caller.get("name")
        or next((claims[name] for name in _NAMES if name in claims), None),
        "owner": f"user/{claims['sub']}" if "sub" in claims and not is_machine else None,
        "teams": caller.get("teams", {}),
        "is_operator": caller.get("is_operator", False),
        "expires_at": utc_text(expires_at),
        "expired": expired,
    }
    write_answer(told, session.is_json)
    if expired:
        raise typer.Exit(ExitCode.NOT_ALLOWED)


def _claims(token: str) -> dict[str, Any]:
    """The claims of a token; raises CliError for one without any."""
    try:
        return claims_of(token)
    except ValueError as error:
        detail = "it has neither name nor owner; `carillon login` gets another"
        title = "The token is not a JSON web token"
        raise CliError.local(ExitCode.NOT_ALLOWED, title, detail) from error
