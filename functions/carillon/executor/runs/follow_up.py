"""Actions after an attempt: the retry, or events, callback and completion. Idempotent."""

from carillon.domain.admission.state import job_gate
from carillon.domain.callbacks import callback_message, callback_target
from carillon.domain.decisions import SendOn
from carillon.domain.execution import next_run as following
from carillon.domain.execution.next_run import turn_message
from carillon.domain.job import Job, JobState
from carillon.domain.message import Message
from carillon.domain.policies import OnComplete, Overlap
from carillon.domain.run import Run, RunKey, RunKind, RunStatus
from carillon.errors import StoreUnavailableError
from carillon.executor.ports import ExecutorPorts
from carillon.executor.runs.failures import Failures
from carillon.executor.runs.lifecycle_events import Happenings
from carillon.schedules import ClosedDays


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


class FollowUp:
    """The step after a finish (DESIGN 4.3): a crash before it is repaired by the next reception."""

    def __init__(self, ports: ExecutorPorts) -> None:
        self._p = ports
        self._consequences = Consequences(ports)
        self._completion = Completion(ports)
        self._happenings = Happenings(ports.events)

    def after(self, run: Run, message: Message, job: Job) -> bool:
        """Send the retry, or what follows from the end; True if the job was completed by it.

        `job` is the row as it was read for the run. Raises StoreUnavailableError and
        QueueUnavailableError: then the message is to be repeated.
        """
        if run.is_final and message.after_finish:
            # A chain must not go on over a pause that came while the run was under way.
            return self._after(run, message, self._job_of(message), repeated=False)
        return self._after(run, message, job, repeated=False)

    def again(self, run: Run, message: Message, job: Job | None = None) -> SendOn | bool:
        """The same for a message that met a run which had ended before, or is to be tried again.

        `job` is the row, where it is at hand. Whether that message is a duplicate, or its executor
        died before it sent the next one of a fixed delay, only the next run can tell: until it must
        have begun the message waits. For a run that was cancelled nobody else has sent the next.
        """
        job = job or self._job_of(message)
        if not message.after_finish or not run.is_final:
            return self._after(run, message, job, repeated=True)
        following_message, job = self._next(job, run, message, repeated=True)
        if following_message is None:
            return self._completion.after(job, run, message)
        look_at = following.look_again_at(following_message, self._p.clock.now())
        if look_at is not None and run.status is not RunStatus.CANCELLED:
            return SendOn(look_at, "the run has ended, and the next one has yet to begin")
        begun = self._p.runs.get(following_message.key)
        if begun is None or begun.filing_id != following_message.filing_id:
            # One of another filing is noise of a change: it takes no part in this chain.
            self._p.filer.file_message(following_message)
        return False

    def _after(self, run: Run, message: Message, job: Job | None, *, repeated: bool) -> bool:
        if not run.is_final:
            # Noise of another filing knows nothing of its attempts.
            if job is not None and run.filing_id == message.filing_id:
                self._happenings.ended(run, job)
            return False
        following_message, job = self._next(job, run, message, repeated=repeated)
        if following_message is None:
            return self._completion.after(job, run, message)
        self._p.filer.file_message(following_message)
        return False

    def _next(
        self, job: Job | None, run: Run, message: Message, *, repeated: bool
    ) -> tuple[Message | None, Job | None]:
        """The next occurrence of a fixed delay, if there is one, once all else that a final run
        brings about is seen to; and the job as it is then."""
        if job is not None:
            job = self._consequences.of(run, message, job, repeated=repeated)
        if job is None or not message.after_finish:
            return None, job
        closed = self._p.closed_days(job.owner, job.calendar)
        return following.next_after_finish(job, run, message, closed), job

    def _job_of(self, message: Message) -> Job | None:
        return self._p.jobs.get(message.key.owner, message.key.job_id)
