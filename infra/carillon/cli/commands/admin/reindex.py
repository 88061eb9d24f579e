"""`carillon admin reindex`: puts the jobs on the wheel anew."""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any
from zoneinfo import ZoneInfo

import typer

from carillon.cli.commands.admin.stores import AdminOptions, open_deployment, require_segment
from carillon.cli.display.progress import progress_bar
from carillon.cli.exits import CliError, ExitCode
from carillon.cli.instants import parse_instant, utc_text
from carillon.cli.output import write_done, write_error
from carillon.errors import InvalidFieldError, QueueUnavailableError, StoreUnavailableError

if TYPE_CHECKING:
    from carillon.reindexing.reindexing import Done

SegmentOption = Annotated[
    int | None, typer.Option(min=0, help="Only this segment.", show_default=False)
]
SinceOption = Annotated[
    str | None,
    typer.Option(
        help="As if no tick had come since this instant; at most 14 days back. Without it, each job"
        " goes on behind its newest run."
    ),
]


def reindex(
    *,
    segment: SegmentOption = None,
    since: SinceOption = None,
    options: AdminOptions,
) -> None:
    """Put every active job, and messages of waiting runs, on the wheel anew: after its table was
    lost or restored.

    The rows of jobs stay as they are. Ticks then catch up, by each job's policy, on what was due
    meanwhile; what has run is not run again. It may be interrupted and repeated, and does no harm
    where nothing is amiss. Exit code 1 where rows cannot be read.
    """
    from carillon.clock import SystemClock, SystemEntropy
    from carillon.reindexing.reindexing import Reindex

    settings, stores = open_deployment(options)
    clock = SystemClock()
    since_at = _checked(since, clock.now())
    longest = settings.longest_delay_seconds
    work = Reindex(stores, clock, SystemEntropy(), longest, since_at, segment)
    try:
        if segment is not None:
            require_segment(settings, stores, segment)
        with progress_bar() as show:
            show("reading jobs")
            work.run(lambda done: show(_text(done)))
    except (StoreUnavailableError, QueueUnavailableError) as error:
        detail = f"{error}; so far {_text(work.done)}: repeat it"
        raise CliError.local(ExitCode.UNREACHABLE, "Not done to the end", detail) from error
    write_done(_text(work.done), _told(work.done), options.is_json)
    for reason in work.done.unreadable:
        write_error(f"left as it is: {reason}")
    if work.done.unreadable:
        raise typer.Exit(ExitCode.UNEXPECTED)


def _checked(since: str | None, now: datetime) -> datetime | None:
    """The instant to begin at; raises CliError for one that is none, or is to come."""
    try:
        at = None if since is None else parse_instant(since, ZoneInfo("UTC"), "since")
        if at is not None and at > now:
            told = f"{utc_text(at)} is to come; an instant without an offset is one of UTC"
            raise InvalidFieldError("since", told)
    except InvalidFieldError as error:
        raise CliError.from_invalid_field(error) from error
    return at


def _text(done: "Done") -> str:
    since = min(done.since.values(), default=None)
    owed = "" if since is None else f"; ticks go on from {utc_text(since)}"
    return (
        f"{done.jobs:,} jobs read, {done.entries:,} entries put, {done.runs:,} messages of"
        f" runs and {done.operations:,} of operations ordered again{owed}"
    )


def _told(done: "Done") -> dict[str, Any]:
    return {
        "jobs": done.jobs,
        "entries": done.entries,
        "runs": done.runs,
        "operations": done.operations,
        "since": {str(segment): utc_text(at) for segment, at in sorted(done.since.items())},
        "unreadable": done.unreadable,
    }
