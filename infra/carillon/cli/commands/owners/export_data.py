"""`carillon export-data`: everything that an owner has, as JSON Lines."""

from collections.abc import Iterator
from typing import Annotated

import typer

from carillon.cli.client import ApiClient, Json, job_path, run_path
from carillon.cli.display.progress import progress_bar
from carillon.cli.exits import CliError, ExitCode
from carillon.cli.output import write_error, write_json
from carillon.cli.session import SessionOptions

_LISTS = (
    ("calendar", "/calendars"),
    ("notification", "/notifications"),
    ("operation", "/operations"),
)


def export_data(
    *,
    with_runs: Annotated[
        bool, typer.Option("--runs/--no-runs", help="Each run that is kept, with its attempts.")
    ] = True,
    session: SessionOptions,
) -> None:
    """Write all that you have, a line of JSON for each thing: jobs, calendars, notifications,
    operations, changes, and the runs of jobs, also of those that are gone.

    Each line has one member, named by what it is. Secrets are names, as everywhere. What changes
    meanwhile is written as it was when its page was read.
    """
    api = session.connect()
    count = 0
    with progress_bar() as show:
        for kind, thing in everything(api, with_runs=with_runs):
            write_json({kind: thing}, compact=True)
            count += 1
            show(f"{count:,} written")
    write_error(f"{count:,} written")


def everything(api: ApiClient, *, with_runs: bool) -> Iterator[tuple[str, Json]]:
    """Each thing with its kind. The runs of jobs that are gone are found by their changes."""
    names: dict[str, None] = {}
    for job in api.items("/jobs", None):
        names[str(job["job_id"])] = None
        yield "job", job
    for kind, path in _LISTS:
        for thing in api.items(path, None):
            yield kind, thing
    for change in api.items("/changes", None):
        if change.get("job_id"):
            names[str(change["job_id"])] = None
        yield "change", change
    for job_id in names if with_runs else ():
        yield from _runs(api, job_id)


def _runs(api: ApiClient, job_id: str) -> Iterator[tuple[str, Json]]:
    for run in _there(api.items(job_path(job_id, "/runs"), None)):
        path = run_path(str(run["run_id"]))
        for whole in _there(map(api.get, [path])):
            yield "run", whole


def _there(things: Iterator[Json]) -> Iterator[Json]:
    """The things until one is not found: what has expired by now is no part of it."""
    try:
        yield from things
    except CliError as error:
        if error.exit_code != ExitCode.NOT_FOUND:
            raise
