"""The busiest spans of a stream of instants, found as it goes by: nothing else is kept."""

from collections import Counter
from heapq import heappush, heappushpop

MOST_PEAKS = 5
MOST_NAMES = 5


class Peaks:
    """Of spans of `seconds` each, those with the most marks, and who made most of them."""

    def __init__(self, seconds: int) -> None:
        self._span_us = seconds * 1_000_000
        self._span = -1
        self._names: Counter[str] = Counter()
        self._highest: list[tuple[int, int, tuple[str, ...]]] = []

    def mark(self, at_us: int, name: str) -> None:
        """One more at this instant, in microseconds since the epoch; instants never fall."""
        span = at_us // self._span_us
        if span != self._span:
            self._close()
            self._span = span
        self._names[name] += 1

    def highest(self) -> list[tuple[int, int, tuple[str, ...]]]:
        """Epoch seconds of a span's begin, marks and names: the highest and earliest first."""
        self._close()
        found = sorted(self._highest, key=lambda peak: (-peak[0], -peak[1]))
        return [(-began, count, names) for count, began, names in found]

    def _close(self) -> None:
        count = self._names.total()
        if count:
            # Of equals the earliest stays: its begin, negated, is the greatest.
            began = -(self._span * self._span_us // 1_000_000)
            full = len(self._highest) == MOST_PEAKS
            if not full or (count, began) > self._highest[0][:2]:
                peak = (count, began, self._busiest())
                (heappushpop if full else heappush)(self._highest, peak)
        self._names.clear()

    def _busiest(self) -> tuple[str, ...]:
        found = sorted(self._names.items(), key=lambda item: (-item[1], item[0]))
        return tuple(name for name, _ in found[:MOST_NAMES])
