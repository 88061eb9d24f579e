"""Bars on stderr for people who wait; off a terminal there is nothing."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from carillon.cli.display.words import printable


class Show(Protocol):
    """Shows how far work is: a text, and how much of the total is done, where that is known."""

    def __call__(self, text: str, done: float = ..., total: float | None = ...) -> None: ...


def no_progress(text: str, done: float = 0.0, total: float | None = None) -> None:
    """Shows nothing."""


@contextmanager
def progress_bar() -> Iterator[Show]:
    """A bar that moves where there is a total, and swings where there is none."""
    if not sys.stderr.isatty():
        yield no_progress
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(
        *columns,
        console=Console(stderr=True),
        transient=True,
        # Lines of the same terminal go above the bar; those for a file stay where they belong.
        redirect_stdout=sys.stdout.isatty(),
    ) as progress:
        bar = progress.add_task("", total=None)

        def show(text: str, done: float = 0.0, total: float | None = None) -> None:
            # A text from elsewhere is no markup.
            progress.update(bar, description=escape(printable(text)), completed=done, total=total)

        yield show
