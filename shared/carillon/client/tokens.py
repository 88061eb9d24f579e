"""Bearer tokens, and those that are renewed a minute before they end."""

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from carillon.client import settings
from carillon.client.clock import Clock
from carillon.client.errors import NotAllowed, unreachable
from carillon.client.machines import RENEW_BEFORE, MachineToken
from carillon.client.sign_in import (
    Credentials,
    Machine,
    Refresh,
    checked_token,
    checked_url,
    load_credentials,
    save_credentials,
)
from carillon.client.steps import Answer, Lost, Request, Steps
from carillon.client.web_tokens import expiry_of
from carillon.errors import ConfigurationError

Token = str | Callable[[], str] | Credentials | Machine
"""A token; a function that gives one, which is asked again a minute before it ends; a stored
sign-in, which is renewed then where Cognito gave the means; or a machine, which signs in anew."""

_SERVICE = "AWSCognitoIdentityProviderService"
BUSY = frozenset({"TooManyRequestsException", "LimitExceededException"})
"""The types of Cognito's errors that end by themselves, whose status is 400."""


class Tokens(Protocol):
    """A source of tokens."""

    def current(self, clock: Clock) -> Steps[str]:
        """A token that is good for a moment at least."""
        ...


class GivenToken:
    """One token, which nobody renews."""

    def __init__(self, token: str) -> None:
        self._token = checked_token(token)

    def current(self, clock: Clock) -> Steps[str]:
        return self._token
        yield


class AskedToken:
    """A token from a function, which is asked again a minute before it ends; before each request
    where it does not say when that is."""

    def __init__(self, ask: Callable[[], str]) -> None:
        self._ask = ask
        self._token = ""

    def current(self, clock: Clock) -> Steps[str]:
        ends_at = expiry_of(self._token)
        if ends_at is None or clock.now() >= ends_at - RENEW_BEFORE:
            self._token = checked_token(self._ask())
        return self._token
        yield


class StoredToken:
    """The token of a stored sign-in, which is renewed where Cognito gave the means, and saved: a
    file that cannot be written is done without."""

    def __init__(self, stored: Credentials, path: Path) -> None:
        self._stored = stored
        self._path = path

    def current(self, clock: Clock) -> Steps[str]:
        ends_at = expiry_of(self._stored.token)
        refresh = self._stored.refresh
        is_old = ends_at is not None and clock.now() >= ends_at - RENEW_BEFORE
        if refresh is not None and is_old:
            result = yield from _renewed(refresh)
            # With rotation each renewal gives the means for the next one.
            again = replace(refresh, token=str(result.get("RefreshToken") or refresh.token))
            token = checked_token(str(result.get("AccessToken", "")))
            before, self._stored = self._stored, replace(self._stored, token=token, refresh=again)
            # Where it cannot be kept, it is good for this process.
            with suppress(OSError, ConfigurationError):
                self._save_over(before)
        return checked_token(self._stored.token)

    def _save_over(self, before: Credentials) -> None:
        """Save it where the file still has the same sign-in: a process may outlast a logout, or a
        login to another deployment, for which the next command was meant."""
        kept = load_credentials(self._path)
        if kept is not None and (kept.api_url, kept.refresh) == (before.api_url, before.refresh):
            save_credentials(self._path, self._stored)


def tokens_of(token: Token, api_url: str) -> Tokens:
    """The source that a token for this API is; raises InvalidFieldError for a text that is none."""
    match token:
        case str():
            return GivenToken(token)
        case Credentials():
            return StoredToken(token, settings.credentials_path())
        case Machine():
            return MachineToken(api_url, token, settings.credentials_path().parent)
    return AskedToken(token)


def pool_request(endpoint: str, client_id: str, action: str, members: dict[str, Any]) -> Request:
    """A request of Cognito's for a client of a user pool, which needs no signature."""
    return Request(
        "POST",
        checked_url(endpoint, "cognito_endpoint") + "/",
        body={**members, "ClientId": client_id},
        headers={
            "X-Amz-Target": f"{_SERVICE}.{action}",
            "Content-Type": "application/x-amz-json-1.1",
        },
    )


def _renewed(refresh: Refresh) -> Steps[dict[str, Any]]:
    """Cognito's answer to the means of renewal."""
    members = {
        "AuthFlow": "REFRESH_TOKEN_AUTH",
        "AuthParameters": {"REFRESH_TOKEN": refresh.token},
    }
    request = pool_request(refresh.endpoint, refresh.client_id, "InitiateAuth", members)
    got: Answer | Lost = yield request
    if isinstance(got, Lost):
        raise unreachable(refresh.endpoint, got.reason)
    try:
        answer = json.loads(got.content)
        result = answer.get("AuthenticationResult")
        kind = str(answer.get("__type", "")).rpartition("#")[2]
    except (ValueError, AttributeError):
        result, kind = None, ""
    if got.status == 429 or got.status >= 500 or kind in BUSY:
        raise unreachable(refresh.endpoint, kind or got.reason)
    if got.status != 200 or not isinstance(result, dict):
        title, detail = "The sign-in has ended", "run `carillon login`"
        raise NotAllowed({"type": "about:blank", "title": title, "detail": detail})
    return result
