"""`carillon preview`: what a schedule yields, without an API."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from carillon.cli.client import calendar_path
from carillon.cli.commands.job_options import typer_option
from carillon.cli.completing import calendar_names
from carillon.cli.exits import CliError
from carillon.cli.inputs import exception_forms, read_json, schedule_form
from carillon.cli.instants import DATES_HELP
from carillon.cli.output import write_json
from carillon.cli.preview.batch import DEFAULT_COUNT, answer_lines, request_of_options
from carillon.cli.preview.local_schedule import LARGEST_COUNT, PreviewRequest
from carillon.cli.session import JsonOption, SessionOptions, invocation_of
from carillon.errors import InvalidFieldError

DstFoldOption = Annotated[str | None, typer_option("dst.fold")]
DstGapOption = Annotated[str | None, typer_option("dst.gap")]
EndAtOption = Annotated[str | None, typer_option("end_at")]
ExceptOption = Annotated[list[str] | None, typer_option("except")]
StartAtOption = Annotated[str | None, typer_option("start_at")]
WindowOption = Annotated[str | None, typer_option("window")]
ScheduleArgument = Annotated[
    str | None,
    typer.Argument(
        help='"17 * * * *", "every 25m offset 2m", "at 2026-12-01T09:00:00", several joined by '
        '" | ", or a JSON form.',
        show_default=False,
    ),
]
TimezoneOption = Annotated[str, typer.Option(help="IANA time zone of the schedule.")]
AfterOption = Annotated[
    str | None,
    typer.Option(help=f"List what comes after this instant. {DATES_HELP}", show_default="now"),
]
MaxRunsOption = Annotated[
    int | None,
    typer.Option(help="End with this occurrence after --after.", min=1, max=LARGEST_COUNT),
]
CountOption = Annotated[int, typer.Option(help="How many.", min=1, max=LARGEST_COUNT)]
CalendarFileOption = Annotated[
    str | None,
    typer.Option(help='Days that are closed: {"weekdays", "dates", "ranges"} as a JSON file.'),
]
CalendarOption = Annotated[
    str | None,
    typer.Option(
        "--calendar", help="One of your calendars: the API is asked for it.", show_default=False,
        autocompletion=calendar_names,
    ),
]  # fmt: skip
CalendarRuleOption = Annotated[
    str | None,
    typer.Option(
        help="On closed days: skip, next_business_day or previous_business_day.",
        show_default="skip",
    ),
]
BatchOption = Annotated[
    bool, typer.Option("--batch", help="Answer JSON Lines from stdin instead, one line each.")
]
ExplainOption = Annotated[
    bool, typer.Option("--explain", help="With --json, the whole explanation as one object.")
]


def preview(
    ctx: typer.Context,
    schedule: ScheduleArgument = None,
    timezone: TimezoneOption = "UTC",
    after: AfterOption = None,
    start_at: StartAtOption = None,
    end_at: EndAtOption = None,
    max_runs: MaxRunsOption = None,
    exceptions: ExceptOption = None,
    dst_gap: DstGapOption = None,
    dst_fold: DstFoldOption = None,
    window: WindowOption = None,
    calendar: CalendarOption = None,
    calendar_file: CalendarFileOption = None,
    calendar_rule: CalendarRuleOption = None,
    count: CountOption = DEFAULT_COUNT,
    batch: BatchOption = False,
    explain: ExplainOption = False,
    as_json: JsonOption = False,
) -> None:
    """Show what a schedule yields and costs, computed here: no API, no sign-in,
    but for a --calendar of yours.

    With --json, an array of {"fire_at": in UTC, "local": with offset};
    with --json --explain, one object of all that is shown.

    With --batch, each line of stdin is a JSON object:
    {"schedule", "timezone", "after", "count",
    "start_at", "end_at", "max_runs", "except", "dst"}.
    All but the schedule can be left out: the options stand in.
    Each line of stdout answers one, in order; a bad line stops nothing:
    {"fire_at": [...]} or {"error": "..."}.
    """
    closed = _Closed(ctx, calendar, calendar_file)
    look = _Look(window, closed, calendar_rule, explain, invocation_of(ctx).as_json)
    _refuse_contradictions(schedule, batch, look)
    try:
        request = request_of_options(
            schedule=None if schedule is None else schedule_form(schedule),
            timezone=timezone, after=after, limit=count, start_at=start_at, end_at=end_at,
            max_runs=max_runs, exceptions=exception_forms(exceptions), gap=dst_gap, fold=dst_fold,
        )  # fmt: skip
        answer_lines(request) if batch else _show(request, look)
    except InvalidFieldError as error:
        raise CliError.from_invalid_field(error) from error


@dataclass(frozen=True, slots=True)
class _Closed:
    """The options that tell which days are closed."""

    ctx: typer.Context
    name: str | None
    file: str | None

    def days(self) -> tuple[str, Any] | None:
        """The name of the calendar and its days; None for no calendar. Raises InvalidFieldError,
        and CliError where the API does not answer."""
        if self.file is not None:
            return Path(self.file).stem, read_json(self.file, "calendar")
        if self.name is None:
            return None
        stored = SessionOptions(self.ctx).connect().get(calendar_path(self.name))
        return self.name, {member: stored[member] for member in _DAYS if stored.get(member)}


_DAYS = ("weekdays", "dates", "ranges")


@dataclass(frozen=True, slots=True)
class _Look:
    """The options of the display; no part of the schedule."""

    window: str | None
    closed: _Closed
    calendar_rule: str | None
    is_whole: bool
    as_json: bool


def _refuse_contradictions(schedule: str | None, batch: bool, look: _Look) -> None:
    if (schedule is None) != batch:
        raise typer.BadParameter("give either a SCHEDULE or --batch")
    if None not in (look.closed.name, look.closed.file):
        raise typer.BadParameter("give --calendar or --calendar-file")
    given = (look.window, look.closed.name, look.closed.file, look.calendar_rule)
    if batch and (look.is_whole or any(option is not None for option in given)):
        raise typer.BadParameter("--batch lists fire times only: no --explain, window or calendar")
    if look.calendar_rule is not None and (look.closed.name, look.closed.file) == (None, None):
        raise typer.BadParameter("--calendar-rule needs a --calendar or a --calendar-file")


def _show(request: PreviewRequest, look: _Look) -> None:
    # Imported here: a batch that comes this way needs none of it.
    from carillon.cli.preview.description import (
        LocalCalendar,
        coming_of,
        explain,
        write_explanation,
    )
    from carillon.cli.preview.local_schedule import calendar_rule, closed_days_of

    calendar = None
    days = look.closed.days()
    if days is not None:
        name, closed = days[0], closed_days_of(days[1])
        calendar = LocalCalendar(name, closed, calendar_rule(look.calendar_rule or "skip"))
    if look.as_json and not look.is_whole:
        write_json([coming.as_json() for coming in coming_of(request, calendar)])
        return
    explanation = explain(request, look.window, calendar)
    if look.as_json:
        write_json(explanation.as_json())
    else:
        write_explanation(explanation)
