"""The activity feed in a dict."""

from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime
from threading import Lock

from carillon.stores.activity import Record


class MemoryActivityStore:
    """ActivityStore in memory; nothing expires."""

    def __init__(self) -> None:
        self._days: defaultdict[tuple[str, datetime], dict[str, Record]] = defaultdict(dict)
        self._lock = Lock()

    def put(self, record: Record, most_units: int | None = None) -> bool:
        day = record.recorded_at.replace(hour=0, minute=0, second=0)
        with self._lock:
            self._days[record.owner, day][record.position] = record
        return True

    def read(
        self, owner: str, day: datetime, before: str = "", since: str = ""
    ) -> Iterator[Record]:
        with self._lock:
            found = self._days.get((owner, day), {})
            wanted = [at for at in found if at >= since and (not before or at < before)]
            return iter([found[at] for at in sorted(wanted, reverse=True)])

    def all(self) -> list[Record]:
        """Every record, of all owners, by day and position."""
        with self._lock:
            days = sorted(self._days, key=lambda each: (each[1], each[0]))
            return [self._days[day][at] for day in days for at in sorted(self._days[day])]
