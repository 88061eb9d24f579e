"""Charts of characters."""

import math
from collections.abc import Sequence

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
