"""Manual runs, the history of runs, and cancelling one, apart from HTTP."""

import hashlib
from dataclasses import replace
from datetime import datetime
from functools import partial

from carillon.api.http.idempotency import first_record
from carillon.api.http.problems import (
    ContendedError,
    KeyReusedError,
    MissingError,
    NotCancellableError,
)
from carillon.api.jobs.drafts import refuse_payload
from carillon.api.jobs.service import JobService
from carillon.api.schedules.request_models import whole_span
from carillon.clock import Clock, Entropy
from carillon.domain.execution.next_run import message_of_cancelled
from carillon.domain.execution.stopping import LOOK_SECONDS, NotCancellable, decide_cancel
from carillon.domain.execution.transitions import EXECUTOR_DIED
from carillon.domain.idempotency import IdempotencyRecord, record_key, record_key_of_run
from carillon.domain.job import Job
from carillon.domain.message import Message
from carillon.domain.notifying.notification import notification_of
from carillon.domain.run import OWN_PAYLOAD, Run, RunKey, RunKind, RunStatus
from carillon.domain.spec.names import is_job_id
from carillon.services.history import MOST_PAGES, History
from carillon.settings import Settings
from carillon.stores.ports import LaneQueue, Page, RunStore, VersionedRows

_ROUNDS = 4
_IN_A_CHUNK = "is run together with others, and cannot be cancelled apart from them: again later"
_LONGEST_RUN_ID = 200
"""Characters, half as many again as the longest that is given: one that could be no key of the
store is not found, like any other that nobody has."""


