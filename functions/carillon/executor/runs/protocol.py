"""The run protocol: claim, read, deliver, fenced finish, follow-up
(docs/architecture.md#the-run-protocol).

Returning from `handle` acknowledges the message; raising leaves it to the queue. Nothing is ever
put back by its visibility: a message that must wait is deferred as a delayed copy, so that the
queue counts as receptions only those that ended in a crash.
"""

from dataclasses import replace
from datetime import datetime, timedelta

from carillon.domain.chunks.message import Order
from carillon.domain.decisions import (
    CheckLater,
    Claim,
    Defer,
    Drop,
    Lapse,
    Leave,
    Proceed,
    Redirect,
    Repeat,
    Skip,
    SkipReason,
    Start,
    Wait,
    YieldToLatest,
)
from carillon.domain.execution import completing, returning
from carillon.domain.execution import start_decision as starting
from carillon.domain.execution import transitions as running
from carillon.domain.execution.stopping import is_overdue
from carillon.domain.job import Job
from carillon.domain.message import Message
from carillon.domain.run import Run, RunKind, RunStatus
from carillon.errors import HeldError, QueueUnavailableError, RunAloneError, StoreUnavailableError
from carillon.executor.batch import (
    Handled,
    PartlyHandledError,
    Report,
    defer,
    defer_early,
    send_back,
)
from carillon.executor.chunks.looks import ChunkLooks
from carillon.executor.ports import ExecutorPorts
from carillon.executor.runs.admission import Admission, Held
from carillon.executor.runs.call import PreparedCall, StopWatch, delivered, prepare_call
from carillon.executor.runs.catching_up import CatchingUp
from carillon.executor.runs.completions import Completions
from carillon.executor.runs.context import RunContext
from carillon.executor.runs.follow_up import FollowUp
from carillon.executor.runs.permits import Permits
from carillon.executor.runs.releasing import Releasing
from carillon.executor.runs.slow_lane import SlowLane
from carillon.services.calendar_reader import CalendarReader

LEASE_MARGIN = timedelta(seconds=1)
FINISH_RESERVE = timedelta(seconds=1.5)
"""Left between a run's limit and the end of its process, to record how it ended."""
_ROUNDS = 8
"""One reception may find its row changed this often before it defers a copy."""


