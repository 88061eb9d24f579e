"""`carillon runs ...`: list, follow, show, cancel."""

import sys
import time
from collections.abc import Callable
from typing import Annotated

import typer

from carillon.cli.client import ApiClient, run_path
from carillon.cli.commands.runs.shown import COLUMNS, LEAST_NEEDED, run_cell, write_run
from carillon.cli.options import Commands, SpanOptions
from carillon.cli.output import StreamedTable, write_items, write_json
from carillon.cli.polling import looks
from carillon.cli.session import JobArgument, SessionOptions
from carillon.client.resources.following import Follower

runs = Commands(help="Runs of your jobs: list, show, cancel.", no_args_is_help=True)


@runs.command(name="list")
def list_runs(
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
    found = list(api.items(path, limit, query))
    write_items(found, COLUMNS, as_json, run_cell, LEAST_NEEDED)


def write_changes(
    api: ApiClient,
    follower: Follower,
    interval_seconds: float,
    as_json: bool,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Print changes until Ctrl-C; an API that is away for a moment does not end it."""
    table = StreamedTable(COLUMNS, LEAST_NEEDED)
    try:
        for changes in looks(lambda: api.run(follower.changes()), interval_seconds, as_json, sleep):
            for run in changes:
                if as_json:
                    write_json(run, compact=True)
                else:
                    table.write([run_cell(run, column) for column in COLUMNS])
            sys.stdout.flush()
    except KeyboardInterrupt:
        return


RunIdArgument = Annotated[str, typer.Argument(metavar="RUN_ID", show_default=False)]


@runs.command()
def show(run_id: RunIdArgument, *, session: SessionOptions) -> None:
    """Show one run, whole, with each of its attempts."""
    answer = session.connect().get(run_path(run_id))
    write_run(answer, session.is_json)


@runs.command()
def cancel(run_id: RunIdArgument, *, session: SessionOptions) -> None:
    """Cancel a run that waits or is to be retried, or end the call of one that is running."""
    answer = session.connect().post(run_path(run_id, "/cancel"))
    write_run(answer, session.is_json)
