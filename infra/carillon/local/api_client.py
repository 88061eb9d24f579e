"""Calls of the local stack's API, and the first ones that warm its functions."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from carillon.cli.client import ApiClient
from carillon.local.deployment import LANES, Deployment, Tokens

if TYPE_CHECKING:
    from carillon.client.drivers import Transport

#: A token is exchanged this long before it ends, so that copies of it are good for a while, too.
RENEW_BEFORE = timedelta(minutes=10)


class Api(ApiClient):
    """The API at one base URL, with a token that is exchanged before it ends."""

    def __init__(
        self,
        base_url: str,
        sign_in: Callable[[], Tokens],
        transport: Transport | None = None,
    ) -> None:
        super().__init__(base_url, lambda: self.token, transport)
        self._sign_in = sign_in
        self._tokens: Tokens | None = None

    @property
    def token(self) -> str:
        """A bearer token that is good for another ten minutes at least."""
        now = datetime.now(UTC)
        if self._tokens is None or now > self._tokens.expires_at - RENEW_BEFORE:
            self._tokens = self._sign_in()
        return self._tokens.access_token


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
    invoke_at_once(deployment, deployment.outputs["TickFunction"], {}, 1)
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
