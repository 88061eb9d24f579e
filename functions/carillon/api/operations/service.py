"""Operations apart from HTTP: begin one, follow it, cancel it."""

import hashlib
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from carillon.api.http.idempotency import first_record
from carillon.api.http.problems import (
    ContendedError,
    KeyReusedError,
    MissingError,
    OperationEndedError,
)
from carillon.api.jobs.service import JobService
from carillon.api.operations.models import (
    BackfillBody,
    DeadLetterBody,
    HandOverBody,
    OutcomesForm,
)
from carillon.api.schedules.request_models import whole_span
from carillon.clock import Clock, Entropy, ceil_second
from carillon.domain.calendar import Calendar
from carillon.domain.execution.missed import known_since
from carillon.domain.idempotency import IdempotencyRecord, record_key
from carillon.domain.operation import (
    MOST_PER_MINUTE,
    Operation,
    OperationKind,
    OperationState,
    why_not_filled,
)
from carillon.domain.run import Resolution, Run, RunKind, RunStatus
from carillon.domain.spec.owners import Author
from carillon.errors import InvalidFieldError
from carillon.services.calendar_reader import CalendarReader
from carillon.services.history import History
from carillon.services.indexer import Indexer
from carillon.services.missed_search import Found, MissedSearch, last_pause_at
from carillon.services.redrive import stands_for_a_discard
from carillon.settings import Settings
from carillon.stores.ports import Page, VersionedRows

LONGEST_BACKFILL = timedelta(days=366)
MOST_BACKFILLED = 50_000
"""Occurrences of one backfill: they are counted before it begins, which can take 0.1 ms each."""

_FIRST_STEP_DELAY = timedelta(seconds=1)
"""The first step is ordered before the row is put: so no row can be left without an order."""
_ROUNDS = 4
_PAGE_SIZE = 100
_PAGES_COUNTED = 10
"""Of runs that one request counts."""
_OPERATION_ID = re.compile(r"[0-9a-z]{26}", re.ASCII)


