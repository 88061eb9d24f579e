"""Tasks that harm the executor itself, or never look up: a package of tasks as users have them."""

import os
import signal
import time
from pathlib import Path
from typing import Any

from carillon.tasks import TaskContext, task

_DYING_SECONDS = 30.0


@task
def kill_executor(payload: Any, context: TaskContext) -> str | None:
    """Kill the executor with all its other runs, as the kernel does when memory runs out.

    With `{"attempts": n}` only the first n attempts do so; the others return.
    """
    attempts = payload.get("attempts") if isinstance(payload, dict) else None
    if attempts is not None and context.attempt > int(attempts):
        return f"survived at attempt {context.attempt}"
    parent = os.getppid()
    if parent <= 1:
        raise RuntimeError("there is no executor to kill")
    os.kill(parent, signal.SIGKILL)
    time.sleep(_DYING_SECONDS)  # this process ends with its parent
    raise RuntimeError("the executor is still there")


@task
def beat(payload: Any, context: TaskContext) -> None:
    """Write to the file `path` ten times a second for `seconds`, whatever the limit."""
    until = time.monotonic() + float(payload["seconds"])
    with Path(payload["path"]).open("a") as file:
        while time.monotonic() < until:
            file.write(f"{time.time()}\n")
            file.flush()
            time.sleep(0.1)
