"""`carillon logs`: the lines that the task of a run has written."""

import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import typer

from carillon.cli.client import ApiClient, Json, run_path
from carillon.cli.completing import job_names
from carillon.cli.exits import CliError, ExitCode
from carillon.cli.output import StreamedTable, write_items, write_json
from carillon.cli.polling import looks
from carillon.cli.session import SessionOptions
from carillon.client.resources.following import FINAL

COLUMNS = ("at", "level", "message")
INTERVAL_SECONDS = 5.0
"""Between two looks: each one reads CloudWatch Logs, whose requests are few."""
_NEWEST = 10
"""Rows of a job's history that are searched for a run."""
_OTHERS = frozenset({"callback", "missed", "watch"})
"""The kinds of rows that are no run of the job's own target."""
_RUN_ID = re.compile(r"[0-9a-z]{26}_\d{8}T\d{6}Z_[^_]+_\d+", re.ASCII)


def logs(
    which: Annotated[
        str,
        typer.Argument(
            metavar="RUN|JOB",
            help="A run's id; or a job, for its newest run.",
            show_default=False,
            autocompletion=job_names,
        ),
    ],
    *,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on until the run has ended, or Ctrl-C.")
    ] = False,
    session: SessionOptions,
) -> None:
    """Show the lines that a run's task has logged, oldest first; with --json, an array.

    They come a few seconds after they were written. With --follow and --json, JSON Lines.
    """
    api, as_json = session.connect(), session.is_json
    run_id = which if _RUN_ID.fullmatch(which) else newest_run_of(api, which)
    if not follow:
        write_items(list(lines_of(api, run_id)), COLUMNS, as_json)
        return
    follow_lines(api, run_id, as_json)


def newest_run_of(api: ApiClient, job: str) -> str:
    """The id of a job's newest run; raises CliError where it has not run. The row of its callback
    stands before it, and so does a dead letter before what has run it again."""
    rows = api.items(api.job_path(job, "/runs"), _NEWEST)
    for row in sorted(rows, key=lambda row: row.get("settled") == "redriven"):
        if row.get("kind") not in _OTHERS:
            return str(row["run_id"])
    raise CliError.local(ExitCode.NOT_FOUND, f"{job} has not run")


def lines_of(api: ApiClient, run_id: str) -> Iterator[Json]:
    """Every line that there is by now."""
    query: dict[str, str | int] = {}
    while True:
        # The API decides on the length of its pages here, and takes no limit.
        page = api.get(f"/runs/{run_id}/logs", query)
        yield from page["items"]
        if page.get("next_cursor") is None:
            return
        query["cursor"] = page["next_cursor"]


def follow_lines(
    api: ApiClient, run_id: str, as_json: bool, sleep: Callable[[float], None] = time.sleep
) -> None:
    """Print lines as they come, until a look after the run's end finds no more."""
    table, told, is_over = StreamedTable(COLUMNS), Counter[tuple[Any, ...]](), False

    def look() -> tuple[bool, list[Json]]:
        has_ended = api.get(run_path(run_id)).get("status") in FINAL
        return has_ended, list(lines_of(api, run_id))

    try:
        for has_ended, lines in looks(look, INTERVAL_SECONDS, as_json, sleep):
            # A line that comes late may stand before some that were told.
            left, fresh = told.copy(), 0
            for line in lines:
                key = tuple(line.get(column) for column in COLUMNS)
                if left[key]:
                    left[key] -= 1
                    continue
                told[key] += 1
                fresh += 1
                if as_json:
                    write_json(line, compact=True)
                else:
                    table.write(key)
            sys.stdout.flush()
            if is_over and not fresh:
                return
            is_over = has_ended
    except KeyboardInterrupt:
        return
