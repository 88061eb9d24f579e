"""The missed-run watch: looks whether an occurrence has succeeded in time."""

from functions.executor.ports import ExecutorPorts
from functions.executor.protocol import Handled, Report
from shared.domain.message import Message


class Watch:
    """Handles messages of kind WATCH."""

    def __init__(self, ports: ExecutorPorts) -> None:
        self._p = ports

    def look(self, message: Message) -> Report:
        return Report(Handled.DROPPED, message, reason="not built yet")
