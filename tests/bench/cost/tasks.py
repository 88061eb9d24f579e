"""A task of the profile with failures."""

from typing import Any

from carillon.tasks import TaskContext, task


@task
def fail_twice(payload: Any, context: TaskContext) -> Any:
    """Raise at the first two attempts."""
    if context.attempt <= 2:
        raise RuntimeError(f"attempt {context.attempt} failed")
    return payload
