"""All interleavings of a few actors over the memory stores: breadth first, each state once.

A state is what the stores and the queue hold, what each actor has been answered, the clock, and
which faults are left. An actor stops before each call of a port; then it is let on, or it gets an
error after the effect, or it has died. Nobody can tell one that died from one that is not let on
again: all is explored with everybody alive, and wherever no more are left than may die, all of them
do at once. To die right after a call is to die before the next one, and the last call of a request
is its answer to the caller, so no choice of its own is needed for that.

The clock is looked at in a step of its own as long as time can pass still (a process may be stopped
between a call and its look at the clock); once it cannot, that step is merged with the call before:
it commutes with all that others do. Whoever is dead or has ended is forgotten but for its answer.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from carillon.domain.job import Job
from carillon.domain.message import Message
from carillon.domain.run import Run, RunKey
from carillon.domain.wheel.entry import Entry
from carillon.domain.wheel.segment import Control
from carillon.schedules.base import EPOCH
from carillon.simulation.deployment import Options
from tests.simulation.races.replay import ANSWER, CLOCK, LOST, Act, Call, proceed
from tests.simulation.races.stores import PORTS, Behave, Contents, effect

DEAD, TOLD, OVER = -1, -2, -3
"""In the place of an actor's node: it died; its caller has its answer; it ended otherwise."""
_NEVER_LOST = frozenset({CLOCK, ANSWER, "targets", "events"})
_JUDGED_BY = frozenset({("chunks", "claim"), ("jobs", "get"), ("runs", "claim")})
"""A run that is claimed after a pause was answered may not start, whenever the job was read."""
_NOT_STORED = frozenset({CLOCK, ANSWER})


@dataclass(frozen=True, slots=True)
class Actor:
    """`tells`: it is a request, whose caller learns that it was done; it ends within
    `limit_seconds`, where others may be frozen and wake up (None)."""

    name: str
    act: Act
    tells: bool = False
    limit_seconds: int | None = None


class State(NamedTuple):
    """`contents` are numbers, in the order of PORTS; `actors` are nodes, or how they ended; `known`
    are, by actor, the requests that had been answered when it last read a job or claimed a run.
    A tuple, since millions of them are made and compared."""

    contents: tuple[int, ...]
    actors: tuple[int, ...]
    us: int
    steps_done: int
    losses: int
    known: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Move:
    """One choice: `kind` is runs or loses, of an actor; waits (time passes) or die (all that are
    left)."""

    kind: str
    actor: int = -1


@dataclass(slots=True)
class Node:
    """An actor, by its number, after certain answers."""

    actor: int
    answers: tuple[Any, ...]
    next: Call | bool
    children: dict[int, int] = field(default_factory=dict)


Watch = Callable[[str, Call, Any, Any, bool, datetime], str | None]
"""Asked about each effect: actor, call, content before and after, whether a request that forbids
starts was answered before the job was read, now. Answers what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What a race begins with. `passing_seconds` are the steps of the clock, in their order.
    `forbidding` are the requests after whose answers no run may start."""

    at: datetime
    contents: Contents
    actors: Sequence[Actor]
    behave: Behave
    options: Options
    passing_seconds: Sequence[int] = ()
    crashes: int = 1
    losses: int = 1
    forbidding: frozenset[str] = frozenset()


