"""The steps of operations: each does what is due in its period, records it, sends the next."""

from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta

from carillon.clock import ceil_second
from carillon.domain.execution import returning
from carillon.domain.message import Message
from carillon.domain.operation import (
    STEP_SECONDS,
    Operation,
    OperationKind,
    Progress,
)
from carillon.errors import HeldError, QueueUnavailableError, RunAloneError, StoreUnavailableError
from carillon.executor.batch import Handled, Report, defer, send_back
from carillon.executor.operations.backfill import LONGEST_PAUSE_SECONDS, Backfill
from carillon.executor.operations.dead_letters import DeadLetters
from carillon.executor.operations.hand_over import HandingOver
from carillon.executor.ports import ExecutorPorts

YOUNG_OPERATION = timedelta(seconds=60)
"""The row of an operation this young may not be put yet: its first message is sent before."""
YOUNG_DELAY = timedelta(seconds=2)
MOST_TRIES = 5
"""Executors may die so often on a step before the operation is given up."""
CHECK_AGAIN = timedelta(seconds=60)
"""After the pause that a step orders the next one has begun, unless nobody ordered it."""

_EARLY = timedelta(seconds=2)
_LONGEST_WORK = timedelta(seconds=20)
_RECORD_RESERVE = timedelta(seconds=3)
"""Left between a step's work and the end of its process."""
_PROCESS_END = timedelta(seconds=10)
"""A process lives at most so much longer than the longest limit of an attempt."""
_ROUNDS = 4
_DIED = "executors died on step {step}: start another operation to go on"
_NEVER_BEGUN = "no executor could begin step {step}: start another operation to go on"


