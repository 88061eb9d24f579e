"""Resumes a job at the end of a pause that was to last until then."""

from carillon.domain.decisions import Defer, Drop
from carillon.domain.execution.resuming import decide_resume, resumed_after, was_resumed_by
from carillon.domain.job import Generation
from carillon.domain.message import Message
from carillon.executor.batch import Handled, Report, defer, defer_early
from carillon.executor.ports import ExecutorPorts

_ROUNDS = 4
"""An owner may change the job's row under its resumption this often before it is tried later."""


class Resuming:
    """Handles messages of kind RESUME; raises StoreUnavailableError and QueueUnavailableError.

    The job begins anew where its pause was to end, however late the message comes: catch-up decides
    about what has come due since. A repeated one finds the job active.
    """

    def __init__(self, ports: ExecutorPorts) -> None:
        self._ports = ports

    def resume(self, message: Message) -> Report:
        deferred = defer_early(self._ports, message)
        if deferred is not None:
            return deferred
        for _ in range(_ROUNDS):
            job, now = self._ports.job_of(message), self._ports.clock.now()
            decision = decide_resume(job, message, now)
            if isinstance(decision, Defer):
                return defer(self._ports, message, decision.at, decision.reason)
            if isinstance(decision, Drop):
                if job is not None and was_resumed_by(job, message):
                    # The commit may have been the last deed of a process that had stood still.
                    self._ports.indexer.index_again(job)
                return Report(Handled.DROPPED, message, reason=decision.reason)
            assert job is not None
            new_id = self._ports.entropy.new_id(job.generation.next_id_at(now))
            generation = Generation(new_id, resumed_after(job, now))
            resumed = job.in_new_generation(generation, now)
            if self._ports.indexer.index_job(resumed, job.revision):
                return Report(Handled.RESUMED, message, reason="its pause was to end then")
        now = self._ports.clock.now()
        return defer(self._ports, message, now, "the job changed at every step")
