"""Gates in a dict."""

from dataclasses import replace
from threading import Lock

from carillon.domain.admission.state import Gate
from carillon.stores.cursors import whole_seconds


class MemoryGateStore:
    """GateStore in memory; nothing expires by itself."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str], Gate] = {}
        self._lock = Lock()

    def get(self, owner: str, name: str) -> Gate | None:
        with self._lock:
            return self._rows.get((owner, name))

    def put(self, gate: Gate, over_revision: int | None) -> bool:
        key = (gate.owner, gate.name)
        row = replace(gate, expires_at=whole_seconds(gate.expires_at))
        with self._lock:
            stored = self._rows.get(key)
            if (None if stored is None else stored.revision) == over_revision:
                self._rows[key] = row
                return True
            return stored == row
