"""What is printed on a terminal; elsewhere the other tests read it."""

import io
import sys
from datetime import UTC, datetime

import pytest

from carillon.cli.display.progress import progress_bar
from carillon.cli.display.tables import cut, fitted, room_of
from carillon.cli.display.words import lasted, members_of, when
from carillon.cli.output import StreamedTable, printable, write_record, write_table

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
RUN_ID = "e5vqzve7xs7cfr6w7dlxrjm3pj_20260101T110000Z_scheduled_0"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def a_terminal(patch: pytest.MonkeyPatch, no_color: str = "") -> Terminal:
    """stdout from now on; 80 columns wide."""
    made = Terminal()
    patch.setattr(sys, "stdout", made)
    for name, value in (("TERM", "xterm-256color"), ("COLUMNS", "80"), ("NO_COLOR", no_color)):
        patch.setenv(name, value)
    return made


def test_a_terminal_gets_a_table_that_no_cell_can_style(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = a_terminal(monkeypatch)

    write_table(("name", "state"), [("[red]a[/red]", None), ("b\x1b[2J", "active")])

    printed = terminal.getvalue()
    assert "[red]a[/red]" in printed
    assert r"b\x1b[2J" in printed
    assert "\x1b[2J" not in printed
    assert "\x1b[32mactive" in printed


def test_no_color_is_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = a_terminal(monkeypatch, no_color="1")

    write_table(("state",), [("active",)])
    write_record({"state": "dead"})

    assert "\x1b[3" not in terminal.getvalue()


@pytest.mark.parametrize(
    ("width", "across", "below"),
    [
        (200, ["fire_at", "kind", "status", "outcome", "run_id"], []),
        (99, ["fire_at", "status", "outcome", "run_id"], []),
        (80, ["fire_at", "status", "outcome"], ["run_id"]),
        (20, ["outcome"], []),
    ],
)
def test_columns_go_by_need_and_then_ids_get_a_line_of_their_own(
    width: int, across: list[str], below: list[str]
) -> None:
    columns = ("fire_at", "kind", "status", "outcome", "run_id")
    rows = [("2 h ago", "scheduled", "succeeded", "x" * 300, RUN_ID)]

    layout = fitted(columns, rows, width, ("kind",))

    shown = [columns[at] for at in layout.across]
    assert set(across) <= set(shown)
    assert ("kind" in shown) is (width in (80, 200))
    assert set(below) <= {columns[at] for at in layout.below}
    line = "  ".join(text for _, text in layout.cells(rows[0]))
    assert room_of(line) <= max(width, 80)
    told = [line, *layout.under(rows[0])]
    assert sum(RUN_ID in each for each in told) == 1


def test_a_column_in_which_nothing_stands_goes_first() -> None:
    columns, rows = ("name", "effective_at", "note"), [("a", "-", "b"), ("c", "-", "d")]

    assert list(fitted(columns, rows, 200, ("effective_at",)).across) == [0, 2]
    assert list(fitted(columns, rows, 200).across) == [0, 1, 2]


def test_text_is_cut_where_it_is_seen() -> None:
    assert cut("short", 5) == "short"
    assert cut("longer", 5) == "long…"
    assert (cut("日本語です", 5), room_of("日本語")) == ("日本…", 6)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("2026-01-01T12:00:00.4Z", "now"),
        ("2026-01-01T12:00:40Z", "in 40 s"),
        ("2026-01-01T12:03:59Z", "in 3 min"),
        ("2026-01-01T10:00:00+00:00", "2 h ago"),
        ("2026-01-04T12:00:00Z", "in 3 d"),
        ("2026-12-24T12:00:00Z", "2026-12-24"),
        ("2026-01-01", None),
        ("soon", None),
        (None, None),
    ],
)
def test_times_are_told_as_people_say_them(text: object, words: str | None) -> None:
    assert when(text, NOW) == words


def test_durations_and_objects_are_short() -> None:
    assert [lasted(seconds) for seconds in (0.4, 59, 60, 7_300, 86_400)] == [
        "0 s", "59 s", "1 min", "2 h", "1 d"
    ]  # fmt: skip
    assert members_of({"limit": 5, "key": "", "backoff": {"type": "fixed"}, "on": ["a", "b"]}) == (
        "limit=5 backoff.type=fixed on=a,b"
    )


def test_a_stream_has_one_header_and_aligned_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = a_terminal(monkeypatch, no_color="1")
    monkeypatch.setenv("TERM", "dumb")
    table = StreamedTable(("fire_at", "status", "outcome", "run_id"))

    table.write(("2026-01-01T11:00:00Z", "dead", "http_503: " + "busy " * 30, RUN_ID))
    table.write(("2026-01-01T11:00:05Z", "succeeded", None, RUN_ID))

    lines = terminal.getvalue().splitlines()
    assert [line.split()[0] for line in lines] == [
        "fire_at", "run_id", "11:00:00", RUN_ID, "11:00:05", RUN_ID
    ]  # fmt: skip
    assert lines[2].index("http_503") == lines[0].index("outcome") == lines[4].index("-", 12)
    assert all(len(line) <= 80 for line in lines)


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


def test_progress_is_a_bar_on_a_terminal_and_nothing_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown, silent = Terminal(), io.StringIO()
    monkeypatch.setenv("TERM", "xterm-256color")
    for stream in (shown, silent):
        monkeypatch.setattr(sys, "stderr", stream)
        with progress_bar() as show:
            show("1 of 2 [red]\x1b[2J", 1, 2)
    assert r"1 of 2 [red]\x1b[2J" in shown.getvalue()
    assert silent.getvalue() == ""
