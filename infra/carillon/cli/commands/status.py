"""`carillon status`: idle or processing; for operators, each segment's lag."""

import typer

from carillon.cli.option_groups import with_option_groups
from carillon.cli.output import write_json, write_line, write_record, write_table
from carillon.cli.session import SessionOptions, connect, invocation_of


@with_option_groups
def status(ctx: typer.Context, *, session: SessionOptions) -> None:
    """Show whether your jobs are idle or being processed; operators see every segment too."""
    answer = connect(ctx, session).get("/status")
    if invocation_of(ctx).as_json:
        write_json(answer)
        return
    segments = answer.get("segments")
    write_record({name: value for name, value in answer.items() if name != "segments"})
    rows = [entry for entry in segments or [] if isinstance(entry, dict)]
    if rows:
        columns = list(dict.fromkeys(name for row in rows for name in row))
        write_line("")
        write_table(columns, [[row.get(column) for column in columns] for row in rows])
