"""Requests as an API Gateway HTTP API hands them on (payload format 2.0), and their answers."""

import base64
import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlencode

from aws_lambda_powertools.utilities.typing import LambdaContext

from carillon.api.app import Api

Json = dict[str, Any]
"""An object of JSON."""

OWNER = "user/owner-1"
STRANGER = "user/owner-2"
CONTEXT = cast(LambdaContext, None)
USUAL_NAMES = ("nightly report", "job")
"""Of the jobs of tests to which names do not matter."""
_ABSENT = object()


def event(
    method: str,
    path: str,
    *,
    body: str | None = None,
    query: dict[str, str] | None = None,
    headers: dict[str, str] | None = None,
    claims: Json | None = None,
) -> Json:
    """An event; without `claims` it has no authorizer."""
    lowered = {name.lower(): value for name, value in (headers or {}).items()}
    made: Json = {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": path,
        "rawQueryString": urlencode(query or {}),
        "headers": lowered,
        "requestContext": {
            "accountId": "123456789012",
            "http": {
                "method": method,
                "path": path,
                "protocol": "HTTP/1.1",
                "sourceIp": "192.0.2.1",
                "userAgent": lowered.get("user-agent", "test"),
            },
            "requestId": "request-1",
            "stage": "$default",
            "timeEpoch": 0,
        },
        "isBase64Encoded": False,
    }
    if query:
        made["queryStringParameters"] = query
    if body is not None:
        made["body"] = body
    if claims is not None:
        made["requestContext"]["authorizer"] = {"jwt": {"claims": claims, "scopes": None}}
    return made


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)

    @property
    def fields(self) -> list[str]:
        """The fields that a problem names."""
        return [error["field"] for error in self.json["errors"]]


class Client:
    """One person's requests to an Api, all of them for a `team` if one is named."""

    def __init__(self, api: Api, owner: str = OWNER, groups: Any = None, *, team: str = "") -> None:
        self._api = api
        self._headers = {"Carillon-Team": team} if team else {}
        claims = {} if groups is None else {"cognito:groups": groups}
        self._claims: Json = {"sub": owner.removeprefix("user/"), **claims}
        self._numbers = itertools.count(2)
        self._names: dict[str | None, str] = {}

    def send(
        self,
        method: str,
        path: str,
        body: Any = _ABSENT,
        *,
        headers: dict[str, str] | None = None,
        query: dict[str, str] | None = None,
    ) -> Answer:
        """Send `body` as JSON, or as it stands if it is text or bytes."""
        sent = None if body is _ABSENT else body
        if body is not _ABSENT and not isinstance(body, str | bytes):
            sent = json.dumps(body)
        headers = self._headers | (headers or {})
        made = event(method, path, query=query, headers=headers, claims=self._claims)
        if isinstance(sent, bytes):
            made |= {"body": base64.b64encode(sent).decode(), "isBase64Encoded": True}
        elif sent is not None:
            made["body"] = sent
        return answer_of(self._api, made)

    def get(self, path: str, **query: str) -> Answer:
        return self.send("GET", path, query=query or None)

    def post(self, path: str, body: Any = _ABSENT, *, key: str | None = None) -> Answer:
        headers = None if key is None else {"Idempotency-Key": key}
        if path == "/jobs" and isinstance(body, dict) and body.get("name") in USUAL_NAMES:
            body = {**body, "name": self._free_name(body["name"], key and key.strip('"'))}
        return self.send("POST", path, body, headers=headers)

    def _free_name(self, name: str, key: str | None) -> str:
        """The name for the first job, with a number for others; under a key always the same: names
        are taken once."""
        if key is None or key not in self._names:
            self._names[key] = f"{name} {next(self._numbers)}" if self._names else name
        return self._names[key]

    def patch(self, path: str, body: Any, revision: int | str | None) -> Answer:
        tag = f'"{revision}"' if isinstance(revision, int) else revision
        return self.send("PATCH", path, body, headers=None if tag is None else {"If-Match": tag})

    def put(self, path: str, body: Any, **headers: str) -> Answer:
        """`headers` by their names in lower case, `_` for `-`."""
        return self.send("PUT", path, body, headers=_named(headers))

    def delete(self, path: str, **headers: str) -> Answer:
        """`headers` as for `put`."""
        return self.send("DELETE", path, headers=_named(headers))


def _named(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): text for name, text in headers.items()}


def answer_of(api: Api, made: Json) -> Answer:
    answer = api.answer(made, CONTEXT)
    headers = {str(name).lower(): str(value) for name, value in answer["headers"].items()}
    return Answer(answer["statusCode"], headers, answer["body"] or "")
