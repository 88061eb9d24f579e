"""Lines of tables and records: with colours on a terminal, plain elsewhere."""

import sys
from collections.abc import Sequence

from carillon.cli.display.tables import GAP, Layout
from carillon.cli.display.words import STATES, STYLES

Parts = list[tuple[str, str]]
"""The texts of a line, each with its style."""


def styled(layout: Layout, columns: Sequence[str], row: Sequence[str]) -> list[Parts]:
    """The lines of a row: its cells, and what is below it."""
    cells = [(text, _style(columns[at], text)) for at, text in layout.cells(row)]
    return [cells, *([(line, "dim")] for line in layout.under(row))]


class Paint:
    """Writes to stdout; without colours where NO_COLOR or the kind of terminal forbids them."""

    def __init__(self) -> None:
        self.is_terminal = sys.stdout.isatty()

    def header(self, layout: Layout, columns: Sequence[str]) -> None:
        """The names of the columns, as those of a row stand."""
        self._line([(text, "bold") for _, text in layout.cells(columns)], GAP)
        for line in layout.under(columns):
            self._line([(line, "bold")])

    def row(self, layout: Layout, columns: Sequence[str], row: Sequence[str]) -> None:
        """The cells of a row, and what is below it."""
        for parts in styled(layout, columns, row):
            self._line(parts, GAP)

    def field(self, label: str, name: str, text: str) -> None:
        """A member of a record, behind its name."""
        self._line([(label, "bold"), (text, _style(name, text))], GAP)

    def _line(self, parts: Sequence[tuple[str, str]], gap: str = "") -> None:
        if not self.is_terminal:
            sys.stdout.write(gap.join(text for text, _ in parts).rstrip() + "\n")
            return
        from rich.console import Console
        from rich.text import Text

        # Text, since a str would be read as markup. The terminal wraps, so that no id is broken.
        line = Text(gap).join(Text(text, style) for text, style in parts)
        line.rstrip()
        Console(file=sys.stdout, highlight=False, soft_wrap=True).print(line)


def _style(column: str, text: str) -> str:
    return STYLES.get(text.strip(), "") if column in STATES else ""
