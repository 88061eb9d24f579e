"""The chunk protocol as it is built: one claim and one finish for many runs.

Executors stop, are paused past their leases, and meet duplicates; job X is changed or paused
meanwhile, or its run cancelled. A crash stands for a lost answer, too: whoever comes next finds
what was written. A message that waits may come at once: how long it waits decides nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass

from tests.models import alone_turns, chunk_turns
from tests.models.alone_turns import MOST_ATTEMPTS
from tests.models.chunk_state import (
    ALONE,
    Chunk,
    Executor,
    Member,
    Moves,
    Row,
    State,
    Text,
    Variant,
    at,
    sent,
    spared,
    unclaimed,
    with_row,
)
from tests.models.chunk_turns import Turn, alone

X: Member = ("x", 1)
STEPS: dict[str, Callable[[Turn], Moves]] = {**vars(chunk_turns), **vars(alone_turns)}
"""An executor's step is the function of its name."""


@dataclass(frozen=True, slots=True)
class ChunkModel:
    variant: Variant

    def start(self) -> State:
        v = self.variant
        numbers = {number for number, _ in v.lists}
        texts = tuple(sorted(Text(number, members) for number, members in {*v.lists}))
        executors = (Executor(),) * v.executors
        change = "asked" if v.request else "over"
        chunks = (Chunk(),) * len(numbers)
        faults = (v.crashes, v.lapses, v.doubles, v.letters)
        return State(chunks, texts, executors, v.own, change, *faults)

    def moves(self, state: State) -> Moves:
        yield from self._request_moves(state)
        yield from _lapse_moves(state)
        yield from _queue_moves(state)
        for number, me in enumerate(state.executors):
            if me.step == "idle":
                continue
            yield from STEPS[me.step](Turn(self.variant, state, number))
            if state.crashes:
                yield _crash(Turn(self.variant, state, number))

    def _request_moves(self, state: State) -> Moves:
        request, newer = self.variant.request, self.variant.own + 1
        if state.change == "asked" and request == "yields":
            state_then = sent(state, alone(("x", newer)))._replace(change="sent")
            yield "indexer sends x of the new generation", state_then
        elif request == "cancel" and "cancelled" not in state.change:
            yield from _cancel_moves(self.variant, state)
        elif state.change == "asked" and request == "pause":
            yield "COMMIT of the pause", state._replace(change="committed", halted=True)
        elif state.change == "committed":
            yield "the pause is ACKNOWLEDGED", state._replace(change="over")
        elif state.change in ("asked", "sent"):
            yield "COMMIT of the new generation", state._replace(change="over", own=newer)
            if state.crashes:
                gone = state._replace(change="over", crashes=state.crashes - 1)
                yield "indexer CRASHES before its commit", gone

    def wrong(self, state: State) -> list[str]:
        found = list(state.wrong)
        if state.calls > MOST_ATTEMPTS:
            found.append("x is called more often than it has attempts")
        for name in "xy":
            row, in_chunks = state.rows[at(name)], _in_chunks(state, name)
            if state.oks[at(name)] > 1:
                found.append(f"two successes of {name}")
            ends = {"succeeded", "dead", "skipped", state.change}
            if in_chunks and row.status in ends:
                found.append(f"{name} has two outcomes")
            if state.spare[at(name)] < 0:
                found.append(f"{name} is called again for no reason")
        if "cancelled" in state.change and state.rows[0].status != "cancelled":
            found.append("a cancelled run goes on")
        return found

    def unfinished(self, end: State) -> list[str]:
        found = []
        for name in {each[0] for _, members in self.variant.lists for each in members}:
            row, in_chunks = end.rows[at(name)].status, _in_chunks(end, name)
            if name == "x" and self.variant.own_lacks and self.variant.orphan:
                found += [f"a row says {row}, at an instant that is none"] * (row != "none")
            elif in_chunks and row != "none" and end.change != "cancelled by row":
                found.append(f"{name} succeeded in a chunk, and its row says {row}")
            elif not in_chunks and row not in ("succeeded", "dead", "skipped", "cancelled"):
                found.append(f"{name} ends without an outcome")
        return found


