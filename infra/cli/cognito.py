"""A token from a Cognito user pool for a user name and a password: one plain HTTPS request."""

import re
from urllib.parse import urlsplit

from infra.cli.client import Json, checked_url, new_http_client
from infra.cli.exits import CliError, ExitCode

_HOST = re.compile(r"execute-api\.([a-z0-9-]+)\.amazonaws\.com(\.cn)?$")
_TARGET = "AWSCognitoIdentityProviderService.InitiateAuth"
_NOT_ALLOWED = frozenset(
    {
        "NotAuthorizedException",
        "UserNotFoundException",
        "UserNotConfirmedException",
        "PasswordResetRequiredException",
    }
)

_BUSY = frozenset({"TooManyRequestsException", "LimitExceededException"})


def endpoint_of(api_url: str, region: str | None, default_region: str | None) -> str:
    """Cognito's address: in `region`, or where the API's own address is, or in the default."""
    match = _HOST.search(urlsplit(api_url).hostname or "")
    found = region or (match[1] if match else default_region)
    if found is None:
        message = "is needed: the API's address does not tell the region of its user pool"
        raise CliError.bad_field("region", message)
    china = ".cn" if found.startswith("cn-") else ""
    return f"https://cognito-idp.{found}.amazonaws.com{china}"


def sign_in(endpoint: str, client_id: str, username: str, password: str) -> str:
    """The user's access token, good for an hour unless the pool says otherwise.

    Raises CliError: not allowed, unreachable, or what else Cognito answers.
    """
    import httpx

    url = checked_url(endpoint, "cognito_endpoint") + "/"
    body = {
        "AuthFlow": "USER_PASSWORD_AUTH",
        "ClientId": client_id,
        "AuthParameters": {"USERNAME": username, "PASSWORD": password},
    }
    headers = {"X-Amz-Target": _TARGET, "Content-Type": "application/x-amz-json-1.1"}
    with new_http_client(url) as http:
        try:
            response = http.post(url, json=body, headers=headers)
        except (httpx.TransportError, httpx.InvalidURL) as error:
            detail = f"{endpoint}: {error or type(error).__name__}"
            title = "Cognito cannot be reached"
            raise CliError.local(ExitCode.UNREACHABLE, title, detail) from error
    try:
        answer = response.json()
    except ValueError:
        answer = None
    return _token_of(answer if isinstance(answer, dict) else {}, response.status_code)


def _token_of(answer: Json, status: int) -> str:
    result = answer.get("AuthenticationResult")
    if isinstance(result, dict) and isinstance(result.get("AccessToken"), str):
        return str(result["AccessToken"])
    challenge = answer.get("ChallengeName")
    if challenge is not None:
        detail = f"the user pool asks for {challenge} first: this command cannot answer that"
        raise CliError.local(ExitCode.NOT_ALLOWED, "Not signed in", detail)
    kind = str(answer.get("__type", "")).rpartition("#")[2]
    message = str(answer.get("message") or answer.get("Message") or kind or f"status {status}")
    if kind in _NOT_ALLOWED:
        raise CliError.local(ExitCode.NOT_ALLOWED, "Not signed in", message)
    code = ExitCode.UNREACHABLE if kind in _BUSY or status in (429, 503) else ExitCode.UNEXPECTED
    if kind in ("InvalidParameterException", "ResourceNotFoundException"):
        code = ExitCode.BAD_INPUT
    raise CliError.local(code, "Cognito refused the sign-in", message)
