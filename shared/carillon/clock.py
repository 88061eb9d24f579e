"""The only place that asks the machine for time, sleep, ids and chance."""

import math
import random
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from threading import Timer
from typing import Protocol

from ulid import ULID


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


class Timers(Protocol):
    """A way to have something done while waiting for something else."""

    def after(self, seconds: float, act: Callable[[], None]) -> Callable[[], None]:
        """Have `act` done `seconds` from now, beside the caller; it must not raise.

        The answer calls it off; where it has begun already it returns when that is done.
        """
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def sleep(self, seconds: float) -> None:
        if seconds > 0:
            time.sleep(seconds)


class ThreadTimers:
    """Each in a thread of its own."""

    def after(self, seconds: float, act: Callable[[], None]) -> Callable[[], None]:
        timer = Timer(seconds, act)
        timer.daemon = True
        timer.start()

        def call_off() -> None:
            timer.cancel()
            timer.join()

        return call_off


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


class SeededEntropy:
    """Reproducible ids and chance from one seed: for tests and simulation."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def new_id(self, now: datetime) -> str:
        milliseconds = int(now.timestamp() * 1000).to_bytes(6, "big")
        return str(ULID.from_bytes(milliseconds + self._random.randbytes(10)))

    def fraction(self) -> float:
        return self._random.random()


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
