"""`carillon changes`: who changed what."""

import json
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from carillon.cli.options import SpanOptions
from carillon.cli.output import write_items
from carillon.cli.session import OptionalJobArgument, SessionOptions

_COLUMNS = ("at", "by", "via", "subject", "name", "action", "revision", "changed", "note")
_LEAST_NEEDED = ("via", "subject", "revision", "note")


def changes(
    job: OptionalJobArgument = None,
    *,
    by: Annotated[
        str | None, typer.Option(help="Only of the one with this id or name.", metavar="WHO")
    ] = None,
    action: Annotated[
        str | None, typer.Option(help="Only these, as pause or delete.", metavar="ACTION")
    ] = None,
    span: SpanOptions,
    limit: Annotated[int, typer.Option(help="The most changes to show, the newest.", min=1)] = 20,
    session: SessionOptions,
) -> None:
    """Show who changed a job, or any of your jobs, calendars and notifications; newest first.

    --from and --to bound the times of the changes. With --json, an array, with each value before
    and after.
    """
    words = {name: text for name, text in (("by", by), ("action", action)) if text}
    api = session.connect()
    path = "/changes" if job is None else api.job_path(job, "/changes")
    found = list(api.items(path, limit, span.span | words))
    columns = (
        _COLUMNS if job is None else tuple(c for c in _COLUMNS if c not in ("subject", "name"))
    )
    write_items(found, columns, session.is_json, _cell, _LEAST_NEEDED)


def _cell(change: Mapping[str, Any], column: str) -> Any:
    """The value of a column: who is named by what people know, what differs by its values."""
    if column == "by":
        return change["by"]["name"] or change["by"]["id"]
    if column == "changed":
        return ", ".join(map(_difference, change["changed"]))
    return change[column]


def _difference(member: Mapping[str, Any]) -> str:
    values = (json.dumps(member[each], ensure_ascii=False) for each in ("before", "after"))
    return f"{member['path']}: {' -> '.join(values)}"
