"""The seams between the code and its ports in a simulation: every call passes the loop."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, TypeVar, cast

from carillon.clock import SeededEntropy
from carillon.domain.activity.results import Result
from carillon.domain.changes.of_jobs import job_change
from carillon.domain.chunks.message import Order
from carillon.domain.job import Job
from carillon.domain.message import Message
from carillon.domain.wheel.delaying import check_delays, whole_delay
from carillon.errors import QueueUnavailableError
from carillon.services.activity import ActivityWriter
from carillon.simulation.faults import Draws, Fault
from carillon.simulation.loop import Loop, Process
from carillon.stores.memory.activity import MemoryActivityStore
from carillon.stores.memory.changes import MemoryChangeStore
from carillon.stores.memory.chunks import MemoryChunkStore
from carillon.stores.memory.messaging import MemoryEvents, MemoryQueue
from carillon.stores.memory.rows import (
    MemoryJobStore,
    MemoryVersionedRows,
)
from carillon.stores.memory.runs import MemoryRunStore
from carillon.stores.memory.wheel import MemoryWheelStore
from carillon.stores.ports import (
    ADMISSION_ROWS,
    CALENDARS,
    IDEMPOTENCY_RECORDS,
    NOTIFICATIONS,
    OPERATIONS,
    QUOTAS,
    USES,
    WINDOWS,
    Stores,
)
from carillon.stores.recording import ChangeEvents, GenerationRecords, RecordedJobs

_P = TypeVar("_P")

EVENTUAL = {
    "jobs": frozenset({"list", "summaries", "tally"}),
    "calendars": frozenset({"list"}),
    "runs": frozenset({"list", "dead_letters", "count"}),
    "chunks": frozenset({"get_all", "get_plans", "get_records"}),
    "operations": frozenset({"list"}),
    "notifications": frozenset({"list"}),
}
"""By port, the reads that its docstrings allow to be behind: all others are consistent."""

_WRITES = frozenset(
    (
        *("create", "replace", "relink", "put", "delete", "claim", "finish", "discard_claim"),
        *(
            "put_entries",
            "remove_entries",
            "put_control",
            "put_result",
            "put_plan",
            "put_record",
        ),
    )
)
_LONGEST_LAG_US = 20_000_000


def seam(port: _P, name: str, loop: Loop) -> _P:
    """The port, with every call of a method led through the loop."""
    return cast(_P, _Seam(port, name, loop))


class _Seam:
    def __init__(self, port: object, name: str, loop: Loop) -> None:
        self._port = port
        self._name = name
        self._loop = loop

    def __getattr__(self, method: str) -> Any:
        effect = getattr(self._port, method)
        name, call = self._name, self._loop.call

        def through(*args: Any, **kwargs: Any) -> Any:
            return call(name, method, effect, args, kwargs)

        setattr(self, method, through)
        return through


class Replicated:
    """A store, with a replica that is behind, from which reads that are `stale` may be answered.

    `stale` are names of methods. The replica gets the same writes in the same order, later.
    """

    def __init__(self, store: Any, replica: Any, loop: Loop, stale: frozenset[str]) -> None:
        self._store = store
        self._replica = replica
        self._loop = loop
        self._stale = stale
        self._writes: list[tuple[int, str, tuple[Any, ...], dict[str, Any]]] = []
        self._applied = 0

    def __getattr__(self, method: str) -> Any:
        effect = getattr(self._store, method)
        if method in _WRITES:

            def write(*args: Any, **kwargs: Any) -> Any:
                self._writes.append((self._loop.us, method, args, kwargs))
                return effect(*args, **kwargs)

            return write
        if method in self._stale:

            def read(*args: Any, **kwargs: Any) -> Any:
                if kwargs.get("consistent"):
                    return effect(*args, **kwargs)
                return self._reader(method)(*args, **kwargs)

            return read
        return effect

    def _reader(self, method: str) -> Any:
        loop, task = self._loop, self._loop.current
        if task is None:
            return getattr(self._store, method)
        draws = Draws(loop.chaos.seed, f"{task.name} stale", task.steps)
        if not loop.chaos.strikes(Fault.STALE, f"{task.name}/{task.steps}", loop.us, draws):
            return getattr(self._store, method)
        self._catch_up(loop.us - int(draws.fraction() * _LONGEST_LAG_US))
        return getattr(self._replica, method)

    def _catch_up(self, until_us: int) -> None:
        while self._applied < len(self._writes) and self._writes[self._applied][0] <= until_us:
            _, method, args, kwargs = self._writes[self._applied]
            getattr(self._replica, method)(*args, **kwargs)
            self._applied += 1


class LoopClock:
    """The clock of whichever process asks."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop

    def now(self) -> datetime:
        task = self._loop.current
        skew_us = 0 if task is None else task.process.skew_us
        return self._loop.instant(self._loop.us + skew_us)

    def sleep(self, seconds: float) -> None:
        self._loop.sleep(seconds)