class Interned:
    """Numbers for values, in the order in which they are met."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._numbers: dict[Any, int] = {}

    def number(self, value: Any) -> int:
        # 1 and True are one key.
        found = self._numbers.setdefault((type(value), value), len(self.values))
        if found == len(self.values):
            self.values.append(value)
        return found


class Exploration:
    """Explores one setting; `parents` leads from each state to the first one, `wrong` are the first
    state and move of each kind of violation of `watch`."""

    def __init__(self, setting: Setting, watch: Watch) -> None:
        self.setting = setting
        self.parents: dict[State, tuple[State, Move] | None] = {}
        self.wrong: dict[str, tuple[State, Move]] = {}
        self.moves = 0
        self.deaths = 0
        self._watch = watch
        self._contents = Interned()
        self._answers = Interned()
        self._nodes: list[Node] = []
        self._effects: dict[tuple[int, int, int, bool], tuple[int, int, str | None]] = {}

    def ends(self) -> Iterator[State]:
        """Explore everything; yields each state in which nobody is left, shortest way first."""
        first = self._first()
        self.parents[first] = None
        waiting = deque([first])
        while waiting:
            state = waiting.popleft()
            living = [number for number, node in enumerate(state.actors) if node >= 0]
            if not living:
                yield state
                continue
            for move in self._choices(state, living):
                self.moves += 1
                self.deaths += move.kind == "die"
                following = self._after(state, move)
                if following not in self.parents:
                    self.parents[following] = (state, move)
                    waiting.append(following)

    def contents(self, state: State) -> Contents:
        values = (self._contents.values[number] for number in state.contents)
        return dict(zip(PORTS, values, strict=True))

    def told(self, state: State) -> frozenset[str]:
        """The requests that were answered."""
        pairs = zip(self.setting.actors, state.actors, strict=True)
        return frozenset(actor.name for actor, node in pairs if node == TOLD)

    def trace(self, state: State, last: Move | None = None) -> list[str]:
        """The shortest way to a state, in words."""
        lines = [] if last is None else [self._words(state, last)]
        while (parent := self.parents[state]) is not None:
            state, move = parent
            lines.append(self._words(state, move))
        return lines[::-1]

    def _first(self) -> State:
        setting = self.setting
        numbers = tuple(self._contents.number(setting.contents[port]) for port in PORTS)
        actors = tuple(self._node(number, ()) for number in range(len(setting.actors)))
        us = (setting.at - EPOCH) // timedelta(microseconds=1)
        known = (0,) * len(actors)
        state = State(numbers, actors, us, 0, setting.losses, known)
        return self._settled(state)

    def _choices(self, state: State, living: Sequence[int]) -> Iterator[Move]:
        for number in living:
            yield Move("runs", number)
            if state.losses and self._call(state.actors[number]).port not in _NEVER_LOST:
                yield Move("loses", number)
        if state.steps_done < len(self.setting.passing_seconds):
            yield Move("waits")
        if len(living) <= self.setting.crashes:
            yield Move("die")

    def _after(self, state: State, move: Move) -> State:
        if move.kind == "waits":
            return self._settled(self._later(state))
        if move.kind == "die":
            actors = tuple(min(node, DEAD) for node in state.actors)
            return state._replace(actors=actors, known=(0,) * len(actors))
        if move.kind == "loses":
            state = state._replace(losses=state.losses - 1)
        return self._settled(self._ran(state, move))

    def _later(self, state: State) -> State:
        """Time passes, and ends those that have begun and may not take so long."""
        seconds = self.setting.passing_seconds[state.steps_done]
        actors = list(state.actors)
        for number, actor in enumerate(self.setting.actors):
            has_begun = actors[number] >= 0 and self._nodes[actors[number]].answers
            limit = actor.limit_seconds
            if has_begun and limit is not None and seconds > limit:
                actors[number] = DEAD
        us = state.us + seconds * 1_000_000
        return state._replace(us=us, steps_done=state.steps_done + 1, actors=tuple(actors))

    def _settled(self, state: State) -> State:
        """With the clock looked at by whoever is about to, once no time can pass any more."""
        if state.steps_done < len(self.setting.passing_seconds):
            return state
        for number, node in enumerate(state.actors):
            if node >= 0 and self._call(node).port == CLOCK:
                return self._settled(self._ran(state, Move("runs", number)))
        return state

    def _ran(self, state: State, move: Move) -> State:
        """The effect of an actor's call, and the actor as it goes on to the next one."""
        node = state.actors[move.actor]
        call = self._call(node)
        contents, known = state.contents, state.known
        if call.port in _NOT_STORED:
            answer = self._answers.number(state.us if call.port == CLOCK else None)
        else:
            place = PORTS.index(call.port)
            forbidden = bool(known[move.actor])
            answer, content, wrong = self._effect(node, contents[place], state.us, forbidden)
            if wrong is not None:
                self.wrong.setdefault(wrong, (state, move))
            contents = _with(contents, place, content)
            if (call.port, call.method) in _JUDGED_BY:
                known = _with(known, move.actor, self._forbidding(state))
        if move.kind == "loses":
            answer = self._answers.number(LOST)
        following = self._child(move.actor, node, answer)
        ended = self._nodes[following].next
        if isinstance(ended, bool):
            tells = self.setting.actors[move.actor].tells
            following = TOLD if ended and tells else OVER
            known = _with(known, move.actor, 0)
        actors = _with(state.actors, move.actor, following)
        return state._replace(contents=contents, actors=actors, known=known)

    def _forbidding(self, state: State) -> int:
        return int(bool(self.told(state) & self.setting.forbidding))

    def _effect(
        self, node: int, content: int, us: int, forbidden: bool
    ) -> tuple[int, int, str | None]:
        """The numbers of answer and content after a node's call, and what is wrong with it."""
        key = (node, content, us, forbidden)
        known = self._effects.get(key)
        if known is None:
            known = self._effects[key] = self._new_effect(node, content, us, forbidden)
        return known

    def _new_effect(
        self, node: int, content: int, us: int, forbidden: bool
    ) -> tuple[int, int, str | None]:
        call, now = self._call(node), EPOCH + timedelta(microseconds=us)
        before = self._contents.values[content]
        actor = self.setting.actors[self._nodes[node].actor].name
        behave = self.setting.behave
        answer, after = effect(call.port, before, now, actor, behave, call.on)
        wrong = self._watch(actor, call, before, after, forbidden, now)
        return self._answers.number(answer), self._contents.number(after), wrong

    def _call(self, node: int) -> Call:
        call = self._nodes[node].next
        assert isinstance(call, Call)
        return call

    def _child(self, actor: int, node: int, answer: int) -> int:
        """The actor's node after one more answer."""
        parent = self._nodes[node]
        child = parent.children.get(answer)
        if child is None:
            answers = (*parent.answers, self._answers.values[answer])
            child = parent.children[answer] = self._node(actor, answers)
        return child

    def _node(self, number: int, answers: tuple[Any, ...]) -> int:
        actor = self.setting.actors[number]
        following = proceed(actor.name, actor.act, self.setting.options, answers, tells=actor.tells)
        self._nodes.append(Node(number, answers, following))
        return len(self._nodes) - 1

    def _words(self, state: State, move: Move) -> str:
        at = f"{EPOCH + timedelta(microseconds=state.us):%H:%M:%S}"
        if move.kind == "waits":
            return f"{at} {self.setting.passing_seconds[state.steps_done]} seconds pass"
        if move.kind == "die":
            pairs = zip(self.setting.actors, state.actors, strict=True)
            died = (f"{each.name} before {self._asked(node)}" for each, node in pairs if node >= 0)
            return f"{at} died: {', '.join(died)}"
        node, name = state.actors[move.actor], self.setting.actors[move.actor].name
        call, what = self._call(node), self._asked(node)
        if call.port in _NOT_STORED:
            return f"{at} {name}: {what}"
        place = PORTS.index(call.port)
        forbidden = bool(state.known[move.actor])
        answer, _, _ = self._effect(node, state.contents[place], state.us, forbidden)
        told = short(self._answers.values[answer])
        lost = ", but the answer is lost" if move.kind == "loses" else ""
        return f"{at} {name}: {what} -> {told}{lost}"

    def _asked(self, node: int) -> str:
        call = self._call(node)
        return f"{call.port}.{call.method}({', '.join(map(short, call.args))})"


def short(value: Any) -> str:
    """A value as a trace tells it."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(short, value))}]"
    if isinstance(value, Run):
        return f"run {value.key.run_id} {value.status.value} attempt {value.attempt}"
    if isinstance(value, RunKey):
        return f"run {value.run_id}"
    if isinstance(value, Message):
        return f"message {value.key.run_id} attempt {value.attempt}"
    if isinstance(value, Job):
        return f"job {value.state.value} revision {value.revision}"
    if isinstance(value, Control):
        lease = "leased" if value.lease_until else "free"
        return f"control {lease} token {value.token} {value.watermark}..{value.horizon}"
    if isinstance(value, Entry):
        return f"entry {value.slot.key}"
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _with(numbers: tuple[int, ...], place: int, number: int) -> tuple[int, ...]:
    return (*numbers[:place], number, *numbers[place + 1 :])
