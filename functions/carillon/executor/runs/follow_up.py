"""What is done when a run has ended, or is to be tried again; whoever meets it repeats it."""

from carillon.domain.decisions import SendOn
from carillon.domain.execution import next_run as following
from carillon.domain.job import Job
from carillon.domain.message import Message
from carillon.domain.run import Run, RunStatus
from carillon.executor.ports import ExecutorPorts
from carillon.executor.runs.completion import Completion
from carillon.executor.runs.consequences import Consequences
from carillon.executor.runs.lifecycle_events import Happenings


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
