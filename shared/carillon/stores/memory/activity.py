"""The activity feed in a dict."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from threading import Lock

from carillon.stores.activity import Record


class MemoryActivityStore:
    """ActivityStore in memory; nothing expires."""

    def __init__(self) -> None:
        self._hours: defaultdict[tuple[str, datetime], dict[str, Record]] = defaultdict(dict)
        self._lock = Lock()

    def put(self, record: Record) -> None:
        hour = record.recorded_at.replace(minute=0, second=0)
        with self._lock:
            self._hours[record.owner, hour][record.position] = record

    def read(
        self, owner: str, hour: datetime, limit: int, before: str = "", since: str = ""
    ) -> Sequence[Record]:
        with self._lock:
            found = self._hours.get((owner, hour), {})
            wanted = [at for at in found if at >= since and (not before or at < before)]
            return [found[at] for at in sorted(wanted, reverse=True)[:limit]]

    def all(self) -> list[Record]:
        """Every record, of all owners, by hour and position."""
        with self._lock:
            hours = sorted(self._hours, key=lambda each: (each[1], each[0]))
            return [self._hours[hour][at] for hour in hours for at in sorted(self._hours[hour])]
