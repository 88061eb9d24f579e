"""The facts by which a message is handled."""

from dataclasses import dataclass
from datetime import datetime

from carillon.domain.job import Job
from carillon.domain.message import Message
from carillon.domain.run import Run
from carillon.schedules import ClosedDays
from carillon.services.calendar_reader import CalendarReader


@dataclass(frozen=True, slots=True)
class RunContext:
    """Loaded once, after the claim: an acknowledged pause or deletion is seen then.

    The process may be stopped at `ends_at`; None: the dead-letter consumer, which calls no target.
    `before` is the row of the run whose end has started this one.
    """

    message: Message
    job: Job
    calendars: CalendarReader
    ends_at: datetime | None
    before: Run | None = None

    @property
    def closed_days(self) -> ClosedDays | None:
        """Those of the job's calendar; None without one. Raises StoreUnavailableError."""
        return self.calendars.closed_days(self.job.owner, self.job.spec.calendar)
