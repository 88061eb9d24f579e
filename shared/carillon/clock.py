"""The only place that asks the machine for time, sleep, ids and chance."""

import itertools
import math
import random
import secrets
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from heapq import heappop, heappush
from threading import Condition, Event, Lock, Thread
from typing import NoReturn, Protocol, TypeVar

from ulid import ULID

_T = TypeVar("_T")


class Clock(Protocol):
    """A source of time, for edges; pure code takes `now` as a parameter."""

    def now(self) -> datetime:
        """The current instant, aware, in UTC."""
        ...

    def sleep(self, seconds: float) -> None:
        """Return after `seconds` (at once when not positive)."""
        ...


class Entropy(Protocol):
    """A source of unique ids and chance, for edges."""

    def new_id(self, now: datetime) -> str:
        """A unique id of 26 characters whose text order is the order of `now`, to 1 ms (ULID)."""
        ...

    def fraction(self) -> float:
        """A number in [0, 1), for jitter."""
        ...

    def secret(self) -> str:
        """A text of 256 random bits that nobody can guess, in characters that URLs take."""
        ...


class Timers(Protocol):
    """A way to have something done while waiting for something else."""

    def after(self, seconds: float, act: Callable[[], None]) -> Callable[[], None]:
        """Have `act` done `seconds` from now, beside the caller; it must not raise.

        The answer calls it off; where it has begun already it returns when that is done.
        """
        ...

    def every(self, seconds: float, act: Callable[[], None]) -> Callable[[], None]:
        """Have `act` done again and again beside the caller, first `seconds` from now, then
        `seconds` after the end of each; it must not raise.

        The answer calls it off, and does not wait for one that is under way.
        """
        ...


class SideBySide(Protocol):
    """Makes calls that are independent of each other at one time."""

    def __call__(self, calls: Sequence[Callable[[], _T]]) -> list[_T]:
        """The answers, in the order of the calls, when all have ended; raises what one raises."""
        ...


def one_by_one(calls: Sequence[Callable[[], _T]]) -> list[_T]:
    """SideBySide with one thread only."""
    return [call() for call in calls]


class SideBySideThreads:
    """SideBySide in threads of its own, made when they are first needed and kept."""

    def __init__(self, most: int) -> None:
        """More calls than `most` take turns."""
        self._threads = ThreadPoolExecutor(most, thread_name_prefix="call")

    def __call__(self, calls: Sequence[Callable[[], _T]]) -> list[_T]:
        if len(calls) == 1:
            return [calls[0]()]
        return list(self._threads.map(lambda call: call(), calls))


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def sleep(self, seconds: float) -> None:
        if seconds > 0:
            time.sleep(seconds)


_AGAIN_SECONDS = 0.1
"""Until a timer is tried again for which no thread could be started."""


class ThreadTimers:
    """Each is done in a thread of its own, but all wait in one: most are called off before their
    time, and cost no thread then. While a process can start no thread they are late."""

    def __init__(self) -> None:
        self._ordered: list[tuple[float, int, Event, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._changed = Condition()
        self._waiter: Thread | None = None

    def after(self, seconds: float, act: Callable[[], None]) -> Callable[[], None]:
        is_off, under_way = Event(), Lock()

        def act_unless_off() -> None:
            with under_way:
                if not is_off.is_set():
                    act()

        def call_off() -> None:
            is_off.set()
            with under_way:
                pass

        self._order(seconds, is_off, act_unless_off)
        return call_off

    def every(self, seconds: float, act: Callable[[], None]) -> Callable[[], None]:
        is_off = Event()

        def act_again() -> None:
            act()
            self._order(seconds, is_off, act_again)

        self._order(seconds, is_off, act_again)
        return is_off.set

    def _order(self, seconds: float, is_off: Event, act: Callable[[], None]) -> None:
        with self._changed:
            ordered = (time.monotonic() + seconds, next(self._numbers), is_off, act)
            heappush(self._ordered, ordered)
            if self._waiter is None or not self._waiter.is_alive():
                self._waiter = Thread(target=self._wait, daemon=True)
                self._waiter.start()
            if self._ordered[0] is ordered:
                self._changed.notify()

    def _wait(self) -> NoReturn:
        """Start what is due; what was called off by then costs no thread, and no waking of its
        own."""
        while True:
            with self._changed:
                while self._ordered and self._ordered[0][2].is_set():
                    heappop(self._ordered)
                left = self._ordered[0][0] - time.monotonic() if self._ordered else None
                if left is None or left > 0:
                    self._changed.wait(left)
                    continue
                _, number, is_off, act = heappop(self._ordered)
            try:
                Thread(target=act, daemon=True).start()
            except RuntimeError:  # this thread must not end with it: nobody else wakes the others
                with self._changed:
                    again_at = time.monotonic() + _AGAIN_SECONDS
                    heappush(self._ordered, (again_at, number, is_off, act))


class ManualClock:
    """A clock that stands still until it is moved: for tests and simulation."""

    def __init__(self, start: datetime) -> None:
        self._now = start

    def now(self) -> datetime:
        return self._now

    def sleep(self, seconds: float) -> None:
        self.advance(max(seconds, 0))

    def advance(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)

    def set(self, instant: datetime) -> None:
        self._now = instant


class SystemEntropy:
    """The machine's randomness."""

    def new_id(self, now: datetime) -> str:
        return str(ULID.from_datetime(now))

    def fraction(self) -> float:
        return random.random()

    def secret(self) -> str:
        return secrets.token_urlsafe(32)


class SeededEntropy:
    """Reproducible ids and chance from one seed: for tests and simulation."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def new_id(self, now: datetime) -> str:
        milliseconds = int(now.timestamp() * 1000).to_bytes(6, "big")
        return str(ULID.from_bytes(milliseconds + self._random.randbytes(10)))

    def fraction(self) -> float:
        return self._random.random()

    def secret(self) -> str:
        return self._random.randbytes(32).hex()


def utc_text(instant: datetime) -> str:
    """An aware instant as others read it, to whole seconds: 2026-11-21T12:00:17Z."""
    return f"{instant.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def ceil_second(instant: datetime) -> datetime:
    """The first whole second that is not before the instant."""
    whole = instant.replace(microsecond=0)
    return (whole if whole == instant else whole + timedelta(seconds=1)).astimezone(UTC)


def seconds_after(now: datetime, seconds: float) -> datetime:
    """A number of whole seconds after `now`, rounded up to the millisecond. For retries and waits
    that need no certain second: a queue's delay then ends exactly there."""
    at = now + timedelta(seconds=math.ceil(seconds))
    return at.replace(microsecond=at.microsecond // 1000 * 1000)


@lru_cache(maxsize=16_384)
def id_created_at(identifier: str) -> datetime:
    """The instant at which `Entropy.new_id` made an id, to 1 ms; raises ValueError for any other
    text."""
    return ULID.from_str(identifier).datetime
