"""The states of the chunk model, plain tuples: chunks, rows, queue, executors, and the job X.

Job X has occurrence x, job Y has y, in one group. A member is an occurrence and the generation
under which a message lists it. A claim is the number of its executor, 0 once nobody has it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

Member = tuple[str, int]
ALONE = -1
"""In the place of a chunk's number: the message is that of one occurrence."""


class Row(NamedTuple):
    """A run row; `by` are the generations that have claimed it."""

    status: str = "none"
    claim: int = 0
    live: bool = False
    attempt: int = 0
    by: tuple[int, ...] = ()


class Chunk(NamedTuple):
    """`ends` are those of its `members` once it is final: ok, alone or died."""

    status: str = "free"
    claim: int = 0
    live: bool = False
    members: tuple[Member, ...] = ()
    ends: tuple[str, ...] = ()


class Text(NamedTuple):
    """The content of a message; `dead`: it is in the dead-letter queue."""

    chunk: int
    members: tuple[Member, ...]
    attempt: int = 1
    dead: bool = False


class Executor(NamedTuple):
    """A message in hand. `running`: the member of x that is called in the chunk; `called`: the
    occurrences whose call is not recorded yet. `settled`: its chunk was finished, or `refused`."""

    step: str = "idle"
    text: Text = Text(ALONE, ())
    attempt: int = 0
    late: bool = False
    seen_own: int = 0
    running: tuple[Member, ...] = ()
    ends: tuple[str, ...] = ()
    called: str = ""
    is_final: bool = False
    settled: bool = False
    refused: bool = False
    raises: bool = False
    left: tuple[Member, ...] = ()
    before: Row = Row()


class State(NamedTuple):
    """`change` is how far the request has got: asked, sent, committed, over; or
    fenced, cancelled. `spare` is
    how often x and y may still be called: once, and once more for each attempt that failed, died or
    lapsed; `calls` is how often x was."""

    chunks: tuple[Chunk, ...]
    messages: tuple[Text, ...]
    executors: tuple[Executor, ...]
    own: int
    change: str
    crashes: int = 0
    lapses: int = 0
    doubles: int = 0
    letters: int = 0
    rows: tuple[Row, Row] = (Row(), Row())
    spare: tuple[int, int] = (1, 1)
    calls: int = 0
    oks: tuple[int, int] = (0, 0)
    halted: bool = False
    wrong: tuple[str, ...] = ()


Moves = Iterator[tuple[str, State]]


@dataclass(frozen=True, slots=True)
class Variant:
    """`lists` are the messages of chunks: a chunk's number and what each lists. `ends` is what may
    become of x in a chunk. `request`: pause; cancel of x; or change to a generation that has x too
    (`yields`), has it not (`lacks`), or begins after it (`after`). Where `own` is 2, generation 1
    was replaced long ago, or is an `orphan`, which never was the job's own; `own_lacks`: 2 has no
    x."""

    lists: tuple[tuple[int, tuple[Member, ...]], ...]
    ends: tuple[str, ...] = ("ok",)
    request: str = ""
    own: int = 1
    orphan: bool = False
    own_lacks: bool = False
    crashes: int = 0
    lapses: int = 0
    doubles: int = 0
    letters: int = 0
    executors: int = 2
    bug: str = ""

    def has_x(self, generation: int) -> bool:
        """True if x is an occurrence of the generation, and after its beginning."""
        if generation > self.own:
            return self.request == "yields"
        return not (self.own_lacks and generation == self.own)


def at(occurrence: str) -> int:
    return "xy".index(occurrence)


def with_row(state: State, occurrence: str, row: Row) -> State:
    rows = (row, state.rows[1]) if occurrence == "x" else (state.rows[0], row)
    return state._replace(rows=rows)


def added(pair: tuple[int, int], occurrence: str, count: int) -> tuple[int, int]:
    x, y = pair
    return (x + count, y) if occurrence == "x" else (x, y + count)


def spared(state: State, occurrences: str, count: int = 1) -> State:
    for each in occurrences:
        state = state._replace(spare=added(state.spare, each, count))
    return state


def called(state: State, occurrences: str) -> State:
    calls = state.calls + occurrences.count("x")
    return spared(state._replace(calls=calls), occurrences, -1)


def succeeded(state: State, occurrence: str) -> State:
    return state._replace(oks=added(state.oks, occurrence, 1))


def sent(state: State, *texts: Text) -> State:
    """With these messages, too; a second one like it is a fault of its own."""
    return state._replace(messages=tuple(sorted({*state.messages, *texts})))


def unclaimed(state: State, claim: int) -> State:
    """The state once nobody can present the claim any more: leases only lapse."""
    chunks = tuple(c._replace(claim=0) if c.claim == claim else c for c in state.chunks)
    x, y = (row._replace(claim=0) if row.claim == claim else row for row in state.rows)
    return state._replace(chunks=chunks, rows=(x, y))
