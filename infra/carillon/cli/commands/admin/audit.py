"""`carillon admin audit`: a comparison of the tables with what was promised."""

from dataclasses import asdict
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated
from zoneinfo import ZoneInfo

import typer

from carillon.cli.commands.admin.stores import AdminOptions, open_with_zones
from carillon.cli.display.progress import progress_bar
from carillon.cli.exits import CliError, ExitCode
from carillon.cli.instants import parse_instant, utc_text
from carillon.cli.output import printable, write_json, write_line
from carillon.errors import InvalidFieldError, StoreUnavailableError

if TYPE_CHECKING:
    from carillon.audit.auditing import Audit, Finding
    from carillon.settings import Settings

_DEFAULT_SPAN = timedelta(days=1)

FromOption = Annotated[
    str | None,
    typer.Option(
        "--from", help="Occurrences after this instant; a day before the end if not given."
    ),
]
UntilOption = Annotated[
    str | None,
    typer.Option(help="Occurrences up to this instant; half an hour ago if not given."),
]


def audit(
    *,
    from_at: FromOption = None,
    until: UntilOption = None,
    options: AdminOptions,
) -> None:
    """Compare all jobs' occurrences with their runs, and check that the next ones are indexed.

    Reads the tables page by page, and changes nothing. Exit code 1 where something does not hold.
    Runs in a queue have no row yet: audit when the lanes are empty, or up to an instant before what
    waits there. With --json one line for each finding, and one for the figures.
    """
    from carillon.audit.auditing import UNDER_WAY, Audit
    from carillon.clock import SystemClock

    settings, stores = open_with_zones(options)
    clock = SystemClock()
    now = clock.now().replace(microsecond=0)
    rest_at = now - UNDER_WAY
    try:
        begin, end = _span(from_at, until, settings, now, rest_at)
    except InvalidFieldError as error:
        raise CliError.from_invalid_field(error) from error
    work = Audit.of(stores, clock, settings, begin, end, rest_at)
    as_json = options.is_json
    try:
        with progress_bar() as show:
            show("comparing jobs with their runs")
            for finding in work.findings():
                _tell(finding, as_json)
    except StoreUnavailableError as error:
        raise CliError.local(ExitCode.UNREACHABLE, "Not audited to the end", str(error)) from error
    _tell_figures(work, begin, end, as_json)
    if work.seen.findings:
        raise typer.Exit(ExitCode.UNEXPECTED)


def _span(
    from_at: str | None, until: str | None, settings: "Settings", now: datetime, rest_at: datetime
) -> tuple[datetime, datetime]:
    """(begin, end]: not younger than `rest_at`, nor older than the rows that are kept.

    Raises InvalidFieldError.
    """
    utc = ZoneInfo("UTC")
    end = rest_at if until is None else parse_instant(until, utc, "until")
    begin = end - _DEFAULT_SPAN if from_at is None else parse_instant(from_at, utc, "from")
    end = min(end, rest_at).replace(microsecond=0)
    begin = max(begin, now - timedelta(days=settings.run_retention_days)).replace(microsecond=0)
    if begin >= end:
        kept = f"runs are kept for {settings.run_retention_days} days"
        detail = f"nothing to audit from {utc_text(begin)} to {utc_text(end)}: {kept}"
        raise InvalidFieldError("from", f"{detail}, and the last half hour may be under way")
    return begin, end


def _tell(finding: "Finding", as_json: bool) -> None:
    if as_json:
        write_json(asdict(finding), compact=True)
        return
    where = f"{finding.owner}/{finding.job_id}: " if finding.job_id else ""
    write_line(printable(f"{finding.promise:<10} {where}{finding.text}"))


def _tell_figures(work: "Audit", begin: datetime, end: datetime, as_json: bool) -> None:
    figures = {"from": utc_text(begin), "until": utc_text(end), **asdict(work.seen)}
    if as_json:
        write_json(figures, compact=True)
    else:
        write_line(
            f"{work.seen.jobs:,} jobs with {work.seen.runs:,} runs from {utc_text(begin)} to"
            f" {utc_text(end)}: {work.seen.findings:,} findings"
        )
