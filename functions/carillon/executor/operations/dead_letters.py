"""The work of the steps that redrive or discard dead letters in bulk."""

from dataclasses import replace
from datetime import datetime

from carillon.domain.job import Job
from carillon.domain.operation import Operation, OperationKind, OperationState, Progress
from carillon.domain.run import Run
from carillon.errors import QueueUnavailableError, StoreUnavailableError, UnreadableRowError
from carillon.executor.ports import ExecutorPorts
from carillon.services.redrive import Redriver, Refusal
from carillon.stores.ports import DeadLetterFilter

_PAGE = 25
"""Dead letters between two reads of the clock."""


class DeadLetters:
    """Raises StoreUnavailableError and QueueUnavailableError where nothing is done; then the step
    is done again."""

    def __init__(self, ports: ExecutorPorts) -> None:
        self._ports = ports
        self._redriver = Redriver(
            ports.runs, ports.indexer, ports.clock, ports.entropy, ports.run_lifetime
        )

    def step(self, operation: Operation, begin: datetime, work_until: datetime) -> Progress:
        """Resolve what is due in a step that begins at `begin`, as long as time is left, and store
        and queue take it: what was resolved by then counts.

        Only runs that were dead when the operation was requested: it does not redrive a redriven
        run that dies again, for ever.
        """
        jobs: dict[str, Job | None] = {}
        cursor, done, passed_over = operation.cursor, 0, 0
        try:
            while done < operation.step_size and self._ports.clock.now() < work_until:
                behind = Progress(cursor, passed_over=passed_over)
                limit = min(_PAGE, operation.step_size - done)
                page = self._ports.history.dead_letters(
                    operation.owner, limit, cursor or None, _filter_of(operation)
                )
                passed_over += len(page.unreadable)
                for listed in page.items:
                    due_at = operation.due_at(done, begin)
                    is_done = self._settled(operation, listed, jobs, due_at)
                    done += is_done is True
                    passed_over += is_done is False
                if page.next_cursor is None:
                    return Progress(cursor, done, passed_over, OperationState.SUCCEEDED)
                cursor = page.next_cursor
        except (StoreUnavailableError, QueueUnavailableError):
            if not done:
                raise
            return replace(behind, done=done)
        return Progress(cursor, done, passed_over)

    def _settled(
        self, operation: Operation, listed: Run, jobs: dict[str, Job | None], due_at: datetime
    ) -> bool | None:
        """True if the dead letter is resolved now; None when it is none of the operation's. One
        whose row, or its job's, cannot be read holds up no other."""
        try:
            # The list may be a little behind.
            run = self._ports.runs.get(listed.key)
            if run is None or not run.is_dead_letter or run.updated_at >= operation.created_at:
                return None
            if operation.kind is OperationKind.DISCARD:
                return not isinstance(self._redriver.discard(run), Refusal)
            job_id = run.key.job_id
            if job_id not in jobs:
                jobs[job_id] = self._ports.job_of_run(run.key)
            return not isinstance(self._redriver.redrive(run, jobs[job_id], due_at), Refusal)
        except UnreadableRowError:
            return False


def _filter_of(operation: Operation) -> DeadLetterFilter:
    return DeadLetterFilter(
        operation.job_id,
        operation.reason,
        operation.error,
        operation.from_at,
        operation.until_at,
    )
