"""Operations on jobs, apart from HTTP: create, read, change, pause, resume, delete."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from itertools import accumulate
from typing import Any

from carillon.api.http.problems import (
    ContendedError,
    KeyGoneError,
    KeyReusedError,
    MissingError,
    RevisionMismatchError,
)
from carillon.api.jobs.drafts import (
    Draft,
    changed_draft,
    created_draft,
    fingerprint_of,
)
from carillon.api.jobs.request_models import JobPatch
from carillon.clock import Clock, Entropy
from carillon.domain.calendar import Calendar
from carillon.domain.callbacks import job_event
from carillon.domain.events import EventType
from carillon.domain.job import Generation, Job, JobState, fires_differently, job_id_of, segment_of
from carillon.domain.spec.job_spec import JobSpec
from carillon.errors import InvalidFieldError
from carillon.services.indexer import Indexer
from carillon.settings import Settings
from carillon.stores.ports import EventSink, JobFilter, JobStore, Page, VersionedRows
from carillon.telemetry import Telemetry

ATTEMPTS = 4
"""Times that a pause, resume or deletion is tried against concurrent changes."""

PAGE_BYTES = 2 * 1024 * 1024
"""Of jobs as JSON that one page carries: escaped once more they stay below Lambda's 6 MB, with what
answers add."""

PAGE_SIZE = 100
MOST_PAGES = 10
"""Requests about all jobs of an owner read this many pages of them: 1,000 jobs, by job id, and
fewer where many of them were deleted lately."""

_JOB_ID = re.compile(r"[0-9a-z]{26}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Created:
    """`is_new` is False for a repetition under the same idempotency key."""

    job: Job
    is_new: bool


@dataclass(frozen=True, slots=True)
class Changed:
    """`before` is the row that was changed; None for a job that was as it was wanted already."""

    job: Job
    before: Job | None = None


class JobService:
    """The jobs of one owner at a time: no method can name a job of another one's.

    Every method that names a job raises MissingError if the owner has none of that id. Every one
    that writes raises StoreUnavailableError or QueueUnavailableError; it can be repeated then.
    """

    def __init__(
        self,
        jobs: JobStore,
        calendars: VersionedRows[Calendar],
        indexer: Indexer,
        events: EventSink,
        clock: Clock,
        entropy: Entropy,
        settings: Settings,
        telemetry: Telemetry,
    ) -> None:
        self._jobs = jobs
        self._calendars = calendars
        self._indexer = indexer
        self._events = events
        self._clock = clock
        self._entropy = entropy
        self._settings = settings
        self._telemetry = telemetry

    def create(self, owner: str, spec: JobSpec, key: str | None) -> Created:
        """Put a job on the wheel; under a `key` it happens once, however often it is requested.

        Raises what `created_draft` raises, KeyReusedError or KeyGoneError.
        """
        now = self._clock.now()
        fingerprint = fingerprint_of(spec)
        job_id = self._new_job_id(owner, key, now)
        # Before any check that time can turn: a one-shot that has fired is repeated all the same.
        existing = None if key is None else self._jobs.get(owner, job_id)
        if existing is None:
            draft = created_draft(job_id, spec, self._settings, now)
            job = self._new_job(owner, job_id, draft, fingerprint, now)
            self._refuse_missing_calendar(job)
            if self._indexer.index_job(job, None):
                return Created(job, is_new=True)
            existing = self._jobs.get(owner, job_id)
        if existing is None:
            raise ContendedError(job_id)
        return _repeated(existing, fingerprint)

    def get(self, owner: str, job_id: str) -> Job:
        """The job, active or paused; a tombstone is none."""
        job = self.find(owner, job_id)
        if job is None or job.is_tombstone:
            raise MissingError("job", job_id)
        return job

    def find(self, owner: str, job_id: str) -> Job | None:
        """The row, a tombstone included; None for anything that cannot be a job id."""
        # Run keys join owner and job id: an id must never be able to carry the separator.
        return self._jobs.get(owner, job_id) if is_job_id(job_id) else None

    def list(
        self, owner: str, limit: int, cursor: str | None, only: JobFilter | None = None
    ) -> Page[Job]:
        """One page of the owner's jobs, by job id; raises InvalidFieldError for the cursor.

        It is shorter than `limit` when the jobs are large, too: an answer is limited in size.
        """
        page = self._jobs.list(owner, limit, cursor, only)
        fitting = _fitting(page.items)
        if fitting == len(page.items):
            return page
        return self._jobs.list(owner, fitting, cursor, only)

    def select(self, owner: str, limit: int, cursor: str | None, only: JobFilter) -> Page[Job]:
        """As `list`, whatever the size of the jobs: for work on them, not for an answer."""
        return self._jobs.list(owner, limit, cursor, only)

    def first_pages(self, owner: str) -> Iterator[Page[Job]]:
        """The owner's first 1,000 jobs in pages, by job id, whatever their size.

        The last page has a `next_cursor` when there are more.
        """
        cursor: str | None = None
        for _ in range(MOST_PAGES):
            page = self._jobs.list(owner, PAGE_SIZE, cursor)
            yield page
            cursor = page.next_cursor
            if cursor is None:
                return

    def change(self, owner: str, job_id: str, patch: JobPatch, revision: int | None) -> Job:
        """The job after `patch`, if it is at `revision` (None: whichever it is at).

        A change of when it fires, or of its priority, is a new generation; a paused job gets that
        when it is resumed. Raises RevisionMismatchError and what `changed_draft` raises.
        """
        job = self.get(owner, job_id)
        if revision is not None and revision != job.revision:
            raise RevisionMismatchError(revision, job.revision)
        now = self._clock.now()
        draft = changed_draft(job, patch, self._settings, now)
        changed = replace(job, **_values(draft))
        if changed == job:
            return job
        if changed.spec.calendar != job.spec.calendar:
            self._refuse_missing_calendar(changed)
        if job.state is JobState.ACTIVE and fires_differently(job, changed):
            changed = changed.in_new_generation(self._new_generation(now, job.generation), now)
            won = self._indexer.index_job(changed, job.revision)
            if won:
                self._indexer.remove_ended_entries(job, changed)
        else:
            changed = replace(changed, revision=job.revision + 1, updated_at=now)
            won = self._jobs.replace(changed, job.revision)
        if not won:
            raise RevisionMismatchError(revision, self.get(owner, job_id).revision)
        return changed

    def pause(self, owner: str, job_id: str, *, tidy: bool = True) -> Changed:
        """The paused job: no scheduled run, retry of one or backfill starts until it is resumed;
        manual runs, redrives and callbacks do. A paused one stays as it is, and its event is
        published again: the first request may have died before that.

        Without `tidy` its entries are left to `tidy_up`."""

        def step(job: Job) -> Changed | None:
            if job.state is JobState.PAUSED:
                return Changed(job)
            paused = job.paused(self._clock.now())
            return Changed(paused, job) if self._jobs.replace(paused, job.revision) else None

        changed = self._until_won(owner, job_id, step)
        self._tell_paused(changed.job)
        if tidy:
            self.tidy_up(changed)
        return changed

    def resume(self, owner: str, job_id: str) -> Changed:
        """The active job, indexed from now on. An active one stays as it is."""

        def step(job: Job) -> Changed | None:
            if job.state is JobState.ACTIVE:
                return Changed(job)
            now = self._clock.now()
            resumed = job.in_new_generation(self._new_generation(now, job.generation), now)
            return Changed(resumed, job) if self._indexer.index_job(resumed, job.revision) else None

        return self._until_won(owner, job_id, step)

    def delete(self, owner: str, job_id: str, *, tidy: bool = True) -> Changed:
        """The tombstone, which holds the job's key; a second deletion finds no job.

        Without `tidy` its entries are left to `tidy_up`."""

        def step(job: Job) -> Changed | None:
            now = self._clock.now()
            tombstone = job.deleted(now, now + self._settings.run_lifetime)
            return Changed(tombstone, job) if self._jobs.replace(tombstone, job.revision) else None

        changed = self._until_won(owner, job_id, step)
        if tidy:
            self.tidy_up(changed)
        return changed

    def remove_unreadable(self, owner: str, job_id: str) -> bool:
        """Remove a job whose row cannot be read; False for any other. Its entries are removed as
        those of a job that never was: when a message of theirs arrives."""
        return is_job_id(job_id) and self._jobs.remove_unreadable(owner, job_id)

    def tidy_up(self, changed: Changed) -> None:
        """Remove the entries of the generation that a pause or deletion has ended; raises
        nothing."""
        if changed.before is not None:
            self._indexer.remove_ended_entries(changed.before, changed.job)

    def _tell_paused(self, job: Job) -> None:
        """Put the event on the bus, at least once, and under one id."""
        if EventType.JOB_PAUSED in job.spec.events and job.paused_at is not None:
            event = job_event(EventType.JOB_PAUSED, job, job.paused_at)
            self._telemetry.events_lost(self._events.emit([event]))

    def _until_won(self, owner: str, job_id: str, step: Callable[[Job], Changed | None]) -> Changed:
        """Repeat `step` on the row as it is now until its conditional write wins."""
        for _ in range(ATTEMPTS):
            changed = step(self.get(owner, job_id))
            if changed is not None:
                return changed
        raise ContendedError(job_id)

    def _new_job_id(self, owner: str, key: str | None, now: datetime) -> str:
        return self._entropy.new_id(now).lower() if key is None else job_id_of(owner, key)

    def _new_generation(self, now: datetime, before: Generation | None = None) -> Generation:
        made_at = now if before is None else before.next_id_at(now)
        return Generation(self._entropy.new_id(made_at), now.replace(microsecond=0))

    def _new_job(
        self, owner: str, job_id: str, draft: Draft, fingerprint: str, now: datetime
    ) -> Job:
        return Job(
            owner=owner,
            job_id=job_id,
            segment=segment_of(job_id, self._settings.segments),
            generation=self._new_generation(now),
            created_at=now,
            updated_at=now,
            fingerprint=fingerprint,
            **_values(draft),
        )

    def _refuse_missing_calendar(self, job: Job) -> None:
        """A job could follow one that is not there, as if every day were open: never by a slip."""
        use = job.spec.calendar
        if use is not None and self._calendars.get(job.owner, use.name) is None:
            raise InvalidFieldError(
                "calendar.name", f"you have no calendar {use.name!r}: PUT /calendars/{use.name}"
            )


def is_job_id(text: str) -> bool:
    """True if the text has the form of every job id."""
    return _JOB_ID.fullmatch(text) is not None


def _fitting(jobs: Sequence[Job]) -> int:
    """The number of the first jobs that fit into one answer; at least one."""
    # As the answer escapes it: a letter beyond ASCII takes six bytes.
    sizes = accumulate(len(json.dumps(job.spec.document)) for job in jobs)
    fitting = sum(1 for size_bytes in sizes if size_bytes <= PAGE_BYTES)
    return max(fitting, min(1, len(jobs)))


def _repeated(existing: Job, fingerprint: str) -> Created:
    if existing.is_tombstone:
        raise KeyGoneError(existing.job_id, existing.state is JobState.COMPLETED)
    if existing.fingerprint != fingerprint:
        raise KeyReusedError(existing.job_id)
    return Created(existing, is_new=False)


def _values(draft: Draft) -> dict[str, Any]:
    """The members of a job that a draft decides."""
    return {field.name: getattr(draft, field.name) for field in fields(draft)}
