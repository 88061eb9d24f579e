"""Operations on jobs, apart from HTTP: create, read, change, pause, resume, delete."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import accumulate

from carillon.api.http.problems import (
    AlreadyThereError,
    ContendedError,
    KeyGoneError,
    KeyReusedError,
    ManagedError,
    MissingError,
    NameTakenError,
    RevisionMismatchError,
)
from carillon.api.http.requests import Precondition
from carillon.api.jobs.changes import Put, PutAction
from carillon.api.jobs.commits import Commits
from carillon.api.jobs.drafts import fingerprint_of
from carillon.api.jobs.links import Links
from carillon.api.jobs.planning import Planner
from carillon.api.jobs.request_models import JobPatch
from carillon.clock import Clock, Entropy
from carillon.domain.events import EventType
from carillon.domain.execution.callbacks import job_event
from carillon.domain.execution.resuming import is_over
from carillon.domain.idempotency import record_key
from carillon.domain.job import Job, JobState
from carillon.domain.quotas import Load
from carillon.domain.spec.job_spec import JobSpec
from carillon.domain.spec.names import is_job_id, job_id_of
from carillon.domain.spec.owners import SYSTEM, Author
from carillon.services.indexer import Indexer
from carillon.services.job_quotas import JobQuotas
from carillon.settings import Settings
from carillon.stores.ports import JobFilter, Page, Stores
from carillon.telemetry import Telemetry

ATTEMPTS = 4
"""Times that a request is tried against concurrent changes."""

PAGE_BYTES = 2 * 1024 * 1024
"""Of jobs as JSON that one page carries: escaped once more they stay below Lambda's 6 MB, with what
answers add."""

ANY = JobFilter()
PAGE_SIZE = 100
MOST_PAGES = 10
"""Requests about all jobs of an owner read this many pages of them: 1,000 jobs, by name."""


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
        stores: Stores,
        indexer: Indexer,
        quotas: JobQuotas,
        clock: Clock,
        entropy: Entropy,
        settings: Settings,
        telemetry: Telemetry,
    ) -> None:
        self.quotas = quotas
        self._links = Links(stores.jobs, clock)
        self.planner = Planner(self._links, stores.calendars, clock, entropy, settings)
        self._commits = Commits(stores.jobs, indexer, self._links, quotas)
        self._jobs = stores.jobs
        self._indexer = indexer
        self._events = stores.events
        self._clock = clock
        self.tombstone_lifetime = settings.run_lifetime
        """The row of a job that was deleted lives at least so long."""
        self._telemetry = telemetry

    def create(
        self, owner: str, spec: JobSpec, key: str | None, author: Author = SYSTEM
    ) -> Created:
        """Put a job on the wheel, one that was deleted again; under a `key` it happens once,
        however often it is requested.

        Raises what `created_draft` raises, NameTakenError, KeyReusedError, KeyGoneError (the key
        is that of a job that was deleted), QuotaExceededError or ContendedError.
        """
        job_id = job_id_of(owner, spec.name)
        creation_key = "" if key is None else record_key("job", key)
        fingerprint = fingerprint_of(spec)
        for _ in range(ATTEMPTS):
            # Before any check that time can turn: a one-shot that has fired is repeated all the
            # same.
            stored = self._jobs.get(owner, job_id)
            if stored is not None and creation_key:
                if creation_key in stored.former_keys:
                    raise KeyGoneError(job_id)
                if creation_key == stored.creation_key:
                    return _repeated(stored, fingerprint)
            made = replace(
                self.planner.created(owner, spec, stored, author),
                fingerprint=fingerprint,
                creation_key=creation_key,
            )
            if stored is not None and not stored.is_tombstone:
                raise NameTakenError(spec.name, job_id)
            if self.commit(Put(made, stored)):
                return Created(made, is_new=True)
        raise ContendedError(job_id)

    def put(
        self,
        owner: str,
        spec: JobSpec,
        condition: Precondition,
        author: Author = SYSTEM,
        *,
        dry_run: bool = False,
        force: bool = False,
    ) -> Put:
        """The job of the name with these settings, all others at their defaults: created, changed,
        or revived where it was deleted. A paused job stays paused. `dry_run` writes nothing;
        `force` changes a managed job, too.

        Raises what `changed_draft` raises, AlreadyThereError, RevisionMismatchError, ManagedError,
        QuotaExceededError, ContendedError.
        """
        job_id = job_id_of(owner, spec.name)
        for _ in range(ATTEMPTS):
            stored = self._jobs.get(owner, job_id)
            self._refuse_unmet(condition, spec.name, stored)
            put = self.planner.put(owner, spec, stored, author)
            if put.action is PutAction.CHANGE and not force:
                _refuse_managed(stored)
            if dry_run:
                self._refuse_beyond_quotas(owner, put)
                return put
            if put.action is PutAction.NONE or self.commit(put):
                return put
        raise ContendedError(job_id)

    def named(self, owner: str, name: str) -> Job:
        """The job of a name; raises MissingError."""
        try:
            return self.get(owner, job_id_of(owner, name))
        except MissingError as error:
            raise MissingError("job", name) from error

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
        """One page of the owner's jobs, by name; raises InvalidFieldError for the cursor.

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
        """The owner's first 1,000 jobs in pages, by name, whatever their size.

        The last page has a `next_cursor` when there are more.
        """
        cursor: str | None = None
        for _ in range(MOST_PAGES):
            page = self._jobs.list(owner, PAGE_SIZE, cursor)
            yield page
            cursor = page.next_cursor
            if cursor is None:
                return

    def change(
        self,
        owner: str,
        job_id: str,
        patch: JobPatch,
        revision: int | None,
        author: Author = SYSTEM,
        *,
        force: bool = False,
    ) -> Job:
        """The job after `patch`, if it is at `revision` (None: whichever it is at).

        Raises RevisionMismatchError, ManagedError unless it is to `force` it, and what
        `patched_draft` raises.
        """
        job = self.get(owner, job_id)
        for _ in range(ATTEMPTS):
            if revision is not None and revision != job.revision:
                raise RevisionMismatchError(revision, job.revision)
            if not force:
                _refuse_managed(job)
            put = self.planner.patch(job, patch, author)
            if put.action is PutAction.NONE or self.commit(put):
                return put.job
            seen, job = job, self.get(owner, job_id)
            if job.revision != seen.revision:
                raise RevisionMismatchError(revision, job.revision)
        raise ContendedError(job_id)  # by jobs that are linked to it

    def pause(
        self,
        owner: str,
        job_id: str,
        author: Author = SYSTEM,
        *,
        reason: str = "",
        resume_at: datetime | None = None,
        only: JobFilter = ANY,
        tidy: bool = True,
    ) -> Changed:
        """The paused job: no scheduled run, retry of one or backfill starts until it is resumed, or
        until `resume_at` (of `end_of_pause`), at which it resumes by itself; manual runs, redrives
        and callbacks do. A paused one stays paused, until the new instant, and its event is
        published again: the first request may have died before that. Raises MissingError where it
        is none of `only` any more.

        Without `tidy` its entries are left to `tidy_up`."""

        def step(job: Job) -> Changed | None:
            if is_over(job, self._clock.now()):  # what was due since its end is not paused by this
                self._resume(job, SYSTEM)
                return None
            paused = self.planner.paused(job, reason, resume_at, author)
            if paused == job:
                return Changed(job)
            won = self._indexer.commit_paused(paused, job.revision)
            return Changed(paused, job) if won else None

        changed = self._until_won(owner, job_id, step, only)
        self._tell_paused(changed.job)
        if tidy:
            self.tidy_up(changed)
        return changed

    def resume(
        self, owner: str, job_id: str, author: Author = SYSTEM, *, only: JobFilter = ANY
    ) -> Changed:
        """The active job, indexed from now on, or from the end of its pause if that is over. An
        active one stays as it is. `only` is as for `pause`."""

        def step(job: Job) -> Changed | None:
            return Changed(job) if job.state is JobState.ACTIVE else self._resume(job, author)

        return self._until_won(owner, job_id, step, only)

    def _resume(self, job: Job, author: Author) -> Changed | None:
        """The paused job as it is active again; None if its row was changed meanwhile."""
        resumed = self.planner.resumed(job, author)
        return Changed(resumed, job) if self._indexer.index_job(resumed, job.revision) else None

    def delete(
        self,
        owner: str,
        job_id: str,
        revision: int | None = None,
        author: Author = SYSTEM,
        *,
        force: bool = False,
        only: JobFilter = ANY,
        tidy: bool = True,
    ) -> Changed:
        """The tombstone, if the job is at `revision` (None: whichever it is at). It holds the job's
        key and what is owed; a second deletion finds no job. Raises ManagedError unless it is to
        `force` it; `only` is as for `pause`.

        Without `tidy` its entries are left to `tidy_up`."""

        def step(job: Job) -> Changed | None:
            if revision not in (None, job.revision):
                raise RevisionMismatchError(revision, job.revision)
            if not force:
                _refuse_managed(job)
            now = self._clock.now()
            tombstone = job.deleted(now, now + self.tombstone_lifetime, author)
            return Changed(tombstone, job) if self._jobs.replace(tombstone, job.revision) else None

        changed = self._until_won(owner, job_id, step, only)
        self.quotas.remove(owner, Load.of(changed.before))
        if tidy:
            self.tidy_up(changed)
        return changed

    def remove_unreadable(self, owner: str, job_id: str) -> bool:
        """Remove a job whose row cannot be read; False for any other. Its entries are removed as
        those of a job that never was: when a message of theirs arrives."""
        return is_job_id(job_id) and self._jobs.remove_unreadable(owner, job_id)

    def tidy_up(self, changed: Changed) -> None:
        """Remove the entries of the generation that a pause or deletion has ended, and the link to
        a job that is gone; raises nothing."""
        if changed.before is not None:
            self._indexer.remove_ended_entries(changed.before, changed.job)
            self._links.tidy_up(changed.job, changed.before)

    def _tell_paused(self, job: Job) -> None:
        """Put the event on the bus, at least once, and under one id."""
        if EventType.JOB_PAUSED in job.spec.events and job.paused_at is not None:
            event = job_event(EventType.JOB_PAUSED, job, job.paused_at)
            self._telemetry.events_lost(self._events.emit([event]))

    def _until_won(
        self, owner: str, job_id: str, step: Callable[[Job], Changed | None], only: JobFilter
    ) -> Changed:
        """Repeat `step` on the row as it is now until its conditional write wins."""
        for _ in range(ATTEMPTS):
            job = self.get(owner, job_id)
            if not only.chooses(job):
                raise MissingError("job", job_id)
            changed = step(job)
            if changed is not None:
                return changed
        raise ContendedError(job_id)

    def commit(self, put: Put) -> bool:
        """Write the job over the row that it replaces; False if that was changed meanwhile. Raises
        what `Commits.commit` raises."""
        return self._commits.commit(put)

    def _refuse_beyond_quotas(self, owner: str, put: Put) -> None:
        for refusal in self.quotas.refusals(owner, [put.load.rise]):
            if refusal is not None:
                raise refusal

    def _refuse_unmet(self, condition: Precondition, name: str, stored: Job | None) -> None:
        revision = None if stored is None or stored.is_tombstone else stored.revision
        if condition.holds(revision):
            return
        if condition.must_be_absent and revision is not None:
            raise AlreadyThereError("job", name, revision)
        raise RevisionMismatchError(condition.revision, revision)


def _fitting(jobs: Sequence[Job]) -> int:
    """The number of the first jobs that fit into one answer; at least one."""
    # As the answer escapes it: a letter beyond ASCII takes six bytes.
    sizes = accumulate(len(json.dumps(job.spec.document)) for job in jobs)
    fitting = sum(1 for size_bytes in sizes if size_bytes <= PAGE_BYTES)
    return max(fitting, min(1, len(jobs)))


def _refuse_managed(job: Job | None) -> None:
    if job is not None and job.managed_by:
        raise ManagedError(job.spec.name, job.managed_by)


def _repeated(existing: Job, fingerprint: str) -> Created:
    if existing.is_tombstone:
        raise KeyGoneError(existing.job_id, existing.state is JobState.COMPLETED)
    if existing.fingerprint != fingerprint:
        raise KeyReusedError(existing.job_id)
    return Created(existing, is_new=False)
