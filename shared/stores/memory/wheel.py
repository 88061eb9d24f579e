"""The wheel in a dict of slots."""

from collections import defaultdict
from collections.abc import Sequence
from threading import Lock

from shared.domain.segment import Control
from shared.domain.wheel import Entry, Slot
from shared.stores.ports import EntryPage


class MemoryWheelStore:
    """WheelStore in memory: pages of at most `page_size` entries, and nothing expires by itself."""

    def __init__(self, page_size: int = 1000) -> None:
        self._page_size = page_size
        self._slots: defaultdict[tuple[int, Slot], dict[str, Entry]] = defaultdict(dict)
        self._controls: dict[int, Control] = {}
        self._lock = Lock()

    def put_entries(self, entries: Sequence[Entry]) -> None:
        with self._lock:
            for entry in entries:
                self._slots[entry.segment, entry.slot][entry.key] = entry

    def query(self, segment: int, slot: Slot, after_key: str | None = None) -> EntryPage:
        with self._lock:
            stored = self._slots.get((segment, slot), {})
            keys = sorted(key for key in stored if after_key is None or key > after_key)
            page = tuple(stored[key] for key in keys[: self._page_size])
        return EntryPage(page, page[-1].key if len(keys) > self._page_size else None)

    def remove_entry(self, segment: int, slot: Slot, entry_key: str) -> None:
        with self._lock:
            self._slots.get((segment, slot), {}).pop(entry_key, None)

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


def _lease(control: Control | None) -> tuple[object, ...] | None:
    """What the condition of a write compares."""
    if control is None:
        return None
    return (control.token, control.lease_owner, control.lease_until)
