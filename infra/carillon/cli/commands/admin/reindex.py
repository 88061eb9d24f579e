"""`carillon admin reindex`: puts the jobs on the wheel anew."""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any
from zoneinfo import ZoneInfo

import typer

from carillon.cli.commands.admin.all_jobs import work_off
from carillon.cli.commands.admin.stores import AdminOptions, open_with_zones, require_segment
from carillon.cli.exits import CliError
from carillon.cli.instants import parse_instant, utc_text
from carillon.errors import InvalidFieldError

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
    where nothing is amiss. Exit code 1 where rows cannot be read, or have expired.
    """
    from carillon.clock import SystemClock, SystemEntropy
    from carillon.reindexing.reindexing import Reindex

    settings, stores = open_with_zones(options)
    clock = SystemClock()
    since_at = _checked(since, clock.now())
    longest = settings.longest_delay_seconds
    if segment is not None:
        require_segment(settings, stores, segment)
    work = Reindex(stores, clock, SystemEntropy(), longest, since_at, segment)
    work_off(work, _lines, _told, as_json=options.is_json)


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


def _lines(done: "Done") -> list[str]:
    since = min(done.since.values(), default=None)
    owed = "" if since is None else f"; ticks go on from {utc_text(since)}"
    return [
        f"{done.jobs:,} jobs read, {done.entries:,} entries put, {done.runs:,} messages of"
        f" runs and {done.operations:,} of operations ordered again{owed}"
    ]


def _told(done: "Done") -> dict[str, Any]:
    return {
        "jobs": done.jobs,
        "entries": done.entries,
        "runs": done.runs,
        "operations": done.operations,
        "since": {str(segment): utc_text(at) for segment, at in sorted(done.since.items())},
        "unreadable": done.left,
    }
