"""What is done when a run has ended, or is to be tried again; whoever meets it repeats it."""

from functions.executor.ports import ExecutorPorts
from shared.domain import following, running
from shared.domain.job import Job
from shared.domain.message import Message
from shared.domain.run import Run, RunStatus
from shared.errors import StoreUnavailableError

_ROUNDS = 4
"""How often the job's row may change under its completion before the message is repeated."""


class FollowUp:
    """The step after a finish (DESIGN 4.3): a crash before it is repaired by the next reception."""

    def __init__(self, ports: ExecutorPorts) -> None:
        self._p = ports

    def after(self, run: Run, message: Message, job: Job | None = None) -> bool:
        """Send the retry, or what follows from the end; True if the job was completed by it.

        `job` is the row as it was read for the run, where there is one at hand. Raises
        StoreUnavailableError and QueueUnavailableError: then the message is to be repeated.
        """
        if run.status is RunStatus.RETRYING:
            self._p.filer.file_message(running.retry_message(run, message))
            return False
        if not run.is_final:
            return False
        if job is None or message.after_finish:
            # A chain must not go on over a pause that came while the run was under way.
            job = self._p.jobs.get(message.key.owner, message.key.job_id)
        if message.after_finish and self._next(job, run, message):
            return False
        return self._complete(job, run)

    def _next(self, job: Job | None, run: Run, message: Message) -> bool:
        """Send the next occurrence of a fixed delay, if there is one."""
        use = None if job is None else job.calendar
        closed = self._p.closed_days(message.key.owner, use)
        following_message = following.next_after_finish(job, run, message, closed)
        if following_message is None:
            return False
        self._p.filer.file_message(following_message)
        return True

    def _complete(self, job: Job | None, run: Run) -> bool:
        """Put the tombstone of a job that is to be deleted with the end of its last run."""
        for _ in range(_ROUNDS):
            if job is None or not following.may_complete(job, run):
                return False
            closed = self._p.closed_days(job.owner, job.calendar)
            if not following.completes(job, run, closed):
                return False
            now = self._p.clock.now()
            until = following.completed_until(job, now, self._p.run_lifetime)
            if self._p.jobs.replace(job.completed(now, until), job.revision):
                return True
            job = self._p.jobs.get(job.owner, job.job_id)
        raise StoreUnavailableError(f"the row of job {run.key.job_id} changed at every step")
