"""`carillon calendars ...`: the days on which jobs do not fire; put, list, show, delete."""

import sys
from typing import Annotated, Any

import typer

from infra.cli.client import calendar_path
from infra.cli.exits import CliError
from infra.cli.json_input import read_json, read_text
from infra.cli.output import write_json, write_line, write_record, write_table
from infra.cli.session import ApiUrlOption, JsonOption, TokenOption, connect, invocation_of
from shared.errors import InvalidFieldError

calendars = typer.Typer(help="Calendars of closed days, for jobs.", no_args_is_help=True)

_COLUMNS = ("name", "weekdays", "dates", "ranges", "description", "updated_at")

NameArgument = Annotated[str, typer.Argument(metavar="NAME", show_default=False)]
FileOption = Annotated[
    str | None,
    typer.Option(help="The body of PUT /calendars/NAME as a JSON file, or - for stdin."),
]
IcsOption = Annotated[
    str | None, typer.Option(help="Take the days of an iCalendar file, or - for stdin.")
]
WeekdayOption = Annotated[
    list[str] | None,
    typer.Option("--weekday", help="Closed each week, as sat; repeatable.", show_default=False),
]
DateOption = Annotated[
    list[str] | None,
    typer.Option("--date", help="A closed day, as 2026-12-25; repeatable.", show_default=False),
]
RangeOption = Annotated[
    list[str] | None,
    typer.Option(
        "--range",
        help="Closed days, as 2026-12-24..2027-01-01, both included; repeatable.",
        show_default=False,
    ),
]
DescriptionOption = Annotated[str | None, typer.Option(help="What the calendar is for.")]


@calendars.command()
def put(
    ctx: typer.Context,
    name: NameArgument,
    file: FileOption = None,
    ics: IcsOption = None,
    weekday: WeekdayOption = None,
    date: DateOption = None,
    range_: RangeOption = None,
    description: DescriptionOption = None,
    api_url: ApiUrlOption = None,
    token: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """Create a calendar, or replace it whole; options go over the file.

    Every job that follows the calendar follows the new one from then on.
    """
    invocation_of(ctx, as_json)
    if file == "-" and ics == "-":
        raise typer.BadParameter("--file - and --ics - cannot both read stdin")
    try:
        body = _body(file, ics, weekday, date, range_, description)
    except InvalidFieldError as error:
        raise CliError.from_invalid_field(error) from error
    if not body:
        raise typer.BadParameter("give --file, --ics, --weekday, --date or --range")
    api = connect(ctx, api_url, token, as_json)
    _show(ctx, api.put(calendar_path(name), body))


@calendars.command(name="list")
def list_calendars(
    ctx: typer.Context,
    api_url: ApiUrlOption = None,
    token: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """List your calendars; with --json, an array."""
    found = list(connect(ctx, api_url, token, as_json).items("/calendars", None))
    if invocation_of(ctx).as_json:
        write_json(found)
    else:
        rows = [[_cell(calendar, column) for column in _COLUMNS] for calendar in found]
        write_table(_COLUMNS, rows)


@calendars.command()
def show(
    ctx: typer.Context,
    name: NameArgument,
    api_url: ApiUrlOption = None,
    token: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show one calendar, whole."""
    api = connect(ctx, api_url, token, as_json)
    _show(ctx, api.get(calendar_path(name)))


@calendars.command()
def delete(
    ctx: typer.Context,
    name: NameArgument,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask on a terminal.")] = False,
    api_url: ApiUrlOption = None,
    token: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete a calendar; refused while a job follows it."""
    api = connect(ctx, api_url, token, as_json)
    path = calendar_path(name)
    if not yes and sys.stdin.isatty():
        typer.confirm(f"Delete the calendar {name} for good?", abort=True, err=True)
    api.delete(path)
    if invocation_of(ctx).as_json:
        write_json({"name": name, "state": "deleted"})
    else:
        write_line(f"deleted {name}")


def _body(
    file: str | None,
    ics: str | None,
    weekdays: list[str] | None,
    dates: list[str] | None,
    ranges: list[str] | None,
    description: str | None,
) -> dict[str, Any]:
    """The body of PUT; what is not allowed in it is the API's to say. Raises InvalidFieldError."""
    body = {} if file is None else read_json(file, "file")
    if not isinstance(body, dict):
        raise InvalidFieldError("file", "must hold one JSON object, the body of PUT")
    given = {
        "weekdays": weekdays,
        "dates": dates,
        "ranges": [_range(text, number) for number, text in enumerate(ranges or ())],
        "description": description,
        "icalendar": None if ics is None else read_text(ics, "icalendar"),
    }
    return {**body, **{member: value for member, value in given.items() if value not in (None, [])}}


def _range(text: str, number: int) -> dict[str, str]:
    first, dots, last = text.partition("..")
    if not dots:
        message = f"{text!r} is no range such as 2026-12-24..2027-01-01"
        raise InvalidFieldError(f"ranges[{number}]", message)
    return {"from": first.strip(), "to": last.strip()}


def _show(ctx: typer.Context, record: dict[str, Any]) -> None:
    if invocation_of(ctx).as_json:
        write_json(record)
    else:
        write_record(record)


def _cell(calendar: dict[str, Any], column: str) -> Any:
    value = calendar.get(column)
    if column in ("dates", "ranges"):
        # How many: a list of all of them would not fit.
        return len(value or ())
    return " ".join(map(str, value)) if isinstance(value, list) else value
