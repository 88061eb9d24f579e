"""The plan of a minute: two ticks cut the occurrences of one group into chunks, or send them alone.

Keys are a < b < c. One goes alone here, and two are one chunk (2 and 32 in the code); three are two
chunks, cut by the salt of the plan: by that of tick 0 a from bc, by that of tick 1 ab from c.
Between two queries c may be indexed (its indexer sends it alone once the minute is announced), and
b, an entry of a generation that has ended, removed. A tick may crash, or go on beside the other
under a lease that has lapsed. An occurrence runs in two places if two chunks, or a chunk and a row,
can have it.

By new rules of its zone b goes alone, marked: whoever handles that looks for the chunk that the
plan names, and waits for it until no chunk may be claimed any more.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

ALONE, MARKED = "alone", "marked"
_OBEYS_NONE = "obeys no plan where chunks are off"


class Plan(NamedTuple):
    """0 chunks where all go alone; cut by the salt of tick `salt`."""

    chunks: int
    salt: int


class Message(NamedTuple):
    """`bucket` names a chunk of the plan's count and salt, or is ALONE or MARKED."""

    bucket: str
    keys: str


class Tick(NamedTuple):
    step: str = "idle"
    seen: str = ""
    plan: Plan | None = None
    unsent: tuple[Message, ...] = ()


class State(NamedTuple):
    """`present` are the entries, `chunks` the claimed ones, `rows` what has run alone; `over`: no
    chunk is claimed any more."""

    present: str
    removable: str
    ticks: tuple[Tick, Tick] = (Tick(), Tick())
    messages: frozenset[Message] = frozenset()
    chunks: frozenset[Message] = frozenset()
    rows: str = ""
    plan: Plan | None = None
    announced: bool = False
    dispatched: bool = False
    over: bool = False
    crashes: int = 1


Moves = Iterator[tuple[str, State]]


