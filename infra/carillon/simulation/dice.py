"""Chance that depends on a seed, a name and a number, and on nothing that happened before."""

from collections.abc import Sequence
from functools import lru_cache
from typing import TypeVar
from zlib import crc32

_T = TypeVar("_T")
_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15


class Dice:
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

    def fraction(self) -> float:
        """A number in [0, 1)."""
        return (self.bits() >> 11) / (1 << 53)

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
