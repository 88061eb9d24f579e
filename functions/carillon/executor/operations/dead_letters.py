"""The work of the steps that redrive or discard dead letters in bulk."""

from datetime import datetime

from carillon.domain.job import Job
from carillon.domain.operation import Operation, OperationKind, OperationState, Progress
from carillon.domain.run import Run
from carillon.errors import UnreadableRowError
from carillon.executor.ports import ExecutorPorts
from carillon.services.redrive import Redriver, Refusal
from carillon.stores.ports import DeadLetterFilter

_PAGE = 25
"""Dead letters between two reads of the clock."""


class DeadLetters:
    """Raises StoreUnavailableError and QueueUnavailableError; then the step is done again."""

    def __init__(self, ports: ExecutorPorts) -> None:
        self._ports = ports
        self._redriver = Redriver(
            ports.runs, ports.indexer, ports.clock, ports.entropy, ports.run_lifetime
        )

    def step(self, operation: Operation, begin: datetime, work_until: datetime) -> Progress:
        """Resolve what is due in a step that begins at `begin`, as long as time is left.

        Only runs that were dead when the operation was requested: it does not redrive a redriven
        run that dies again, for ever.
        """
        jobs: dict[str, Job | None] = {}
        cursor, done, passed_over = operation.cursor, 0, 0
        while done < operation.step_size and self._ports.clock.now() < work_until:
            page = self._ports.history.dead_letters(
                operation.owner,
                min(_PAGE, operation.step_size - done),
                cursor or None,
                _filter_of(operation),
            )
            for listed in page.items:
                due_at = operation.due_at(done, begin)
                try:
                    is_done = self._settled(operation, listed, jobs, due_at)
                except UnreadableRowError:
                    is_done = False  # the row of its job, or its own, holds up no other
                done += is_done is True
                passed_over += is_done is False
            if page.next_cursor is None:
                return Progress(cursor, done, passed_over, OperationState.SUCCEEDED)
            cursor = page.next_cursor
        return Progress(cursor, done, passed_over)

    def _settled(
        self, operation: Operation, listed: Run, jobs: dict[str, Job | None], due_at: datetime
    ) -> bool | None:
        """True if the dead letter is resolved now; None when it is none of the operation's."""
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


def _filter_of(operation: Operation) -> DeadLetterFilter:
    return DeadLetterFilter(
        operation.job_id,
        operation.reason,
        operation.error,
        operation.from_at,
        operation.until_at,
    )
