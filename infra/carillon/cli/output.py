"""Output: JSON, tables that fit a terminal, plain aligned columns elsewhere, warnings."""

import json
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

from carillon.cli.display.paint import Paint
from carillon.cli.display.tables import Layout, fitted, room_of, whole
from carillon.cli.display.words import STATES, clock_time, is_time, when
from carillon.cli.display.words import printable as printable

is_wide: ContextVar[bool] = ContextVar("is_wide", default=False)
"""True where `--wide` asks for whole tables, however long their lines are."""


def effective_at(item: Mapping[str, Any]) -> Any:
    """The start of a run or an occurrence; None where that is its fire time."""
    found = item.get("effective_at")
    return None if found == item.get("fire_at") else found


def write_line(text: str) -> None:
    sys.stdout.write(text + "\n")


def write_error(text: str) -> None:
    """A line on stderr, whose control characters are shown; line feeds are kept."""
    lines = (printable(line) for line in text.split("\n"))
    sys.stderr.write("\n".join(lines) + "\n")


def write_json(value: Any, *, compact: bool = False) -> None:
    """One JSON document; `compact` keeps it on one line (JSON Lines)."""
    write_line(json.dumps(value, indent=None if compact else 2))


def write_table(
    columns: Sequence[str], rows: Sequence[Sequence[Any]], least_needed: Sequence[str] = ()
) -> None:
    """Rows under column names; cells are made printable.

    A terminal shows instants as seen from now, and only what fits into its width: of the columns
    in `least_needed` the first goes first. Ids and names are always whole.
    """
    now = datetime.now(UTC) if sys.stdout.isatty() else None
    cells = [
        [_cell(column, value, now) for column, value in zip(columns, row, strict=True)]
        for row in rows
    ]
    layout = _layout(columns, cells, least_needed)
    paint = Paint()
    paint.header(layout, columns)
    for row in cells:
        paint.row(layout, columns, row)


def write_record(record: Mapping[str, Any]) -> None:
    """One object: a line per field. A terminal shows instants as seen from now, too."""
    width = max((len(name) for name in record), default=0)
    paint = Paint()
    for name, value in record.items():
        seen = when(value, datetime.now(UTC)) if paint.is_terminal and is_time(name) else None
        text = printable(value)
        paint.field(f"{name:<{width}}", name, text if seen is None else f"{text} ({seen})")


def write_answer(record: Mapping[str, Any], as_json: bool) -> None:
    """One object, as JSON or for people."""
    if as_json:
        write_json(record)
    else:
        write_record(record)


def write_items(
    items: Sequence[dict[str, Any]],
    columns: Sequence[str],
    as_json: bool,
    cell: Callable[[dict[str, Any], str], Any] = dict.get,
    least_needed: Sequence[str] = (),
) -> None:
    """A list, as one JSON array or as a table of what `cell` makes of each item and column."""
    if as_json:
        write_json(items)
    else:
        rows = [[cell(item, column) for column in columns] for item in items]
        write_table(columns, rows, least_needed)


def write_done(what: str, told: Mapping[str, Any], as_json: bool) -> None:
    """A report of what was done: a line for people, `told` as JSON."""
    if as_json:
        write_json(told)
    else:
        write_line(what)


class StreamedTable:
    """A table whose rows come one after the other; its columns only ever grow wider.

    A terminal shows the time of day of instants, in UTC, and free text as far as there is room.
    """

    def __init__(self, columns: Sequence[str], least_needed: Sequence[str] = ()) -> None:
        self._columns = columns
        self._least_needed = least_needed
        # The longest status may come late.
        self._widest = ["succeeded" if name in STATES else name for name in columns]
        self._shown: Sequence[int] = ()

    def write(self, row: Sequence[Any]) -> None:
        """A row; before the first one the header, and again where other columns fit than before."""
        told = [
            (clock_time(value) if sys.stdout.isatty() and is_time(column) else None) or value
            for column, value in zip(self._columns, row, strict=True)
        ]
        cells = [printable(value) for value in told]
        self._widest = [max(pair, key=room_of) for pair in zip(self._widest, cells, strict=True)]
        layout, paint = _layout(self._columns, [self._widest], self._least_needed), Paint()
        if layout.across != self._shown:
            paint.header(layout, self._columns)
        self._shown = layout.across
        paint.row(layout, self._columns, cells)


def _layout(
    columns: Sequence[str], cells: Sequence[Sequence[str]], least_needed: Sequence[str]
) -> Layout:
    if is_wide.get() or not sys.stdout.isatty():
        return whole(columns, cells)
    return fitted(columns, cells, shutil.get_terminal_size().columns, least_needed)


def _cell(column: str, value: Any, now: datetime | None) -> str:
    seen = None if now is None or not is_time(column) else when(value, now)
    return printable(value) if seen is None else seen


NOTED = ("transitions", "warnings")
"""The members that `notes_of` shows."""

_OF_THE_CLOCKS = "dst"
"""The code of a warning that sums the transitions up: where they are listed it adds nothing."""


def notes_of(told: Mapping[str, Any]) -> Iterator[str]:
    """A line for each entry of `transitions` and `warnings`, both in the API's form."""
    transitions, warnings = (_entries(told.get(member)) for member in NOTED)
    for transition in transitions:
        yield f"Clock change {transition.get('transition_at')}: {transition.get('effect')}"
    for warning in warnings:
        if not transitions or warning.get("code") != _OF_THE_CLOCKS:
            yield f"Warning: {warning.get('message')}"


def write_notes(answer: Mapping[str, Any]) -> None:
    """Write to stderr what an answer of the API has about its schedule."""
    for note in notes_of(answer):
        write_error(note)


def _entries(value: object) -> list[dict[str, Any]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []
