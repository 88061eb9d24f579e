"""The canary's task: its mere completion is what counts."""

from typing import Any

from carillon.tasks import TaskContext, task


@task(name="carillon.canary")  # CANARY_TASK, whose module would be a second's import for a child
def canary(payload: Any, context: TaskContext) -> None:
    """Nothing."""
