"""Calendars in a dict."""

from threading import Lock

from carillon.domain.calendar import Calendar
from carillon.stores.cursors import decode_cursor, encode_cursor
from carillon.stores.ports import Page


class MemoryCalendarStore:
    """CalendarStore in memory."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str], Calendar] = {}
        self._lock = Lock()

    def get(self, owner: str, name: str) -> Calendar | None:
        with self._lock:
            return self._rows.get((owner, name))

    def put(self, calendar: Calendar, over_revision: int | None) -> bool:
        key = (calendar.owner, calendar.name)
        with self._lock:
            stored = self._rows.get(key)
            if (None if stored is None else stored.revision) == over_revision:
                self._rows[key] = calendar
                return True
            return stored == calendar

    def delete(self, owner: str, name: str, revision: int) -> bool:
        with self._lock:
            stored = self._rows.get((owner, name))
            if stored is not None and stored.revision != revision:
                return False
            self._rows.pop((owner, name), None)
            return True

    def list(self, owner: str, limit: int, cursor: str | None = None) -> Page[Calendar]:
        scope = ("calendars", owner)
        after = "" if cursor is None else decode_cursor(scope, cursor)
        with self._lock:
            calendars = sorted(
                (
                    calendar
                    for calendar in self._rows.values()
                    if calendar.owner == owner and calendar.name > after
                ),
                key=lambda calendar: calendar.name,
            )
        page = tuple(calendars[:limit])
        more = len(calendars) > limit
        return Page(page, encode_cursor(scope, page[-1].name) if more else None)
