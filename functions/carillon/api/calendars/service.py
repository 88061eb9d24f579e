"""Operations on calendars, apart from HTTP: put, read, list, delete."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from itertools import accumulate

from carillon.api.calendars.models import MOST_RANGES, CalendarBody, Ranges
from carillon.api.http.problems import (
    AlreadyThereError,
    CalendarInUseError,
    ContendedError,
    MissingError,
    RevisionMismatchError,
)
from carillon.api.http.requests import Precondition
from carillon.api.jobs.changes import PutAction
from carillon.api.jobs.service import ATTEMPTS, JobService
from carillon.clock import Clock
from carillon.domain.calendar import Calendar
from carillon.domain.changes.change import Subject
from carillon.domain.spec.owners import SYSTEM, Author
from carillon.errors import InvalidFieldError
from carillon.stores.ports import ChangeStore, Page, VersionedRows
from carillon.stores.recording import RecordedRows

KIND = "calendar"

PAGE_RANGES = 20_000
"""Dates and ranges that one page of calendars carries: about a megabyte."""


@dataclass(frozen=True, slots=True)
class CalendarPut:
    """The calendar after a PUT, or as it would be, and the stored one that it replaces."""

    calendar: Calendar
    before: Calendar | None

    @property
    def action(self) -> PutAction:
        if self.before is None:
            return PutAction.CREATE
        return PutAction.NONE if self.calendar == self.before else PutAction.CHANGE


class CalendarService:
    """The calendars of one owner at a time: no method can name one of another's.

    Methods that name a calendar raise MissingError if the owner has none of that name, `put`
    apart. All raise StoreUnavailableError; they can be repeated then.
    """

    def __init__(
        self,
        jobs: JobService,
        calendars: VersionedRows[Calendar],
        changes: ChangeStore,
        clock: Clock,
    ) -> None:
        self._jobs = jobs
        self._calendars = calendars
        self._recorded = RecordedRows(calendars, changes)
        self._clock = clock

    def put(
        self,
        owner: str,
        name: str,
        body: CalendarBody,
        condition: Precondition,
        author: Author = SYSTEM,
    ) -> CalendarPut:
        """The calendar as `body` has it, whatever it was before; an equal one stays as it is.

        Raises RevisionMismatchError, AlreadyThereError, InvalidFieldError, or ContendedError.
        """
        for _ in range(ATTEMPTS):
            put = self.planned(owner, name, body)
            revision = None if put.before is None else put.before.revision
            if not condition.holds(revision):
                if condition.must_be_absent and revision is not None:
                    raise AlreadyThereError(KIND, name, revision)
                raise RevisionMismatchError(condition.revision, revision, KIND)
            if put.action is PutAction.NONE or self.commit(put, author):
                return put
        raise ContendedError(repr(name), KIND)

    def planned(self, owner: str, name: str, body: CalendarBody) -> CalendarPut:
        """The calendar that a PUT makes of the stored one; raises InvalidFieldError. Nothing is
        written."""
        now = self._clock.now()
        stored = self._calendars.get(owner, name)
        calendar = Calendar(
            owner=owner,
            name=name,
            revision=self._recorded.next_revision(stored, owner, Subject.CALENDAR, name),
            weekdays=body.weekday_numbers,
            ranges=_ranges_of(body, now),
            created_at=now if stored is None else stored.created_at,
            updated_at=now,
            description=body.description,
        )
        if stored is not None and _says_the_same(stored, calendar):
            return CalendarPut(stored, stored)
        return CalendarPut(calendar, stored)

    def commit(self, put: CalendarPut, author: Author) -> bool:
        """Write the calendar over the one that it replaces; False if that was changed meanwhile."""
        return self._recorded.put(put.calendar, put.before, author)

    def get(self, owner: str, name: str) -> Calendar:
        """The calendar."""
        calendar = self._calendars.get(owner, name)
        if calendar is None:
            raise MissingError(KIND, name)
        return calendar

    def list(self, owner: str, limit: int, cursor: str | None) -> Page[Calendar]:
        """One page of the owner's calendars, by name; raises InvalidFieldError for the cursor.

        It is shorter than `limit` when they are large, too: an answer is limited in size.
        """
        page = self._calendars.list(owner, limit, cursor)
        sizes = accumulate(len(calendar.ranges) for calendar in page.items)
        fitting = max(1, sum(1 for ranges in sizes if ranges <= PAGE_RANGES))
        if fitting >= len(page.items):
            return page
        return self._calendars.list(owner, fitting, cursor)

    def delete(
        self, owner: str, name: str, revision: int | None = None, author: Author = SYSTEM
    ) -> Calendar:
        """The calendar, gone, if it is at `revision` (None: whichever it is at).

        Raises CalendarInUseError when any of the owner's first 1,000 jobs follows it (a job beyond
        them then runs as if every day were open), RevisionMismatchError, and ContendedError.
        """
        for _ in range(ATTEMPTS):
            calendar = self.get(owner, name)
            if revision not in (None, calendar.revision):
                raise RevisionMismatchError(revision, calendar.revision, KIND)
            following = self._following(owner, name)
            if following:
                raise CalendarInUseError(name, following)
            if self._recorded.delete(calendar, author, self._clock.now()):
                return calendar
        raise ContendedError(repr(name), KIND)

    def _following(self, owner: str, name: str) -> Sequence[str]:
        return [
            job.job_id
            for page in self._jobs.first_pages(owner)
            for job in page.items
            if job.spec.calendar is not None and job.spec.calendar.name == name
        ]


def _ranges_of(body: CalendarBody, now: datetime) -> tuple[tuple[date, date], ...]:
    """The days of the body, and of its iCalendar text, each once, ascending."""
    imported: Ranges = []
    if body.icalendar is not None:
        # It takes a third of a second to load: only who needs it pays for that.
        from carillon.api.calendars.icalendar import closed_ranges

        imported = closed_ranges(body.icalendar, now)
    ranges = tuple(sorted({*body.spans, *imported}))
    if len(ranges) > MOST_RANGES:
        field = "ranges" if body.icalendar is None else "icalendar"
        raise InvalidFieldError(
            field, f"make {len(ranges)} dates and ranges together: {MOST_RANGES} are the most"
        )
    return ranges


def _says_the_same(stored: Calendar, calendar: Calendar) -> bool:
    unsaid = {"revision": stored.revision, "updated_at": stored.updated_at}
    return replace(calendar, **unsaid) == stored  # type: ignore[arg-type]
