"""What the command prints: JSON, a rich table on a terminal, plain aligned columns elsewhere."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any


def printable(value: Any) -> str:
    """Any value on one line; control characters are shown, so that no name drives a terminal."""
    if value is None:
        return "-"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def effective_at(item: Mapping[str, Any]) -> Any:
    """When a run or an occurrence starts; None where that is its fire time."""
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
    """What was done: a line for people, `told` as JSON."""
    if as_json:
        write_json(told)
    else:
        write_line(what)


@contextmanager
def progress_line() -> Iterator[Callable[[str], None]]:
    """What replaces one line on stderr, for people who wait; nothing off a terminal."""
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
