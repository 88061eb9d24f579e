"""The wheel in a dict of slots."""

from collections.abc import Collection, Sequence
from dataclasses import fields
from datetime import datetime
from itertools import islice
from threading import Lock

from carillon.domain.wheel.entry import Entry, EntryKey, Slot
from carillon.domain.wheel.segment import Control, Remains
from carillon.errors import UnreadableRowError
from carillon.stores.memory.rows import Expiry, KeyOrder
from carillon.stores.ports import Page

_Place = tuple[int, Slot]
"""A slot of a segment."""


_LEASE = ("token", "lease_owner", "lease_until")
_MEMBERS = tuple(each.name for each in fields(Control) if each.name != "segment")


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
        self._spoilt: dict[int, frozenset[str]] = {}
        self._bad_entries: set[tuple[int, Slot, str]] = set()
        self._lock = Lock()

    def put_entries(self, entries: Sequence[Entry]) -> None:
        with self._lock:
            for entry in entries:
                self._put((entry.segment, entry.slot), entry)

    def query(self, segment: int, slot: Slot, after_key: str | None = None) -> Page[Entry]:
        place = (segment, slot)
        with self._lock:
            stored = self._slots.get(place)
            if stored is None:
                return Page((), None)
            keys = list(islice(self._orders[place].after(after_key), self._page_size + 1))
            page = tuple(stored[key] for key in keys[: self._page_size])
        last_key = page[-1].key if len(keys) > self._page_size else None
        if not self._bad_entries:
            return Page(page, last_key)
        bad = [entry.key for entry in page if (segment, slot, entry.key) in self._bad_entries]
        return Page(
            tuple(e for e in page if e.key not in bad), last_key, dict.fromkeys(bad, "spoilt")
        )

    def has_entries(self, segment: int, slot: Slot) -> bool:
        """True if a query of the slot would find anything."""
        return (segment, slot) in self._slots

    def holds(self, segment: int, slot: Slot, entry_key: str) -> bool:
        with self._lock:
            return entry_key in self._slots.get((segment, slot), {})

    def remove_entries(self, segment: int, keys: Sequence[EntryKey]) -> None:
        with self._lock:
            for slot, entry_key in keys:
                self._remove((segment, slot), entry_key)

    def expire(self, now: datetime) -> list[Entry]:
        """Remove the entries that may go by `now`; answers them, by `Entry.expires_at`."""
        with self._lock:
            removed = [self._remove(place, key) for place, key in self._expiry.due(now)]
        return [entry for entry in removed if entry is not None]

    def get_control(self, segment: int) -> Control | None:
        with self._lock:
            stored, spoilt = self._controls.get(segment), self._spoilt.get(segment)
        if stored is not None and spoilt:
            wrong = ", ".join(name for name in _MEMBERS if name in spoilt)
            raise UnreadableRowError(f"the control item of segment {segment}: {wrong}")
        return stored

    def put_control(self, control: Control, over: Control | None) -> bool:
        with self._lock:
            stored = self._controls.get(control.segment)
            token_lost = not self._spoilt.get(control.segment, frozenset()).isdisjoint(_LEASE)
            if _lease(stored) == _lease(over) and not token_lost:
                self._controls[control.segment] = control
                self._spoilt.pop(control.segment, None)
                return True
            return stored == control and not self._spoilt.get(control.segment)

    def examine_control(self, segment: int) -> Remains | None:
        with self._lock:
            stored = self._controls.get(segment)
            if stored is None:
                return None
            spoilt = self._spoilt.get(segment, frozenset())
        members = {name: getattr(stored, name) for name in _MEMBERS if name not in spoilt}
        return Remains(segment, members, dict.fromkeys(spoilt, "spoilt"), (stored, spoilt))

    def mend_control(self, control: Control, over: Remains) -> bool:
        with self._lock:
            segment = control.segment
            spoilt = self._spoilt.get(segment, frozenset())
            if (self._controls.get(segment), spoilt) == over.stored:
                self._controls[segment] = control
                self._spoilt.pop(segment, None)
            return not self._spoilt.get(segment) and self._controls.get(segment) == control

    def spoil_control(self, segment: int, members: Collection[str]) -> None:
        """Make these members unreadable, as a bug, a later version or a manual edit could."""
        with self._lock:
            self._spoilt[segment] = frozenset(members)

    def spoil_entry(self, entry: Entry) -> None:
        """The same of an entry: only its key can be read."""
        with self._lock:
            self._bad_entries.add((entry.segment, entry.slot, entry.key))

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
    """The members that the condition of a write compares."""
    if control is None:
        return None
    return (control.token, control.lease_owner, control.lease_until)