def _in_chunks(state: State, name: str) -> int:
    ends = [each for c in state.chunks for each in zip(c.members, c.ends, strict=False)]
    return sum(member[0] == name and end == "ok" for member, end in ends)


def _cancel_moves(variant: Variant, state: State) -> Moves:
    """Cancel x: over its row, which counts more than a chunk then; or in the place of none, once
    nobody can finish the chunk that has it."""
    row, cancelled = state.rows[0].status, with_row(state, "x", Row("cancelled"))
    if row in ("running", "retrying"):
        yield "x is CANCELLED by its row", cancelled._replace(change="cancelled by row")
    elif row == "none" and state.change == "fenced":
        yield "x is CANCELLED in the place of no row", cancelled._replace(change="cancelled")
    elif row == "none":
        for n, chunk in enumerate(state.chunks):
            if chunk.status == "claimed" and not chunk.live and X in chunk.members:
                claim = chunk.claim if variant.bug == "cancels without a fence" else 0
                fenced = (*state.chunks[:n], chunk._replace(claim=claim), *state.chunks[n + 1 :])
                yield "its chunk is FENCED", state._replace(chunks=fenced, change="fenced")


def _lapse_moves(state: State) -> Moves:
    """Leases lapse: at any time once the holder is gone; under one that is paused, by a fault."""
    live = {c.claim for c in state.chunks if c.live} | {row.claim for row in state.rows if row.live}
    for claim in sorted(live):
        chunks, rows, risked = list(state.chunks), list(state.rows), set()
        for n, chunk in enumerate(chunks):
            if chunk.live and chunk.claim == claim:
                chunks[n] = chunk._replace(live=False)
                risked |= {name for name, _ in chunk.members}
        for n, row in enumerate(rows):
            if row.live and row.claim == claim:
                rows[n] = row._replace(live=False)
                risked.add("xy"[n])
        lapsed = state._replace(chunks=tuple(chunks), rows=(rows[0], rows[1]))
        names = "".join(sorted(risked))
        if not claim:
            yield f"lease of {names} lapses, its holder is gone", lapsed
        elif state.lapses:
            lapsed = spared(lapsed._replace(lapses=state.lapses - 1), names)
            yield f"lease of {names} LAPSES under executor {claim - 1}", lapsed


def _queue_moves(state: State) -> Moves:
    idle = next((n for n, each in enumerate(state.executors) if each.step == "idle"), None)
    for text in state.messages:
        rest = tuple(each for each in state.messages if each != text)
        name = f"{'alone' if text.chunk == ALONE else f'chunk {text.chunk}'} {text.members}"
        if state.letters and text.chunk != ALONE and not text.dead:
            dead = sent(state._replace(messages=rest), text._replace(dead=True))
            yield f"{name} becomes a DEAD LETTER", dead._replace(letters=state.letters - 1)
        if idle is None:
            continue
        then = Executor("received" if text.chunk != ALONE else "alone_received", text)
        executors = (*state.executors[:idle], then, *state.executors[idle + 1 :])
        taken = state._replace(executors=executors)
        words = f"executor {idle} receives {name}, attempt {text.attempt}"
        yield words, taken._replace(messages=rest)
        if state.doubles:
            yield f"{words}, DOUBLED", taken._replace(doubles=state.doubles - 1)


def _crash(turn: Turn) -> tuple[str, State]:
    """The message comes again, and what was called may be called again."""
    me, state = turn.me, spared(turn.state, turn.me.called)
    state = sent(state._replace(crashes=state.crashes - 1), me.text)
    return turn.goes(f"CRASHES before {me.step}", Executor(), unclaimed(state, turn.claim))