class OperationService:
    """The operations of one owner at a time; raises StoreUnavailableError, QueueUnavailableError.

    Under an idempotency key there is one operation: a repetition answers it, and orders its first
    step again while that is not done. Raises KeyReusedError for another request under the key.
    """

    def __init__(
        self,
        jobs: JobService,
        calendars: VersionedRows[Calendar],
        history: History,
        operations: VersionedRows[Operation],
        records: VersionedRows[IdempotencyRecord],
        indexer: Indexer,
        clock: Clock,
        entropy: Entropy,
        settings: Settings,
    ) -> None:
        self._jobs = jobs
        self._calendars = calendars
        self._history = history
        self._records = records
        self._operations = operations
        self._indexer = indexer
        self._clock = clock
        self._entropy = entropy
        self._lifetime = settings.run_lifetime

    def settle(
        self, owner: str, kind: OperationKind, body: DeadLetterBody, key: str | None
    ) -> Operation:
        """Redrive or discard the dead letters there are now, those that the body leaves."""
        from_at, until_at = whole_span(body.from_at, body.to)
        values = {
            "kind": kind,
            "per_minute": body.per_minute,
            "job_id": body.job_id or "",
            "reason": str(body.reason or ""),
            "error": body.error or "",
            "from_at": from_at,
            "until_at": until_at,
        }
        return self._begin(owner, values, key)

    def backfill(self, owner: str, job_id: str, body: BackfillBody, key: str | None) -> Operation:
        """Run a job's occurrences of a span; raises MissingError and InvalidFieldError.

        A repetition under a key is answered whatever has become of the job.
        """
        values = {
            "kind": OperationKind.BACKFILL,
            "per_minute": body.per_minute,
            "job_id": job_id,
            "from_at": ceil_second(body.from_at),
            "until_at": body.to.replace(microsecond=0),
            "only_missed": body.only_missed,
        }
        return self._begin(owner, values, key, lambda: self._refuse_span(owner, job_id, body))

    def hand_over(
        self, owner: str, to: str, body: HandOverBody, author: Author, key: str | None
    ) -> Operation:
        """Make jobs those of the owner `to`; raises MissingError and InvalidFieldError."""
        values = {
            "kind": OperationKind.HAND_OVER,
            "per_minute": MOST_PER_MINUTE,
            "to": to,
            "job_id": body.job_id or "",
            "parent": body.parent or "",
            "tags": tuple(sorted((body.tags or {}).items())),
            "force": body.force,
            "author": author,
        }

        def check() -> None:
            if to == owner:
                raise InvalidFieldError("to", "is the team that has them: name another one")
            if body.job_id is not None:
                self._jobs.get(owner, body.job_id)

        return self._begin(owner, values, key, check)

    def list(self, owner: str, limit: int, cursor: str | None) -> Page[Operation]:
        """One page of the owner's operations, newest first."""
        return self._operations.list(owner, limit, cursor)

    def get(self, owner: str, operation_id: str) -> Operation:
        found = None
        if _OPERATION_ID.fullmatch(operation_id):
            found = self._operations.get(owner, operation_id)
        if found is None:
            raise MissingError("operation", operation_id)
        return found

    def outcomes(self, owner: str, operation_id: str, cursor: str | None) -> OutcomesForm:
        """The outcomes of a backfill's runs, those of the first rows behind the cursor.

        A dead letter that was redriven is counted as what its redrive is, and one that was
        discarded as what it was. Raises MissingError, for
        the other kinds of operations, too, and InvalidFieldError for the cursor.
        """
        operation = self.get(owner, operation_id)
        if operation.kind is not OperationKind.BACKFILL:
            raise MissingError("backfill", operation_id)
        counts: Counter[RunStatus] = Counter()
        for _ in range(_PAGES_COUNTED):
            page = self._history.page(
                owner,
                operation.job_id,
                _PAGE_SIZE,
                cursor,
                from_at=operation.from_at,
                until_at=operation.until_at,
            )
            counts.update(run.status for run in page.items if _is_outcome_of(operation, run))
            cursor = page.next_cursor
            if cursor is None:
                break
        return OutcomesForm(counts=dict(counts), next_cursor=cursor)

    def cancel(self, owner: str, operation_id: str) -> Operation:
        """The cancelled operation, whose next step is not done; runs that are sent already still
        start.

        A cancelled one stays as it is. Raises OperationEndedError for one that has ended, and
        ContendedError while jobs are between two owners.
        """
        for _ in range(_ROUNDS):
            operation = self.get(owner, operation_id)
            if operation.state is OperationState.CANCELLED:
                return operation
            if operation.is_final:
                raise OperationEndedError(operation_id, operation.state.value)
            if operation.in_hand:
                break
            now = self._clock.now()
            cancelled = operation.cancelled(now, now + self._lifetime)
            if self._operations.put(cancelled, operation.revision):
                return cancelled
        raise ContendedError(operation_id, "operation")

    def _refuse_span(self, owner: str, job_id: str, body: BackfillBody) -> None:
        job = self._jobs.get(owner, job_id)
        reason = why_not_filled(job)
        if reason is not None:
            raise InvalidFieldError("schedule", reason)
        if body.to < body.from_at:
            raise InvalidFieldError("to", "must not lie before from")
        if body.to > self._clock.now():
            raise InvalidFieldError("to", "must not lie in the future: the schedule runs those")
        if body.to - body.from_at > LONGEST_BACKFILL:
            raise InvalidFieldError("to", f"must lie within {LONGEST_BACKFILL.days} days of from")
        opened = CalendarReader(self._calendars).opened(job)
        after = ceil_second(body.from_at) - timedelta(seconds=1)
        found = islice(opened.between(after, body.to), MOST_BACKFILLED + 1)
        if sum(1 for _ in found) > MOST_BACKFILLED:
            raise InvalidFieldError(
                "to", f"takes in more than {MOST_BACKFILLED} occurrences: ask for parts of it"
            )

    def _begin(
        self,
        owner: str,
        values: dict[str, Any],
        key: str | None,
        check: Callable[[], None] = lambda: None,
    ) -> Operation:
        """Order the first step, then put the row: a step without a row does nothing.

        `check` refuses what cannot be begun now.
        """
        now = self._clock.now()
        operation = Operation(
            owner=owner,
            operation_id=self._entropy.new_id(now).lower(),
            created_at=now,
            updated_at=now,
            expires_at=now + self._lifetime,
            **values,
        )
        if key is None:
            check()
        else:
            begun = self._begun_before(key, operation)
            if begun is not None:
                return begun
            check()
            operation = self._named_under(key, operation)
        self._order(operation)
        if self._operations.put(operation, None):
            return operation
        stored = self._operations.get(owner, operation.operation_id)
        if stored is None:
            raise ContendedError(operation.operation_id, "operation")
        return stored

    def _begun_before(self, key: str, operation: Operation) -> Operation | None:
        """The operation of an earlier request, which may have died before its answer."""
        record = self._records.get(operation.owner, _record_key(key, operation))
        if record is None:
            return None
        begun = self._operations.get(operation.owner, _answer_for(operation, record))
        if begun is not None and begun.step == 1 and not begun.is_final:
            self._order(begun)
        return begun

    def _named_under(self, key: str, operation: Operation) -> Operation:
        """The operation with the id that the first request under the key was given.

        A record remembers it: an id made of the key would not order by time.
        """
        own = IdempotencyRecord(
            owner=operation.owner,
            key=_record_key(key, operation),
            answer=operation.operation_id,
            expires_at=operation.expires_at,
            fingerprint=_fingerprint_of(operation),
        )
        first = first_record(self._records, own)
        return replace(operation, operation_id=_answer_for(operation, first))

    def _order(self, operation: Operation) -> None:
        due_at = ceil_second(self._clock.now()) + _FIRST_STEP_DELAY
        self._indexer.schedule_message(operation.step_message(due_at))


