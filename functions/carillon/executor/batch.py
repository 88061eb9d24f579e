"""A batch of queue records, handled side by side, with its logs and metrics."""

import hashlib
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from math import ceil
from threading import BoundedSemaphore
from typing import Protocol, TypeVar

from carillon.domain.canary import is_canary
from carillon.domain.chunks.message import CHUNK_BEGINS, Order
from carillon.domain.execution import returning
from carillon.domain.execution.transitions import EARLY
from carillon.domain.job import Job
from carillon.domain.message import LONGEST_DELAY_SECONDS, Message, came_back
from carillon.domain.run import DeadReason, Run, RunStatus
from carillon.domain.spec.owners import SYSTEM
from carillon.errors import CarillonError, RunAloneError
from carillon.executor.ports import ExecutorPorts
from carillon.telemetry import Action, Metric, Telemetry

BATCH_SIZE = 10
"""Records in a batch at most: SQS's limit without a batching window."""
CHUNKS_AT_ONCE = 5
"""Chunks that an executor has under way: their calls begin within 2 s of the claim, or go alone.
Of ten at 512 MB a third did (`make bench-share`, docs/decisions.md 181)."""
LONGEST_TURN_SECONDS = 4.0
SUSPICIOUS_COUNT = 4
"""Received so often, a record runs alone. Two or three receptions are mostly no crash: a throttled
invocation counts as one."""


