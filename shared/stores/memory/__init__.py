"""The ports on plain dicts behind a lock: for simulation and tests, with the same contract."""

from shared.stores.memory.calendars import MemoryCalendarStore
from shared.stores.memory.events import MemoryEvents, NoEvents
from shared.stores.memory.gates import MemoryGateStore
from shared.stores.memory.jobs import MemoryJobStore
from shared.stores.memory.operations import MemoryOperationStore
from shared.stores.memory.queue import MemoryQueue, Received
from shared.stores.memory.runs import MemoryRunStore
from shared.stores.memory.wheel import MemoryWheelStore

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
