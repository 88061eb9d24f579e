"""A task module that says when it is called."""

import time
from typing import Any

from carillon.tasks import TaskContext, task


@task
def instant(payload: Any, context: TaskContext) -> float:
    """By a clock that all processes share."""
    return time.monotonic()