class Record(Protocol):
    """A record as a batch sees it; `receive_count` is 1 at the first reception."""

    @property
    def body(self) -> str: ...

    @property
    def receive_count(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Received:
    """A queue record, by the id that acknowledges it."""

    message_id: str
    body: str
    receive_count: int


_R = TypeVar("_R", bound=Record)
Wave = Callable[[Sequence[_R], bool], Sequence[Exception | None]]
"""Handles records side by side, and reports each failure."""


def in_waves(records: Sequence[_R], wave: Wave[_R]) -> list[_R]:
    """Handle the records of a batch; those that failed stay with the queue.

    One that may have killed its executor runs when all others are done, and alone, so that it can
    take none along: received often, back from the dead-letter queue, or with an attempt that died.
    The last is known only once its row is read: then it raises RunAloneError.
    """
    alone = [one for one in records if _is_suspicious(one)]
    together = [one for one in records if not _is_suspicious(one)]
    failed: list[_R] = []
    if together:
        for one, error in zip(together, wave(together, len(records) == 1), strict=True):
            if error is not None:
                (alone if isinstance(error, RunAloneError) else failed).append(one)
    for one in sorted(alone, key=_order_alone):
        failed += [one for error in wave([one], True) if error is not None]
    return failed


def _order_alone(record: Record) -> tuple[int, bytes]:
    """The place among those that run alone: in another order at each reception, or one that kills
    might come before the same others every time."""
    text = f"{record.receive_count} {record.body}".encode("utf-8", "surrogatepass")
    return record.receive_count, hashlib.sha256(text).digest()


def _is_suspicious(record: Record) -> bool:
    return record.receive_count >= SUSPICIOUS_COUNT or came_back(record.body)


class BatchRunner:
    """Handles the records of batches in threads of its own, made once per process.

    A chunk waits for a place before it is claimed, for `turn_seconds` at most: by then those before
    have ended, or wait for calls that last.
    """

    def __init__(self, turn_seconds: float = LONGEST_TURN_SECONDS) -> None:
        self._threads = ThreadPoolExecutor(BATCH_SIZE, thread_name_prefix="run")
        self._places = BoundedSemaphore(CHUNKS_AT_ONCE)
        self._turn_seconds = turn_seconds

    def run(
        self,
        records: Sequence[Received],
        handle: Callable[[Received, bool], None],
        on_error: Callable[[Received, Exception], None],
    ) -> list[str]:
        """Call `handle` for each record, and whether it runs alone; the ids of those for which it
        raised, which `on_error` gets, too. They stay with the queue.
        """

        def wave(those: Sequence[Received], alone: bool) -> list[Exception | None]:
            def error_of(record: Received) -> Exception | None:
                try:
                    with self._turn(record):
                        handle(record, alone)
                except RunAloneError as error:
                    return error
                except Exception as error:  # the others must go on
                    on_error(record, error)
                    return error
                return None

            return list(self._threads.map(error_of, those))

        return [record.message_id for record in in_waves(records, wave)]

    @contextmanager
    def _turn(self, record: Received) -> Iterator[None]:
        has_place = record.body.startswith(CHUNK_BEGINS) and self._places.acquire(
            timeout=self._turn_seconds
        )
        try:
            yield
        finally:
            if has_place:
                self._places.release()


class Handled(StrEnum):
    """The outcome of a message: the closed list that logs and metrics use."""

    RAN = "ran"
    SKIPPED = "skipped"
    OPENED = "opened"
    """The target was called, and is to report the end of the run."""
    DEFERRED = "deferred"
    SENT_BACK = "sent_back"
    """From the dead-letter queue to its lane."""
    REPEATED = "repeated"
    DROPPED = "dropped"
    CHECKED = "checked"
    """The missed-run check found nothing overdue."""
    RESUMED = "resumed"
    """A job, at the end of its pause."""
    CHUNK = "chunk"
    """Several occurrences; their own reports tell of each."""


@dataclass(frozen=True, slots=True)
class Report:
    """The handling of a message; `run` is the row that was last written or read, if any.

    `completes`: its end was that of the job, which was to be deleted then. `instead`: the handling
    of the occurrence that represents it. `job`: the row by which the run was handled. `members`: of
    a chunk, the handling of its occurrences.
    """

    handled: Handled
    message: Message
    run: Run | None = None
    reason: str = ""
    completes: bool = False
    instead: "Report | None" = None
    job: Job | None = None
    members: tuple["Report", ...] = ()

    @property
    def whole(self) -> tuple["Report", ...]:
        """The reports of single runs that it stands for."""
        instead = () if self.instead is None else (self.instead,)
        return (*self.members, *instead) if self.members else (self, *instead)


class PartlyHandledError(CarillonError):
    """Something of a message has failed, for the reason that is its cause: the message stays with
    the queue, and `report` tells of the rest."""

    def __init__(self, report: Report) -> None:
        super().__init__("a part of the message has failed")
        self.report = report


def send_back(ports: ExecutorPorts, message: Message) -> Report:
    """Send a message of a dead-letter queue back to its lane, to be acknowledged then."""
    again = returning.returned(message)
    ports.queue.send([again], [returning.delay_seconds(again)])
    return Report(Handled.SENT_BACK, again, reason="an attempt is left to be made")


def defer(ports: ExecutorPorts, message: Order, at: datetime, reason: str) -> Report:
    """Send a copy of a message, visible at `at`, as far as the queue can delay it; the one received
    is to be acknowledged then. Before its time it may come a little early: the rest is waited out.
    """
    now = ports.clock.now()
    is_its_time = at == message.starts_at
    delay = message.delay_seconds(now) if is_its_time else ceil((at - now).total_seconds())
    ports.queue.send([message], [max(0, min(delay, LONGEST_DELAY_SECONDS))])
    single = message if isinstance(message, Message) else message.alone(message.members[0])
    return Report(Handled.DEFERRED, single, reason=reason)


def defer_early(ports: ExecutorPorts, message: Order) -> Report | None:
    """Defer a message that is early; None at its time, after what is left has been waited out."""
    early = message.starts_at - ports.clock.now()
    if early > EARLY:
        return defer(ports, message, message.starts_at, "before its time")
    while early > timedelta():
        ports.clock.sleep(early.total_seconds())
        early = message.starts_at - ports.clock.now()
    return None


_ACTIONS = {
    RunStatus.RETRYING: Action.RUN_RETRYING,
    RunStatus.DEAD: Action.RUN_DEAD,
    RunStatus.TIMED_OUT: Action.RUN_TIMED_OUT,
    RunStatus.SKIPPED: Action.RUN_SKIPPED,
    RunStatus.MISSED: Action.RUN_MISSED,
}
_METRICS = {
    RunStatus.SUCCEEDED: Metric.RUNS_SUCCEEDED,
    RunStatus.RETRYING: Metric.RUNS_RETRIED,
    RunStatus.DEAD: Metric.RUNS_DEAD,
    RunStatus.TIMED_OUT: Metric.RUNS_DEAD,
    RunStatus.SKIPPED: Metric.RUNS_SKIPPED,
    RunStatus.MISSED: Metric.RUNS_MISSED,
}
_NOBODYS = (DeadReason.EXECUTOR_DIED, DeadReason.NEVER_STARTED)
"""The reasons of deaths that no target has caused."""


def tell(telemetry: Telemetry, reports: Sequence[Report], failures: int) -> None:
    """Log a batch: a line for each run that did not succeed, and one for the batch as a whole,
    with its metrics.

    A line per successful run would cost more than the run itself.
    """
    reports = [single for report in reports for single in report.whole]
    for report in reports:
        if report.handled in (Handled.RAN, Handled.SKIPPED) and report.run is not None:
            _tell_run(telemetry, report.run)
        elif report.handled is Handled.RESUMED:
            _tell_job(telemetry, Action.JOB_RESUMED, report)
        elif report.handled is Handled.OPENED and report.run is not None:
            _tell_lag(telemetry, report.run)
        elif report.handled is Handled.DROPPED:
            run_id = report.message.key.run_id
            telemetry.record(Action.MESSAGE_DROPPED, run_id=run_id, reason=report.reason)
        elif report.handled is Handled.SENT_BACK:
            run_id, returns = report.message.key.run_id, report.message.returns
            telemetry.record(
                Action.MESSAGE_SENT_BACK, logging.WARNING, run_id=run_id, returns=returns
            )
        if report.completes:
            _tell_job(telemetry, Action.JOB_COMPLETED, report)
    handled = Counter(report.handled.value for report in reports)
    telemetry.finish(Action.BATCH_FINISHED, failed=failures, **handled)


def _tell_job(telemetry: Telemetry, action: Action, report: Report) -> None:
    key = report.message.key
    telemetry.record(action, by=SYSTEM, owner=key.owner, job_id=key.job_id)


def _tell_lag(telemetry: Telemetry, run: Run) -> None:
    if run.attempt == 1 and run.lag_seconds is not None:
        telemetry.measure(Metric.RUN_LAG, max(run.lag_seconds, 0))


def _tell_run(telemetry: Telemetry, run: Run) -> None:
    telemetry.measure(_METRICS[run.status])
    if run.status is RunStatus.DEAD and run.reason in _NOBODYS:
        telemetry.measure(Metric.EXECUTORS_DIED)
    if run.completion is None or not run.completion.is_open:
        _tell_lag(telemetry, run)
    if run.status is RunStatus.SUCCEEDED and is_canary(run.key.owner, run.key.job_id):
        telemetry.measure(Metric.CANARY_LAG, max(run.lag_seconds or 0, 0))
    if run.status is not RunStatus.SUCCEEDED:
        dead = run.status in (RunStatus.DEAD, RunStatus.TIMED_OUT, RunStatus.MISSED)
        telemetry.record(
            _ACTIONS[run.status],
            logging.ERROR if dead else logging.INFO,
            run_id=run.key.run_id,
            attempt=run.attempt,
            reason=run.reason,
            error=None if run.error is None else f"{run.error.kind}: {run.error.message}",
        )
