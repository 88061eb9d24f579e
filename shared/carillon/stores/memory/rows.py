"""What keeps a large store quick: keys in order, and keys by the instant at which they expire.

Both hold keys only, of rows held elsewhere. Neither has a lock: their store has.
"""

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator
from datetime import datetime
from heapq import heappop, heappush
from typing import Generic, TypeVar

Key = TypeVar("Key")

_FEW = 16
"""So many keys of rows that are gone are never worth a sweep."""


class KeyOrder(Generic[Key]):
    """Keys of `rows` by a text of each, which is unique; sorted when somebody looks.

    The key of a row that is gone is passed over, and swept out when half of them are gone.
    """

    def __init__(self, rows: Collection[Key], text_of: Callable[[Key], str]) -> None:
        self._rows = rows
        self._text_of = text_of
        self._keys: list[Key] = []
        self._is_sorted = True
        self._gone = 0

    def add(self, key: Key) -> None:
        """Take in the key of a row that was not there before."""
        self._keys.append(key)
        self._is_sorted = False

    def row_gone(self) -> None:
        """To be told for each row that is gone."""
        self._gone += 1
        if self._gone > _FEW and 2 * self._gone > len(self._keys):
            self._keys = list(dict.fromkeys(key for key in self._keys if key in self._rows))
            self._gone = 0

    def after(self, text: str | None = None) -> Iterator[Key]:
        """The keys with a text greater than this; all for None. `rows` may not change meanwhile."""
        if not self._is_sorted:
            self._keys.sort(key=self._text_of)
            self._is_sorted = True
        first = 0 if text is None else bisect_right(self._keys, text, key=self._text_of)
        last: Key | None = None
        for place in range(first, len(self._keys)):
            key = self._keys[place]
            # A row that went and came again has its key here twice.
            if key != last and key in self._rows:
                yield key
            last = key


class Expiry(Generic[Key]):
    """Keys by the instant from which their rows may go."""

    def __init__(self) -> None:
        self._instants: list[datetime] = []
        self._keys: dict[datetime, list[Key]] = {}

    def note(self, key: Key, expires_at: datetime) -> None:
        """Have `due` answer the key once, from this instant on."""
        keys = self._keys.get(expires_at)
        if keys is None:
            keys = self._keys[expires_at] = []
            heappush(self._instants, expires_at)
        keys.append(key)

    def due(self, now: datetime) -> list[Key]:
        """The keys noted for instants up to `now`, by instant, then as noted; they are forgotten.

        What has become of their rows since is for the caller to see.
        """
        keys: list[Key] = []
        while self._instants and self._instants[0] <= now:
            keys += self._keys.pop(heappop(self._instants))
        return keys
