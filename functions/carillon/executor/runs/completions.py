"""Runs that end by a report: announced before their call, opened after it, checked at the end of
their lease (docs/architecture.md#runs-that-end-by-a-report)."""

from dataclasses import replace

from carillon.domain.admission import limits
from carillon.domain.admission.state import PERMITS_ROW, key_admission
from carillon.domain.decisions import CheckLater, Lapse
from carillon.domain.execution import completing
from carillon.domain.execution import transitions as running
from carillon.domain.job import Job
from carillon.domain.message import Message
from carillon.domain.quotas import Quota
from carillon.domain.run import Run, RunStatus
from carillon.errors import StoreUnavailableError
from carillon.executor.batch import Handled, Report
from carillon.executor.ports import ExecutorPorts
from carillon.executor.runs.admission import change_admission
from carillon.executor.runs.call import PreparedCall
from carillon.executor.runs.context import RunContext
from carillon.executor.runs.follow_up import FollowUp
from carillon.executor.targets import ReportTo
from carillon.services.calendar_reader import CalendarReader


class Completions:
    """A job whose target has no `completion` costs no read and no write here. Methods raise
    StoreUnavailableError and QueueUnavailableError; None: the row is another's now."""

    def __init__(self, ports: ExecutorPorts) -> None:
        self._ports = ports
        self._follow_up = FollowUp(ports)

    def announce(self, order: PreparedCall, run: Run, job: Job) -> PreparedCall | None:
        """The call with its token, whose hash the row has from now on: a target may be quicker with
        its report than its executor with the answer."""
        spec = order.target.completion
        if spec is None:
            return order
        token = completing.token_of(job.owner, self._ports.entropy.secret())
        place = limits.needed_permit(job, run)
        names = () if place is None else (key_admission(place.key),)
        if self._ports.quotas.of(job.owner)[Quota.RUNS]:
            names = (*names, PERMITS_ROW)
        told = completing.announced(run, spec, token, names, self._ports.clock.now())
        if not self._ports.runs.finish(told):
            return None
        url = f"{self._ports.api_url}/completions/{run.key.run_id}"
        return replace(order, completion=told.completion, report_to=ReportTo(url, token))

    def open(self, run: Run, over: Run, context: RunContext) -> Report | None:
        """Open the run, of which `over` is the claim: its check is sent, its permits are kept, then
        the row is put.

        Whatever crashes in between leaves a row that its executor's lease ends, and a check that
        finds it otherwise than open.
        """
        message = context.message
        self._ports.indexer.schedule_message(completing.check_of(message, run))
        assert run.completion is not None
        for name in run.completion.permits:
            self._change(run, name, lambda gate: limits.kept(gate, run))
        if not self._ports.runs.claim(run, over):
            self.release(run)
            return None
        return Report(Handled.OPENED, message, run, job=context.job)

    def release(self, run: Run | None) -> None:
        """Release the permits that the run has kept, if it was open; again is the same."""
        if run is None or run.completion is None:
            return
        for name in run.completion.permits:
            self._change(run, name, lambda gate: limits.released(gate, run))

    def at_lease_end(self, message: Message, decision: CheckLater | Lapse) -> Report | None:
        """Send the check again for a lease that has moved; or end the attempt of one that has
        lapsed, and do what follows."""
        if isinstance(decision, Lapse):
            return self._lapse(message, decision.over)
        again = completing.check_of(message, decision.run)
        self._ports.indexer.schedule_message(again)
        if not self._ports.runs.claim(decision.run, decision.over):
            return None
        return Report(Handled.DEFERRED, again, reason="the run is open")

    def _lapse(self, message: Message, over: Run) -> Report | None:
        job = self._ports.job_of(message)
        now, fraction = self._ports.clock.now(), self._ports.entropy.fraction()
        ended = completing.lapsed(over, job, now, fraction)
        if ended.status is RunStatus.RETRYING:
            self._ports.indexer.schedule_message(running.retry_message(ended, message))
        if not self._ports.runs.claim(ended, over):
            return None
        self.release(ended)
        if job is None:
            self._ports.lifecycle.buried(ended)
            return Report(Handled.RAN, message, ended)
        context = RunContext(message, job, CalendarReader(self._ports.calendars), None)
        return self._follow_up.told(ended, context)

    def _change(self, run: Run, name: str, change: limits.Change) -> None:
        if not change_admission(self._ports.admission_rows, run.key.owner, name, change):
            raise StoreUnavailableError(f"the gate {name} changed at every step")
