"""The wheel in a dict of slots."""

from collections.abc import Sequence
from datetime import datetime
from itertools import islice
from threading import Lock

from shared.domain.segment import Control
from shared.domain.wheel import Entry, Slot
from shared.stores.memory.ordering import Expiry, KeyOrder
from shared.stores.ports import EntryPage

_Place = tuple[int, Slot]
"""A slot of a segment."""


class MemoryWheelStore:
    """WheelStore in memory: pages of at most `page_size` entries.

    Nothing expires by itself; `expire` does what DynamoDB's TTL would have done.
    """

    def __init__(self, page_size: int = 1000) -> None:
        self._page_size = page_size
        self._slots: dict[_Place, dict[str, Entry]] = {}
        self._orders: dict[_Place, KeyOrder[str]] = {}
        self._expiry: Expiry[tuple[_Place, str]] = Expiry()
        self._controls: dict[int, Control] = {}
        self._lock = Lock()

    def put_entries(self, entries: Sequence[Entry]) -> None:
        with self._lock:
            for entry in entries:
                self._put((entry.segment, entry.slot), entry)

    def query(self, segment: int, slot: Slot, after_key: str | None = None) -> EntryPage:
        place = (segment, slot)
        with self._lock:
            stored = self._slots.get(place)
            if stored is None:
                return EntryPage((), None)
            keys = list(islice(self._orders[place].after(after_key), self._page_size + 1))
            page = tuple(stored[key] for key in keys[: self._page_size])
        return EntryPage(page, page[-1].key if len(keys) > self._page_size else None)

    def remove_entry(self, segment: int, slot: Slot, entry_key: str) -> None:
        with self._lock:
            self._remove((segment, slot), entry_key)

    def expire(self, now: datetime) -> list[Entry]:
        """Remove the entries that may go by `now`; answers them, by `Entry.expires_at`."""
        with self._lock:
            removed = [self._remove(place, key) for place, key in self._expiry.due(now)]
        return [entry for entry in removed if entry is not None]

    def get_control(self, segment: int) -> Control | None:
        with self._lock:
            return self._controls.get(segment)

    def put_control(self, control: Control, over: Control | None) -> bool:
        with self._lock:
            stored = self._controls.get(control.segment)
            if _lease(stored) == _lease(over):
                self._controls[control.segment] = control
                return True
            return stored == control

    def _put(self, place: _Place, entry: Entry) -> None:
        key = entry.key
        stored = self._slots.get(place)
        if stored is None:
            stored = self._slots[place] = {}
            self._orders[place] = KeyOrder(stored, str)
        if key not in stored:
            self._orders[place].add(key)
            if entry.expires_at is not None:
                self._expiry.note((place, key), entry.expires_at)
        stored[key] = entry

    def _remove(self, place: _Place, key: str) -> Entry | None:
        stored = self._slots.get(place, {})
        entry = stored.pop(key, None)
        if entry is None:
            return None
        self._orders[place].row_gone()
        if not stored:
            del self._slots[place], self._orders[place]
        return entry


def _lease(control: Control | None) -> tuple[object, ...] | None:
    """What the condition of a write compares."""
    if control is None:
        return None
    return (control.token, control.lease_owner, control.lease_until)
