"""Calls of the local stack's API, and the first ones that warm its functions."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx

from carillon.cli.client import MOST_WAITS, requested_wait_seconds
from carillon.local.deployment import LANES, Deployment, Tokens

#: A token is exchanged this long before it ends, so that copies of it are good for a while, too.
RENEW_BEFORE = timedelta(minutes=10)

Json = dict[str, Any]


class CallFailed(Exception):
    """The API refused a call or could not be reached; the message has its own words.

    `status` is that of HTTP, 0 without an answer.
    """

    def __init__(self, call: str, problem: str, status: int = 0) -> None:
        super().__init__(f"{call}: {problem}")
        self.status = status


class Patient(httpx.BaseTransport):
    """Sends again what comes too soon (429), as often as the command does."""

    def __init__(
        self, inner: httpx.BaseTransport, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._inner = inner
        self._sleep = sleep

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        for _ in range(MOST_WAITS):
            answer = self._inner.handle_request(request)
            if answer.status_code != httpx.codes.TOO_MANY_REQUESTS:
                return answer
            answer.close()
            self._sleep(requested_wait_seconds(answer))
        return self._inner.handle_request(request)

    def close(self) -> None:
        self._inner.close()


class Api:
    """The API at one base URL, with a token that is exchanged before it ends.

    Raises:
        CallFailed: from every call, for any answer but a success.
    """

    def __init__(
        self,
        base_url: str,
        sign_in: Callable[[], Tokens],
        *,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.base_url = base_url
        self._sign_in = sign_in
        self._tokens: Tokens | None = None
        # Not through a proxy, whatever the environment has.
        inner = transport or httpx.HTTPTransport(trust_env=False)
        self._http = httpx.Client(timeout=30.0, trust_env=False, transport=Patient(inner))

    def __enter__(self) -> Api:
        return self

    def __exit__(self, *exception: object) -> None:
        self._http.close()

    @property
    def token(self) -> str:
        """A bearer token that is good for another ten minutes at least."""
        now = datetime.now(UTC)
        if self._tokens is None or now > self._tokens.expires_at - RENEW_BEFORE:
            self._tokens = self._sign_in()
        return self._tokens.access_token

    def get(self, path: str, **query: str | int) -> Json:
        """GET a JSON object."""
        return self._call("GET", path, query=query)

    def post(self, path: str, body: Json, *, idempotency_key: str = "") -> Json:
        """POST a JSON object; the same key with the same body does nothing twice."""
        headers = {"Idempotency-Key": idempotency_key} if idempotency_key else {}
        return self._call("POST", path, body=body, headers=headers)

    def list_all(self, path: str) -> list[Json]:
        """The items of every page of a list."""
        items: list[Json] = []
        query: dict[str, str | int] = {}
        while True:
            page = self.get(path, **query)
            items += page["items"]
            cursor = page.get("next_cursor")
            if not cursor:
                return items
            query = {"cursor": str(cursor)}

    def _call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str | int] | None = None,
        body: Json | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Json:
        try:
            answer = self._http.request(
                method,
                f"{self.base_url}{path}",
                params=query,
                json=body,
                headers={**(headers or {}), "Authorization": f"Bearer {self.token}"},
            )
        except httpx.HTTPError as error:
            raise CallFailed(f"{method} {path}", repr(error)) from error
        if not answer.is_success:
            problem = f"{answer.status_code} {answer.text[:2000]}"
            raise CallFailed(f"{method} {path}", problem, answer.status_code)
        result: Json = answer.json()
        return result


class WarmingFailed(Exception):
    """A function did not answer; the message has its text."""


def warm(deployment: Deployment, api: Api, lanes: Mapping[str, Mapping[str, int]] = LANES) -> None:
    """Start a worker per slot of every lane, the tick's, and the API's.

    An executor gets an event without records, which it answers with an empty report; the tick
    gets a real tick, which is always harmless; the API is asked for the status.

    Raises:
        WarmingFailed: a function answered with an error.
    """
    for lane, options in lanes.items():
        function = deployment.outputs[f"ExecutorFunction{lane.capitalize()}"]
        invoke_at_once(deployment, function, {"Records": []}, options["max_concurrency"])
    invoke_at_once(deployment, deployment.outputs["TickFunction"], {"worker": 0}, 1)
    api.get("/status")


def invoke_at_once(
    deployment: Deployment, function_name: str, event: Mapping[str, object], count: int
) -> None:
    """Invoke a function `count` times, all at the same time, and wait for the answers."""
    # All clients are ready before the first call: calls that follow one another share a worker.
    together = threading.Barrier(count)
    clients = [deployment.client("lambda") for _ in range(count)]

    def invoke(index: int) -> None:
        together.wait()
        answer = clients[index].invoke(
            FunctionName=function_name, Payload=json.dumps(event).encode()
        )
        if "FunctionError" in answer:
            said = answer["Payload"].read().decode(errors="replace")
            raise WarmingFailed(f"{function_name}: {said[:2000]}")

    with ThreadPoolExecutor(max_workers=count) as pool:
        list(pool.map(invoke, range(count)))
