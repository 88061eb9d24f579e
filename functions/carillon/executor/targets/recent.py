"""What is kept of the recent past, so that it need not be made or asked for again."""

from collections import OrderedDict
from threading import Lock
from typing import Generic, TypeVar

_K = TypeVar("_K")
_V = TypeVar("_V")


class Recent(Generic[_K, _V]):
    """Up to `limit` values by key; the one that was used longest ago goes first. For several
    threads."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._values: OrderedDict[_K, _V] = OrderedDict()
        self._lock = Lock()

    def get(self, key: _K) -> _V | None:
        with self._lock:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key]

    def keep(self, key: _K, value: _V) -> _V:
        """Keep a value and answer it, or the one that another thread has kept meanwhile."""
        with self._lock:
            kept = self._values.setdefault(key, value)
            self._values.move_to_end(key)
            if len(self._values) > self._limit:
                self._values.popitem(last=False)
            return kept
