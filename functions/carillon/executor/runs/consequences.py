"""What the end of a run means to others: events, callbacks, the run that waits for it, the count of
failures in a row. Whoever meets the run repeats it."""

from carillon.domain.admission.state import job_gate
from carillon.domain.callbacks import callback_message, callback_target
from carillon.domain.execution.next_run import turn_message
from carillon.domain.job import Job, JobState
from carillon.domain.message import Message
from carillon.domain.policies import Overlap
from carillon.domain.run import Run, RunKey, RunKind, RunStatus
from carillon.executor.ports import ExecutorPorts
from carillon.executor.runs.failures import Failures
from carillon.executor.runs.lifecycle_events import Happenings


class Consequences:
    """Raises StoreUnavailableError, QueueUnavailableError: the message is to be repeated then."""

    def __init__(self, ports: ExecutorPorts) -> None:
        self._p = ports
        self._happenings = Happenings(ports.events)
        self._failures = Failures(ports)

    def of(self, run: Run, message: Message, job: Job, *, repeated: bool) -> Job | None:
        """See to all that a final run brings about; answers the job as it is then.

        `repeated`: the run had ended before.
        """
        self._happenings.ended(run, job)
        if callback_target(job, run) is not None:
            self._p.filer.file_message(callback_message(run, message))
        if not repeated or run.status is RunStatus.CANCELLED:
            self._call_the_next(run, job)
        return self._failures.count(run, job, repeated=repeated)

    def _call_the_next(self, run: Run, job: Job) -> None:
        """Wake the run that waits for the end of this one, so that it need not look itself.

        Where the executor died before, it looks within half a minute all the same. So it does once
        its job is deleted: it is only to be skipped.
        """
        if job.overlap is Overlap.ALLOW or job.state is JobState.DELETED:
            return
        if run.key.kind is RunKind.CALLBACK:
            return
        gate = self._p.gates.get(job.owner, job_gate(job.job_id))
        if gate is None or gate.active != run.key.run_id or not gate.waiting:
            return
        if gate.waiting_filing != job.filing.filing_id:
            return  # its own message knows more of it
        waiting = self._p.runs.get(RunKey.from_run_id(job.owner, gate.waiting))
        if waiting is not None and waiting.status is RunStatus.SCHEDULED:
            self._p.filer.file_message(turn_message(waiting, job))
