"""Requests that several threads share."""

from collections.abc import Callable, Sequence
from threading import Event, Lock
from typing import Generic, TypeVar

_T = TypeVar("_T")
_R = TypeVar("_R")


class _Place(Generic[_T, _R]):
    """An item, until its thread has the answer; without one at its turn, that makes a request."""

    def __init__(self, item: _T) -> None:
        self.item = item
        self.turn = Event()
        self.answers: list[_R] = []


class Joined(Generic[_T, _R]):
    """Sends items, of each thread one; those that come while a request is under way go in one.

    `first` answers how many of the items, from the first on, go in a request; `request` answers for
    each of them, in order. Only the thread that made it gets what it raises; the others make
    another.
    """

    def __init__(
        self,
        first: Callable[[Sequence[_T]], int],
        request: Callable[[Sequence[_T]], Sequence[_R]],
    ) -> None:
        self._first = first
        self._request = request
        self._lock = Lock()
        self._waiting: list[_Place[_T, _R]] = []
        self._is_under_way = False

    def send(self, item: _T) -> _R:
        """The answer for the item."""
        own: _Place[_T, _R] = _Place(item)
        with self._lock:
            self._waiting.append(own)
            waits, self._is_under_way = self._is_under_way, True
        if waits:
            own.turn.wait()
        if not own.answers:
            self._make(own)
        return own.answers[0]

    def _make(self, own: _Place[_T, _R]) -> None:
        """Make a request with the thread's own item, then let the next thread make one."""
        with self._lock:
            self._waiting.remove(own)
            places = [own, *self._waiting]
            count = self._first([each.item for each in places])
            places, self._waiting = places[:count], places[count:]
        try:
            answers = self._request([each.item for each in places])
            for place, answer in zip(places, answers, strict=True):
                place.answers.append(answer)
        finally:
            with self._lock:
                unanswered = [each for each in places[1:] if not each.answers]
                self._waiting = [*unanswered, *self._waiting]
                self._is_under_way = bool(self._waiting)
                following = self._waiting[:1]
            for place in (*(each for each in places[1:] if each.answers), *following):
                place.turn.set()
