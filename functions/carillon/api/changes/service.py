"""Reading changes, apart from HTTP."""

from typing import Any

from carillon.api.http.problems import MissingError
from carillon.domain.changes.change import Change, Subject
from carillon.domain.spec.names import is_job_id
from carillon.stores.ports import ChangeFilter, Page, Stores, VersionedRows
from carillon.stores.recording import Changed, complete


class ChangeService:
    """The changes of one owner at a time. All raise StoreUnavailableError, and InvalidFieldError
    for cursors."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self._changes = stores.changes

    def of_job(
        self, owner: str, job_id: str, limit: int, cursor: str | None, only: ChangeFilter
    ) -> Page[Change]:
        """Those of a job, of one that is gone, too; raises MissingError where nothing is known of
        such a job."""
        if not is_job_id(job_id):
            raise MissingError("job", job_id)
        job = self._stores.jobs.get(owner, job_id)
        page = self._of(owner, (Subject.JOB, job_id), job, limit, cursor, only)
        is_unknown = job is None and not page.items and cursor is None
        # The filter may choose none of those that there are.
        if is_unknown and not self._changes.of_subject(owner, Subject.JOB, job_id, 1).items:
            raise MissingError("job", job_id)
        return page

    def of_row(
        self,
        owner: str,
        subject: Subject,
        name: str,
        limit: int,
        cursor: str | None,
        only: ChangeFilter,
    ) -> Page[Change]:
        """Those of a calendar or a notification; none where there never was one."""
        is_calendar = subject is Subject.CALENDAR
        rows: VersionedRows[Any] = (
            self._stores.calendars if is_calendar else self._stores.notifications
        )
        return self._of(owner, (subject, name), rows.get(owner, name), limit, cursor, only)

    def _of(
        self,
        owner: str,
        of: tuple[Subject, str],
        row: Changed | None,
        limit: int,
        cursor: str | None,
        only: ChangeFilter,
    ) -> Page[Change]:
        """The newest is never missing: where its row is, that is put."""
        page = self._changes.of_subject(owner, *of, limit, cursor, only)
        newest = None if row is None else row.last_change
        is_missing = newest is not None and only.chooses(newest) and newest not in page.items
        if row is not None and cursor is None and is_missing:
            complete(self._changes, row)
            page = self._changes.of_subject(owner, *of, limit, cursor, only)
        return page

    def of_owner(
        self, owner: str, limit: int, cursor: str | None, only: ChangeFilter
    ) -> Page[Change]:
        """Those of all that the owner has; may be some seconds behind."""
        return self._changes.of_owner(owner, limit, cursor, only)
