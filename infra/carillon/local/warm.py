"""Start the workers before the first job needs them.

The emulator starts one worker per invocation that finds no idle one, and a worker's first second
goes into imports. On AWS the same happens with the first runs after a deployment.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from carillon.local.api_client import Api
from carillon.local.deployment import LANES, Deployment


class WarmingFailed(Exception):
    """A function did not answer; the message holds what it said."""


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
