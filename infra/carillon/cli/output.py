"""Output: JSON, rich tables on a terminal, plain aligned columns elsewhere, charts, warnings."""

import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from carillon.cli.client import Json


def printable(value: Any) -> str:
    """Any value on one line; control characters are shown, so that no name drives a terminal."""
    if value is None:
        return "-"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


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


def write_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Rows under column names; cells are made printable."""
    cells = [[printable(value) for value in row] for row in rows]
    if sys.stdout.isatty():
        _write_rich(columns, cells)
    else:
        _write_plain([list(columns), *cells])


def write_record(record: Mapping[str, Any]) -> None:
    """One object: a line per field."""
    width = max((len(name) for name in record), default=0)
    for name, value in record.items():
        write_line(f"{name:<{width}}  {printable(value)}")


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
) -> None:
    """A list, as one JSON array or as a table of what `cell` makes of each item and column."""
    if as_json:
        write_json(items)
    else:
        write_table(columns, [[cell(item, column) for column in columns] for item in items])


def write_done(what: str, told: Mapping[str, Any], as_json: bool) -> None:
    """A report of what was done: a line for people, `told` as JSON."""
    if as_json:
        write_json(told)
    else:
        write_line(what)


@contextmanager
def progress_line() -> Iterator[Callable[[str], None]]:
    """A writer that replaces one line on stderr, for people who wait; nothing off a terminal."""
    if not sys.stderr.isatty():
        yield lambda text: None
        return

    def show(text: str) -> None:
        sys.stderr.write(f"\r\x1b[K{printable(text)}")
        sys.stderr.flush()

    try:
        yield show
    finally:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()


def _write_rich(columns: Sequence[str], cells: Sequence[Sequence[str]]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, show_edge=False)
    for name in columns:
        table.add_column(name, overflow="fold")
    for row in cells:
        # Text, since a str would be read as markup.
        table.add_row(*(Text(cell) for cell in row))
    Console().print(table)


def _write_plain(lines: Sequence[Sequence[str]]) -> None:
    widths = [max(len(cell) for cell in column) for column in zip(*lines, strict=True)]
    for line in lines:
        padded = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        write_line("  ".join(padded).rstrip())


BLOCKS = " ▁▂▃▄▅▆▇█"
ASCII = " #"


def columns_of(values: Sequence[int], width: int) -> tuple[int, list[int]]:
    """The number of values in each column of a chart, and the largest value of each.

    At most `width` columns; the last one may have fewer values.
    """
    size = max(1, math.ceil(len(values) / width))
    return size, [max(values[at : at + size]) for at in range(0, len(values), size)]


def bars(columns: Sequence[int], height: int, glyphs: str) -> list[str]:
    """The lines of the chart, the top one first; the largest column fills them all.

    `glyphs` are the parts of a full character, from nothing to all of it. Whatever is not zero
    shows.
    """
    parts = len(glyphs) - 1
    largest = max(columns, default=0)
    filled = [
        max(1, round(value * height * parts / largest)) if value else 0 for value in columns
    ]  # fmt: skip
    return [
        "".join(glyphs[min(max(fill - row * parts, 0), parts)] for fill in filled)
        for row in range(height - 1, -1, -1)
    ]


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


COLUMNS = ("fire_at", "effective_at", "status", "attempt", "lag_seconds", "outcome", "run_id")
_ATTEMPT_COLUMNS = ("attempt", "started_at", "finished_at", "error")


def run_cell(run: Json, column: str) -> Any:
    """The columns of a list of runs."""
    if column == "effective_at":
        return effective_at(run)
    return _outcome(run) if column == "outcome" else run.get(column)


def write_run(run: Json, as_json: bool) -> None:
    """A run, whole: a line per member, then a table of its attempts."""
    if as_json:
        write_json(run)
        return
    attempts = run.get("attempts")
    told = {name: value for name, value in run.items() if name != "attempts"}
    if "error" in told:
        told["error"] = _error(told["error"])
    write_record(told)
    rows = [entry for entry in attempts or () if isinstance(entry, dict)]
    if rows:
        write_line("")
        write_table(_ATTEMPT_COLUMNS, [_attempt_row(entry) for entry in rows])


def _attempt_row(attempt: Json) -> list[Any]:
    return [
        _error(attempt.get(column)) if column == "error" else attempt.get(column)
        for column in _ATTEMPT_COLUMNS
    ]


def _outcome(run: Json) -> Any:
    """The reason and the details: the error, the result or the reason, and the note on it."""
    outcome = _error(run.get("error")) or run.get("result") or run.get("reason")
    settled, note = run.get("settled"), run.get("note")
    more = ", ".join(printable(each) for each in (settled, note) if each)
    if not more:
        return outcome
    return f"{printable(outcome)} ({more})" if outcome else more


def _error(error: Any) -> Any:
    return f"{error.get('kind')}: {error.get('message')}" if isinstance(error, dict) else error
