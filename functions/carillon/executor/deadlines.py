"""Calls that know no limit of their own, such as a name lookup, under a deadline."""

from collections.abc import Callable
from dataclasses import dataclass
from threading import Event, Thread
from time import monotonic
from typing import Generic, TypeVar

POLL_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Deadline:
    """An instant that every process of this machine understands alike (Linux: since boot).

    The wall clock is no measure for a limit: it may be set, and tests let it stand still. It passes
    at once when `stopped` is set: whoever waits for long looks at it every POLL_SECONDS.
    """

    at: float
    stopped: Event | None = None

    @classmethod
    def after(cls, seconds: float, stopped: Event | None = None) -> "Deadline":
        """The deadline that is `seconds` from now."""
        return cls(monotonic() + seconds, stopped)

    def remaining(self) -> float:
        """Seconds left, 0 when it has passed."""
        if self.stopped is not None and self.stopped.is_set():
            return 0.0
        return max(0.0, self.at - monotonic())

    def poll_seconds(self) -> float:
        """Seconds that a wait may last before it looks at the deadline again."""
        return min(self.remaining(), POLL_SECONDS)

    @property
    def passed(self) -> bool:
        return self.remaining() == 0.0


_T = TypeVar("_T")


def call_within(deadline: Deadline, function: Callable[[], _T]) -> _T:
    """The result of `function`, or its exception; TimeoutError when it takes too long.

    It runs in a thread of its own, which continues to its end in that case.
    """
    attempt = _Attempt(function)
    Thread(target=attempt.run, daemon=True).start()
    while not attempt.done.wait(deadline.poll_seconds()):
        if deadline.passed:
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
