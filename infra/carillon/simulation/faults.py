"""Faults by seeded draws."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import lru_cache
from math import isfinite
from typing import TypeVar
from zlib import crc32

from carillon.errors import InvalidFieldError

_T = TypeVar("_T")
_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15


class Draws:
    """Draws for one purpose: SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number
    Generators, 2014), seeded by (seed, name, number).

    Since no draw depends on those of others, a simulation from which something was left out throws
    the same dice for all the rest: that is what makes a failure shrinkable.
    """

    __slots__ = ("_state",)

    def __init__(self, seed: int, name: str, number: int = 0) -> None:
        self._state = (_named(seed, name) + number * _GOLDEN) & _MASK

    def bits(self) -> int:
        """64 bits."""
        self._state = (self._state + _GOLDEN) & _MASK
        return _mix(self._state)

    def first_of(self, number: int) -> int:
        """The first 64 bits of the draws of the same name, whose number is 0, with that number."""
        return _mix((self._state + (number + 1) * _GOLDEN) & _MASK)

    def fraction(self) -> float:
        """A number in [0, 1)."""
        self._state = (self._state + _GOLDEN) & _MASK
        return (_mix(self._state) >> 11) / (1 << 53)

    def below(self, count: int) -> int:
        """A whole number in [0, count)."""
        return self.bits() % count

    def choice(self, items: Sequence[_T]) -> _T:
        return items[self.bits() % len(items)]

    def between(self, low: float, high: float) -> float:
        return low + (high - low) * self.fraction()


@lru_cache(maxsize=4096)
def _named(seed: int, name: str) -> int:
    return _mix((seed * _GOLDEN + crc32(name.encode())) & _MASK)


def _mix(bits: int) -> int:
    bits = ((bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    bits = ((bits ^ (bits >> 27)) * 0x94D049BB133111EB) & _MASK
    return bits ^ (bits >> 31)


_CALM_LATENCY_US = 300_000


class Fault(StrEnum):
    """The closed list; the values are what users write in `--faults` and what traces print."""

    DIES = "dies"
    """A process is gone before or after a call."""
    THROTTLED = "throttled"
    """A store does not take a call, or leaves out rows of a batch."""
    LOST = "lost"
    """A call has its effect, but its answer is lost: it is repeated, or fails."""
    PART_SENT = "part_sent"
    """The queue takes a part of a batch and fails."""
    CONTENDED = "contended"
    """A segment's control item refuses a read or a write, as under contention."""
    SLOW = "slow"
    """A call takes seconds."""
    PAUSED = "paused"
    """A process stops for minutes, past its lease, and continues."""
    STALE = "stale"
    """A read that need not be consistent answers what was so a while ago."""
    DUPLICATED = "duplicated"
    """A message comes twice."""
    LATE = "late"
    """A message comes much later than it was to."""
    THROTTLED_INVOCATION = "throttled_invocation"
    """Messages are received, and nobody is invoked: they are redelivered when their visibility
    lapses, received once more."""
    TARGET_FAILS = "target_fails"
    TARGET_REFUSES = "target_refuses"
    """A failure that no retry can help."""
    TARGET_HANGS = "target_hangs"
    TARGET_LOST = "target_lost"
    """The target does its work, but its answer is lost."""
    TICK_MISSING = "tick_missing"
    TICK_DOUBLED = "tick_doubled"
    TICK_LATE = "tick_late"
    TICK_SKEWED = "tick_skewed"
    """A tick's clock is up to a minute and a half off."""
    SHARE_MISSING = "share_missing"
    """A tick that the root has invited never comes."""
    SHARE_DOUBLED = "share_doubled"
    SHARE_LATE = "share_late"
    """It comes up to a minute later: as old as Lambda lets an event become."""


@dataclass(frozen=True, slots=True)
class Faults:
    """The probability of each fault: per call, message, target call or tick, by its kind."""

    dies: float = 0.0
    throttled: float = 0.0
    lost: float = 0.0
    part_sent: float = 0.0
    contended: float = 0.0
    slow: float = 0.0
    paused: float = 0.0
    stale: float = 0.0
    duplicated: float = 0.0
    late: float = 0.0
    throttled_invocation: float = 0.0
    target_fails: float = 0.0
    target_refuses: float = 0.0
    target_hangs: float = 0.0
    target_lost: float = 0.0
    tick_missing: float = 0.0
    tick_doubled: float = 0.0
    tick_late: float = 0.0
    tick_skewed: float = 0.0
    share_missing: float = 0.0
    share_doubled: float = 0.0
    share_late: float = 0.0

    @classmethod
    def parse(cls, text: str) -> "Faults":
        """From `dies=0.001,target_fails=0.1`; raises InvalidFieldError on `faults`."""
        return cls(**dict(_pairs(text)))

    def of(self, fault: Fault) -> float:
        probability: float = getattr(self, fault.value)
        return probability


@dataclass(frozen=True, slots=True)
class Strike:
    """One fault that happened: `where` names it independently of everything else."""

    fault: Fault
    where: str


@dataclass(frozen=True, slots=True)
class Struck:
    """`at_us` is the virtual instant, in microseconds since the epoch."""

    strike: Strike
    at_us: int


class Chaos:
    """Decides about faults by the seed, until `calm_us`; `injected` are those that happened.

    `only`: no other faults happen, whatever is drawn.
    """

    def __init__(
        self,
        seed: int,
        faults: Faults,
        most_latency_us: int = 0,
        only: frozenset[Strike] | None = None,
        calm_us: int | None = None,
    ) -> None:
        self.seed = seed
        self.faults = faults
        self.most_latency_us = most_latency_us
        self.calm_us = calm_us
        self.injected: list[Struck] = []
        self._only = only

    def strikes(self, fault: Fault, where: str, at_us: int, draws: Draws) -> bool:
        """True if the fault happens here and now; then it is recorded."""
        probability: float = getattr(self.faults, fault)
        if probability <= 0.0 or draws.fraction() >= probability:
            return False
        if self.calm_us is not None and at_us >= self.calm_us:
            return False
        strike = Strike(fault, where)
        if self._only is not None and strike not in self._only:
            return False
        self.injected.append(Struck(strike, at_us))
        return True

    def latency_us(self, at_us: int, draws: Draws) -> int:
        """The time that one half of a call takes: often none, rarely near the most. Where faults
        are over no call takes seconds."""
        most_us = self.most_latency_us
        if most_us == 0:
            return 0
        if self.calm_us is not None and at_us >= self.calm_us:
            most_us = min(most_us, _CALM_LATENCY_US)
        fraction = draws.fraction()
        return 0 if fraction < 0.3 else int(fraction**4 * most_us)


def _pairs(text: str) -> Iterator[tuple[str, float]]:
    known = [field.name for field in fields(Faults)]
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = part.partition("=")
        if name not in known:
            raise InvalidFieldError("faults", f"{name!r} is none of {', '.join(known)}")
        try:
            probability = float(value)
        except ValueError:
            probability = -1.0
        if not isfinite(probability) or not 0 <= probability <= 1:
            raise InvalidFieldError("faults", f"{name} takes a probability in [0, 1]: {value!r}")
        yield name, probability
