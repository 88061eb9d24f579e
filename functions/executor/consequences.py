"""What the end of a run means to others: events, callbacks, the run that waits for it, the count of
failures in a row. Whoever meets the run repeats it."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

from functions.executor.events import Happenings
from functions.executor.ports import ExecutorPorts
from shared.domain import failing
from shared.domain.callbacks import callback_message, callback_target
from shared.domain.gate import first_gate, job_gate
from shared.domain.job import Job, JobState
from shared.domain.message import Message
from shared.domain.policies import Overlap
from shared.domain.run import DEAD_LETTER, Run, RunKey, RunKind, RunStatus
from shared.domain.taking_turns import turn_message
from shared.errors import StoreUnavailableError

_ROUNDS = 8
"""How often others may change a row under one change of it before the message is repeated."""
_COUNT_LIFETIME = timedelta(days=400)
"""A count of failures outlives the pause between two occurrences of a yearly job."""
_LOOKED_BACK = 50
"""Rows of the history that are searched for a success after a failure that is met again."""


class Consequences:
    """Every method may raise StoreUnavailableError and QueueUnavailableError: then the message is
    to be repeated."""

    def __init__(self, ports: ExecutorPorts) -> None:
        self._p = ports
        self._happenings = Happenings(ports.events)

    def of(self, run: Run, message: Message, job: Job, *, repeated: bool) -> None:
        """See to all that a final run brings about; `repeated`: it had ended before."""
        self._happenings.ended(run, job)
        if callback_target(job, run) is not None:
            self._p.filer.file_message(callback_message(run, message))
        self._call_the_next(run, job)
        if job.pause_after_failures is not None and run.key.kind is RunKind.SCHEDULED:
            self._count(run, job, job.pause_after_failures, repeated)

    def _call_the_next(self, run: Run, job: Job) -> None:
        """Wake the run that waits for the end of this one, so that it need not look itself."""
        if job.overlap is not Overlap.QUEUE_ONE or run.key.kind is RunKind.CALLBACK:
            return
        gate = self._p.gates.get(job.owner, job_gate(job.job_id))
        if gate is None or gate.active != run.key.run_id or not gate.waiting:
            return
        if gate.waiting_filing != job.filing.filing_id:
            return  # its own message knows more of it
        waiting = self._p.runs.get(RunKey.from_run_id(job.owner, gate.waiting))
        if waiting is not None and waiting.status is RunStatus.SCHEDULED:
            self._p.filer.file_message(turn_message(waiting, job))

    def _count(self, run: Run, job: Job, limit: int, repeated: bool) -> None:
        """Count a failure, or forget those before a success; pause the job at its limit."""
        if run.status is RunStatus.SUCCEEDED:
            self._change_failed(job, lambda failed: self._after_success(run, failed, repeated))
        elif run.status not in DEAD_LETTER or failing.is_past(run, job):
            return
        elif job.state is not JobState.ACTIVE:
            self._begin_anew(run, job)
        elif not repeated or not self._has_succeeded_since(run):
            run_id = run.key.run_id
            failed = self._change_failed(job, lambda ids: failing.with_failure(ids, run_id, limit))
            if len(failed) >= limit:
                self._pause(run, job)

    def _pause(self, run: Run, job: Job) -> None:
        """Pause the job with a note, until that holds; the count begins anew then."""
        current: Job | None = job
        for _ in range(_ROUNDS):
            if current is None or failing.is_past(run, current):
                return
            limit = current.pause_after_failures
            if current.state is not JobState.ACTIVE or limit is None:
                self._begin_anew(run, current)
                return
            paused = current.paused(self._p.clock.now(), failing.note_of(run, limit))
            if self._p.jobs.replace(paused, current.revision):
                self._begin_anew(run, paused)
                return
            current = self._p.jobs.get(job.owner, job.job_id)
        raise StoreUnavailableError(f"the row of job {job.job_id} changed at every step")

    def _begin_anew(self, run: Run, job: Job) -> None:
        """Of a job that is paused: tell it if that was for this run, and forget the failures."""
        limit = job.pause_after_failures
        if job.state is JobState.PAUSED and limit and job.note == failing.note_of(run, limit):
            self._happenings.job_paused(job)
        self._change_failed(job, lambda failed: ())

    def _after_success(self, run: Run, failed: tuple[str, ...], repeated: bool) -> tuple[str, ...]:
        """The failures that still count; of a success that is met again, those after it."""
        if not repeated or run.finished_at is None:
            return ()
        rows = [
            (each, self._p.runs.get(RunKey.from_run_id(run.key.owner, each))) for each in failed
        ]
        return tuple(
            run_id
            for run_id, row in rows
            if row is not None and row.finished_at is not None and row.finished_at > run.finished_at
        )

    def _has_succeeded_since(self, run: Run) -> bool:
        key, ended_at = run.key, run.finished_at or run.updated_at
        rows = self._p.runs.list(key.owner, key.job_id, _LOOKED_BACK).items
        return any(
            row.status is RunStatus.SUCCEEDED
            and row.key.kind is RunKind.SCHEDULED
            and row.finished_at is not None
            and row.finished_at > ended_at
            for row in rows
        )

    def _change_failed(
        self, job: Job, change: Callable[[tuple[str, ...]], tuple[str, ...]]
    ) -> tuple[str, ...]:
        """Change the run ids that the job's gate counts as failed; answers those that it has then.

        Nothing is written when nothing changes.
        """
        name = job_gate(job.job_id)
        for _ in range(_ROUNDS):
            expires_at = self._p.clock.now() + max(self._p.run_lifetime, _COUNT_LIFETIME)
            stored = self._p.gates.get(job.owner, name)
            gate = stored or first_gate(job.owner, name, expires_at)
            wanted = change(gate.failed)
            if wanted == gate.failed:
                return wanted
            following = gate.next_revision(max(gate.expires_at, expires_at))
            revision = None if stored is None else stored.revision
            if self._p.gates.put(replace(following, failed=wanted), revision):
                return wanted
        raise StoreUnavailableError(f"the gate of job {job.job_id} changed at every step")
