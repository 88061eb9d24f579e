"""The release of claims that are not gone on with: the run is put off, waits, or is others'."""

from dataclasses import replace

from carillon.domain.decisions import (
    LONGEST_BRIEF_WAIT,
    Claim,
    Defer,
    Drop,
    Redirect,
    SkipReason,
    Start,
    Wait,
)
from carillon.domain.execution import transitions as running
from carillon.domain.message import Message
from carillon.domain.run import RunStatus
from carillon.errors import QueueUnavailableError, StoreUnavailableError
from carillon.executor.batch import Handled, Report, defer
from carillon.executor.ports import ExecutorPorts
from carillon.executor.runs.admission import Admission
from carillon.executor.runs.context import RunContext


class Releasing:
    """None, or False: the row is another's now. Methods raise StoreUnavailableError and
    QueueUnavailableError."""

    def __init__(self, ports: ExecutorPorts, admission: Admission) -> None:
        self._ports = ports
        self._admission = admission

    def release(
        self, message: Message, claim: Claim, start: Start, context: RunContext | None = None
    ) -> Report | None:
        """Undo a claim that must not be gone on with, then defer or drop the message.

        A dropped message represents no occurrence, and one that is sent for another time for none
        at this one: a row that it made itself, by an earlier claim whose holder died, is removed
        too, since nobody else would ever come for it. One that another generation has claimed as
        well is left to that: so what comes again is of the generation that the row knows it by. A
        closed day moves the messages of them all, whichever still come, and what it has waited with
        is given up: its `context` knows the job.
        """
        moved = isinstance(start, Redirect) and start.message.key != message.key
        for_nothing = moved or isinstance(start, Drop)
        if not self.undo(message, claim, made_for_nothing=for_nothing, for_all=moved):
            return None
        if moved and context is not None:
            self._admission.give_up(claim.over, replace(context, message=message))
        if isinstance(start, Defer):
            return defer(self._ports, message, start.at, start.reason)
        if isinstance(start, Redirect):
            as_known = replace(start.message, generation_id=message.generation_id)
            sent = start.message if moved else as_known
            self._ports.indexer.schedule_message(sent)
            return Report(Handled.DEFERRED, sent, reason=start.reason)
        reason = start.reason if isinstance(start, Drop) else "there is no such job"
        return Report(Handled.DROPPED, message, reason=reason)

    def put_off(self, message: Message, claim: Claim) -> Report | None:
        """Put the run off until another process, which has more time left, receives it."""
        since, now = message.starts_at, self._ports.clock.now()
        reason = "too little time is left in this process"
        again = Defer.twice_as_late(since, now, reason, longest=LONGEST_BRIEF_WAIT)
        return self.release(message, claim, again)

    def undo(
        self, message: Message, claim: Claim, *, made_for_nothing: bool, for_all: bool = False
    ) -> bool:
        """Bring the row back to what it was before the claim; False if it is another's now.
        `for_all`: it is of no use to any generation."""
        over = claim.over
        is_own = over is not None and running.was_made_by(over, message, or_others=for_all)
        if over is None or (made_for_nothing and is_own):
            return self._ports.runs.discard_claim(claim.run)
        now = self._ports.clock.now()
        if made_for_nothing and over.status is RunStatus.RETRYING:
            # Its job is gone, so nobody else comes for it: as where that has left a tombstone.
            gone = running.skipped(claim.run, SkipReason.DELETED, now, "there is no such job")
            return self._ports.runs.finish(gone)
        if made_for_nothing:
            return self._ports.runs.finish(running.handed_over(claim.run, over, message, now))
        return self._ports.runs.finish(running.released(claim.run, over, message, now))

    def wait(self, message: Message, claim: Claim, wait: Wait) -> Report | None:
        """Send the message that the claimed run waits for, then release the run.

        The row names the current message: all others are of no use from then on.
        """
        wait = running.in_next_wait(wait, claim.run)
        try:
            self._ports.indexer.schedule_message(wait.message)
        except (QueueUnavailableError, StoreUnavailableError):
            # Or the run would seem to have died: the message comes again to the row as it was.
            self.undo(message, claim, made_for_nothing=False)
            raise
        now = self._ports.clock.now()
        if not self._ports.runs.finish(running.waiting(claim.run, claim.over, wait, now)):
            return None
        return Report(Handled.DEFERRED, wait.message, reason=wait.reason)
