"""Calendars as one invocation, message or request sees them: each is read once, if needed."""

from carillon.domain.calendar import Calendar, CalendarUse, Resolved, resolve
from carillon.domain.spec.job_summary import Timed
from carillon.errors import UnreadableRowError
from carillon.schedules import ClosedDays, Recurrence, Schedule
from carillon.stores.ports import VersionedRows


class CalendarReader:
    """Reads each calendar once; the next reader sees a changed one. For one thread, or for several
    that may read one calendar twice.

    A calendar that does not exist closes no day. Raises StoreUnavailableError, and of these
    UnreadableRowError for a row that this version cannot read.
    """

    def __init__(self, calendars: VersionedRows[Calendar]) -> None:
        self._calendars = calendars
        self._closed: dict[tuple[str, str], ClosedDays | UnreadableRowError] = {}
        self._resolved: dict[tuple[str, CalendarUse, Schedule], Resolved] = {}

    def take(self, calendar: Calendar) -> None:
        """Let a calendar be as this one, whatever is stored."""
        self._closed[calendar.owner, calendar.name] = calendar.closed

    def closed_days(self, owner: str, use: CalendarUse | None) -> ClosedDays | None:
        """The closed days of the owner's calendar; None without one."""
        if use is None:
            return None
        closed = self._closed.get((owner, use.name))
        if closed is None:
            closed = self._closed[owner, use.name] = self._read(owner, use.name)
        if isinstance(closed, UnreadableRowError):
            raise closed
        return closed

    def resolved(self, owner: str, schedule: Schedule, use: CalendarUse | None) -> Resolved:
        """The schedule under the owner's calendar."""
        if use is None:
            return resolve(schedule, None, None)
        # Kept, since a schedule under a calendar remembers what it has worked out.
        found = self._resolved.get((owner, use, schedule))
        if found is None:
            found = resolve(schedule, use, self.closed_days(owner, use))
            self._resolved[owner, use, schedule] = found
        return found

    def can_read(self, job: Timed) -> bool:
        """False for a job whose calendar is a row that cannot be read."""
        try:
            self.closed_days(job.owner, job.spec.calendar)
        except UnreadableRowError:
            return False
        return True

    def opened(self, job: Timed) -> Recurrence:
        """The occurrences of a job that are to run."""
        return self.resolved(job.owner, job.schedule, job.spec.calendar).open

    def _read(self, owner: str, name: str) -> ClosedDays | UnreadableRowError:
        try:
            calendar = self._calendars.get(owner, name)
        except UnreadableRowError as error:
            return error
        return ClosedDays() if calendar is None else calendar.closed
