"""Calendars as one invocation of the tick sees them: each is read when it is first needed, by every
segment that needs it right then."""

from carillon.domain.calendar import Calendar, CalendarUse, Resolved, resolve
from carillon.domain.wheel.entry import Entry
from carillon.errors import UnreadableRowError
from carillon.schedules import ClosedDays, Schedule
from carillon.stores.ports import VersionedRows


class CalendarReader:
    """Made for one invocation: the next one sees a changed calendar.

    Schedules under a calendar are kept, too, since they remember what they have worked out.
    """

    def __init__(self, calendars: VersionedRows[Calendar]) -> None:
        self._calendars = calendars
        self._closed: dict[tuple[str, str], ClosedDays | UnreadableRowError] = {}
        self._resolved: dict[tuple[str, CalendarUse, Schedule], Resolved] = {}

    def resolved(self, entry: Entry) -> Resolved | None:
        """The entry's schedule under its calendar; None for one without.

        A calendar that does not exist closes no day. Raises StoreUnavailableError, and of these
        UnreadableRowError for a row that this version cannot read.
        """
        schedule, use = entry.schedule, entry.calendar
        if schedule is None or use is None:
            return None
        key = (entry.owner, use, schedule)
        found = self._resolved.get(key)
        if found is None:
            found = resolve(schedule, use, self._closed_days(entry.owner, use.name))
            self._resolved[key] = found
        return found

    def _closed_days(self, owner: str, name: str) -> ClosedDays:
        closed = self._closed.get((owner, name))
        if closed is None:
            closed = self._closed[owner, name] = self._read(owner, name)
        if isinstance(closed, UnreadableRowError):
            raise closed
        return closed

    def _read(self, owner: str, name: str) -> ClosedDays | UnreadableRowError:
        try:
            calendar = self._calendars.get(owner, name)
        except UnreadableRowError as error:
            return error
        return ClosedDays() if calendar is None else calendar.closed
