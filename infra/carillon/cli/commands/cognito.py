"""A token from a Cognito user pool for a user name and a password: plain HTTPS requests."""

import re
from collections.abc import Callable
from contextlib import closing

from carillon.cli.client import ApiClient, Json, checked_url, new_http_client
from carillon.cli.exits import CliError, ExitCode

_COGNITO = re.compile(r"https://cognito-idp\.[a-z0-9-]+\.amazonaws\.com(\.cn)?(?=/)")
_SERVICE = "AWSCognitoIdentityProviderService"
_NEW_PASSWORD = "NEW_PASSWORD_REQUIRED"
_NOT_ALLOWED = frozenset(
    {
        "NotAuthorizedException",
        "UserNotFoundException",
        "UserNotConfirmedException",
        "PasswordResetRequiredException",
    }
)

_BUSY = frozenset({"TooManyRequestsException", "LimitExceededException"})


def pool_of(api_url: str) -> tuple[str, str]:
    """Cognito's address and the client that users of a deployment sign in to, as its API tells.

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
) -> str:
    """The user's access token, good for an hour unless the pool says otherwise.

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
    return _token_of(answer)


class _Pool:
    """The app client of a user pool at Cognito's address."""

    def __init__(self, endpoint: str, client_id: str) -> None:
        self._url = checked_url(endpoint, "cognito_endpoint") + "/"
        self._client_id = client_id

    def ask(self, action: str, members: Json) -> Json:
        """The answer to one unsigned request; raises CliError where that is an error."""
        import httpx

        headers = {
            "X-Amz-Target": f"{_SERVICE}.{action}",
            "Content-Type": "application/x-amz-json-1.1",
        }
        body = {**members, "ClientId": self._client_id}
        with new_http_client(self._url) as http:
            try:
                response = http.post(self._url, json=body, headers=headers)
            except (httpx.TransportError, httpx.InvalidURL) as error:
                detail = f"{self._url}: {error or type(error).__name__}"
                title = "Cognito cannot be reached"
                raise CliError.local(ExitCode.UNREACHABLE, title, detail) from error
        try:
            answer = response.json()
        except ValueError:
            answer = None
        answer = answer if isinstance(answer, dict) else {}
        if response.status_code != 200:
            raise _refusal(answer, response.status_code)
        return answer


def _token_of(answer: Json) -> str:
    result = answer.get("AuthenticationResult")
    if isinstance(result, dict) and isinstance(result.get("AccessToken"), str):
        return str(result["AccessToken"])
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
    code = ExitCode.UNREACHABLE if kind in _BUSY or status in (429, 503) else ExitCode.UNEXPECTED
    if kind in ("InvalidParameterException", "ResourceNotFoundException"):
        code = ExitCode.BAD_INPUT
    return CliError.local(code, "Cognito refused the sign-in", message)
