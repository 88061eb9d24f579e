"""`carillon calendars ...`: the days on which jobs do not fire; put, list, show, delete."""

from typing import Annotated, Any

import typer

from carillon.cli.client import calendar_path
from carillon.cli.exits import CliError
from carillon.cli.inputs import read_json, read_text
from carillon.cli.options import Commands, YesOption, confirm
from carillon.cli.output import write_answer, write_done, write_items
from carillon.cli.session import SessionOptions
from carillon.errors import InvalidFieldError

calendars = Commands(help="Calendars of closed days, for jobs.", no_args_is_help=True)

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
    name: NameArgument,
    *,
    file: FileOption = None,
    ics: IcsOption = None,
    weekday: WeekdayOption = None,
    date: DateOption = None,
    range_: RangeOption = None,
    description: DescriptionOption = None,
    session: SessionOptions,
) -> None:
    """Create a calendar, or replace it whole; options go over the file.

    Every job that follows the calendar follows the new one from then on.
    """
    as_json = session.is_json
    if file == "-" and ics == "-":
        raise typer.BadParameter("--file - and --ics - cannot both read stdin")
    try:
        body = _body(file, ics, weekday, date, range_, description)
    except InvalidFieldError as error:
        raise CliError.from_invalid_field(error) from error
    if not body:
        raise typer.BadParameter("give --file, --ics, --weekday, --date or --range")
    api = session.connect()
    write_answer(api.put(calendar_path(name), body), as_json)


@calendars.command(name="list")
def list_calendars(*, session: SessionOptions) -> None:
    """List your calendars; with --json, an array."""
    found = list(session.connect().items("/calendars", None))
    write_items(found, _COLUMNS, session.is_json, _cell, ("updated_at", "ranges"))


@calendars.command()
def show(
    name: NameArgument,
    *,
    session: SessionOptions,
) -> None:
    """Show one calendar, whole."""
    answer = session.connect().get(calendar_path(name))
    write_answer(answer, session.is_json)


@calendars.command()
def delete(
    name: NameArgument,
    *,
    yes: YesOption = False,
    session: SessionOptions,
) -> None:
    """Delete a calendar; refused while a job follows it."""
    api = session.connect()
    path = calendar_path(name)
    confirm(f"Delete the calendar {name} for good?", yes)
    api.delete(path)
    write_done(f"deleted {name}", {"name": name, "state": "deleted"}, session.is_json)


def _body(
    file: str | None,
    ics: str | None,
    weekdays: list[str] | None,
    dates: list[str] | None,
    ranges: list[str] | None,
    description: str | None,
) -> dict[str, Any]:
    """The body of PUT; the API judges what is not allowed in it. Raises InvalidFieldError."""
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


def _cell(calendar: dict[str, Any], column: str) -> Any:
    value = calendar.get(column)
    if column in ("dates", "ranges"):
        # Their number: a list of all of them would not fit.
        return len(value or ())
    return " ".join(map(str, value)) if isinstance(value, list) else value
