"""Tables that fit a terminal: each id and name is whole, free text is cut, columns are left out."""

from collections.abc import Sequence
from dataclasses import dataclass

Rows = Sequence[Sequence[str]]

GAP = "  "
INDENT = "  "
NOTHING = "-"
_LEAST_TEXT = 12
_ELLIPSIS = "…"

FREE = frozenset(
    {
        "description", "detail", "error", "jobs", "message", "note", "outcome", "reason", "result",
        "schedule", "sentence", "tags", "target", "unreadable", "when",
    }
)  # fmt: skip
"""Columns of free text. Nothing is addressed by what stands in them, so they may be cut."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of a table, by their places: those side by side with their widths, and those
    that get a line of their own under each row, for there is no room beside the others; `room` is
    what the terminal has for such a line."""

    across: Sequence[int]
    widths: Sequence[int]
    below: Sequence[int] = ()
    room: int = 0

    def cells(self, row: Sequence[str]) -> list[tuple[int, str]]:
        """The places and texts of what stands side by side; each text has its column's width."""
        return [
            (at, _padded(row[at], width))
            for at, width in zip(self.across, self.widths, strict=True)
        ]

    def under(self, row: Sequence[str]) -> list[str]:
        """The lines below, never cut, though they be wider than the terminal; indented where that
        leaves them on one line."""
        texts = (row[at] for at in self.below if row[at] != NOTHING)
        return [INDENT + text if room_of(INDENT + text) <= self.room else text for text in texts]


def whole(columns: Sequence[str], rows: Rows) -> Layout:
    """Every column, as wide as it is."""
    return Layout(range(len(columns)), _widths(columns, rows))


def fitted(
    columns: Sequence[str], rows: Rows, width: int, least_needed: Sequence[str] = ()
) -> Layout:
    """The layout for a terminal that is `width` characters wide.

    Free text shrinks first. Then the columns of `least_needed` are left out, in that order; those
    in which nothing stands at once. Then whole ones go below, the widest first.
    """
    widths = _widths(columns, rows)
    order = [columns.index(name) for name in least_needed if name in columns]
    empty = {at for at in order if all(row[at] == NOTHING for row in rows)}
    below: list[int] = []
    while True:
        for count in range(len(order) + 1):
            gone = empty.union(order[:count], below)
            across = [at for at in range(len(columns)) if at not in gone]
            got = _shrunk(across, columns, widths, width)
            if got is not None:
                return Layout(across, got, below, width)
        fixed = [at for at in across if columns[at] not in FREE]
        if not fixed or len(across) == 1:
            most = [width if columns[at] in FREE else widths[at] for at in across]
            cells = [min(widths[at], room) for at, room in zip(across, most, strict=True)]
            return Layout(across, cells, below, width)
        below.append(max(fixed, key=lambda at: widths[at]))


def room_of(text: str) -> int:
    """The width of a text on a terminal, where some characters are two wide, and some have none."""
    if text.isascii():
        return len(text)
    # 25 ms that few tables need.
    from rich.cells import cell_len

    return cell_len(text)


def cut(text: str, width: int) -> str:
    """The text within a width; where it is cut it ends with an ellipsis."""
    if room_of(text) <= width:
        return text
    from rich.cells import set_cell_size

    return set_cell_size(text, max(width - 1, 0)).rstrip() + _ELLIPSIS


def _shrunk(
    across: Sequence[int], columns: Sequence[str], widths: Sequence[int], width: int
) -> list[int] | None:
    """The widths with free text shrunk as far as it must be; None where that is not enough."""
    room = width - len(GAP) * (len(across) - 1)
    room -= sum(widths[at] for at in across if columns[at] not in FREE)
    texts = sorted((at for at in across if columns[at] in FREE), key=lambda at: widths[at])
    given: dict[int, int] = {}
    for number, at in enumerate(texts):
        share = room // (len(texts) - number)
        given[at] = min(widths[at], share)
        if given[at] < min(widths[at], max(_LEAST_TEXT, len(columns[at]))):
            return None
        room -= given[at]
    return None if room < 0 else [given.get(at, widths[at]) for at in across]


def _widths(columns: Sequence[str], rows: Rows) -> list[int]:
    return [
        max([room_of(name), *(room_of(row[at]) for row in rows)]) for at, name in enumerate(columns)
    ]


def _padded(text: str, width: int) -> str:
    text = cut(text, width)
    return text + " " * (width - room_of(text))
