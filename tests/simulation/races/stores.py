"""What the ports hold, as values: an exploration compares them, and goes back to them."""

from ast import literal_eval
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from carillon.domain.chunks.chunk import Chunk
from carillon.domain.chunks.message import ChunkKey, ChunkMessage, Order, decode, encode
from carillon.domain.notifying.notification import Deliverable
from carillon.domain.wheel.delaying import check_delays, whole_delay
from carillon.executor.targets import Call, Outcome
from carillon.simulation.deployment import Deployment
from carillon.stores.dynamo.chunks import chunk_item_of, chunk_of, plan_item_of, plan_of
from carillon.stores.memory.chunks import MemoryChunkStore
from carillon.stores.memory.messaging import MemoryEvents
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
)

PORTS = (
    *("jobs", "calendars", "wheel", "runs", "admission_rows", "operations", "idempotency_records"),
    *("notifications", "windows", "quotas", "uses", "chunks"),
    *("events", "queue", "targets"),
)
FUNCTION_SECONDS = 20
VISIBILITY = timedelta(seconds=6 * FUNCTION_SECONDS)

Content = tuple[Any, ...]
"""All that one port holds, in an order that does not depend on who put it first."""
Contents = dict[str, Content]
Behave = Callable[[Call], Outcome]


@dataclass(frozen=True, slots=True, order=True)
class Kept:
    """A message in the lanes, as often received as it says."""

    visible_at: datetime
    body: str
    receive_count: int = 0

    @property
    def message(self) -> Order:
        return decode(self.body)

    @property
    def name(self) -> str:
        """The run's id, or the chunk's name."""
        order = self.message
        return order.key.name if isinstance(order, ChunkMessage) else order.key.run_id


@dataclass(frozen=True, slots=True, order=True)
class Delivered:
    """A call of a target, by one actor. `is_early`: it came before its occurrence."""

    run_id: str
    attempt: int
    actor: str
    at: datetime
    is_early: bool


class Lanes:
    """LaneQueue and its consumer's side, without receipts: their numbers tell who came first."""

    def __init__(self, content: Content, now: datetime) -> None:
        self.kept: list[Kept] = list(content)
        self._now = now

    def send(
        self,
        messages: Sequence[Order],
        delays: Sequence[float],
        until: datetime | None = None,
    ) -> None:
        check_delays(messages, delays)
        for message, delay in zip(messages, delays, strict=True):
            visible_at = self._now + timedelta(seconds=whole_delay(delay))
            self.kept.append(Kept(visible_at, encode(message)))

    def receive(self, beginning: str) -> Kept | None:
        """The message longest visible of a run whose id begins so, hidden from now on."""
        for kept in sorted(self.kept):
            is_wanted = kept.name.startswith(beginning)
            if kept.visible_at <= self._now and is_wanted:
                self.kept.remove(kept)
                taken = Kept(self._now + VISIBILITY, kept.body, kept.receive_count + 1)
                self.kept.append(taken)
                return taken
        return None

    def delete(self, taken: Kept) -> None:
        if taken in self.kept:
            self.kept.remove(taken)


class LoggedTargets:
    """Targets that answer as the race says, and note who called them."""

    def __init__(self, content: Content, now: datetime, actor: str, behave: Behave) -> None:
        self.calls: list[Delivered] = list(content)
        self._now, self._actor, self._behave = now, actor, behave

    def deliver(self, target: Deliverable, call: Call) -> Outcome:
        is_early = self._now < (call.effective_at or call.fire_at)
        self.calls.append(Delivered(call.run_id, call.attempt, self._actor, self._now, is_early))
        return self._behave(call)


def effect(
    port: str,
    content: Content,
    now: datetime,
    actor: str,
    behave: Behave,
    call: Callable[[Any], Any],
) -> tuple[Any, Content]:
    """What `call` answers of a store that holds `content`, and what that holds afterwards."""
    if port == "queue":
        lanes = Lanes(content, now)
        return call(lanes), tuple(sorted(lanes.kept))
    if port == "targets":
        targets = LoggedTargets(content, now, actor, behave)
        return call(targets), tuple(sorted(targets.calls))
    store = _EMPTY[port]()
    fill(port, store, content)
    return call(store), held(port, store)


