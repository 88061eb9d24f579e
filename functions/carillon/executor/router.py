"""A queue record to its worker, by the kind of its message."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import partial

from carillon.domain.chunks.message import ChunkMessage, decode
from carillon.domain.decisions import Redirect
from carillon.domain.execution import store_waits
from carillon.domain.message import Message
from carillon.domain.run import RunKind
from carillon.errors import (
    MalformedMessageError,
    QueueUnavailableError,
    StoreUnavailableError,
    UnreadableRowError,
)
from carillon.executor.batch import Handled, PartlyHandledError, Record, Report
from carillon.executor.chunks.protocol import ChunkProtocol
from carillon.executor.notifying.window_end import WindowEnd
from carillon.executor.operations.steps import OperationWorker
from carillon.executor.ports import ExecutorPorts
from carillon.executor.runs.missed_check import MissedRunCheck
from carillon.executor.runs.protocol import RunProtocol
from carillon.executor.runs.resuming import Resuming
from carillon.executor.runs.waiting import Waiting

OnStoreFailure = Callable[[Message, StoreUnavailableError], None]


class Router:
    """Handles one record at a time; several threads may share it.

    Returning acknowledges the record, raising leaves it to the queue. `on_store_failure` is called
    with a message whose handling the store has failed, before it is deferred. Methods raise
    HeldError, StoreUnavailableError and QueueUnavailableError.
    """

    def __init__(
        self, ports: ExecutorPorts, on_store_failure: OnStoreFailure = lambda message, error: None
    ) -> None:
        self._ports = ports
        self._runs = RunProtocol(ports)
        self._chunks = ChunkProtocol(ports, self._runs)
        self._missed_run_check = MissedRunCheck(ports)
        self._resuming = Resuming(ports)
        self._operations = OperationWorker(ports)
        self._window_end = WindowEnd(ports)
        self._waiting = Waiting(ports)
        self._on_store_failure = on_store_failure

    def lane(self, body: str, ends_at: datetime, *, alone: bool = True) -> Report:
        """Handle a record of a lane; the process may be stopped at `ends_at`.

        Raises MalformedMessageError for a body that nobody can read, and RunAloneError where it is
        not `alone` and an executor died on what it orders.
        """
        message = decode(body)
        if isinstance(message, ChunkMessage):
            return self._chunk(message, partial(self._chunks.handle, message, ends_at))
        handle = partial(self.handle, store_waits.handled(message), ends_at, alone=alone)
        return _or_wait(handle, partial(self._wait, message))

    def _wait(self, message: Message, error: StoreUnavailableError) -> Report:
        self._on_store_failure(message, error)
        return self._waiting.wait(message, error)

    def send_on(self, records: Mapping[str, Record]) -> dict[str, Report]:
        """Of the records of a batch, by id, send to lane slow, together, those of jobs that are
        known to be served there: one by one, other owners' messages would wait behind them.

        To all others it is as if the tick had sent them there. What cannot be sent, or read, is to
        be handled as any other. So is what was received before: it may have killed its executor,
        and is not to be read before the others are handled.
        """
        moved: dict[str, Redirect] = {}
        for record_id, record in records.items() if self._runs.slow_lane.knows_any else ():
            with suppress(MalformedMessageError, StoreUnavailableError):
                is_new = record.receive_count == 1
                there = self._runs.forwarded(decode(record.body)) if is_new else None
                if there is not None:
                    moved[record_id] = there
        if not moved:
            return {}
        messages, now = [each.message for each in moved.values()], self._ports.clock.now()
        try:
            self._ports.queue.send(messages, [each.delay_seconds(now) for each in messages])
        except QueueUnavailableError:
            return {}
        return {
            record_id: Report(Handled.DEFERRED, each.message, reason=each.reason)
            for record_id, each in moved.items()
        }

    def dead(self, body: str, ends_at: datetime) -> Report:
        """Handle a record of a dead-letter queue: resolve or return it to its lane. What waits
        for a row that cannot be read waits there, too. Raises MalformedMessageError."""
        message = decode(body)
        if isinstance(message, ChunkMessage):
            return self._chunk(message, partial(self._chunks.handle_dead, message, ends_at))
        try:
            return self.handle_dead(store_waits.handled(message), ends_at)
        except UnreadableRowError as error:
            return self._wait(message, error)

    def _chunk(self, message: ChunkMessage, handle: Callable[[], Report]) -> Report:
        return _or_wait(handle, partial(self._chunk_waits, message))

    def _chunk_waits(self, message: ChunkMessage, error: StoreUnavailableError) -> Report:
        self._on_store_failure(message.alone(message.members[0]), error)
        return self._chunks.wait(message, error)

    def handle(self, message: Message, ends_at: datetime, *, alone: bool = True) -> Report:
        """Handle a message of a lane, without regard to waits for the store."""
        match message.key.kind:
            case RunKind.WATCH:
                return self._missed_run_check.check(message)
            case RunKind.RESUME:
                return self._resuming.resume(message)
            case RunKind.OPERATION:
                return self._operations.step(message, ends_at, alone=alone)
            case RunKind.WINDOW:
                return self._window_end.end(message, ends_at)
            case _:
                return self._runs.handle(message, ends_at, alone=alone)

    def handle_dead(self, message: Message, ends_at: datetime) -> Report:
        """The same for a message of a dead-letter queue. Checks for missed runs, resumptions and
        ends of windows, which call nobody, are made here."""
        match message.key.kind:
            case RunKind.WATCH:
                return self._missed_run_check.check(message)
            case RunKind.RESUME:
                return self._resuming.resume(message)
            case RunKind.OPERATION:
                return self._operations.step_dead(message)
            case RunKind.WINDOW:
                return self._window_end.end(message, ends_at)
            case _:
                return self._runs.handle_dead(message, ends_at)


def _or_wait(
    handle: Callable[[], Report], wait: Callable[[StoreUnavailableError], Report]
) -> Report:
    """The report of handling a message, which waits where the store has failed it."""
    try:
        return handle()
    except StoreUnavailableError as error:
        return wait(error)
    except PartlyHandledError as error:
        if not isinstance(error.__cause__, StoreUnavailableError):
            raise
        try:
            waits = wait(error.__cause__)
        except QueueUnavailableError:  # it stays with the queue, and the rest is told
            raise error from error.__cause__
        return replace(error.report, members=(*error.report.whole, waits))