class OperationWorker:
    """Handles messages of kind OPERATION; raises StoreUnavailableError, QueueUnavailableError.

    A step that is doubled, lost half-way or late does no harm: run keys are functions of what is
    run, and the row names the next step.
    """

    def __init__(self, ports: ExecutorPorts) -> None:
        self._ports = ports
        self._backfill = Backfill(ports)
        self._dead_letters = DeadLetters(ports)
        self._handing_over = HandingOver(ports)

    def step(self, message: Message, ends_at: datetime, *, alone: bool = True) -> Report:
        """Do the step that the message orders; the process may be stopped at `ends_at`.

        Raises RunAloneError where it is not `alone`, and an executor died on the step.
        """
        early = message.due_at - self._ports.clock.now()
        if early > _EARLY:
            return defer(self._ports, message, message.due_at, "before its time")
        self._ports.clock.sleep(early.total_seconds())
        for _ in range(_ROUNDS):
            now = self._ports.clock.now()
            operation = self._ports.operations.get(message.key.owner, message.key.job_id)
            if operation is None or message.attempt != operation.step or operation.is_final:
                return self._without_step(message, operation, now)
            if operation.busy_until is not None and now < operation.busy_until:
                return defer(
                    self._ports, message, operation.busy_until, "another executor is at it"
                )
            work_until = min(now + _LONGEST_WORK, ends_at - _RECORD_RESERVE)
            if work_until <= now:
                at = now + timedelta(seconds=1)
                return defer(self._ports, message, at, "too little time is left in this process")
            if operation.busy_until is not None and not alone:
                raise RunAloneError(f"an executor died on operation {operation.operation_id}")
            taken = self._taken(operation, now)
            if self._ports.operations.put(taken, operation.revision):
                return self._do(taken, message, work_until)
        return defer(
            self._ports, message, self._ports.clock.now(), "the operation changed at every step"
        )

    def step_dead(self, message: Message) -> Report:
        """Send the order of a step back to its lane; or the operation has failed, since executors
        died on the step too often, or none could begin it for too long. Raises HeldError while
        another executor may be at it."""
        for _ in range(_ROUNDS):
            now = self._ports.clock.now()
            operation = self._ports.operations.get(message.key.owner, message.key.job_id)
            if operation is None or operation.is_final or message.attempt != operation.step:
                return self._without_step(message, operation, now)
            if operation.busy_until is not None and now < operation.busy_until:
                raise HeldError(f"operation {operation.operation_id}: another executor is at it")
            note = self._given_up(operation, message, now)
            if note is None:
                break
            failed = operation.failed(note, now, now + self._ports.run_lifetime)
            if self._ports.operations.put(failed, operation.revision):
                return Report(Handled.RAN, message, reason=failed.note)
        return send_back(self._ports, message)

    def _given_up(self, operation: Operation, message: Message, now: datetime) -> str | None:
        """The reason why the step is not tried again; None if it is, as where jobs are between two
        owners."""
        if operation.in_hand:
            return None
        if operation.busy_until is None:
            is_too_old = returning.is_too_old(message, now, self._ports.queue_retention)
            return _NEVER_BEGUN.format(step=operation.step) if is_too_old else None
        is_used_up = operation.tries >= MOST_TRIES
        return _DIED.format(step=operation.step) if is_used_up else None

    def _without_step(self, message: Message, operation: Operation | None, now: datetime) -> Report:
        """The decision about a message that orders no step that is to be done."""
        if operation is None:
            age = now - message.key.fire_at
            if age < YOUNG_OPERATION:
                at = now + max(age, YOUNG_DELAY)
                return defer(self._ports, message, at, "the operation may not be put yet")
            return Report(Handled.DROPPED, message, reason="there is no such operation")
        if operation.is_final:
            reason = f"the operation is {operation.state.value}"
            return Report(Handled.REPEATED, message, reason=reason)
        if message.attempt != operation.step - 1 or operation.busy_until is not None:
            return Report(Handled.REPEATED, message, reason="later steps have begun")
        # A duplicate, or its executor died before it sent the next step: the next check will show
        # which.
        pause_seconds = LONGEST_PAUSE_SECONDS if operation.note else STEP_SECONDS
        check_at = operation.updated_at + timedelta(seconds=pause_seconds) + CHECK_AGAIN
        if now < check_at:
            return defer(self._ports, message, check_at, "the next step has yet to begin")
        self._ports.indexer.schedule_message(operation.step_message(ceil_second(now)))
        return Report(Handled.REPEATED, message, reason="the next step was not ordered")

    def _taken(self, operation: Operation, now: datetime) -> Operation:
        """The operation with its step held until this process has surely ended."""
        longest = timedelta(seconds=self._ports.longest_timeout_seconds) + _PROCESS_END
        hold = max(longest, timedelta(seconds=STEP_SECONDS + 1))
        tries = operation.tries + 1
        return replace(
            operation, revision=operation.revision + 1, busy_until=now + hold, tries=tries
        )

    def _do(self, operation: Operation, message: Message, work_until: datetime) -> Report:
        begin = ceil_second(self._ports.clock.now())
        try:
            progress = self._progress(operation, begin, work_until)
            recorded = self._record(operation, progress)
        except (StoreUnavailableError, QueueUnavailableError):
            self._let_go(operation)
            raise
        if recorded is None:
            return Report(Handled.DROPPED, message, reason="another executor did the step")
        if not recorded.is_final:
            next_at = begin + timedelta(seconds=progress.pause_seconds)
            self._ports.indexer.schedule_message(recorded.step_message(next_at))
        return Report(Handled.RAN, message)

    def _progress(self, operation: Operation, begin: datetime, work_until: datetime) -> Progress:
        if operation.kind is OperationKind.BACKFILL:
            return self._backfill.step(operation, begin, work_until)
        if operation.kind is OperationKind.HAND_OVER:
            return self._handing_over.step(operation, work_until)
        return self._dead_letters.step(operation, begin, work_until)

    def _let_go(self, taken: Operation) -> None:
        """Have the step be no try that an executor died on, as far as the store will have it."""
        back = replace(taken, revision=taken.revision + 1, busy_until=None, tries=taken.tries - 1)
        with suppress(StoreUnavailableError):
            self._ports.operations.put(back, taken.revision)

    def _record(self, taken: Operation, progress: Progress) -> Operation | None:
        """The operation with the step recorded; None if another one took it over.

        A cancellation that came meanwhile is kept, with the progress.
        """
        seen = taken
        for _ in range(_ROUNDS):
            now = self._ports.clock.now()
            recorded = progress.recorded_on(seen, now, now + self._ports.run_lifetime)
            if self._ports.operations.put(recorded, seen.revision):
                return recorded
            stored = self._ports.operations.get(taken.owner, taken.operation_id)
            if stored is None or not stored.is_held_as(taken):
                return None
            seen = stored
        return None
