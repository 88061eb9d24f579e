"""`carillon runs` and `carillon run`."""

import sys
import time
from collections.abc import Callable
from typing import Annotated, Any

import typer

from carillon.cli.client import ApiClient, run_path
from carillon.cli.options import Commands, SpanOptions
from carillon.cli.output import (
    COLUMNS,
    printable,
    run_cell,
    write_items,
    write_json,
    write_line,
    write_run,
)
from carillon.cli.polling import looks
from carillon.cli.session import JobArgument, SessionOptions
from carillon.client.resources.following import Follower


def runs(
    job: JobArgument,
    *,
    span: SpanOptions,
    limit: Annotated[int, typer.Option(help="The most runs to show, the newest.", min=1)] = 20,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on with each change until Ctrl-C.")
    ] = False,
    interval: Annotated[
        float, typer.Option(help="Seconds between two requests with --follow.", min=0.1)
    ] = 1.0,
    session: SessionOptions,
) -> None:
    """Show a job's runs, newest first; with --json, an array.

    With --follow, oldest first, a line for each new run or changed status;
    with --json, JSON Lines.
    """
    query = span.span
    if follow and query:
        raise typer.BadParameter("--follow shows what comes: no --from or --to")
    api = session.connect()
    path = api.job_path(job, "/runs")
    as_json = session.is_json
    if follow:
        write_changes(api, Follower(api.session, path, limit), interval, as_json)
        return
    write_items(list(api.items(path, limit, query)), COLUMNS, as_json, run_cell)


def write_changes(
    api: ApiClient,
    follower: Follower,
    interval_seconds: float,
    as_json: bool,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Print changes until Ctrl-C; an API that is away for a moment does not end it."""
    try:
        for changes in looks(lambda: api.run(follower.changes()), interval_seconds, as_json, sleep):
            for run in changes:
                _write_change(run, as_json)
            sys.stdout.flush()
    except KeyboardInterrupt:
        return


def _write_change(run: Any, as_json: bool) -> None:
    if as_json:
        write_json(run, compact=True)
    else:
        write_line("  ".join(printable(run_cell(run, column)) for column in COLUMNS))


run = Commands(help="Show one run, or cancel it.", no_args_is_help=True)

RunIdArgument = Annotated[str, typer.Argument(metavar="RUN_ID", show_default=False)]


@run.command()
def show(run_id: RunIdArgument, *, session: SessionOptions) -> None:
    """Show one run, whole, with each of its attempts."""
    answer = session.connect().get(run_path(run_id))
    write_run(answer, session.is_json)


@run.command()
def cancel(run_id: RunIdArgument, *, session: SessionOptions) -> None:
    """Cancel a run that waits or is to be retried, or end the call of one that is running."""
    answer = session.connect().post(run_path(run_id, "/cancel"))
    write_run(answer, session.is_json)
