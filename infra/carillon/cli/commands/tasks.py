"""`carillon tasks`: what a job's target can be called by."""

from typing import Any

from carillon.cli.output import write_items
from carillon.cli.session import SessionOptions


def tasks(*, session: SessionOptions) -> None:
    """List the names of the tasks that the deployment has registered; with --json, an array."""
    found = session.connect().get("/deployment").get("tasks", [])
    write_items([_item(each) for each in found], ("name",), session.is_json)


def _item(task: Any) -> dict[str, Any]:
    return task if isinstance(task, dict) else {"name": task}