@dataclass(frozen=True, slots=True)
class PlanModel:
    """`late`: c is indexed in the middle. `removable`: b is. The `modes` of the ticks: live; `off`,
    where chunks are; `rules`, a tick that knows the new ones; `late`, a backlog that was announced;
    `unannounced`, where it was not, as far as the control item says: then each goes alone, and no
    plan is put."""

    modes: tuple[str, str] = ("live", "live")
    late: bool = False
    removable: str = ""
    bug: str = ""

    def start(self) -> State:
        return State("ab" if self.late else "abc", self.removable)

    def moves(self, state: State) -> Moves:
        if "c" not in state.present:
            indexed = state._replace(present=state.present + "c")
            yield "indexer puts c", _sent(indexed, [Message(ALONE, "c")] * state.announced)
        if state.removable and state.announced and not state.dispatched:
            rest = state.present.replace(state.removable, "")
            yield "an entry is removed", state._replace(present=rest, removable="")
        for number in (0, 1):
            # A backlog begins when its minute is left behind: the tick before is over, or lapsed.
            if (
                self.modes[1] in ("live", "off", "rules")
                or not number
                or state.ticks[0].step != "idle"
            ):
                yield from self._tick_moves(state, number)
        if "rules" in self.modes and state.announced and not state.over:
            yield "no chunk is claimed any more", state._replace(over=True)
        for message in sorted(state.messages):
            if self._can_be_handled(state, message):
                yield self._handled(state._replace(messages=state.messages - {message}), message)

    def _tick_moves(self, state: State, number: int) -> Moves:
        tick = state.ticks[number]
        if state.crashes and tick.step not in ("idle", "ended"):
            yield f"tick {number} CRASHES", _at(state, number, Tick("ended"))._replace(crashes=0)
        if tick.step == "idle":
            announced = _at(state, number, Tick("querying"))._replace(announced=True)
            yield f"tick {number} announces the minute", announced
        elif tick.step == "querying":
            yield self._query(state, number)
        elif tick.step == "planning":
            yield self._plan(state, number)
        elif tick.step == "sending" and tick.unsent:
            first, unsent = tick.unsent[0], tick.unsent[1:]
            sent = _sent(_at(state, number, tick._replace(unsent=unsent)), [first])
            yield f"tick {number} sends {first.bucket}: {first.keys}", sent
        elif tick.step == "sending":
            moved = _at(state, number, Tick("ended"))._replace(dispatched=True)
            if self.bug == "plans after the send" and state.plan is None:
                moved = moved._replace(plan=tick.plan)
            yield f"tick {number} moves the watermark", moved

    def _query(self, state: State, number: int) -> tuple[str, State]:
        """What is younger than an hour goes alone, and so does what was never announced."""
        young = "c" if self.late and self.bug != "chunks what is young" else ""
        if self.modes[number] == "unannounced":
            young = "abc"
        seen = "".join(each for each in state.present if each not in young)
        others = [Message(ALONE, each) for each in state.present if each in young]
        if self.bug == "plans after what is marked" and self.modes[number] == "rules":
            others += [Message(MARKED, "b")] * ("b" in seen)
            seen = seen.replace("b", "")
        then = Tick("planning", seen) if seen else Tick("sending")
        return f"tick {number} queries {state.present}", _sent(_at(state, number, then), others)

    def _plan(self, state: State, number: int) -> tuple[str, State]:
        """Put the plan if there is none; who comes second obeys the first."""
        seen, mode = state.ticks[number].seen, self.modes[number]
        is_on = mode in ("live", "rules") or (mode == "late" and self.bug == "plans a backlog")
        marked = [Message(MARKED, "b")] if mode == "rules" and "b" in seen else []
        seen = seen.replace("b", "") if marked else seen
        wanted = Plan(max(0, len(seen) - 1) if is_on else 0, number)
        plan = state.plan or wanted
        written: Plan | None = plan
        if self.bug == "plans nothing":
            written = plan = wanted
        elif self.bug == "plans after the send":
            written = state.plan
        elif self.bug == "draws a salt of its own":
            plan = plan._replace(salt=number)
        elif (mode == "off" and self.bug == _OBEYS_NONE) or (
            len(seen) < 2 and self.bug == "counts again what goes alone"
        ):
            plan = wanted
        then = _at(state, number, Tick("sending", seen, plan, (*_cut(seen, plan), *marked)))
        return f"tick {number} finds {seen}, {plan}", then._replace(plan=written)

    def _chunk_of(self, state: State, message: Message) -> str:
        """The chunk that the plan names for what is marked; "" where it goes in none, or nobody
        looks."""
        plan = state.plan
        if message.bucket != MARKED or plan is None or self.bug == "does not look":
            return ""
        return next((each.bucket for each in _cut("abc", plan) if message.keys in each.keys), ALONE)

    def _can_be_handled(self, state: State, message: Message) -> bool:
        bucket = self._chunk_of(state, message)
        is_claimed = bucket in {each.bucket for each in state.chunks}
        return state.over or is_claimed or bucket in ("", ALONE)

    def _handled(self, state: State, message: Message) -> tuple[str, State]:
        """A chunk is claimed once, with what its message lists; what a later one lists besides goes
        alone, where a row absorbs it."""
        bucket, keys = message
        listed = {each.bucket: each.keys for each in state.chunks}
        if bucket in (ALONE, MARKED):
            if keys in listed.get(self._chunk_of(state, message), ""):
                return f"{keys} has run in its chunk", state
            rows = state.rows if keys in state.rows else "".join(sorted(state.rows + keys))
            return f"{keys} alone", state._replace(rows=rows)
        if bucket not in listed and not state.over:
            return f"chunk {bucket} runs {keys}", state._replace(chunks=state.chunks | {message})
        unlisted = [Message(ALONE, each) for each in keys if each not in listed.get(bucket, "")]
        return f"chunk {bucket} is final for {keys}", _sent(state, unlisted)

    def wrong(self, state: State) -> list[str]:
        ran = "".join(each.keys for each in state.chunks) + state.rows
        return [f"{each} ran in two places" for each in "abc" if ran.count(each) > 1]

    def unfinished(self, end: State) -> list[str]:
        ran = "".join(each.keys for each in end.chunks) + end.rows
        return [f"{each} never ran" for each in end.present if end.dispatched and each not in ran]


def _cut(keys: str, plan: Plan) -> tuple[Message, ...]:
    if not plan.chunks:
        return tuple(Message(ALONE, each) for each in keys)
    parts = [keys]
    if plan.chunks > 1:
        first = "a" if plan.salt == 0 else "ab"
        parts = ["".join(k for k in keys if (k in first) is half) for half in (True, False)]
    names = [f"{number} of {plan.chunks}" for number in range(plan.chunks)]
    return tuple(Message(n, part) for n, part in zip(names, parts, strict=True) if part)


def _at(state: State, number: int, tick: Tick) -> State:
    first, second = state.ticks
    return state._replace(ticks=(tick, second) if number == 0 else (first, tick))


def _sent(state: State, messages: list[Message]) -> State:
    return state._replace(messages=state.messages | {*messages})