_EMPTY: dict[str, Callable[[], Any]] = {
    "jobs": MemoryJobStore,
    "calendars": lambda: MemoryVersionedRows(CALENDARS),
    "wheel": lambda: MemoryWheelStore(page_size=7),
    "runs": MemoryRunStore,
    "admission_rows": lambda: MemoryVersionedRows(ADMISSION_ROWS),
    "operations": lambda: MemoryVersionedRows(OPERATIONS),
    "idempotency_records": lambda: MemoryVersionedRows(IDEMPOTENCY_RECORDS),
    "notifications": lambda: MemoryVersionedRows(NOTIFICATIONS),
    "windows": lambda: MemoryVersionedRows(WINDOWS),
    "quotas": lambda: MemoryVersionedRows(QUOTAS),
    "uses": lambda: MemoryVersionedRows(USES),
    "events": MemoryEvents,
    "chunks": MemoryChunkStore,
}


def fill(port: str, store: Any, content: Content) -> None:
    """Put into an empty memory store what a port held."""
    if port == "wheel":
        entries, controls = content or ((), ())
        store.put_entries(entries)
        store._controls.update((control.segment, control) for control in controls)
    elif port == "jobs":
        for job in content:
            store.create(job)
    elif port == "runs":
        for run in content:
            # As the store itself puts it: a planted bug in its conditions must not change this.
            store._put(run, None, True)
    elif port == "events":
        store.emitted += content
    elif port == "chunks":
        chunks, plans, records = content or ((), (), ())
        store.chunks.update((key, chunk_of(key, literal_eval(item))) for key, item in chunks)
        for (segment, minute), item in plans:
            plan = plan_of(segment, minute, literal_eval(item))
            store._plans[segment, minute] = plan
        for record in records:
            store.put_record(record)
    else:
        store._rows.update(content)


def held(port: str, store: Any) -> Content:
    """All that a memory store holds."""
    if port == "wheel":
        entries = [entry for slot in store._slots.values() for entry in slot.values()]
        entries.sort(key=lambda entry: (entry.segment, entry.slot.key, entry.key))
        return tuple(entries), tuple(store._controls[number] for number in sorted(store._controls))
    if port == "jobs":
        return tuple(store._rows[key] for key in sorted(store._rows))
    if port == "runs":
        rows = store._rows.values()
        return tuple(sorted(rows, key=lambda run: (run.key.job_id, run.key.sort_key)))
    if port == "events":
        return tuple(sorted(store.emitted, key=repr))
    if port == "chunks":
        chunks = [(key, repr(chunk_item_of(store.chunks[key]))) for key in sorted(store.chunks)]
        plans = [(key, repr(plan_item_of(store._plans[key]))) for key in sorted(store._plans)]
        rows = store._records
        records = (rows[key][revision] for key in sorted(rows) for revision in sorted(rows[key]))
        return tuple(chunks), tuple(plans), tuple(records)
    return tuple((key, store._rows[key]) for key in sorted(store._rows))


def chunk_held(content: Content, wanted: ChunkKey) -> Chunk | None:
    """The chunk of this key in what the port of chunks holds."""
    return next((chunk for chunk in chunks_of(content) if chunk.key == wanted), None)


def chunks_of(content: Content) -> Iterator[Chunk]:
    """The chunks in what the port of chunks holds."""
    for key, item in content[0] if content else ():
        yield chunk_of(key, literal_eval(item))


def contents_of(deployment: Deployment) -> Contents:
    """What a deployment's stores and lanes hold."""
    contents = {port: held(port, getattr(deployment.stores, port)) for port in _EMPTY}
    kept = (Kept(one.visible_at, one.body, one.receive_count) for one in deployment.lanes.kept())
    return contents | {"queue": tuple(sorted(kept)), "targets": ()}


def put_into(deployment: Deployment, contents: Contents) -> None:
    """Let a new deployment go on with what others held."""
    for port in _EMPTY:
        fill(port, getattr(deployment.stores, port), contents[port])
    lanes = deployment.lanes
    for kept in contents["queue"]:
        receipt = lanes.put_body(kept.message.lane, kept.body, kept.visible_at)
        received = replace(lanes._kept[receipt], receive_count=kept.receive_count)
        lanes._kept[receipt] = received
