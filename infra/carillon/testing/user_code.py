"""Users' functions in virtual time: the clock and `time.sleep` are the world's. Two limits hold:
the call's own, in virtual time, and one in real time."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any, SupportsIndex, TypeVar

import pytest
import time_machine

from carillon.simulation.loop import Loop, Task

_T = TypeVar("_T")
_AGAIN_SECONDS = 1.0
"""Code that catches whatever is raised is interrupted again and again."""


@dataclass(frozen=True, slots=True)
class Limit:
    """The end of a call in virtual time, and what happens to a function that sleeps beyond it."""

    who: str
    ends_us: int
    exceed: Callable[[], None]


class UserCode:
    """Calls users' functions from tasks of the loop, within `virtual_time`."""

    def __init__(self, loop: Loop, real_seconds: float) -> None:
        self._loop = loop
        self._real_seconds = real_seconds
        self._limits: dict[Task | None, Limit] = {}
        self._thread = threading.get_ident()
        self._real_sleep = time.sleep
        self._traveller: Any = None
        self._has_alarm = False

    @contextmanager
    def virtual_time(self) -> Iterator[None]:
        """While the loop runs: users' functions, and whatever they call, know its time only."""
        traveller = time_machine.travel(self._loop.instant(), tick=False)
        self._traveller = traveller.start()
        self._real_sleep, time.sleep = time.sleep, self._sleep
        try:
            with self._alarm():
                yield
        finally:
            time.sleep = self._real_sleep
            traveller.stop()

    def call(self, limit: Limit, function: Callable[[], _T]) -> _T:
        """The function's answer; it raises what the function or `limit.exceed` does, and what
        pytest.fail does where it takes too long in real time."""
        task = self._loop.current
        self._limits[task] = limit
        self._enter()
        try:
            return function()
        finally:
            self._leave()
            del self._limits[task]

    def remaining(self, limit: Limit) -> float:
        """Seconds of virtual time that a call has left."""
        return max(0, limit.ends_us - self._loop.us) / 1_000_000

    def _sleep(self, seconds: float | SupportsIndex, /) -> None:
        """In place of time.sleep: in users' functions virtual time passes."""
        limit = None
        if threading.get_ident() == self._thread:
            limit = self._limits.get(self._loop.current)
        if limit is None:
            self._real_sleep(seconds)
            return
        seconds = float(seconds)
        if seconds < 0:
            raise ValueError("sleep length must be non-negative")
        left_seconds = self.remaining(limit)
        self._leave()
        try:
            self._loop.sleep(min(seconds, left_seconds))
        finally:
            self._enter()
        if seconds > left_seconds:
            limit.exceed()

    def _enter(self) -> None:
        self._traveller.move_to(self._loop.instant())
        if self._has_alarm:
            signal.setitimer(signal.ITIMER_REAL, self._real_seconds, _AGAIN_SECONDS)

    def _leave(self) -> None:
        if self._has_alarm:
            signal.setitimer(signal.ITIMER_REAL, 0)

    @contextmanager
    def _alarm(self) -> Iterator[None]:
        """Only the main thread can be interrupted; a timer that runs already is another plugin's
        limit, which is left to it."""
        is_main = threading.current_thread() is threading.main_thread()
        if not is_main or not hasattr(signal, "setitimer") or any(_timer()):
            yield
            return
        before = signal.signal(signal.SIGALRM, self._overdue)
        self._has_alarm = True
        try:
            yield
        finally:
            self._has_alarm = False
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

    def _overdue(self, number: int, frame: FrameType | None) -> None:
        limit = self._limits.get(self._loop.current)
        if limit is not None:
            pytest.fail(
                f"{limit.who} did not end within {self._real_seconds:g} s of real time. Does it "
                "wait for a clock, or for the network? Its clock moves in `time.sleep` only"
            )


def _timer() -> tuple[float, float]:
    return signal.getitimer(signal.ITIMER_REAL)
