"""Failures in a row, which pause a job (`pause_after_failures`)."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from operator import itemgetter

from carillon.domain.admission import limits
from carillon.domain.admission.state import AdmissionRow, job_admission
from carillon.domain.job import Job, JobState
from carillon.domain.run import DEAD_LETTER, Run, RunKey, RunKind, RunStatus
from carillon.errors import StoreUnavailableError, UnreadableRowError
from carillon.executor.ports import ExecutorPorts
from carillon.executor.runs.admission import change_admission

_ROUNDS = 8
"""Others may change the job's row under its pause this often before the message is repeated."""
_COUNT_LIFETIME = timedelta(days=400)
"""A count of failures outlives the pause between two occurrences of a yearly job."""
_COUNTED = (RunKind.SCHEDULED, RunKind.AFTER)
_ROWS_READ = 50
"""Rows of the history that are searched for a success after a failure that is redelivered."""


class Failures:
    """Raises StoreUnavailableError: then the message is to be repeated."""

    def __init__(self, ports: ExecutorPorts) -> None:
        self._ports = ports

    def count(self, run: Run, job: Job, *, repeated: bool) -> Job | None:
        """Count a failure, or forget those before a success; pause the job at its limit.

        Answers the job as it is then. `repeated`: the run had ended before.
        """
        limit = job.spec.pause_after_failures
        if limit is None or run.key.kind not in _COUNTED:
            self._tell(run, job)
            return job
        if run.status is RunStatus.SUCCEEDED:
            self._change(job, lambda gate: self._after_success(run, gate))
        elif run.status in DEAD_LETTER and not limits.is_past(run, job):
            return self._count_failure(run, job, limit, repeated=repeated)
        return job

    def _count_failure(self, run: Run, job: Job, limit: int, *, repeated: bool) -> Job | None:
        """Count it for the job as it is now: it may have been resumed or changed since it was read,
        and then this failure is the first under its new generation, or its limit is another."""
        current = self._ports.jobs.get(job.owner, job.job_id)
        if current is not None and current.revision != job.revision:
            return self.count(run, current, repeated=repeated)
        if job.state is not JobState.ACTIVE:
            self._tell(run, current or job)
        elif not repeated or not self._has_succeeded_since(run):
            gate = self._change(job, lambda gate: limits.with_failure(gate, run, job, limit))
            if len(gate.failed) >= limit and len(self._in_a_row(job, gate).failed) >= limit:
                return self._pause(run, job)
        return current

    def _pause(self, run: Run, job: Job) -> Job | None:
        """The job, paused with a note, unless others have changed it so that it is not to be."""
        current: Job | None = job
        for _ in range(_ROUNDS):
            if current is None or limits.is_past(run, current):
                return current
            limit = current.spec.pause_after_failures
            if current.state is not JobState.ACTIVE or limit is None:
                self._tell(run, current)
                return current
            paused = current.paused(self._ports.clock.now(), limits.note_of(run, limit))
            if self._ports.jobs.replace(paused, current.revision):
                self._ports.indexer.remove_ended_entries(current, paused)
                self._tell(run, paused)
                return paused
            seen, current = current, self._ports.jobs.get(job.owner, job.job_id)
            if current is not None and current.revision != seen.revision:
                # A resume, or a change: the count begins anew under it, or has another limit.
                return self.count(run, current, repeated=False)
        raise StoreUnavailableError(f"the row of job {job.job_id} changed at every step")

    def _tell(self, run: Run, job: Job) -> None:
        """Publish the event of a paused job, if this run paused it, whatever its limit is now."""
        if job.state is JobState.PAUSED and limits.is_note_of(job.note, run):
            self._ports.lifecycle.job_paused(job)

    def _after_success(self, run: Run, gate: AdmissionRow) -> AdmissionRow:
        """The gate with the failures that still count, those after the success: who counts it may
        have stood still since it ended, or have received it again."""
        ended_at = run.finished_at or run.updated_at

        def is_later(run_id: str) -> bool:
            row = None
            with suppress(UnreadableRowError):  # the good run is not to wait until it is mended
                row = self._ports.runs.get(RunKey.from_run_id(run.key.owner, run_id))
            return row is not None and row.finished_at is not None and row.finished_at > ended_at

        return replace(gate, failed=tuple(filter(is_later, gate.failed)))

    def _in_a_row(self, job: Job, gate: AdmissionRow) -> AdmissionRow:
        """The gate, in which a failure reaches the limit, without failures before a success: while
        a job has no limit nothing of its runs is counted, and who counts the failure may have stood
        still since its end."""
        page = self._ports.history.page(job.owner, job.job_id, _ROWS_READ, consistent=True)
        ends = ((at, row) for row in page.items if (at := _success_at(row)))
        _, last = max(ends, key=itemgetter(0), default=(None, None))
        if last is None:
            return gate
        return self._change(job, lambda gate: self._after_success(last, gate))

    def _has_succeeded_since(self, run: Run) -> bool:
        key, ended_at = run.key, run.finished_at or run.updated_at
        rows = self._ports.history.page(key.owner, key.job_id, _ROWS_READ, consistent=True).whole
        return any((at := _success_at(row)) and at > ended_at for row in rows)

    def _change(self, job: Job, change: Callable[[AdmissionRow], AdmissionRow]) -> AdmissionRow:
        """The job's gate, with what it counts as failed changed."""
        until = self._ports.clock.now() + max(self._ports.run_lifetime, _COUNT_LIFETIME)
        changed: list[AdmissionRow] = []

        def lasting(gate: AdmissionRow) -> AdmissionRow:
            wanted = change(gate)
            changed.append(wanted)
            return gate if wanted == gate else wanted.lasting(until)

        if not change_admission(
            self._ports.admission_rows, job.owner, job_admission(job.job_id), lasting
        ):
            raise StoreUnavailableError(f"the gate of job {job.job_id} changed at every step")
        return changed[-1]


def _success_at(row: Run) -> datetime | None:
    """The end of a success after which the count begins anew; None for any other row."""
    is_counted = row.status is RunStatus.SUCCEEDED and row.key.kind in _COUNTED
    return row.finished_at if is_counted else None
