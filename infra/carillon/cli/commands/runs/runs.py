"""`carillon runs ...`: list and follow, of a job or across jobs; show, cancel."""

import sys
import time
from collections.abc import Callable
from enum import StrEnum
from typing import Annotated

import typer

from carillon.cli.client import run_path
from carillon.cli.commands.runs.shown import LEAST_NEEDED, run_cell, write_run
from carillon.cli.commands.runs.sources import Across, OfJob
from carillon.cli.exits import CliError
from carillon.cli.options import Commands, SpanOptions, tag_query
from carillon.cli.output import StreamedTable, write_items, write_json
from carillon.cli.polling import looks
from carillon.cli.session import OptionalJobArgument, SessionOptions

runs = Commands(help="Runs of your jobs: list, show, cancel.", no_args_is_help=True)

StatusOption = Annotated[
    str | None,
    typer.Option(help="One or several, as dead,timed_out.", show_default=False, metavar="STATUS"),
]
KindOption = Annotated[
    str | None,
    typer.Option(help="One or several, as scheduled,manual.", show_default=False, metavar="KIND"),
]
TagOption = Annotated[
    list[str] | None,
    typer.Option("--tag", help="Of jobs with it: KEY=VALUE; repeatable.", show_default=False),
]


@runs.command(name="list")
def list_runs(
    job: OptionalJobArgument = None,
    *,
    status: StatusOption = None,
    kind: KindOption = None,
    tag: TagOption = None,
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
    """Show a job's runs, or what has run of all jobs; newest first; with --json, an array.

    Of one job --from and --to bound fire times, across jobs the times of recording. Across jobs
    successes that were alone may be left out.
    With --follow, oldest first, a line for each new run or changed status, of a job without what
    has fire times before those of the first lines, as backfills have;
    with --json, JSON Lines.
    """
    if follow and span.span:
        raise typer.BadParameter("--follow shows what comes: no --from or --to")
    if job is not None and tag:
        raise typer.BadParameter("--tag chooses among jobs: not with a JOB")
    query = span.span | tag_query(tag)
    words = {name: text for name, text in (("status", status), ("kind", kind)) if text}
    api, as_json = session.connect(), session.is_json
    source: OfJob | Across
    if job is None:
        source = Across(api, query | words)
    else:
        chosen = {name: _values(name, text) for name, text in words.items()}
        source = OfJob(api, api.job_path(job, "/runs"), query, chosen)
    if follow:
        write_changes(source, limit, interval, as_json)
        return
    write_items(source.newest(limit), source.columns, as_json, run_cell, LEAST_NEEDED)


def _values(name: str, text: str) -> set[str]:
    """The values of a filter that this command applies itself; raises CliError as the API does."""
    from carillon.domain.run import RunKind, RunStatus

    known: type[StrEnum] = RunStatus if name == "status" else RunKind
    values = set(text.replace(" ", "").split(","))
    for unknown in sorted(values.difference(known)):
        raise CliError.bad_field(name, f"{unknown!r} is none of {', '.join(known)}")
    return values


def write_changes(
    source: OfJob | Across,
    limit: int,
    interval_seconds: float,
    as_json: bool,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Print changes until Ctrl-C; an API that is away for a moment does not end it."""
    table = StreamedTable(source.columns, LEAST_NEEDED)
    try:
        for changes in looks(lambda: source.changes(limit), interval_seconds, as_json, sleep):
            for run in changes:
                if as_json:
                    write_json(run, compact=True)
                else:
                    table.write([run_cell(run, column) for column in source.columns])
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
