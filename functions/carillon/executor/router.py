"""What an executor does with a message, by its kind."""

from datetime import datetime

from carillon.domain.message import Message
from carillon.domain.run import RunKind
from carillon.errors import StoreUnavailableError
from carillon.executor.operations.steps import OperationWorker
from carillon.executor.ports import ExecutorPorts
from carillon.executor.reports import Report
from carillon.executor.runs.missed_check import Watch
from carillon.executor.runs.protocol import RunProtocol
from carillon.executor.runs.waiting import Waiting


class Executor:
    """Handles one message at a time; several threads may share it.

    Every method may raise StoreUnavailableError and QueueUnavailableError.
    """

    def __init__(self, ports: ExecutorPorts) -> None:
        self._runs = RunProtocol(ports)
        self._watch = Watch(ports)
        self._operations = OperationWorker(ports)
        self._waiting = Waiting(ports)

    def handle(self, message: Message, ends_at: datetime, *, alone: bool = True) -> Report:
        """Handle a message of a lane; the process may be stopped at `ends_at`.

        Raises RunAloneError where it is not `alone`, and an executor died on what it orders.
        """
        match message.key.kind:
            case RunKind.WATCH:
                return self._watch.look(message)
            case RunKind.OPERATION:
                return self._operations.step(message, ends_at, alone=alone)
            case _:
                return self._runs.handle(message, ends_at, alone=alone)

    def handle_dead(self, message: Message, ends_at: datetime) -> Report:
        """Handle a message of a dead-letter queue: settled, or sent back to its lane. A look of the
        watch, which calls nobody, is done here."""
        match message.key.kind:
            case RunKind.WATCH:
                return self._watch.look(message)
            case RunKind.OPERATION:
                return self._operations.step_dead(message)
            case _:
                return self._runs.handle_dead(message, ends_at)

    def wait_for_store(self, message: Message, error: StoreUnavailableError) -> Report:
        """What to do with a message whose handling has ended in this error."""
        return self._waiting.wait(message, error)