class RunProtocol:
    """Handles one message at a time; several threads may share it."""

    def __init__(self, ports: ExecutorPorts) -> None:
        self._ports = ports
        self._follow_up = FollowUp(ports)
        self._admission = Admission(ports)
        self.permits = Permits(ports)
        self.stop_watch = StopWatch(ports)
        self.slow_lane = SlowLane(ports)
        self._catching_up = CatchingUp(ports)
        self._chunk_looks = ChunkLooks(ports)
        self._completions = Completions(ports)
        self._releasing = Releasing(ports, self._admission)

    def handle(self, message: Message, ends_at: datetime, *, alone: bool = True) -> Report:
        """Handle a message of a lane; the process may be stopped at `ends_at`.

        0. early, or held back by its owner's share: defer, or wait; 1. claim; 2. read the job and
           decide; 3. record what an outage left out; 4. pass the gates; 5. deliver; 6. finish; 7.
           follow up. A step whose write is refused starts again with the row as it is now. Raises
           StoreUnavailableError, QueueUnavailableError, and HeldError for a duplicate of a message
           that another executor is at: all three leave it with the queue. Of a run whose attempt
           died, RunAloneError unless `alone`.
        """
        if (deferred := defer_early(self._ports, message)) is not None:
            return deferred
        message, is_sent = self._catching_up.within_its_generation(message)
        if is_sent:
            return Report(Handled.DEFERRED, message, reason="its generation had ended before")
        for turn in range(_ROUNDS):
            decision = self._decide_claim(message, ends_at, unseen=turn == 0)
            if not isinstance(decision, Claim):
                report = self._without_claim(message, decision)
            elif decision.is_takeover and not alone:
                raise RunAloneError(f"an executor died on {message.key.run_id}")
            else:
                report = None if decision.is_takeover else self.permits.hold_back(message)
                if report is None and self._claims(decision):
                    report = self._go_on(message, decision, ends_at)
            if report is not None:
                return report
        return defer(self._ports, message, self._ports.clock.now(), "the run changed at every step")

    def forwarded(self, order: Order) -> Redirect | None:
        """The message as it is to be sent on to lane slow, if it only comes to be."""
        there = self.slow_lane.forwarded(order) if isinstance(order, Message) else None
        return None if there is None else self.permits.redirect(there)

    def handle_dead(self, message: Message, ends_at: datetime) -> Report:
        """Handle a message of a dead-letter queue: executors died on it, or never could begin it.

        Retrying or final: repeat what follows. Unfinished: back to its lane, or given up, without a
        further call (`returning.is_given_up`). Raises HeldError where another executor is at it.
        """
        message, is_sent = self._catching_up.within_its_generation(message)
        if is_sent:
            return Report(Handled.DEFERRED, message, reason="its generation had ended before")
        for _ in range(_ROUNDS):
            decision = self._decide_claim(message, ends_at, unseen=False)
            report = None
            if isinstance(decision, Defer | Leave):
                raise HeldError(f"{message.key.run_id}: {decision.reason}")
            if not isinstance(decision, Claim):
                report = self._without_claim(message, decision)
            elif not self._is_given_up(message, decision):
                break
            elif self._claims(decision):
                report = self._go_on(message, decision, None)
            if report is not None:
                return report
        return send_back(self._ports, message)

    def _is_given_up(self, message: Message, claim: Claim) -> bool:
        job = self._ports.job_of(message) if claim.is_takeover else None
        now, retention = self._ports.clock.now(), self._ports.queue_retention
        return returning.is_given_up(claim, message, job, now, retention)

    def _claims(self, claim: Claim) -> bool:
        """Make the claim; before, the attempt that it follows gives up what permits it has kept."""
        self._completions.release(claim.over)
        return self._ports.runs.claim(claim.run, claim.over)

    def _decide_claim(
        self, message: Message, ends_at: datetime, *, unseen: bool
    ) -> Claim | CheckLater | Lapse | Defer | Leave | Repeat | Drop:
        """Decide by the run row; an ordinary run is claimed without a read, as if absent."""
        is_first = message.attempt == 1 and not message.waits and not message.key.redrive
        ordinary = is_first and message.key.kind in (RunKind.SCHEDULED, RunKind.AFTER)
        seen = None if unseen and ordinary else self._ports.runs.get(message.key)
        now = self._ports.clock.now()
        if seen is not None and seen.is_open:
            return completing.decide_open(seen, message, now)
        terms = self._ports.claim_terms(now, ends_at + LEASE_MARGIN)
        return running.decide_claim(seen, message, now, terms)

    def _without_claim(
        self, message: Message, decision: CheckLater | Lapse | Defer | Leave | Repeat | Drop
    ) -> Report | None:
        start: Start | None = None
        if isinstance(decision, Drop | Lapse) and message.missed is not None:
            start = self._load(message, None)[1]  # nobody else knows of that span
        match decision:
            case CheckLater() | Lapse():
                report = self._completions.at_lease_end(message, decision)
            case Defer(at, reason):
                return defer(self._ports, message, at, reason)
            case Leave(reason):
                raise HeldError(f"{message.key.run_id}: {reason}")
            case Drop(reason):
                report = Report(Handled.DROPPED, message, reason=reason)
            case Repeat(run):
                # By whoever finds the run: its writer may have died, or was the API, by a report.
                self._completions.release(run)
                if message.slot_key or message.missed is not None:
                    context, start = self._load(message, None)
                else:
                    found = self._ports.job_of(message)
                    context = None if found is None else self._context(message, found, None)
                if run.status is RunStatus.CANCELLED:
                    self._admission.give_up(run, context)
                report = self._follow_up.told_again(run, message, context)
        if isinstance(start, Defer) and message.missed is not None:
            return defer(self._ports, message, start.at, start.reason)  # its span has no row yet
        return report

    def _go_on(self, message: Message, claim: Claim, ends_at: datetime | None) -> Report | None:
        """Proceed under a claim; None when the finish was refused: the run is another's now.

        Without `ends_at` the target is not called any more: the run is given up.
        """
        try:
            context, start = self._load(message, ends_at, claim)
        except (StoreUnavailableError, QueueUnavailableError):
            # Or the run would wait for its lease to lapse, and that would count as an attempt.
            if not self._releasing.undo(message, claim, made_for_nothing=False):
                return None
            raise
        if context is None or isinstance(start, Drop | Defer | Redirect):
            report = self._releasing.release(message, claim, start, context)
            return report and self._follow_up.dropped(report, start, context)
        claim = replace(claim, run=running.being_adopted(claim.run, context.message))
        now, attempts = self._ports.clock.now(), context.job.spec.retry.max_attempts
        if isinstance(start, Skip):
            return self._skip(claim, start, context)
        if isinstance(start, YieldToLatest):
            if claim.over is None and ends_at is not None:
                return self._run_latest_instead(context, claim, start.latest, ends_at)
            start = start.go
        if start.died is not None:
            before, claim = claim, running.after_death(claim, start.died, now)
            if not self._puts(message, before, claim.run):
                return None
        if start.note is not None:
            claim = replace(claim, run=replace(claim.run, note=start.note))
        if ends_at is None or claim.run.attempt > attempts:
            self._admission.give_up(claim.over, context)
            return self.finish(running.undelivered(claim.run, claim.over, attempts, now), context)
        return self._start(message, context, claim, ends_at)

    def _run_latest_instead(
        self, context: RunContext, claim: Claim, latest: Message, ends_at: datetime
    ) -> Report | None:
        """Run the latest occurrence that is due in the place of the claimed one, which is late.

        It is sent and claimed before the other is skipped: whatever crashes, it runs.
        """
        message, taken = context.message, None
        if context.job.is_chunked(latest.due_at):  # a tick sends it, or what stands for it then
            return self.finish(self._passed_over(claim, latest, "was due by then"), context)
        try:
            if not self._catching_up.is_sent(latest, ends_at):
                taken = self._decide_claim(latest, ends_at, unseen=True)
            if isinstance(taken, Defer):
                return self._releasing.release(message, claim, taken)
            is_mine = isinstance(taken, Claim) and self._ports.runs.claim(taken.run, None)
            report = self.finish(self._passed_over(claim, latest, "runs in its place"), context)
        except (StoreUnavailableError, QueueUnavailableError, PartlyHandledError):
            if isinstance(taken, Claim):  # or its attempt would count
                self._releasing.undo(latest, taken, made_for_nothing=False)
            if not self._releasing.undo(message, claim, made_for_nothing=False):
                return None
            raise
        if isinstance(taken, Claim) and is_mine:
            ran = self._go_on(latest, taken, ends_at)
            return report if report is None else replace(report, instead=ran)
        return report

    def _passed_over(self, claim: Claim, latest: Message, words: str) -> Run:
        note = f"{latest.key.run_id} {words}"
        return running.skipped(claim.run, SkipReason.CATCH_UP, self._ports.clock.now(), note)

    def _start(
        self, came: Message, context: RunContext, claim: Claim, ends_at: datetime
    ) -> Report | None:
        """Pass the gates, and deliver the run; a run that is held back waits in its row.

        First a run that another generation's message has claimed is put under the job's own.
        """
        own = starting.adopted(context.job, context.message)
        if own is not None:
            run = running.being_adopted(claim.run, own)
            if not self._puts(came, claim, run):
                return None
            claim = replace(claim, run=run)
        message = own or context.message
        context = replace(context, message=message, job=self.slow_lane.by_host(context.job))
        limit_seconds = context.job.time_limit_seconds(self._ports.longest_timeout_seconds)
        needed = timedelta(seconds=limit_seconds) + FINISH_RESERVE
        if self._ports.clock.now() + needed > ends_at:
            self._admission.leave(claim.over, context.job)  # the row will name another claim
            return self._releasing.put_off(came, claim)
        try:
            prepared = self._admit(claim, context)
        except StoreUnavailableError:  # a gate's, or the announcement's
            if claim.over is None:  # no row will know of its permits
                self._leave(claim.run, context)
            if not self._releasing.undo(came, claim, made_for_nothing=False):
                return None
            raise
        if isinstance(prepared, Defer | Redirect):
            self._admission.leave(claim.over, context.job)  # as above
            return self._releasing.release(came, claim, prepared)
        now, run = self._ports.clock.now(), running.adopted(claim.run, came)
        if isinstance(prepared, Skip):
            return self._skip(replace(claim, run=run), prepared, context)
        if isinstance(prepared, Wait):
            return self._releasing.wait(message, replace(claim, run=run), prepared)
        is_lost = prepared is None or (is_overdue(run, now) and self.stop_watch.is_lost(run))
        if prepared is None or is_lost or now + needed > ends_at:  # the gates were slow
            self._leave(run, context)
            return None if is_lost else self._releasing.put_off(came, claim)
        return self._deliver(prepared, run, context, limit_seconds)

    def _skip(self, claim: Claim, skip: Skip, context: RunContext) -> Report | None:
        self._admission.give_up(claim.over, context)
        now = self._ports.clock.now()
        return self.finish(running.skipped(claim.run, skip.reason, now, skip.note), context)

    def _puts(self, came: Message, claim: Claim, run: Run) -> bool:
        """Put the claimed run before its call; where the store fails, the claim is given back, or
        the run would wait for its lease to lapse, and that would count as an attempt."""
        try:
            return self._ports.runs.finish(run)
        except StoreUnavailableError:
            if not self._releasing.undo(came, claim, made_for_nothing=False):
                return False
            raise

    def _deliver(
        self, order: PreparedCall, run: Run, context: RunContext, limit_seconds: int
    ) -> Report | None:
        """Call the target, record the end, give back what the run holds, and do what follows."""
        with self.permits.around_call(run, context.message):
            with self.stop_watch.around_call(run) as stopped:
                ended = delivered(self._ports, run, context.job, order, limit_seconds, stopped)
            is_lost = stopped.is_set()  # its end would be refused, and no retry is to be sent
            opens = ended.is_open and not is_lost
            report = self._completions.open(ended, run, context) if opens else None
            is_recorded = not (ended.is_open or is_lost) and self.record(ended, context.message)
        self._admission.leave(run, context.job)
        self.permits.forget_lane_slow(run.key.owner)
        report = self.follow_up(ended, context) if is_recorded else report
        self.slow_lane.judge(ended, context.job)
        return report

    def _leave(self, run: Run, context: RunContext) -> None:
        """Give up what the gates have granted to a run that is not called."""
        self._admission.leave(run, context.job)
        self.permits.leave(run, context.message)

    def _admit(self, claim: Claim, context: RunContext) -> PreparedCall | Held | None:
        """The prepared call, once its owner's permits and every gate have let the run pass; None
        where its claim is lost."""
        order = prepare_call(self._ports, claim.run, context)
        if isinstance(order, Skip):
            return order
        if (waits := self.permits.enter(claim, context.message)) is not None:
            return waits
        outcome = self._admission.admit(claim, context)
        if isinstance(outcome, Proceed):
            return self._completions.announce(order, claim.run, context.job)
        self.permits.leave(claim.run, context.message)
        if isinstance(outcome, Redirect):
            self.slow_lane.note(outcome.message)
            return self.permits.redirect(outcome)
        return outcome

    def _context(self, message: Message, job: Job, ends_at: datetime | None) -> RunContext:
        is_after = message.key.kind is RunKind.AFTER
        before = self._ports.runs.get(message.key.predecessor) if is_after else None
        return RunContext(message, job, CalendarReader(self._ports.calendars), ends_at, before)

    def _load(
        self, message: Message, ends_at: datetime | None, claim: Claim | None = None
    ) -> tuple[RunContext | None, Start]:
        """Read the job, then its calendar, and decide; record what an outage left out, remove a
        stale entry. The context's message is the one that was decided about. Done for duplicates,
        too: a message of another generation may have been quicker."""
        job = self._ports.job_of(message)
        message = self._catching_up.cut_off(message, job)  # its generation may have ended since
        context = None if job is None else self._context(message, job, ends_at)
        has_announced = claim is not None and claim.has_announced
        by_schedule = starting.is_by_schedule(message) and not has_announced
        closed = context.closed_days if context is not None and by_schedule else None
        now, before = self._ports.clock.now(), None if context is None else context.before
        for standing in starting.decided_as(claim, message, job):
            start = starting.decide_start(job, standing, now, closed, before)
            if not isinstance(start, Drop):
                break
        counted = start if isinstance(start, Proceed | YieldToLatest | Skip | Redirect) else None
        # Without a claim nothing is to start, and no chunk decides what is recorded.
        if claim is not None and job is not None and by_schedule and counted is not None:
            start = self._chunk_looks.before(counted, job, standing, claim.over, now)
        context = None if context is None else replace(context, message=standing)
        if context is not None and counted is not None and not isinstance(start, Defer):
            self._catching_up.record(context, now)
        self._ports.indexer.remove_stale_entry(job, message)
        return context, start

    def finish(self, run: Run, context: RunContext) -> Report | None:
        """Record the end of the attempt, then do what follows; None when it was refused."""
        return self.follow_up(run, context) if self.record(run, context.message) else None

    def record(self, run: Run, message: Message) -> bool:
        """Put the row of an attempt that has ended; False when that was refused.

        The next attempt's message is sent before: who reads the row need not send another one.
        """
        if run.status is RunStatus.RETRYING:
            self._ports.indexer.schedule_message(running.retry_message(run, message))
        return self._ports.runs.finish(run)

    def follow_up(self, run: Run, context: RunContext) -> Report:
        """Do what follows from the recorded end; raises PartlyHandledError where that fails."""
        return self._follow_up.told(run, context)
