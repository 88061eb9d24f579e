"""The end of a job: no occurrence is left, and the last of its runs has ended."""

from carillon.domain.admission.state import job_gate
from carillon.domain.execution import next_run as following
from carillon.domain.job import Job, JobState
from carillon.domain.message import Message
from carillon.domain.policies import OnComplete, Overlap
from carillon.domain.run import Run, RunKey
from carillon.errors import StoreUnavailableError
from carillon.executor.ports import ExecutorPorts
from carillon.executor.runs.lifecycle_events import Happenings
from carillon.schedules import ClosedDays

_ROUNDS = 4
"""How often the job's row may change under its completion before the message is repeated."""


class Completion:
    """Raises StoreUnavailableError: then the message is to be repeated."""

    def __init__(self, ports: ExecutorPorts) -> None:
        self._p = ports
        self._happenings = Happenings(ports.events)

    def after(self, job: Job | None, run: Run, message: Message) -> bool:
        """Complete the job if nothing follows the final run, and tell; True if its tombstone is
        put by this call. One that is to be kept stays as it is.

        With `overlap: allow` the end of the last occurrence's run is that of the job: a run that
        began before it may still be under way, as may one that somebody asked for. Else the job is
        complete when no run is active or waits for its turn.
        """
        for _ in range(_ROUNDS):
            if job is not None and job.state is JobState.COMPLETED:
                self._happenings.job_completed(job, job.updated_at)
                return False
            if job is None or not self._is_complete(job, run, message):
                return False
            if job.on_complete is OnComplete.KEEP:
                self._happenings.job_completed(job, run.finished_at or run.updated_at)
                return False
            now = self._p.clock.now()
            until = following.completed_until(job, now, self._p.run_lifetime)
            completed = job.completed(now, until)
            if self._p.jobs.replace(completed, job.revision):
                self._p.filer.remove_ended_entries(job, completed)
                self._happenings.job_completed(completed, now)
                return True
            job = self._p.jobs.get(job.owner, job.job_id)
        raise StoreUnavailableError(f"the row of job {run.key.job_id} changed at every step")

    def _is_complete(self, job: Job, run: Run, message: Message) -> bool:
        if not following.may_complete(job, run):
            return False
        closed = self._p.closed_days(job.owner, job.calendar)
        if not following.is_over(job, run, message, closed, self._p.clock.now()):
            return False
        return job.overlap is Overlap.ALLOW or not self._has_others(job, run, message, closed)

    def _has_others(self, job: Job, run: Run, message: Message, closed: ClosedDays | None) -> bool:
        """Whether another run is active or waits, or the last occurrence has yet to end.

        Of two that end at once one sees the end of the other at least: a row is final before what
        follows from it is done.
        """
        last = following.last_of(job, run, message, closed, self._p.clock.now())
        if last is not None and last != run.key and not self._has_ended(last, absent=False):
            return True
        gate = self._p.gates.get(job.owner, job_gate(job.job_id))
        named = () if gate is None else (gate.active, gate.waiting)
        keys = {RunKey.from_run_id(job.owner, run_id) for run_id in named if run_id}
        return not all(self._has_ended(key, absent=True) for key in keys - {run.key})

    def _has_ended(self, key: RunKey, *, absent: bool) -> bool:
        """Whether the run has; `absent` is said of one that has no row."""
        row = self._p.runs.get(key)
        return absent if row is None else row.is_final