class LoopTimers:
    """Work to be done meanwhile is a task of the caller's process, and dies with that."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop

    def after(self, seconds: float, act: Callable[[], None]) -> Callable[[], None]:
        loop, caller = self._loop, self._loop.current
        assert caller is not None, "only a task can wait for a timer"
        is_off = False

        def run() -> None:
            if not is_off:
                act()

        at_us = loop.us + int(seconds * 1_000_000)
        task = loop.spawn(caller.process, f"{caller.name} meanwhile", run, at_us)

        def call_off() -> None:
            nonlocal is_off
            is_off = True
            if task:  # it has begun, and has not ended
                loop.wait_for(task)

        return call_off

    def every(self, seconds: float, act: Callable[[], None]) -> Callable[[], None]:
        loop, caller = self._loop, self._loop.current
        assert caller is not None, "only a task can wait for a timer"
        is_off, count = False, 0

        def due() -> None:
            nonlocal count
            count += 1
            if not is_off:
                loop.spawn(caller.process, f"{caller.name} every {count}", run)

        def run() -> None:
            act()
            if not is_off:
                loop.after(seconds, due)

        def call_off() -> None:
            nonlocal is_off
            is_off = True

        loop.after(seconds, due)
        return call_off


class LoopEntropy:
    """Ids and chance of whichever process asks: no other one's actions change them.

    Where nothing interleaves all processes share one source, since to make one takes long.
    """

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._outside = Process("outside")

    def new_id(self, now: datetime) -> str:
        return self._own().new_id(now)

    def fraction(self) -> float:
        return self._own().fraction()

    def secret(self) -> str:
        return self._own().secret()

    def _own(self) -> SeededEntropy:
        task = self._loop.current
        is_shared = not self._loop.interleaves
        process = self._outside if task is None or is_shared else task.process
        if process.entropy is None:
            process.entropy = SeededEntropy(Draws(self._loop.chaos.seed, process.name).bits())
        return process.entropy


class BatchActivity:
    """ActivitySink that gathers the results of each process until that has handled its batch;
    `lost` are those that the store did not take. Where nothing interleaves nobody reads the feed,
    and nothing is gathered."""

    def __init__(self, loop: Loop, writer: ActivityWriter) -> None:
        self._loop = loop
        self._writer = writer
        self._held: defaultdict[Process, list[Result]] = defaultdict(list)
        self.lost: list[Result] = []

    def add(self, results: Iterable[Result]) -> None:
        task = self._loop.current
        if task is not None and self._loop.interleaves:
            self._held[task.process] += results

    def flush(self) -> None:
        """Write what the process that asks has gathered."""
        task = self._loop.current
        if task is not None and task.process in self._held:
            self.lost += self._writer.write(self._held.pop(task.process))


_LATEST_SECONDS = 600.0
"""SQS promises no bound; this one is beyond every lease and most visibility timeouts."""

_FAULTS = (Fault.PART_SENT, Fault.LATE, Fault.DUPLICATED)


def name_of(order: Order) -> str:
    """A name that does not depend on what other messages there are."""
    if isinstance(order, Message):
        return f"{order.key.run_id}/{order.attempt}"
    return f"chunk {order.key.name}"


class SimulatedQueue:
    """LaneQueue in front of a MemoryQueue."""

    def __init__(self, queue: MemoryQueue, loop: Loop) -> None:
        self._queue = queue
        self._loop = loop
        self._sent: Counter[str] = Counter()
        self._has_faults = any(map(loop.chaos.faults.of, _FAULTS))

    def send(
        self,
        messages: Sequence[Order],
        seconds: Sequence[float],
        until: datetime | None = None,
    ) -> None:
        check_delays(messages, seconds)
        delays = [whole_delay(each) for each in seconds]
        now = self._loop.instant()
        if not self._has_faults:
            for message, delay in zip(messages, delays, strict=True):
                self._queue.put(message, now + timedelta(seconds=delay))
            return
        for number, (message, delay) in enumerate(zip(messages, delays, strict=True)):
            name = name_of(message)
            self._sent[name] += 1
            draws = Draws(self._loop.chaos.seed, f"send {name}", self._sent[name])
            where = f"send {name} {self._sent[name]}"
            if self._strikes(Fault.PART_SENT, where, draws):
                raise QueueUnavailableError(len(messages) - number, "not acknowledged")
            visible_at = now + timedelta(seconds=delay)
            if self._strikes(Fault.LATE, where, draws):
                visible_at += timedelta(seconds=draws.between(1, _LATEST_SECONDS))
            self._queue.put(message, visible_at)
            if self._strikes(Fault.DUPLICATED, where, draws):
                later = draws.choice((0.0, 1.0, 30.0, _LATEST_SECONDS)) * draws.fraction()
                self._queue.put(message, visible_at + timedelta(seconds=later))

    def _strikes(self, fault: Fault, where: str, draws: Draws) -> bool:
        if not self._loop.chaos.strikes(fault, where, self._loop.us, draws):
            return False
        self._loop.tell(f"FAULT {fault.value} {where}")
        return True


class _JobRows(MemoryJobStore):
    """Each row has the change that made it, as `RecordedJobs` puts it, in worlds without records
    too: a job that was changed in its pause is told by that."""

    def _put(self, row: Job, over: Job | None) -> None:
        if over is None or over.revision != row.revision:
            row = replace(row, last_change=job_change(over, row))
        super()._put(row, over)


class MemoryRows:
    """The stores whose rows a deployment has, in memory, by the names of the ports."""

    def __init__(self, page_size: int) -> None:
        self.jobs = _JobRows()
        self.calendars = MemoryVersionedRows(CALENDARS)
        self.wheel = MemoryWheelStore(page_size)
        self.runs = MemoryRunStore()
        self.chunks = MemoryChunkStore()
        self.activity = MemoryActivityStore()
        self.changes = MemoryChangeStore()
        self.admission_rows = MemoryVersionedRows(ADMISSION_ROWS)
        self.operations = MemoryVersionedRows(OPERATIONS)
        self.idempotency_records = MemoryVersionedRows(IDEMPOTENCY_RECORDS)
        self.notifications = MemoryVersionedRows(NOTIFICATIONS)
        self.windows = MemoryVersionedRows(WINDOWS)
        self.quotas = MemoryVersionedRows(QUOTAS)
        self.uses = MemoryVersionedRows(USES)


class SimulatedStores(MemoryRows):
    """Members named after the ports hold the truth; `ports` lead every call through the loop.

    With `records_for` jobs are written as deployments do it, with changes and records that live for
    so long. Reads that the ports allow to be behind are answered from a replica where the fault
    `stale` strikes; `eventual` names them, by port.
    """

    eventual = EVENTUAL

    def __init__(
        self, loop: Loop, lanes: MemoryQueue, page_size: int, records_for: timedelta | None
    ) -> None:
        super().__init__(page_size)
        self._loop = loop
        self.events = MemoryEvents()
        replica = vars(MemoryRows(page_size))
        rows: dict[str, Any] = {
            name: self._port(getattr(self, name), behind, name) for name, behind in replica.items()
        }
        if records_for is not None:
            records = GenerationRecords(rows["chunks"], records_for)
            told = ChangeEvents(seam(self.events, "events", loop))
            rows["jobs"] = RecordedJobs(rows["jobs"], rows["changes"], told, records)
        self.ports = Stores(
            **rows,
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
