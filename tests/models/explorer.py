"""All states of a model, breadth first: what is wrong in them, and the shortest way to it."""

from array import array
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

STATES_LIMIT = 10_000_000
NO_END = "no end can be reached any more"

S = TypeVar("S")


class Model(Protocol[S]):
    """A protocol under a choice of faults, with or without bugs."""

    def start(self) -> S:
        """The first state."""

    def moves(self, state: S) -> Iterable[tuple[str, S]]:
        """Everything that can happen next, in words, and the state after it."""

    def wrong(self, state: S) -> Iterable[str]:
        """The promises that are broken in a state."""

    def unfinished(self, end: S) -> Iterable[str]:
        """The promises that are broken if nothing happens any more."""


@dataclass(slots=True)
class Explored:
    """`violations` has the shortest trace of each; at `ends` nothing can happen any more."""

    states: int = 0
    moves: int = 0
    ends: int = 0
    violations: dict[str, list[str]] = field(default_factory=dict)


def explore(model: Model[S], *, first_only: bool = False) -> Explored:
    """Explore all states, or (`first_only`) until one is wrong.

    A state from which no end can be reached any more is wrong, too: there messages go round for
    ever. Raises RuntimeError beyond STATES_LIMIT states.
    """
    walk = _Walk(model)
    walk.run(first_only)
    if not walk.explored.violations:
        walk.find_trap()
    return walk.explored


class _Walk(Generic[S]):
    """States have numbers, in the order in which they are met. `_came_by` leads to the first."""

    def __init__(self, model: Model[S]) -> None:
        self.explored = Explored()
        self._model = model
        self._numbers: dict[S, int] = {}
        self._came_by: list[tuple[int, str]] = []
        self._before: list[array[int]] = []
        self._ends: list[int] = []
        self._waiting: deque[tuple[int, S]] = deque()

    def run(self, first_only: bool) -> None:
        found = self.explored
        self._meet(self._model.start(), -1, "")
        while self._waiting and not (first_only and found.violations):
            number, state = self._waiting.popleft()
            found.states += 1
            self._note(number, self._model.wrong(state))
            moves = [*self._model.moves(state)]
            found.moves += len(moves)
            for words, following in moves:
                self._meet(following, number, words)
            if not moves:
                found.ends += 1
                self._ends.append(number)
                self._note(number, self._model.unfinished(state))

    def find_trap(self) -> None:
        """Note the first state that does not lead to an end."""
        leading = bytearray(len(self._came_by))
        waiting = self._ends
        for number in waiting:
            leading[number] = 1
        while waiting:
            for number in self._before[waiting.pop()]:
                if not leading[number]:
                    leading[number] = 1
                    waiting.append(number)
        trap = leading.find(0)
        if trap >= 0:
            self._note(trap, [NO_END])

    def _meet(self, state: S, parent: int, words: str) -> None:
        number = self._numbers.setdefault(state, len(self._came_by))
        if number == len(self._came_by):
            if number == STATES_LIMIT:
                raise RuntimeError(f"more than {STATES_LIMIT:,} states")
            self._came_by.append((parent, words))
            self._before.append(array("l"))
            self._waiting.append((number, state))
        if parent >= 0:
            self._before[number].append(parent)

    def _note(self, number: int, wrong: Iterable[str]) -> None:
        for each in wrong:
            if each not in self.explored.violations:
                self.explored.violations[each] = self._trace(number)

    def _trace(self, number: int) -> list[str]:
        trace = []
        while number:
            number, words = self._came_by[number]
            trace.append(words)
        return trace[::-1]
