"""`carillon runs` and `carillon run`."""

import sys
import time
from collections.abc import Callable, Iterator
from typing import Annotated, Any
from urllib.parse import quote

import typer

from carillon.cli.client import ApiClient, Json, run_path
from carillon.cli.exits import CliError, ExitCode
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

_FINAL = frozenset({"succeeded", "dead", "timed_out", "skipped", "cancelled", "missed"})


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
        write_changes(Follower(api, path, limit), interval, as_json)
        return
    write_items(list(api.items(path, limit, query)), COLUMNS, as_json, run_cell)


class Follower:
    """Reads a history again and again, and yields what is new in it.

    The first read yields the newest `limit` runs; older ones are never shown.
    """

    def __init__(self, api: ApiClient, path: str, limit: int) -> None:
        self._api = api
        self._path = path
        self._limit = limit
        self._seen: dict[str, tuple[Any, Any]] = {}
        self._open: set[str] = set()
        self._oldest = ""

    def changes(self) -> list[Json]:
        """Runs that are new, or whose status or attempt is another one, oldest first."""
        newest = list(self._newest())
        # A run can still change when newer ones have pushed it off the pages that are read.
        pushed_off = self._open - {str(run.get("run_id")) for run in newest}
        for run_id in pushed_off:
            newest += self._lookup(run_id)
        changed = [run for run in newest if self._note(run)]
        return sorted(changed, key=_fire_text)

    def _newest(self) -> Iterator[Json]:
        """At first `limit` runs; later the pages down to one with a run already seen."""
        if not self._seen:
            first = list(self._api.items(self._path, self._limit))
            self._oldest = min(map(_fire_text, first)) if len(first) == self._limit else ""
            yield from first
            return
        known = frozenset(self._seen)
        for page in self._api.pages(self._path, None):
            yield from (run for run in page if _fire_text(run) >= self._oldest)
            if any(str(run.get("run_id")) in known for run in page):
                return

    def _lookup(self, run_id: str) -> list[Json]:
        try:
            return [self._api.get(f"{self._path}/{quote(run_id, safe='')}")]
        except CliError as error:
            if error.exit_code != ExitCode.NOT_FOUND:
                raise
            self._open.discard(run_id)
            return []

    def _note(self, run: Json) -> bool:
        run_id = str(run.get("run_id"))
        now = (run.get("status"), run.get("attempt"))
        if run.get("status") in _FINAL:
            self._open.discard(run_id)
        else:
            self._open.add(run_id)
        was = self._seen.get(run_id)
        self._seen[run_id] = now
        return was != now


def write_changes(
    follower: Follower,
    interval_seconds: float,
    as_json: bool,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Print changes until Ctrl-C; an API that is away for a moment does not end it."""
    try:
        for changes in looks(follower.changes, interval_seconds, as_json, sleep):
            for run in changes:
                _write_change(run, as_json)
            sys.stdout.flush()
    except KeyboardInterrupt:
        return


def _write_change(run: Json, as_json: bool) -> None:
    if as_json:
        write_json(run, compact=True)
    else:
        write_line("  ".join(printable(run_cell(run, column)) for column in COLUMNS))


def _fire_text(run: Json) -> str:
    # Uniform UTC texts sort as their instants do.
    return str(run.get("fire_at"))


run = Commands(help="Show one run, or cancel it.", no_args_is_help=True)

RunIdArgument = Annotated[str, typer.Argument(metavar="RUN_ID", show_default=False)]


@run.command()
def show(run_id: RunIdArgument, *, session: SessionOptions) -> None:
    """Show one run, whole, with each of its attempts."""
    answer = session.connect().get(run_path(run_id))
    write_run(answer, session.is_json)


@run.command()
def cancel(run_id: RunIdArgument, *, session: SessionOptions) -> None:
    """Cancel a run that waits or is to be retried; one under way is not stopped."""
    answer = session.connect().post(run_path(run_id, "/cancel"))
    write_run(answer, session.is_json)
