"""`carillon preview`: what a schedule yields, without an API."""

import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import chain
from typing import Annotated

import typer

from infra.cli.exits import CliError
from infra.cli.instants import DATES_HELP, utc_text
from infra.cli.job_options import StartAtOption
from infra.cli.json_input import schedule_form
from infra.cli.occurrences import LARGEST_COUNT, PreviewRequest, batch_answers, occurrences
from infra.cli.output import write_json, write_line, write_table
from infra.cli.session import JsonOption, invocation_of
from shared.errors import InvalidFieldError
from shared.recurrence.zones import load_zone

DEFAULT_COUNT = 10

ScheduleArgument = Annotated[
    str | None,
    typer.Argument(
        help='"17 * * * *", "every 25m offset 2m", "at 2026-12-01T09:00:00", or a JSON form.',
        show_default=False,
    ),
]
TimezoneOption = Annotated[str, typer.Option(help="IANA time zone of the schedule.")]
AfterOption = Annotated[
    str | None,
    typer.Option(help=f"List what comes after this instant. {DATES_HELP}", show_default="now"),
]
CountOption = Annotated[int, typer.Option(help="How many.", min=1, max=LARGEST_COUNT)]
BatchOption = Annotated[
    bool, typer.Option("--batch", help="Answer JSON Lines from stdin instead, one line each.")
]


def preview(
    ctx: typer.Context,
    schedule: ScheduleArgument = None,
    timezone: TimezoneOption = "UTC",
    after: AfterOption = None,
    start_at: StartAtOption = None,
    count: CountOption = DEFAULT_COUNT,
    batch: BatchOption = False,
    as_json: JsonOption = False,
) -> None:
    """Show a schedule's next occurrences, computed here: no API, no sign-in.

    With --json, an array of {"fire_at": in UTC, "local": with offset}.

    With --batch, each line of stdin is a JSON object:
    {"schedule", "timezone", "after", "count", "start_at"}.
    All but the schedule can be left out: the options stand in.
    Each line of stdout answers one, in order; a bad line stops nothing:
    {"fire_at": [...]} or {"error": "..."}.
    """
    invocation = invocation_of(ctx, as_json)
    if (schedule is None) != batch:
        raise typer.BadParameter("give either a SCHEDULE or --batch")
    moment = after or utc_text(datetime.now(UTC).replace(microsecond=0))
    if schedule is None:
        _answer_lines(PreviewRequest(None, timezone, moment, count, start_at))
        return
    try:
        form = schedule_form(schedule)
        rows = list(_rows(PreviewRequest(form, timezone, moment, count, start_at)))
    except InvalidFieldError as error:
        raise CliError.from_invalid_field(error) from error
    if invocation.as_json:
        write_json(rows)
    else:
        write_table(("fire_at", "local"), [(row["fire_at"], row["local"]) for row in rows])


def _rows(request: PreviewRequest) -> Iterator[dict[str, str]]:
    zone = load_zone(request.timezone)
    for instant in occurrences(request):
        yield {"fire_at": utc_text(instant), "local": instant.astimezone(zone).isoformat()}


def _answer_lines(defaults: PreviewRequest) -> None:
    # Bytes: a line that is not UTF-8 is a bad line, not the end of the stream.
    lines = sys.stdin.buffer
    answers = batch_answers(lines, defaults)
    if sys.stdout.isatty():
        for answer in answers:
            write_line(answer)
            sys.stdout.flush()
        return
    sys.stdout.writelines(chain.from_iterable((answer, "\n") for answer in answers))
