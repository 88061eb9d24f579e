"""The ports on plain dicts behind a lock: for simulation and tests, with the same contract."""

from carillon.stores.memory.calendars import MemoryCalendarStore
from carillon.stores.memory.events import MemoryEvents, NoEvents
from carillon.stores.memory.gates import MemoryGateStore
from carillon.stores.memory.jobs import MemoryJobStore
from carillon.stores.memory.messaging import MemoryQueue, Received
from carillon.stores.memory.operations import MemoryOperationStore
from carillon.stores.memory.runs import MemoryRunStore
from carillon.stores.memory.wheel import MemoryWheelStore

__all__ = [
    "MemoryCalendarStore",
    "MemoryEvents",
    "MemoryGateStore",
    "MemoryJobStore",
    "MemoryOperationStore",
    "MemoryQueue",
    "MemoryRunStore",
    "MemoryWheelStore",
    "NoEvents",
    "Received",
]
