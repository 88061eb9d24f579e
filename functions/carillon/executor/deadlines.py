"""Calls that know no limit of their own, such as a name lookup, under a deadline."""

from collections.abc import Callable
from threading import Event, Thread
from typing import Generic, TypeVar

from carillon.executor.deadline import Deadline

_T = TypeVar("_T")


def call_within(deadline: Deadline, function: Callable[[], _T]) -> _T:
    """What `function` answers or raises; TimeoutError when it takes too long.

    It runs in a thread of its own, which goes on to its end in that case.
    """
    attempt = _Attempt(function)
    Thread(target=attempt.run, daemon=True).start()
    if not attempt.done.wait(deadline.remaining()):
        raise TimeoutError
    if attempt.error is not None:
        raise attempt.error
    return attempt.answers[0]


class _Attempt(Generic[_T]):
    def __init__(self, function: Callable[[], _T]) -> None:
        self._function = function
        self.done = Event()
        self.answers: list[_T] = []
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.answers.append(self._function())
        except BaseException as error:  # raised again by the thread that waits
            self.error = error
        finally:
            self.done.set()
