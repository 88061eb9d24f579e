"""Reading changes, apart from HTTP."""

from carillon.api.http.problems import MissingError
from carillon.domain.changes.change import Change, Subject
from carillon.domain.spec.names import is_job_id
from carillon.stores.ports import ChangeFilter, ChangeStore, JobStore, Page
from carillon.stores.recording import complete


class ChangeService:
    """The changes of one owner at a time. All raise StoreUnavailableError, and InvalidFieldError
    for cursors."""

    def __init__(self, jobs: JobStore, changes: ChangeStore) -> None:
        self._jobs = jobs
        self._changes = changes

    def of_job(
        self, owner: str, job_id: str, limit: int, cursor: str | None, only: ChangeFilter
    ) -> Page[Change]:
        """Those of a job, of one that is gone, too. The newest is never missing: where its row is,
        it is put. Raises MissingError where nothing is known of such a job."""
        if not is_job_id(job_id):
            raise MissingError("job", job_id)
        job = self._jobs.get(owner, job_id)
        listed = (owner, Subject.JOB, job_id, limit, cursor, only)
        page = self._changes.of_subject(*listed)
        newest = None if job is None else job.last_change
        is_missing = newest is not None and only.chooses(newest) and newest not in page.items
        if job is not None and cursor is None and is_missing:
            complete(self._changes, job)
            page = self._changes.of_subject(*listed)
        if job is None and not page.items and cursor is None:
            raise MissingError("job", job_id)
        return page

    def of_owner(
        self, owner: str, limit: int, cursor: str | None, only: ChangeFilter
    ) -> Page[Change]:
        """Those of all that the owner has; may be some seconds behind."""
        return self._changes.of_owner(owner, limit, cursor, only)
