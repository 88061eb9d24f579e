"""What is done when a run has ended, or is to be tried again; whoever meets it repeats it."""

from dataclasses import replace

from functions.executor.consequences import Consequences
from functions.executor.events import Happenings
from functions.executor.ports import ExecutorPorts
from shared.domain import following, running
from shared.domain.decisions import SendOn
from shared.domain.events import EventType
from shared.domain.job import Job, JobState
from shared.domain.message import Message
from shared.domain.policies import OnComplete
from shared.domain.run import Run, RunKind, RunStatus
from shared.errors import StoreUnavailableError

_ROUNDS = 4
"""How often the job's row may change under its completion before the message is repeated."""


class FollowUp:
    """The step after a finish (DESIGN 4.3): a crash before it is repaired by the next reception."""

    def __init__(self, ports: ExecutorPorts) -> None:
        self._p = ports
        self._consequences = Consequences(ports)
        self._happenings = Happenings(ports.events)

    def after(self, run: Run, message: Message, job: Job | None = None) -> bool:
        """Send the retry, or what follows from the end; True if the job was completed by it.

        `job` is the row as it was read for the run, where there is one at hand. Raises
        StoreUnavailableError and QueueUnavailableError: then the message is to be repeated.
        """
        return self._after(run, message, job, repeated=False)

    def again(self, run: Run, message: Message, job: Job | None = None) -> SendOn | bool:
        """The same for a message that met a run which had ended before, or is to be tried again.

        Whether that message is a duplicate, or its executor died before it sent the next one of a
        fixed delay, only the next run can tell: until it must have begun the message waits.
        """
        if not message.after_finish or not run.is_final:
            return self._after(run, message, job, repeated=True)
        job = self._p.jobs.get(message.key.owner, message.key.job_id)
        if job is not None:
            self._consequences.of(run, message, job, repeated=True)
        following_message = self._next(job, run, message)
        if following_message is None:
            return self._complete(job, run, message)
        now = self._p.clock.now()
        look_at = following.look_again_at(following_message, now)
        if look_at is not None:
            return SendOn(look_at, "the run has ended, and the next one has yet to begin")
        if self._p.runs.get(following_message.key) is None:
            self._p.filer.file_message(following_message)
        return False

    def _after(self, run: Run, message: Message, job: Job | None, *, repeated: bool) -> bool:
        if run.status is RunStatus.RETRYING:
            self._p.filer.file_message(running.retry_message(run, message))
        elif not run.is_final:
            return False
        if job is None or (message.after_finish and run.is_final):
            # A chain must not go on over a pause that came while the run was under way.
            job = self._p.jobs.get(message.key.owner, message.key.job_id)
        if not run.is_final:
            if job is not None:
                self._happenings.ended(run, job)
            return False
        if job is not None:
            self._consequences.of(run, message, job, repeated=repeated)
        following_message = self._next(job, run, message)
        if following_message is None:
            return self._complete(job, run, message)
        self._p.filer.file_message(following_message)
        return False

    def _next(self, job: Job | None, run: Run, message: Message) -> Message | None:
        """The next occurrence of a fixed delay, if there is one."""
        if not message.after_finish:
            return None
        use = None if job is None else job.calendar
        closed = self._p.closed_days(message.key.owner, use)
        return following.next_after_finish(job, run, message, closed)

    def _complete(self, job: Job | None, run: Run, message: Message) -> bool:
        """Put the tombstone of a job that is to be deleted with the end of its last run."""
        if job is not None and job.on_complete is OnComplete.KEEP:
            self._tell_completion(job, run, message)
            return False
        for _ in range(_ROUNDS):
            if job is not None and job.state is JobState.COMPLETED:
                self._happenings.job_completed(job, job.updated_at)
                return False
            if job is None or not following.may_complete(job, run):
                return False
            closed = self._p.closed_days(job.owner, job.calendar)
            if not following.completes(job, run, message, closed):
                return False
            now = self._p.clock.now()
            until = following.completed_until(job, now, self._p.run_lifetime)
            completed = job.completed(now, until)
            if self._p.jobs.replace(completed, job.revision):
                self._happenings.job_completed(completed, now)
                return True
            job = self._p.jobs.get(job.owner, job.job_id)
        raise StoreUnavailableError(f"the row of job {run.key.job_id} changed at every step")

    def _tell_completion(self, job: Job, run: Run, message: Message) -> None:
        """The job stays as it is, but whoever listens hears that nothing is left of it."""
        if EventType.JOB_COMPLETED not in job.events or run.key.kind is not RunKind.SCHEDULED:
            return
        closed = self._p.closed_days(job.owner, job.calendar)
        if following.completes(replace(job, on_complete=OnComplete.DELETE), run, message, closed):
            self._happenings.job_completed(job, run.finished_at or run.updated_at)
