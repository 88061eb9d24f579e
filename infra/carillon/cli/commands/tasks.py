"""`carillon tasks`: what a job's target can be called by."""

from carillon.cli.output import write_error, write_items
from carillon.cli.session import SessionOptions


def tasks(*, session: SessionOptions) -> None:
    """List the names of the tasks that the deployment has registered; with --json, an array."""
    found = session.connect().get("/deployment").get("tasks", [])
    if not found:
        write_error("Note: none is known; a deployment may leave their names to its executors")
    write_items([{"name": name} for name in found], ("name",), session.is_json)
