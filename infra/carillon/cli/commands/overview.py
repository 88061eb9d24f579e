"""`carillon upcoming`, `forecast` and `status`."""

import shutil
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import typer

from carillon.cli.display.charts import ASCII, BLOCKS, bars, columns_of
from carillon.cli.exits import CliError, ExitCode
from carillon.cli.instants import utc_text
from carillon.cli.options import span_of
from carillon.cli.output import (
    effective_at,
    write_error,
    write_json,
    write_line,
    write_record,
    write_table,
)
from carillon.cli.session import SessionOptions

_HEIGHT = 8
_PLAIN_WIDTH = 80
_MARKS = "abcdefghijklmnopqrstuvwxyz"
_MINUTE = timedelta(minutes=1)

FromOption = Annotated[
    str | None,
    typer.Option("--from", help="ISO 8601; UTC without an offset.", show_default="now"),
]
UntilOption = Annotated[
    str | None,
    typer.Option("--to", help="ISO 8601; UTC without an offset.", show_default="a day later"),
]


def forecast(
    *,
    from_at: FromOption = None,
    until_at: UntilOption = None,
    session: SessionOptions,
) -> None:
    """Show how many times your jobs will fire in each minute to come, and where the peaks are.

    With --json, the API's answer:
    {"from", "to", "complete", "total", "peaks", "minutes"}.
    """
    as_json = session.is_json
    query = span_of(from_at, until_at)
    answer = session.connect().get("/forecast", query)
    if answer.get("complete") is False:
        write_error("Note: not all of your jobs were counted; there may be more fires than shown")
    if as_json:
        write_json(answer)
        return
    try:
        _write(answer)
    except (LookupError, TypeError, ValueError) as error:
        raise CliError.local(
            ExitCode.UNEXPECTED, "Unexpected answer", f"no forecast: {error!r}"
        ) from error


def _write(answer: Mapping[str, Any]) -> None:
    """The sum, the chart with a letter over each peak, and the peaks by their letters."""
    first = _minute(answer["from"])
    last = max(first, _minute(answer["to"]))
    fires = [0] * ((last - first) // _MINUTE + 1)
    for entry in answer["minutes"]:
        fires[_place(entry["minute"], first)] = int(entry["fires"])
    write_line(f"{answer['total']:,} fires from {answer['from']} to {answer['to']}")
    peaks = list(answer["peaks"])[: len(_MARKS)]
    if not peaks:
        return
    write_line("")
    _write_chart(fires, [_place(peak["minute"], first) for peak in peaks], first)
    write_line("")
    rows: list[tuple[Any, ...]] = []
    for mark, peak in zip(_MARKS, peaks, strict=False):
        first_job, *others = map(str, peak["jobs"])
        rows.append((mark, peak["minute"], peak["fires"], first_job))
        rows += [("", "", "", job) for job in others]
    write_table(("peak", "minute", "fires", "name"), rows)


def _write_chart(fires: Sequence[int], peaks: Sequence[int], first: datetime) -> None:
    """`peaks` are places in `fires`, the highest first."""
    top = f"{max(fires):,} "
    margin = len(top)
    size, columns = columns_of(fires, max(10, _width() - margin - 1))
    marks = [" "] * len(columns)
    for mark, place in zip(_MARKS, peaks, strict=False):
        if marks[place // size] == " ":
            marks[place // size] = mark
    write_line(" " * margin + "".join(marks).rstrip())
    for row, line in enumerate(bars(columns, _HEIGHT, _glyphs())):
        write_line(((top if row == 0 else " " * margin) + line).rstrip())
    begin, end = utc_text(first), utc_text(first + _MINUTE * (len(fires) - 1))
    write_line(" " * margin + begin + f" {end}".rjust(len(columns) - len(begin)))
    unit = "a minute" if size == 1 else f"the busiest of {size} minutes"
    write_line(f"{' ' * margin}fires a minute; each column is {unit}")


def _place(minute: str, first: datetime) -> int:
    place = (_minute(minute) - first) // _MINUTE
    if place < 0:
        raise ValueError(f"{minute} lies before {first}")
    return place


def _width() -> int:
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else _PLAIN_WIDTH


def _glyphs() -> str:
    """Blocks on a terminal that has them."""
    try:
        BLOCKS.encode(sys.stdout.encoding or "utf-8")
    except UnicodeError:
        return ASCII
    return BLOCKS if sys.stdout.isatty() else ASCII


def _minute(text: str) -> datetime:
    """The minute of an instant of the API."""
    return datetime.fromisoformat(text).astimezone(UTC).replace(second=0, microsecond=0)


_COLUMNS = ("fire_at", "local", "effective_at", "name", "job_id")


def upcoming(
    job: Annotated[
        str | None,
        typer.Argument(metavar="JOB", help="Its name, or its id.", show_default="all your jobs"),
    ] = None,
    *,
    count: Annotated[int, typer.Option(help="How many occurrences.", min=1)] = 10,
    session: SessionOptions,
) -> None:
    """Show the next occurrences, of one job or across all of yours; with --json, an array."""
    api = session.connect()
    path = "/upcoming" if job is None else api.job_path(job, "/upcoming")
    answer = api.get(path, {"count": count})
    found = answer.get("items", [])
    if answer.get("complete") is False:
        write_error("Note: not all of your jobs were read; some occurrences may be left out")
    if session.is_json:
        write_json(found)
    else:
        rows = [item | {"effective_at": effective_at(item)} for item in found]
        # Few jobs have a calendar that moves occurrences.
        columns = (*_COLUMNS, "note") if any(row.get("note") for row in rows) else _COLUMNS
        least = ("job_id", "local", "effective_at")
        write_table(columns, [[row.get(column) for column in columns] for row in rows], least)


def status(*, session: SessionOptions) -> None:
    """Show whether your jobs are idle or being processed; operators see every segment too."""
    answer = session.connect().get("/status")
    if session.is_json:
        write_json(answer)
        return
    tables = {name: value for name, value in answer.items() if isinstance(value, list)}
    write_record({name: value for name, value in answer.items() if name not in tables})
    for rows in filter(None, tables.values()):
        columns = list(dict.fromkeys(name for row in rows for name in row))
        write_line("")
        write_table(columns, [[row.get(column) for column in columns] for row in rows])
