"""What is printed on a terminal; elsewhere the other tests read it."""

import io
import sys

import pytest

from carillon.cli.output import printable, write_table


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_a_table_that_no_cell_can_style(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("COLUMNS", "80")

    write_table(("name", "state"), [("[red]a[/red]", None), ("b\x1b[2J", "active")])

    printed = terminal.getvalue()
    assert "─" in printed
    assert "[red]a[/red]" in printed
    assert r"b\x1b[2J" in printed
    assert "\x1b[2J" not in printed


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        ("labrīt", "labrīt"),
        ("a\tb\r\n", r"a\tb\r\n"),
        ("a\u202eb", r"a\u202eb"),
        ({"a": "ī"}, '{"a": "ī"}'),
        (1.5, "1.5"),
        (True, "true"),
    ],
)
def test_every_value_has_one_printable_line(value: object, text: str) -> None:
    assert printable(value) == text
