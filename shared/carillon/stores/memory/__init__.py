"""The ports on plain dicts behind a lock: for simulation and tests, with the same contract."""

from carillon.stores.memory.messaging import MemoryEvents, MemoryQueue, NoEvents, Received
from carillon.stores.memory.rows import (
    MemoryCalendarStore,
    MemoryGateStore,
    MemoryJobStore,
    MemoryOperationStore,
)
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
