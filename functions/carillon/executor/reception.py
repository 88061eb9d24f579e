"""The reception of one queue record: read it, handle it, and wait where the store failed."""

from collections.abc import Callable
from datetime import datetime

from carillon.domain.execution import store_waits
from carillon.domain.message import Message, decode
from carillon.errors import StoreUnavailableError, UnreadableRowError
from carillon.executor.reports import Report
from carillon.executor.router import Executor


class Reception:
    """What a handler does with a record: returning acknowledges it, raising leaves it to the queue.

    Several threads may share it. `on_store_failure` is told of a message whose handling the store
    has failed, before it is sent on. Both methods raise MalformedMessageError for a body that
    nobody can read, HeldError, StoreUnavailableError and QueueUnavailableError.
    """

    def __init__(
        self,
        executor: Executor,
        on_store_failure: Callable[[Message, StoreUnavailableError], None],
    ) -> None:
        self._executor = executor
        self._on_store_failure = on_store_failure

    def lane(self, body: str, ends_at: datetime, *, alone: bool = True) -> Report:
        """Handle a record of a lane; the process may be stopped at `ends_at`.

        Raises RunAloneError where it is not `alone`, and an executor died on what it orders.
        """
        message = decode(body)
        try:
            return self._executor.handle(store_waits.handled(message), ends_at, alone=alone)
        except StoreUnavailableError as error:
            self._on_store_failure(message, error)
            return self._executor.wait_for_store(message, error)

    def dead(self, body: str, ends_at: datetime) -> Report:
        """Handle a record of a dead-letter queue: settled, or sent back to its lane. What waits for
        a row that cannot be read waits there, too."""
        message = decode(body)
        try:
            return self._executor.handle_dead(store_waits.handled(message), ends_at)
        except UnreadableRowError as error:
            self._on_store_failure(message, error)
            return self._executor.wait_for_store(message, error)
