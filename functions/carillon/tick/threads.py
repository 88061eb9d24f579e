"""Visits of a tick, side by side in threads."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_T = TypeVar("_T")


class SideBySideThreads:
    """SideBySide in threads of its own, made when they are first needed and kept."""

    def __init__(self, most: int) -> None:
        """More calls than `most` take turns."""
        self._threads = ThreadPoolExecutor(most, thread_name_prefix="visit")

    def __call__(self, calls: Sequence[Callable[[], _T]]) -> list[_T]:
        if len(calls) == 1:
            return [calls[0]()]
        return list(self._threads.map(lambda call: call(), calls))
