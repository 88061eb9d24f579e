"""A message that the store has failed waits, or is given up."""

from contextlib import suppress
from datetime import timedelta

from carillon.domain.decisions import Claim, Drop, Repeat
from carillon.domain.execution import store_waits
from carillon.domain.execution import transitions as running
from carillon.domain.message import Message
from carillon.domain.run import Run, RunKind
from carillon.errors import (
    QueueUnavailableError,
    StoreUnavailableError,
    UnreadableRowError,
    reason_of,
)
from carillon.executor.batch import Handled, PartlyHandledError, Report
from carillon.executor.ports import ExecutorPorts
from carillon.executor.runs.catching_up import CatchingUp
from carillon.executor.runs.completions import Completions
from carillon.executor.runs.context import RunContext
from carillon.executor.runs.follow_up import FollowUp
from carillon.services.calendar_reader import CalendarReader

_LEASE = timedelta(minutes=1)


class Waiting:
    """Several threads may share it; raises StoreUnavailableError and QueueUnavailableError."""

    def __init__(self, ports: ExecutorPorts) -> None:
        self._ports = ports
        self._follow_up = FollowUp(ports)
        self._completions = Completions(ports)
        self._catching_up = CatchingUp(ports)

    def wait(self, message: Message, error: StoreUnavailableError) -> Report:
        """Send a copy of the message, to be acknowledged then; or give up, a day after a row could
        not be read for the first time: a dead letter with the reason `unreadable`."""
        now, is_unreadable = self._ports.clock.now(), isinstance(error, UnreadableRowError)
        if is_unreadable and store_waits.is_given_up(message, now):
            try:
                report = self._give_up(store_waits.handled(message), reason_of(error))
            except UnreadableRowError as lasting:  # not even that can be recorded
                report = Report(Handled.DROPPED, message, reason=reason_of(lasting))
            if report is not None:
                return report
        again = store_waits.held_up(message, now, is_unreadable=is_unreadable)
        delay_seconds = int(store_waits.wait_of(message).total_seconds())
        self._ports.queue.send([again], [delay_seconds])
        reason = "a row cannot be read" if is_unreadable else "the store failed"
        return Report(Handled.DEFERRED, again, reason=reason)

    def _give_up(self, message: Message, reason: str) -> Report | None:
        """None where it is to wait on: another executor is at it, or its row has changed."""
        match message.key.kind:
            case RunKind.WATCH | RunKind.WINDOW:
                return Report(Handled.DROPPED, message, reason=reason)
            case RunKind.OPERATION:
                return self._fail_operation(message, reason)
            case _:
                report = self._bury(message, reason)
                return None if report is None else self._followed(report)

    def _fail_operation(self, message: Message, reason: str) -> Report | None:
        operation = self._ports.operations.get(message.key.owner, message.key.job_id)
        if operation is not None and not operation.is_final and operation.step == message.attempt:
            now = self._ports.clock.now()
            note = f"step {operation.step}: {reason}"
            failed = operation.failed(note, now, now + self._ports.run_lifetime)
            if not self._ports.operations.put(failed, operation.revision):
                return None
        return Report(Handled.DROPPED, message, reason=reason)

    def _bury(self, message: Message, reason: str) -> Report | None:
        """Record the run as a dead letter; if it is its own row that cannot be read, over that.
        The report has the run if its end is to be told."""
        now = self._ports.clock.now()
        terms = self._ports.claim_terms(now, now + _LEASE)
        try:
            seen = self._ports.runs.get(message.key)
        except UnreadableRowError:
            dead = running.unreadable(running.unseen(message, now, terms), reason, now)
            put = self._ports.runs.replace_unreadable(dead)
            handled = Handled.RAN if put else Handled.DROPPED
            return Report(handled, message, dead if put else None, reason)
        claim = running.decide_claim(seen, message, now, terms)
        if isinstance(claim, Drop | Repeat):
            ended = claim.run if isinstance(claim, Repeat) else None
            return Report(Handled.DROPPED, message, ended, reason)
        if not isinstance(claim, Claim):
            return None
        dead = running.unreadable(claim.run, reason, now)
        with suppress(UnreadableRowError):  # a gate's: there is no giving back what it holds
            self._completions.release(claim.over)
        if not (self._ports.runs.claim(claim.run, claim.over) and self._ports.runs.finish(dead)):
            return None
        return Report(Handled.RAN, message, dead)

    def _followed(self, report: Report) -> Report:
        """The report, once its run's end is told and what follows is done, as far as rows can be
        read. Where it fails otherwise, PartlyHandledError has the report of a run that has died
        now: whoever repeats it tells nothing."""
        try:
            with suppress(UnreadableRowError):
                self._catching_up.record_unread(report.message, self._ports.clock.now())
            if report.run is not None:
                self._tell(report.run, report.message, repeated=report.handled is Handled.DROPPED)
        except (StoreUnavailableError, QueueUnavailableError) as error:
            if report.handled is Handled.DROPPED:
                raise
            raise PartlyHandledError(report) from error
        return report

    def _tell(self, run: Run, message: Message, *, repeated: bool) -> None:
        job = None
        with suppress(UnreadableRowError):
            job = self._ports.job_of(message)
        if job is None:
            self._ports.lifecycle.buried(run)
            return
        context = RunContext(message, job, CalendarReader(self._ports.calendars), None)
        with suppress(UnreadableRowError):
            follow_up = self._follow_up.again if repeated else self._follow_up.after
            follow_up(run, context)
