"""One occurrence of a claimed chunk: its call, and a row of its own if it is no quick success."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime, timedelta
from threading import Event

from carillon.domain.chunks.chunk import Ended, Outcome, run_under
from carillon.domain.chunks.message import Member
from carillon.domain.decisions import Claim
from carillon.domain.execution import transitions as running
from carillon.domain.execution.stopping import LOOK_SECONDS
from carillon.domain.job import Job
from carillon.domain.message import Message
from carillon.domain.run import Run, RunStatus
from carillon.errors import StoreUnavailableError
from carillon.executor.batch import Handled, Report
from carillon.executor.chunks.under_way import UnderWay
from carillon.executor.ports import ExecutorPorts
from carillon.executor.runs.call import PreparedCall, delivered, prepare_call
from carillon.executor.runs.context import RunContext
from carillon.executor.runs.protocol import FINISH_RESERVE, RunProtocol

TRIES = 20
BETWEEN_TRIES_SECONDS = 0.25
"""A message of another generation may claim the row for as long as it takes to find the chunk."""


class MemberRun:
    """Called once, in a thread of its own; it raises nothing."""

    def __init__(
        self,
        ports: ExecutorPorts,
        runs: RunProtocol,
        under_way: UnderWay,
        member: Member,
        context: RunContext,
    ) -> None:
        self._ports = ports
        self._runs = runs
        self._under_way = under_way
        self._member = member
        self._context = context
        self._row: Run | None = None
        self._may_have_row = False
        self._is_called = False
        self._stopped = Event()
        self._unwatch: Callable[[], None] = _nothing

    def __call__(self) -> Report | None:
        """The report of a run with a row of its own, or of one that is sent alone; None for one
        whose end is the chunk's to tell."""
        report = None
        try:
            report = self._handled()
        except Exception as error:
            self._under_way.errors.append(error)
        # Whatever has happened to it, whoever meets the finished chunk sends it alone. Of a call
        # that could not be recorded the attempt counts.
        self._settle(Ended(Outcome.DIED if self._is_called else Outcome.ALONE))
        return report

    def _handled(self) -> Report | None:
        ports, message = self._ports, self._context.message
        run = run_under(self._under_way.chunk, message)
        order = prepare_call(ports, run, self._context)
        with ExitStack() as room:
            # Of a plain job's occurrence there is always a call.
            if (
                isinstance(order, PreparedCall)
                and room.enter_context(ports.room(order.target))
                and not self._is_held(run)
            ):
                return self._run(run, order, room)
        return send_alone(ports, [message])[0]

    def _run(self, run: Run, order: PreparedCall, room: ExitStack) -> Report | None:
        ports, job, message = self._ports, self._context.job, self._context.message
        run = running.begun(run, ports.clock.now())
        # The end is put before anything else: for what follows others may be waited for.
        with self._runs.permits.around_call(self._holder(run), message):
            ended = self._called(run, job, order)
            room.close()
            has_row = self._row is not None or self._stopped.is_set()
            is_quick = not has_row and ended.status is RunStatus.SUCCEEDED
            if is_quick:
                self._settle(Ended(Outcome.OK, ended.started_at, ended.finished_at, ended.result))
            elif not has_row:
                self._take_row(run)
            is_lost = self._stopped.is_set()
            is_recorded = not (is_quick or is_lost) and self._runs.record(ended, message)
            self._settle(Ended(Outcome.ALONE))
        report = self._runs.follow_up(ended, self._context) if is_recorded else None
        self._runs.slow_lane.judge(ended, job)
        if is_quick and self._may_have_row:
            # The chunk's message comes again, and with it who removes the row.
            raise StoreUnavailableError(f"{run.key.run_id}: it may have a row beside its chunk")
        # Of a run that is another's now, its own message does what follows.
        return report if is_quick or report else send_alone(ports, [message])[0]

    def _holder(self, run: Run) -> Run:
        """The run as it holds its permit, which is for one call: the chunk's claim is that of all
        its runs."""
        return replace(run, claim_id=self._ports.entropy.new_id(self._ports.clock.now()))

    def _is_held(self, run: Run) -> bool:
        """True if it is not to be called here: what it asked before may have lasted. Nothing is
        taken that would have to be given back: no message of a chunk has waited."""
        waits = self._runs.permits.enter(Claim(run, None), self._context.message)
        has_none = not has_time(self._ports, self._context.job, self._context.ends_at)
        return waits is not None or has_none or self._under_way.is_late()

    def _called(self, run: Run, job: Job, order: PreparedCall) -> Run:
        """The run as its call has left it. A call that lasts puts a row, so that the others' end
        can be recorded, and is stopped as any other from then on. Where that fails it is tried
        again for as long as the call lasts, unless the run has ended by the row that stands there:
        somebody has cancelled it."""
        ordered = list[Callable[[], None]]()

        def lasts() -> None:
            try:
                self._row = run if self._ports.runs.claim(run, None) else None
            except StoreUnavailableError:
                self._row, self._may_have_row = None, True
            if self._row is not None:
                self._settle(Ended(Outcome.ALONE))
                self._unwatch = self._runs.stop_watch.watch(run, self._stopped)
            elif self._runs.stop_watch.has_ended(run):
                self._stopped.set()
            else:
                ordered.append(self._ports.timers.after(LOOK_SECONDS, lasts))

        self._is_called = True
        ordered.append(self._ports.timers.after(LOOK_SECONDS, lasts))
        limit_seconds = job.time_limit_seconds(self._ports.longest_timeout_seconds)
        ended = delivered(self._ports, run, job, order, limit_seconds, self._stopped)
        while ordered:  # one under way may order another
            ordered.pop()()
        self._unwatch()
        return ended

    def _take_row(self, run: Run) -> None:
        """Put the run's row under its chunk's claim; raises StoreUnavailableError where another's
        claim stands for long. Then the attempt has died as far as anybody knows."""
        for _ in range(TRIES):
            if self._ports.runs.claim(run, None):
                return
            self._ports.clock.sleep(BETWEEN_TRIES_SECONDS)
        raise StoreUnavailableError(f"{run.key.run_id}: another's claim stands in its row")

    def _settle(self, end: Ended) -> None:
        self._under_way.settle(self._member, end)


def has_time(ports: ExecutorPorts, job: Job, ends_at: datetime | None) -> bool:
    """True if a call that takes as long as the job permits can be recorded before the process ends,
    where that is known."""
    limit = timedelta(seconds=job.time_limit_seconds(ports.longest_timeout_seconds))
    return ends_at is None or ports.clock.now() + limit + FINISH_RESERVE <= ends_at


def send_alone(ports: ExecutorPorts, messages: Sequence[Message]) -> list[Report]:
    """Send occurrences of a chunk, whose time has come, as messages of their own."""
    if messages:
        ports.queue.send(messages, [0] * len(messages))
    return [Report(Handled.DEFERRED, each, reason="it goes alone") for each in messages]


def _nothing() -> None:
    """The end of a watch that has not begun."""
