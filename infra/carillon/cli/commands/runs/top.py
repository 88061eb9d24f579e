"""`carillon top`: what runs, what fails and what comes next, as it happens."""

import os
import select
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from carillon.cli.client import ApiClient, Json
from carillon.cli.commands.runs.shown import run_cell
from carillon.cli.display.paint import styled
from carillon.cli.display.tables import GAP, fitted
from carillon.cli.display.words import clock_time, when
from carillon.cli.instants import utc_text
from carillon.cli.output import printable, write_error, write_json, write_line, write_table
from carillon.cli.polling import looks
from carillon.cli.session import SessionOptions

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

_SPAN = timedelta(hours=1)
_FEW = 10
_COMING, _COMING_SHOWN = 50, 5
"""Enough for a minute, of jobs that fire every few seconds, too."""
_KEPT = timedelta(minutes=1)
"""The sums, the states and what comes next are asked for so often: each reads all jobs."""
_JOBS = "_jobs"
RUN_COLUMNS = ("at", "status", "job_name", "lag_seconds", "outcome")
_DRAWN = ("at", "status", "job_name", "outcome")
_INCOMPLETE = "a limit was reached: not all is counted"
NEXT_COLUMNS = ("fire_at", "name")


@dataclass(frozen=True, slots=True)
class Picture:
    """All there is to see at one moment; `counts` are of the last hour, `lag` of the worst of its
    minutes."""

    status: Json
    counts: Json
    lag: Json | None
    complete: bool
    runs: Sequence[Json]
    upcoming: Sequence[Json]

    def lines(self) -> Iterator[str]:
        """The sums, a line each."""
        yield (
            "  ".join(f"{count:,} {name}" for name, count in self.counts.items() if count)
            or "nothing has run"
        )
        if self.lag:
            yield "lag in the worst minute  " + "  ".join(
                f"{name} {self.lag[name]:.2f} s" for name in self.lag
            )
        states = [name for name in self.status if name.endswith(_JOBS) and self.status[name]]
        if states:
            told = (f"{self.status[name]:,} {name.removesuffix(_JOBS)}" for name in states)
            yield "jobs  " + "  ".join(told)


def look(api: ApiClient, now: datetime) -> Picture:
    """The picture now; four requests."""
    span = {"from": utc_text(now - _SPAN), "to": utc_text(now), "by": "minute"}
    summary = api.get("/runs/summary", span)
    counts: Counter[str] = Counter()
    for bucket in summary["buckets"]:
        counts.update(bucket["counts"])
    lags = [bucket["lag"] for bucket in summary["buckets"] if bucket.get("lag")]
    worst = {name: max(lag[name] for lag in lags) for name in lags[0]} if lags else None
    return Picture(
        api.get("/status"),
        dict(counts),
        worst,
        bool(summary.get("complete", True)),
        _ended(api),
        api.get("/upcoming", {"count": _COMING})["items"],
    )


class Looks:
    """One picture after another: what has ended is new each time, the rest after a minute."""

    def __init__(self, api: ApiClient) -> None:
        self._api = api
        self._last: tuple[datetime, Picture] | None = None

    def at(self, now: datetime) -> Picture:
        if self._last is None or now - self._last[0] >= _KEPT:
            self._last = now, look(self._api, now)
            return self._last[1]
        _, kept = self._last
        coming = [each for each in kept.upcoming if _start(each) >= utc_text(now)]
        return replace(kept, runs=_ended(self._api), upcoming=coming)


def _start(coming: Json) -> str:
    """The instant at which it is to start: in a window that is later than its fire time."""
    return str(coming.get("effective_at") or coming["fire_at"])


def _ended(api: ApiClient) -> Sequence[Json]:
    items: Sequence[Json] = api.get("/runs", {"limit": _FEW})["items"]
    return items


def top(
    *,
    interval: Annotated[float, typer.Option(help="Seconds between two looks.", min=1.0)] = 3.0,
    session: SessionOptions,
) -> None:
    """Show what has run in the last hour, what fails and what comes next, until q or Ctrl-C.

    Off a terminal, and with --json, once.
    """
    api = session.connect()
    if session.is_json or not sys.stdout.isatty():
        write_picture(look(api, datetime.now(UTC)), session.is_json)
        return
    from rich.live import Live

    with keys() as quits, Live(screen=True, auto_refresh=False) as live:

        def sleep(seconds: float) -> None:
            if quits(seconds):
                raise KeyboardInterrupt

        pictures = Looks(api)
        try:
            for picture in looks(lambda: pictures.at(datetime.now(UTC)), interval, False, sleep):
                live.update(drawn(picture, datetime.now(UTC), *live.console.size), refresh=True)
        except KeyboardInterrupt:
            return


def write_picture(picture: Picture, as_json: bool) -> None:
    """The picture once."""
    if as_json:
        write_json(asdict(picture))
        return
    for line in picture.lines():
        write_line(line)
    if not picture.complete:
        write_error(f"Note: {_INCOMPLETE}")
    write_line("")
    runs, upcoming = picture.runs, picture.upcoming[:_COMING_SHOWN]
    write_table(RUN_COLUMNS, [[run_cell(run, name) for name in RUN_COLUMNS] for run in runs])
    write_line("")
    write_table(NEXT_COLUMNS, [[each.get(name) for name in NEXT_COLUMNS] for each in upcoming])


def _never(seconds: float) -> bool:
    time.sleep(seconds)
    return False


def drawn(picture: Picture, now: datetime, width: int, height: int) -> "RenderableType":
    """The picture for the whole terminal: of the runs as many as there is room for."""
    from rich.console import Group
    from rich.text import Text

    runs = [
        [clock_time(run.get("at")) or "-", *(printable(run_cell(run, name)) for name in _DRAWN[1:])]
        for run in picture.runs
    ]
    coming = [
        [when(each.get("fire_at"), now) or "-", printable(each.get("name"))]
        for each in picture.upcoming[:_COMING_SHOWN]
    ]
    head = f"carillon top   {now:%H:%M:%S} UTC   last hour   q ends"
    note = [] if picture.complete else [_INCOMPLETE]
    above = [Text(head, "bold"), *map(Text, (*picture.lines(), *note, ""))]
    below = [Text(""), Text("next", "bold"), *_lines(NEXT_COLUMNS, coming, width)]
    ended = [Text("ended", "bold"), *_lines(_DRAWN, runs, width)]
    parts = [*above, *ended[: max(2, height - len(above) - len(below))], *below]
    for each in parts:
        each.no_wrap, each.overflow = True, "ellipsis"
    return Group(*parts)


def _lines(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> "Iterator[Text]":
    """The rows without a header, as a table of this width has them."""
    from rich.text import Text

    layout = fitted(columns, rows, width)
    for row in rows:
        for parts in styled(layout, columns, row):
            yield Text(GAP).join(Text(text, style) for text, style in parts)


@contextmanager
def keys() -> Iterator[Callable[[float], bool]]:
    """A wait that ends early, with True, when `q` is pressed."""
    if not sys.stdin.isatty():
        yield _never
        return
    import termios
    import tty

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)

    def quits(seconds: float) -> bool:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            ready, _, _ = select.select([descriptor], [], [], left)
            if ready and os.read(descriptor, 1) in (b"q", b"Q", b""):
                return True
        return False

    try:
        tty.setcbreak(descriptor)  # Ctrl-C is a signal all the same.
        yield quits
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
