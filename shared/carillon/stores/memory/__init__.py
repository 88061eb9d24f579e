"""The ports on plain dicts behind a lock: for simulation and tests, with the same contract."""

from carillon.stores.memory.activity import MemoryActivityStore
from carillon.stores.memory.changes import MemoryChangeStore
from carillon.stores.memory.messaging import MemoryEvents, MemoryQueue, NoEvents, Received
from carillon.stores.memory.rows import MemoryJobStore, MemoryVersionedRows
from carillon.stores.memory.runs import MemoryRunStore
from carillon.stores.memory.wheel import MemoryWheelStore

__all__ = [
    "MemoryActivityStore",
    "MemoryChangeStore",
    "MemoryEvents",
    "MemoryJobStore",
    "MemoryQueue",
    "MemoryRunStore",
    "MemoryVersionedRows",
    "MemoryWheelStore",
    "NoEvents",
    "Received",
]
