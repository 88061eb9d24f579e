"""Tokens of machines, which sign in by a client's id and secret (the client credentials grant)."""

import hashlib
import json
from base64 import b64encode
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

from carillon.client.clock import Clock
from carillon.client.errors import NotAllowed, Unavailable, error_of, unexpected, unreachable
from carillon.client.sign_in import Machine, checked_token, checked_url, write_private
from carillon.client.steps import Answer, Lost, Request, Steps, Wait
from carillon.client.web_tokens import expiry_of
from carillon.errors import InvalidFieldError

RENEW_BEFORE = timedelta(minutes=1)
_LOOK_SECONDS = 0.05
_LOOKS = 200
"""At a token that another task or thread asks for: one that was cancelled may never get it."""


class MachineToken:
    """The token of a machine for one API, kept in memory and in a file (mode 0600) until a minute
    before it ends: an issuer may charge for each, and a script calls the command many times. So
    does a program that makes many requests at once, of which one asks for the token of all.

    The API tells where tokens come from, or names the issuer whose description does. A file that
    cannot be written, or has no token, is done without.
    """

    def __init__(self, api_url: str, machine: Machine, folder: Path) -> None:
        self._api_url = checked_url(api_url, "api_url")
        self._machine = machine
        self._folder = folder
        self._token = ""
        self._is_asked = False

    def current(self, clock: Clock) -> Steps[str]:
        if not self._is_good(clock, self._token):
            self._token = self._kept()
        looks = 0
        while self._is_asked and looks < _LOOKS and not self._is_good(clock, self._token):
            looks += 1
            yield Wait(_LOOK_SECONDS)
        if not self._is_good(clock, self._token):
            self._is_asked = True
            try:
                self._token = yield from self._asked()
            finally:
                self._is_asked = False
            self._keep()
        return self._token

    def _is_good(self, clock: Clock, token: str) -> bool:
        ends_at = expiry_of(token)
        return ends_at is not None and clock.now() < ends_at - RENEW_BEFORE

    def _kept(self) -> str:
        with suppress(OSError, ValueError, InvalidFieldError):
            return checked_token(self._path().read_text())
        return ""

    def _keep(self) -> None:
        with suppress(OSError):
            write_private(self._path(), self._token)

    def _path(self) -> Path:
        """Another secret, as another scope, is another file: none stands for what it is not."""
        machine = self._machine
        parts = (self._api_url, machine.client_id, machine.secret, machine.scope)
        digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()
        return self._folder / f"machine-{digest[:32]}"

    def _asked(self) -> Steps[str]:
        url = yield from self._token_url()
        machine = self._machine
        # As RFC 6749, 2.3.1 has it: both are encoded before they are joined.
        pair = f"{quote(machine.client_id, safe='')}:{quote(machine.secret, safe='')}"
        scope = {"scope": machine.scope} if machine.scope else {}
        request = Request(
            "POST",
            url,
            form={"grant_type": "client_credentials", **scope},
            headers={"Authorization": f"Basic {b64encode(pair.encode()).decode()}"},
        )
        got: Answer | Lost = yield request
        if isinstance(got, Lost):
            raise unreachable(url, got.reason)
        told = _object(got.content)
        if got.status == 200 and "access_token" in told:
            return checked_token(str(told["access_token"]))
        raise _refusal(url, got, told)

    def _token_url(self) -> Steps[str]:
        told = yield from _read(f"{self._api_url}/.well-known/carillon")
        if not told.get("token_url"):
            issuer = checked_url(str(told.get("issuer", "")), "issuer")
            told = yield from _read(f"{issuer}/.well-known/openid-configuration")
            told["token_url"] = told.get("token_endpoint")
        return checked_url(str(told["token_url"]), "token_url")


def _read(url: str) -> Steps[dict[str, Any]]:
    got: Answer | Lost = yield Request("GET", url)
    if isinstance(got, Lost):
        raise unreachable(url, got.reason)
    if got.status != 200:
        raise error_of(got.status, got.content, got.reason)
    if not (told := _object(got.content)):
        raise unexpected(url)
    return told


def _refusal(url: str, got: Answer, told: Mapping[str, Any]) -> NotAllowed | Unavailable:
    """`error` is a word of RFC 6749, 5.2, such as invalid_client."""
    said = told.get("error_description") or told.get("error") or got.reason
    problem = {"type": "about:blank", "title": "The machine is not signed in"}
    if got.status == 429 or got.status >= 500:
        return Unavailable({**problem, "detail": f"{url} answers {got.status}: {said}"})
    advice = "check CARILLON_CLIENT_ID and CARILLON_CLIENT_SECRET"
    if told.get("error") in ("invalid_scope", "invalid_grant"):
        advice = "the client has no such scope"
    return NotAllowed({**problem, "detail": f"{url} answers {said}: {advice}"})


def _object(content: bytes) -> dict[str, Any]:
    try:
        value = json.loads(content)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
