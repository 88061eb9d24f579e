"""The steps of operations: backfill, and redrive or discard in bulk."""

from functions.executor.ports import ExecutorPorts
from functions.executor.protocol import Handled, Report
from shared.domain.message import Message


class OperationWorker:
    """Handles messages of kind OPERATION."""

    def __init__(self, ports: ExecutorPorts) -> None:
        self._p = ports

    def step(self, message: Message) -> Report:
        return Report(Handled.DROPPED, message, reason="not built yet")

    def fail(self, message: Message) -> Report:
        return Report(Handled.DROPPED, message, reason="not built yet")
