"""`carillon upcoming`: what fires next, of one job or of all."""

from typing import Annotated

import typer

from carillon.cli.client import job_path
from carillon.cli.option_groups import with_option_groups
from carillon.cli.output import effective_at, write_error, write_json, write_table
from carillon.cli.session import SessionOptions, connect, invocation_of

_COLUMNS = ("fire_at", "local", "effective_at", "name", "job_id")


@with_option_groups
def upcoming(
    ctx: typer.Context,
    job_id: Annotated[
        str | None, typer.Argument(metavar="JOB_ID", show_default="all your jobs")
    ] = None,
    *,
    count: Annotated[int, typer.Option(help="How many occurrences.", min=1)] = 10,
    session: SessionOptions,
) -> None:
    """Show the next occurrences, of one job or across all of yours; with --json, an array."""
    api = connect(ctx, session)
    path = "/upcoming" if job_id is None else job_path(job_id, "/upcoming")
    answer = api.get(path, {"count": count})
    found = answer.get("items", [])
    if answer.get("complete") is False:
        write_error(
            "Note: you have more jobs than the API looks at; some occurrences may be left out"
        )
    if invocation_of(ctx).as_json:
        write_json(found)
    else:
        rows = [item | {"effective_at": effective_at(item)} for item in found]
        # Few jobs have a calendar that moves occurrences.
        columns = (*_COLUMNS, "note") if any(row.get("note") for row in rows) else _COLUMNS
        write_table(columns, [[row.get(column) for column in columns] for row in rows])