def _is_outcome_of(operation: Operation, run: Run) -> bool:
    is_its_own = run.key.kind is RunKind.BACKFILL and run.key.request_id == operation.operation_id
    is_counted_by_another = run.settled is Resolution.REDRIVEN or stands_for_a_discard(run)
    return is_its_own and not is_counted_by_another


def _record_key(key: str, operation: Operation) -> str:
    """A key is of one kind of operation, and of one job."""
    of_job = operation.job_id if operation.kind is OperationKind.BACKFILL else ""
    return record_key(operation.kind.value, of_job, key)


def _answer_for(operation: Operation, record: IdempotencyRecord) -> str:
    """The id in the record; raises KeyReusedError for one of another request."""
    if record.fingerprint != _fingerprint_of(operation):
        raise KeyReusedError(record.answer, "operation")
    return record.answer


def _fingerprint_of(operation: Operation) -> str:
    """A digest of the request."""
    asked = (
        operation.kind.value,
        operation.per_minute,
        operation.job_id,
        operation.reason,
        operation.error,
        str(operation.from_at),
        str(operation.until_at),
        operation.only_missed,
        operation.to,
        operation.parent,
        operation.tags,
        operation.force,
    )
    return hashlib.sha256(repr(asked).encode()).hexdigest()


DEFAULT_SPAN = timedelta(days=1)
LONGEST_SPAN = timedelta(days=366)


class MissedService:
    """Nothing here writes; raises MissingError, StoreUnavailableError as JobService."""

    def __init__(
        self,
        jobs: JobService,
        calendars: VersionedRows[Calendar],
        history: History,
        clock: Clock,
        run_lifetime: timedelta,
    ) -> None:
        self._jobs = jobs
        self._calendars = calendars
        self._search = MissedSearch(history)
        self._clock = clock
        self._run_lifetime = run_lifetime

    def of_job(
        self,
        owner: str,
        job_id: str,
        from_at: datetime | None,
        until_at: datetime | None,
        limit: int,
    ) -> Found:
        """The missed occurrences of [from_at, until_at], newest first; raises InvalidFieldError.

        From the beginning of the last pause on (a year back at most), or of the last day if there
        was none; until now at the latest; and none before the job was created, nor where the rows
        of runs may have expired.
        """
        job = self._jobs.get(owner, job_id)
        now = self._clock.now()
        kept_since = now - self._run_lifetime
        last = min(until_at or now, now)
        since = last_pause_at(job) or now - DEFAULT_SPAN
        first = max(job.created_at, from_at or max(since, last - LONGEST_SPAN))
        if until_at is not None and from_at is not None and until_at < from_at:
            raise InvalidFieldError("to", "must not lie before from")
        if last - first > LONGEST_SPAN:
            raise InvalidFieldError("from", f"must lie within {LONGEST_SPAN.days} days of to")
        first = max(first, known_since(job, kept_since))
        if last < first:
            return Found((), first, is_complete=True)
        resolved = CalendarReader(self._calendars).resolved(owner, job.schedule, job.spec.calendar)
        found = self._search.newest(job, resolved.open, first, last, now, limit, kept_since)
        return replace(
            found,
            items=tuple(
                each
                for each in found.items
                if each.run_id or not resolved.is_of_before(each.fire_at, job.created_at)
            ),
        )
