"""Operations apart from HTTP: begin one, follow it, cancel it."""

import hashlib
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

from functions.api.errors import ContendedError, KeyReusedError, MissingError, OperationEndedError
from functions.api.operation_forms import BackfillBody, DeadLetterBody
from functions.api.outlook import CalendarReader
from functions.api.service import JobService
from functions.api.spans import second_from, whole_span
from shared.clock import Clock, Entropy
from shared.domain.operation import Operation, OperationKind, OperationState
from shared.domain.run import Run, RunKey, RunKind, RunStatus
from shared.errors import InvalidFieldError
from shared.filing import Filer
from shared.recurrence import Delay
from shared.settings import Settings
from shared.stores.ports import CalendarStore, OperationStore, Page, RunStore

LONGEST_BACKFILL = timedelta(days=366)
MOST_BACKFILLED = 50_000
"""Occurrences of one backfill: they are counted before it begins, which can take 0.1 ms each."""

_FIRST_STEP_DELAY = timedelta(seconds=1)
"""The first step is ordered before the row is put: so no row can be left without an order."""
_NEVER = datetime.fromtimestamp(0, UTC)
_ROUNDS = 4
_OPERATION_ID = re.compile(r"[0-9a-z]{26}", re.ASCII)


class OperationService:
    """The operations of one owner at a time; raises StoreUnavailableError, QueueUnavailableError.

    Under an idempotency key there is one operation: a repetition answers it, and orders its first
    step again while that is not done. Raises KeyReusedError for another request under the key.
    """

    def __init__(
        self,
        jobs: JobService,
        calendars: CalendarStore,
        runs: RunStore,
        operations: OperationStore,
        filer: Filer,
        clock: Clock,
        entropy: Entropy,
        settings: Settings,
    ) -> None:
        self._jobs = jobs
        self._calendars = calendars
        self._runs = runs
        self._operations = operations
        self._filer = filer
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
        """Run a job's occurrences of a span; raises MissingError and InvalidFieldError."""
        values = {
            "kind": OperationKind.BACKFILL,
            "per_minute": body.per_minute,
            "job_id": job_id,
            "from_at": second_from(body.from_at),
            "until_at": body.to.replace(microsecond=0),
            "only_missed": body.only_missed,
        }
        self._refuse_span(owner, job_id, body)
        return self._begin(owner, values, key)

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

    def cancel(self, owner: str, operation_id: str) -> Operation:
        """The cancelled operation, whose next step is not done; what is sent already goes on.

        A cancelled one stays as it is. Raises OperationEndedError for one that has ended.
        """
        for _ in range(_ROUNDS):
            operation = self.get(owner, operation_id)
            if operation.state is OperationState.CANCELLED:
                return operation
            if operation.is_final:
                raise OperationEndedError(operation_id, operation.state.value)
            now = self._clock.now()
            cancelled = operation.cancelled(now, now + self._lifetime)
            if self._operations.put(cancelled, operation.revision):
                return cancelled
        raise ContendedError(operation_id, "operation")

    def _refuse_span(self, owner: str, job_id: str, body: BackfillBody) -> None:
        job = self._jobs.get(owner, job_id)
        if isinstance(job.schedule, Delay):
            raise InvalidFieldError(
                "schedule", "a fixed delay has no fire times of its own: its job cannot be filled"
            )
        if body.to < body.from_at:
            raise InvalidFieldError("to", "must not lie before from")
        if body.to > self._clock.now():
            raise InvalidFieldError("to", "must not lie in the future: the schedule sees to that")
        if body.to - body.from_at > LONGEST_BACKFILL:
            raise InvalidFieldError("to", f"must lie within {LONGEST_BACKFILL.days} days of from")
        opened = CalendarReader(self._calendars, owner).opened(job.schedule, job.calendar)
        after = second_from(body.from_at) - timedelta(seconds=1)
        found = islice(opened.between(after, body.to), MOST_BACKFILLED + 1)
        if sum(1 for _ in found) > MOST_BACKFILLED:
            raise InvalidFieldError(
                "to", f"takes in more than {MOST_BACKFILLED} occurrences: ask for parts of it"
            )

    def _begin(self, owner: str, values: dict[str, Any], key: str | None) -> Operation:
        """Order the first step, then put the row: a step without a row does nothing."""
        now = self._clock.now()
        operation = Operation(
            owner=owner,
            operation_id=self._entropy.new_id(now).lower(),
            created_at=now,
            updated_at=now,
            expires_at=now + self._lifetime,
            **values,
        )
        if key is not None:
            operation = replace(operation, operation_id=self._id_under(key, operation))
            stored = self._operations.get(owner, operation.operation_id)
            if stored is not None:
                return self._begun_before(stored)
        self._order(operation)
        if self._operations.put(operation, None):
            return operation
        stored = self._operations.get(owner, operation.operation_id)
        if stored is None:
            raise ContendedError(operation.operation_id, "operation")
        return stored

    def _begun_before(self, operation: Operation) -> Operation:
        """The operation of an earlier request, which may have died before its answer."""
        if operation.step == 1 and not operation.is_final:
            self._order(operation)
        return operation

    def _order(self, operation: Operation) -> None:
        due_at = second_from(self._clock.now()) + _FIRST_STEP_DELAY
        self._filer.file_message(operation.step_message(due_at))

    def _id_under(self, key: str, operation: Operation) -> str:
        """The id that the first request under a key was given.

        A row of the runs table remembers it, in a partition that no job id can name: an id made of
        the key would not order by time.
        """
        named = f"{operation.kind.value}\0{operation.job_id}\0{key}"
        if operation.kind is not OperationKind.BACKFILL:
            named = f"{operation.kind.value}\0\0{key}"
        digest = hashlib.sha256(named.encode()).hexdigest()[:26]
        receipt = Run(
            key=RunKey(operation.owner, "~operations", RunKind.OPERATION, _NEVER, digest),
            status=RunStatus.SUCCEEDED,
            attempt=0,
            token=0,
            claim_id=operation.operation_id,
            filing_id=operation.operation_id,
            updated_at=operation.created_at,
            expires_at=operation.expires_at,
            result=_fingerprint_of(operation),
        )
        for _ in range(2):
            stored = self._runs.get(receipt.key)
            if stored is not None:
                if stored.result != receipt.result:
                    raise KeyReusedError(stored.claim_id, "operation")
                return stored.claim_id
            if self._runs.claim(receipt, None):
                return operation.operation_id
        raise ContendedError(operation.operation_id, "operation")


def _fingerprint_of(operation: Operation) -> str:
    """A digest of what was asked for."""
    asked = (
        operation.kind.value,
        operation.per_minute,
        operation.job_id,
        operation.reason,
        operation.error,
        str(operation.from_at),
        str(operation.until_at),
        operation.only_missed,
    )
    return hashlib.sha256(repr(asked).encode()).hexdigest()
