"""The ports of one deployment, together: what opening its stores gives."""

from collections.abc import Callable
from dataclasses import dataclass

from carillon.stores.ports import (
    CalendarStore,
    EventSink,
    GateStore,
    JobStore,
    LaneQueue,
    OperationStore,
    RunStore,
    WheelStore,
)


@dataclass(frozen=True, slots=True)
class Stores:
    """The ports of one deployment."""

    jobs: JobStore
    calendars: CalendarStore
    wheel: WheelStore
    runs: RunStore
    queue: LaneQueue
    gates: GateStore
    operations: OperationStore
    events: EventSink
    skew_seconds: Callable[[], float | None]
    """This machine's clock minus the database's, as last seen; None before the first answer."""
