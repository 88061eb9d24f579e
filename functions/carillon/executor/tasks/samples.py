"""Sample tasks: one of each way to end."""

import os
import time
from typing import Any, NoReturn

from carillon.tasks import TaskContext, task

_POLL_SECONDS = 0.05


@task
def echo(payload: Any, context: TaskContext) -> Any:
    """Return the payload."""
    context.logger.debug("echo")
    return payload


@task
def fail(payload: Any, context: TaskContext) -> NoReturn:
    """Raise RuntimeError with the payload's `message`."""
    message = payload.get("message") if isinstance(payload, dict) else payload
    raise RuntimeError(f"attempt {context.attempt} failed" if message is None else str(message))


@task
def sleep(payload: Any, context: TaskContext) -> dict[str, Any]:
    """Sleep for `seconds`, or as long as the limit allows; `complete` shows which."""
    wanted = float(payload["seconds"] if isinstance(payload, dict) else payload)
    began = context.remaining()
    slept = 0.0
    while slept < wanted and not context.expired:
        time.sleep(min(_POLL_SECONDS, wanted - slept))
        slept = began - context.remaining()
    return {"slept_seconds": round(slept, 3), "complete": slept >= wanted}


@task
def fail_once(payload: Any, context: TaskContext) -> Any:
    """Raise RuntimeError at the first attempt, return the payload at later ones."""
    if context.attempt == 1:
        raise RuntimeError("attempt 1 failed")
    return payload


@task
def overrun(payload: Any, context: TaskContext) -> NoReturn:
    """Sleep for `seconds` whatever the limit: it is there to be killed at it."""
    time.sleep(float(payload["seconds"]))
    raise RuntimeError("nobody stopped this task at its limit")


@task
def die(payload: Any, context: TaskContext) -> NoReturn:
    """End the process it runs in, at once, with the payload's `code`, as a crash would."""
    context.logger.warning("this process ends")
    os._exit(int(payload.get("code", 1)) if isinstance(payload, dict) else 1)
