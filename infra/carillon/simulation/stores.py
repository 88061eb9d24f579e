"""The stores of a simulated deployment: what they hold in truth, and the ports that code gets."""

from typing import Any, TypeVar, cast

from carillon.simulation.loop import Loop
from carillon.simulation.queue import SimulatedQueue
from carillon.simulation.seams import EVENTUAL, Replicated, seam
from carillon.stores.memory.messaging import MemoryEvents, MemoryQueue
from carillon.stores.memory.rows import (
    MemoryCalendarStore,
    MemoryGateStore,
    MemoryJobStore,
    MemoryOperationStore,
)
from carillon.stores.memory.runs import MemoryRunStore
from carillon.stores.memory.wheel import MemoryWheelStore
from carillon.stores.ports import Stores

_P = TypeVar("_P")


class SimulatedStores:
    """Members named after the ports hold the truth; `ports` lead every call through the loop.

    Reads that the ports allow to be behind are answered from a replica where the fault `stale`
    strikes; `eventual` names them, by port.
    """

    eventual = EVENTUAL

    def __init__(self, loop: Loop, lanes: MemoryQueue, page_size: int = 7) -> None:
        self._loop = loop
        self.jobs = MemoryJobStore()
        self.calendars = MemoryCalendarStore()
        self.wheel = MemoryWheelStore(page_size)
        self.runs = MemoryRunStore()
        self.gates = MemoryGateStore()
        self.operations = MemoryOperationStore()
        self.events = MemoryEvents()
        self.ports = Stores(
            jobs=self._port(self.jobs, MemoryJobStore(), "jobs"),
            calendars=self._port(self.calendars, MemoryCalendarStore(), "calendars"),
            wheel=self._port(self.wheel, MemoryWheelStore(page_size), "wheel"),
            runs=self._port(self.runs, MemoryRunStore(), "runs"),
            gates=self._port(self.gates, MemoryGateStore(), "gates"),
            operations=self._port(self.operations, MemoryOperationStore(), "operations"),
            queue=seam(SimulatedQueue(lanes, loop), "queue", loop),
            events=seam(self.events, "events", loop),
            skew_seconds=lambda: None,
        )

    def _port(self, truth: _P, replica: Any, name: str) -> _P:
        if not self._loop.chaos.faults.stale:
            return seam(truth, name, self._loop)
        stale = self.eventual.get(name, frozenset())
        behind = cast(_P, Replicated(truth, replica, self._loop, stale))
        return seam(behind, name, self._loop)
