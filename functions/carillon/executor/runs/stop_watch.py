"""The watch of a run's row while its target is called: the call ends when the run is another's."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event

from carillon.domain.execution.stopping import LOOK_SECONDS
from carillon.domain.run import Run
from carillon.errors import StoreUnavailableError
from carillon.executor.ports import ExecutorPorts


class StopWatch:
    """A call that is shorter than LOOK_SECONDS costs no read here."""

    def __init__(self, ports: ExecutorPorts) -> None:
        self._ports = ports

    def is_lost(self, run: Run) -> bool:
        """True if the run was cancelled, or taken over, since it was claimed: nothing that is
        written under the claim counts any more. False where the store fails."""
        with suppress(StoreUnavailableError):
            seen = self._ports.runs.get(run.key)
            return seen is None or not seen.is_held_by(run)
        return False

    @contextmanager
    def around_call(self, run: Run) -> Iterator[Event]:
        """The event that is set once the run is lost, until when its row is read regularly."""
        stopped = Event()

        def look() -> None:
            if not stopped.is_set() and self.is_lost(run):
                stopped.set()

        call_off = self._ports.timers.every(LOOK_SECONDS, look)
        try:
            yield stopped
        finally:
            call_off()
