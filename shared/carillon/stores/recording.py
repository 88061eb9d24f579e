"""Changes are recorded here and nowhere else: no job is written without a word of who did it, nor
without the record of a generation by which its runs are found in chunks.

The commit itself puts the change into the job's row; the change's own row follows. Each commit
first puts, if absent, that of the revision that it replaces, and who reads a job's changes puts a
missing one, too: so a process that dies between the two loses nothing.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Generic, Protocol, TypeVar

from carillon.clock import Clock
from carillon.domain.changes.change import Action, Change, Subject
from carillon.domain.changes.of_jobs import job_change
from carillon.domain.changes.of_rows import OwnedRow, row_change, row_deletion
from carillon.domain.changes.of_runs import operation_change, run_change
from carillon.domain.chunks.history import left_by
from carillon.domain.events import EventType
from carillon.domain.execution.callbacks import change_event
from carillon.domain.job import Job, Successor
from carillon.domain.operation import Operation
from carillon.domain.run import RunKey
from carillon.domain.spec.job_summary import JobSummary
from carillon.domain.spec.names import is_job_id
from carillon.domain.spec.owners import Author, is_system
from carillon.errors import UnreadableRowError
from carillon.stores.changes import ChangeFilter
from carillon.stores.choices import JobFilter, Tally
from carillon.stores.pages import Page
from carillon.stores.ports import ChangeStore, ChunkStore, EventSink, JobStore, VersionedRows

Owned = TypeVar("Owned", bound=OwnedRow)


class ChangeEvents:
    """Puts `job.changed` on the bus for the jobs that have chosen it, or had before the change;
    `lost` hears how many the bus has not taken. Raises nothing: a change stands all the same."""

    def __init__(self, events: EventSink, lost: Callable[[int], None] = lambda count: None) -> None:
        self._events = events
        self._lost = lost

    def tell(self, job: Job, change: Change, before: Job | None = None) -> None:
        chosen = {*job.spec.events, *(before.spec.events if before is not None else ())}
        if EventType.JOB_CHANGED in chosen:
            self._lost(self._events.emit([change_event(job, change)]))


class GenerationRecords:
    """Puts the record that a row leaves when another one is about to replace it: before the commit,
    so that no run in a chunk is without a way to it. Chunks live for `lifetime` after their
    claim."""

    def __init__(self, chunks: ChunkStore, lifetime: timedelta) -> None:
        self._chunks = chunks
        self._lifetime = lifetime

    def put(self, before: Job, after: Job) -> None:
        left = left_by(before, after, self._lifetime)
        if left is not None:
            self._chunks.put_record(left)


class RecordedJobs:
    """A JobStore over one that knows no changes.

    A write of the same revision is none: a mark of lane slow. Nor is one of the deployment's own
    jobs: only Carillon writes those, by ticks, which may not write where changes are.
    """

    def __init__(
        self,
        jobs: JobStore,
        changes: ChangeStore,
        events: ChangeEvents,
        records: GenerationRecords,
    ) -> None:
        self._jobs = jobs
        self._changes = changes
        self._events = events
        self._records = records

    def create(self, job: Job) -> bool:
        if is_system(job.owner):
            return self._jobs.create(job)
        made = replace(job, last_change=job_change(None, job))
        return self._settled(made, None, self._jobs.create(made))

    def replace(self, job: Job, revision: int) -> bool:
        if job.revision == revision or is_system(job.owner):
            return self._jobs.replace(job, revision)
        before = self._jobs.get(job.owner, job.job_id)
        if before is None or before.revision != revision:
            return before == job  # lost, or applied by a call whose answer was
        complete(self._changes, before)
        self._records.put(before, job)
        made = replace(job, last_change=job_change(before, job))
        return self._settled(made, before, self._jobs.replace(made, revision))

    def _settled(self, job: Job, before: Job | None, won: bool) -> bool:
        if won and job.last_change is not None:
            complete(self._changes, job)
            self._events.tell(job, job.last_change, before)
        return won

    def get(self, owner: str, job_id: str) -> Job | None:
        return self._jobs.get(owner, job_id)

    def get_all(self, keys: Sequence[tuple[str, str]]) -> dict[str, Job]:
        return self._jobs.get_all(keys)

    def relink(self, job: Job, over: tuple[Successor, ...]) -> bool:
        return self._jobs.relink(job, over)

    def remove_unreadable(self, owner: str, job_id: str) -> bool:
        return self._jobs.remove_unreadable(owner, job_id)

    def list(
        self, owner: str, limit: int, cursor: str | None = None, only: JobFilter | None = None
    ) -> Page[Job]:
        return self._jobs.list(owner, limit, cursor, only)

    def summaries(
        self, owner: str, limit: int, cursor: str | None = None, only: JobFilter | None = None
    ) -> Page[JobSummary]:
        return self._jobs.summaries(owner, limit, cursor, only)

    def tally(self, owner: str, cursor: str | None = None) -> Tally:
        return self._jobs.tally(owner, cursor)

    def scan(self, limit: int, cursor: str | None = None) -> Page[Job]:
        return self._jobs.scan(limit, cursor)


class RecordedRows(Generic[Owned]):
    """The writes of calendars, notifications, or owners' quotas, in the same way."""

    def __init__(self, rows: VersionedRows[Owned], changes: ChangeStore) -> None:
        self._rows = rows
        self._changes = changes

    def next_revision(self, stored: Owned | None, owner: str, subject: Subject, name: str) -> int:
        """The revision of the row that takes the place of `stored`. That of a new row is behind
        those of a row of this name that was deleted, or who has read that one would overwrite the
        new one."""
        if stored is not None:
            return stored.revision + 1
        deletions = ChangeFilter(action=Action.DELETE)
        last = self._changes.of_subject(owner, subject, name, 1, only=deletions).items
        return last[0].revision + 1 if last else 1

    def put(self, row: Owned, before: Owned | None, author: Author) -> bool:
        """Put the row if the stored one is still `before`."""
        if before is not None:
            complete(self._changes, before)
        made = replace(row, last_change=row_change(before, row, author))
        won = self._rows.put(made, None if before is None else before.revision)
        if won:
            complete(self._changes, made)
        return won

    def delete(self, row: Owned, author: Author, at: datetime) -> bool:
        """Remove the row if it is still this one. No row is left to hold the change: so it is put
        first, and who loses has noted an attempt."""
        complete(self._changes, row)
        self._changes.put(row_deletion(row, author, at))
        return self._rows.delete(row.owner, row.name, row.revision)