class RunService:
    """The runs of one owner's jobs; raises MissingError, StoreUnavailableError as JobService."""

    def __init__(
        self,
        jobs: JobService,
        runs: RunStore,
        history: History,
        queue: LaneQueue,
        clock: Clock,
        entropy: Entropy,
        settings: Settings,
        records: VersionedRows[IdempotencyRecord],
    ) -> None:
        self._jobs = jobs
        self._runs = runs
        self._history = history
        self._queue = queue
        self._clock = clock
        self._entropy = entropy
        self._settings = settings
        self._records = records

    def request(
        self,
        owner: str,
        job_id: str,
        key: str | None,
        payload: str | None = None,
        note: str = "",
    ) -> Run:
        """A manual run: its message is sent, then its row put, unless an executor was quicker. A
        `payload`, JSON text, in place of the job's is on record before; its retries and redrives
        have it, too.

        A crash in between leaves a run that no answer named, never a row without a message. Under a
        `key` there is one run: a repetition answers it, and sends its message again while it has
        not started. Raises QueueUnavailableError when its message was not acknowledged,
        KeyReusedError where the key was used with another payload or note, PayloadTooLargeError,
        and InvalidFieldsError for a payload that the job's target or template cannot take.
        """
        job = self._jobs.get(owner, job_id)
        if payload is not None:
            refuse_payload(job.spec.model_copy(update={"payload": payload}), job.schedule)
        now = self._clock.now()
        request_id = self._entropy.new_id(now)
        if key is not None:
            request_id = hashlib.sha256(key.encode()).hexdigest()[:26]
        own = OWN_PAYLOAD if payload is not None else ""
        fire_at = now.replace(microsecond=0)
        run_key = RunKey(owner, job_id, RunKind.MANUAL, fire_at, f"{own}{request_id}")
        stored = None
        if key is not None or own or note:
            run_key = self._first_key(run_key, payload, note, now)
            stored = None if key is None else self._runs.get(run_key)
        if stored is None or stored.status is RunStatus.SCHEDULED:
            self._send(job, run_key)
        return stored or self._recorded(job, run_key, now)

    def list(
        self,
        owner: str,
        job_id: str,
        limit: int,
        cursor: str | None,
        from_at: datetime | None = None,
        until_at: datetime | None = None,
    ) -> Page[Run]:
        """One page of the job's runs, newest first; a deleted job's are kept until they expire.

        Only those with fire times in [from_at, until_at]; raises InvalidFieldError. A page is empty
        before the last only where some thousand occurrences have no run, as after a long outage.
        """
        from_at, until_at = whole_span(from_at, until_at)
        if self._jobs.find(owner, job_id) is None:
            raise MissingError("job", job_id)
        read = partial(self._history.page, from_at=from_at, until_at=until_at)
        for _ in range(MOST_PAGES):
            page = read(owner, job_id, limit, cursor)
            cursor = page.next_cursor
            if page.items or page.unreadable or cursor is None:
                break
        return page

    def get(self, owner: str, job_id: str, run_id: str) -> Run:
        """One run, with its attempts and its whole result."""
        key = run_key_of(owner, run_id)
        run = None if key is None or key.job_id != job_id else self._history.get(key)
        if run is None:
            raise MissingError("run", run_id)
        return self._history.whole(run)

    def find(self, owner: str, run_id: str) -> tuple[Run, str, IdempotencyRecord | None]:
        """A run by its id alone, with the name of its job and what was asked with it. Of a delivery
        the name is what lists show: its notification may be gone."""
        key = run_key_of(owner, run_id)
        if key is not None and key.kind is RunKind.NOTICE:
            name = f"notification {notification_of(key)}"
            return self.get(owner, key.job_id, run_id), name, None
        job = None if key is None else self._jobs.find(owner, key.job_id)
        if key is None or job is None:
            raise MissingError("run", run_id)
        return self.get(owner, key.job_id, run_id), job.spec.name, self.asked(key)

    def cancel(self, owner: str, job_id: str, run_id: str) -> Run:
        """The cancelled run: its message is absorbed, and its call, if it is under way, ends soon.
        A cancelled one stays as it is.

        What follows from its end is ordered, again by each repetition. Raises NotCancellableError
        for one that has ended otherwise, or has just begun, and QueueUnavailableError.
        """
        for _ in range(_ROUNDS):
            run = self.get(owner, job_id, run_id)
            if run.status is RunStatus.CANCELLED:
                self._order_what_follows(run)
                return run
            now = self._clock.now()
            claim_id, expires_at = self._entropy.new_id(now), now + self._settings.run_lifetime
            cancelled = decide_cancel(run, claim_id, now, expires_at)
            if isinstance(cancelled, NotCancellable):
                again_after = cancelled.again_after_seconds
                raise NotCancellableError(run_id, cancelled.reason, again_after)
            if self._puts(cancelled, run):
                self._order_what_follows(cancelled)
                return cancelled
        raise ContendedError(run_id, "run")

    def _puts(self, cancelled: Run, seen: Run) -> bool:
        """Put the cancelled row over the one that was seen; False where that has changed. A run in
        a chunk has none: its place is taken once its executor has died, and nobody can finish the
        chunk any more."""
        if self._runs.claim(cancelled, seen):
            return True
        if self._runs.get(seen.key) is not None or self._history.get(seen.key) not in (None, seen):
            return False
        has_died = [each.error for each in cancelled.attempts] == [EXECUTOR_DIED]
        if not has_died or not self._history.fence(seen.key, cancelled.claim_id):
            raise NotCancellableError(seen.key.run_id, _IN_A_CHUNK, LOOK_SECONDS)
        return self._runs.claim(cancelled, None)

    def _order_what_follows(self, cancelled: Run) -> None:
        """Let an executor receive a message for the run: the next of a fixed delay, or a run
        that waits for the end of this one, must not wait for its own message, which may come
        days later."""
        job = self._jobs.find(cancelled.key.owner, cancelled.key.job_id)
        now = self._clock.now()
        message = None if job is None else message_of_cancelled(job, cancelled, now)
        if message is not None:
            self._queue.send([message], [0])

    def asked(self, key: RunKey) -> IdempotencyRecord | None:
        """The record of the request for a manual run, if it had a payload, a note or a key."""
        if key.kind is not RunKind.MANUAL:
            return None
        return self._records.get(key.owner, record_key_of_run(key))

    def _first_key(self, run_key: RunKey, payload: str | None, note: str, now: datetime) -> RunKey:
        """The run key that the first request of this id was given: it has another fire time. The
        record outlives what it made, for redrives: after that a request is the first one again."""
        said = "" if payload is None and not note else record_key(payload or "", note)
        own = IdempotencyRecord(
            owner=run_key.owner,
            key=record_key_of_run(run_key),
            answer=run_key.run_id,
            # A redrive may come as late as the row of the run that it runs again lives.
            expires_at=now + 2 * self._settings.run_lifetime,
            fingerprint=said,
            payload=payload,
            note=note,
        )
        first = first_record(self._records, own)
        if first.fingerprint != said:
            raise KeyReusedError(first.answer, "run")
        given = RunKey.from_run_id(run_key.owner, first.answer)
        is_kept = given.fire_at + self._settings.run_lifetime > now
        if is_kept or self._runs.get(given) is not None:
            return given
        if not self._records.put(replace(own, revision=first.revision + 1), first.revision):
            raise ContendedError(first.answer, "idempotency record")
        return run_key

    def _recorded(self, job: Job, key: RunKey, now: datetime) -> Run:
        """The run's row, put now if it is absent."""
        claim_id, expires_at = self._entropy.new_id(now), now + self._settings.run_lifetime
        run = Run.scheduled(key, job.generation.generation_id, claim_id, now, expires_at)
        for _ in range(_ROUNDS):
            if self._runs.claim(run, None):
                return run
            stored = self._runs.get(key)
            if stored is not None:
                return stored
        raise ContendedError(key.run_id, "run")

    def _send(self, job: Job, key: RunKey) -> None:
        self._queue.send([Message.of(job, key, key.fire_at)], [0])


def run_key_of(owner: str, run_id: str) -> RunKey | None:
    """The key of a public id; None for text that is no run's id."""
    if len(run_id) > _LONGEST_RUN_ID:
        return None
    try:
        key = RunKey.from_run_id(owner, run_id)
    except (ValueError, OverflowError):
        return None
    is_canonical = key.run_id == run_id and run_id.isascii() and is_job_id(key.job_id)
    return key if is_canonical else None