class Acts:
    """Requests about runs, noted when they are done and before they are answered. A process that
    dies between has answered nobody: who repeats the request has it noted. Where the row says when
    it was done a repetition notes the same, once."""

    def __init__(
        self, jobs: JobStore, changes: ChangeStore, events: ChangeEvents, clock: Clock
    ) -> None:
        self._jobs = jobs
        self._changes = changes
        self._events = events
        self._clock = clock

    def of_run(
        self,
        key: RunKey,
        action: Action,
        author: Author,
        note: str = "",
        at: datetime | None = None,
    ) -> None:
        job, now = self._job(key.owner, key.job_id), self._clock.now()
        self._put(job, run_change(key, job, action, author, at or now, note))

    def of_operation(self, operation: Operation, action: Action, author: Author) -> None:
        job = self._job(operation.owner, operation.job_id)
        is_end = action is Action.CANCEL
        at = operation.updated_at if is_end else operation.created_at
        self._put(job, operation_change(operation, job, action, author, at))

    def of_unreadable(self, owner: str, job_id: str, author: Author) -> None:
        """The deletion of a job whose row cannot be read. To be noted first, as no row is left to
        hold it: it may tell of one that then failed."""
        now, note = self._clock.now(), "its row could not be read"
        change = Change(owner, Subject.JOB, job_id, "", Action.DELETE, 0, now, author, note=note)
        self._changes.put(change)

    def _put(self, job: Job | None, change: Change) -> None:
        self._changes.put(change)
        if job is not None:
            self._events.tell(job, change)

    def _job(self, owner: str, job_id: str) -> Job | None:
        """The job as far as its name goes: a row that cannot be read has none."""
        with suppress(UnreadableRowError):
            return self._jobs.get(owner, job_id) if is_job_id(job_id) else None
        return None


class Changed(Protocol):
    """A row that holds the change that made it."""

    @property
    def last_change(self) -> Change | None: ...


def complete(changes: ChangeStore, row: Changed) -> None:
    """Put the change that made this revision of a row, if its own row is missing."""
    if row.last_change is not None:
        changes.put(row.last_change)
