"""The occurrences of one minute that may go in chunks, gathered until the minute is planned."""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import timedelta

from carillon.domain.chunks.chunk import ref_of_member
from carillon.domain.chunks.message import ChunkKey, ChunkMessage, Member, Order
from carillon.domain.chunks.placing import Group, Plan, chunks_of
from carillon.domain.message import Message
from carillon.domain.wheel.entry import Entry, minute_of, minute_start
from carillon.domain.wheel.segment import Control
from carillon.errors import UnreadableRowError
from carillon.schedules import SlotKind
from carillon.tick.outbox import PART
from carillon.tick.ports import TickPorts

_BEYOND_RUNS = timedelta(days=1)
"""Plans outlive their chunks by that, since only they lead to them. So they outlive every tick that
may dispatch the minute again."""

MOST_MEMBERS = 64
"""Of one message: ten of them fit into a request. A plan may be older than the entries that a
reindex has put since, so that all of these share its few chunks."""


def may_be_chunked(entry: Entry, message: Message, control: Control) -> bool:
    """True if the plan of its minute is to stand before the occurrence is sent, by which it may go
    in a chunk.

    Of a backlog only minutes that were announced are planned: what nobody has sent yet is decided
    by each job's catch-up. A second message always goes alone, since other entries of its
    generation may stand for the same occurrence; but whoever looks for a chunk needs the plan.
    """
    minute = minute_of(message.due_at)
    if not entry.chunked_from or entry.slot.kind is SlotKind.DATED:
        return False
    if minute < entry.chunked_from and not message.is_second:
        return False
    late_in = next((each for each in control.backlog if minute <= each.until), None)
    return late_in is None or minute <= late_in.announced


class Planned:
    """The plans of a segment's minutes, as they stand while its backlog is counted."""

    def __init__(self, ports: TickPorts, segment: int) -> None:
        self._ports = ports
        self._segment = segment
        self._known: tuple[int, Plan | None] = (-1, None)

    def alone(self, entry: Entry, late: Iterable[Message], control: Control) -> list[Message]:
        """Those of an entry that go in no chunk: they wait for a start. Raises
        StoreUnavailableError."""
        return [
            each
            for each in late
            if not (may_be_chunked(entry, each, control) and self._has_chunk(each))
        ]

    def _has_chunk(self, message: Message) -> bool:
        """Where no plan stands yet it will have none, see `Gathered.taken`."""
        minute = minute_of(message.due_at)
        if minute != self._known[0]:
            self._known = minute, self._plan(minute)
        plan = self._known[1]
        return plan is not None and _bucket_of(message, plan) is not None

    def _plan(self, minute: int) -> Plan | None:
        try:
            return self._ports.chunks.get_plan(self._segment, minute)
        except UnreadableRowError:
            return None


class Gathered:
    """The occurrences of a segment's minute that its plan decides about.

    They are gathered until all are known, since a new plan follows from their number. Where it does
    not, they go on a part at a time, so that the visit's progress is recorded meanwhile.
    """

    def __init__(
        self, ports: TickPorts, segment: int, minute: int, salt: str, *, is_late: bool
    ) -> None:
        self._ports = ports
        self._segment = segment
        self._minute = minute
        self._salt = salt
        self._is_late = is_late
        self._plan: Plan | None = None
        self._messages: list[tuple[Message, SlotKind]] = []

    def __len__(self) -> int:
        return len(self._messages)

    @property
    def is_ready(self) -> bool:
        """True if they can go on, and need not wait for others: each at once where none goes in a
        chunk."""
        if self._plan is None or not self._messages:
            return False
        return not self._plan.chunks or len(self._messages) >= PART

    def add(self, entry: Entry, message: Message) -> None:
        """Raises what `taken` raises."""
        if self._plan is None and not self._messages:
            self._plan = self._known_plan()
        self._messages.append((message, entry.slot.kind))

    def taken(self) -> list[Order]:
        """The messages to send, by the minute's plan: the one that stands, or a new one; nothing is
        gathered then.

        A new plan has chunks only where they are on, and none for a backlog, which may have been
        sent alone before its control item was mended. A backlog whose plan cannot be read goes
        alone, too: each message waits for the plan, which alone says what has run, and is a dead
        letter after a day. Raises StoreUnavailableError, and UnreadableRowError
        in time.
        """
        if not self._messages:
            return []
        planned = (each for each, _ in self._messages if not each.is_second)
        sizes = Counter(map(_group_of, planned))
        plan = self._plan or self._standing(chunks_of(sizes))
        orders = list[Order]()
        members: dict[ChunkKey, dict[bytes, Member]] = {}
        for message, kind in self._messages:
            key = self._key_of(message, plan)
            if key is None:
                orders.append(message)
                continue
            # A generation may have entries of two kinds of slots, after a change of its zone.
            member = _member_of(message, kind)
            members.setdefault(key, {}).setdefault(ref_of_member(member), member)
        for key, by_ref in members.items():
            listed = tuple(by_ref.values())
            for start in range(0, len(listed), MOST_MEMBERS):
                orders.append(ChunkMessage(key, listed[start : start + MOST_MEMBERS]))
        self._messages.clear()
        return orders

    def _known_plan(self) -> Plan | None:
        """The plan that does not depend on what is gathered: one without chunks, or that of a visit
        before, which has not sent all of the minute."""
        if self._is_late or not self._ports.chunked:
            return self._standing({})
        is_begun = self._minute <= minute_of(self._ports.clock.now())
        return self._ports.chunks.get_plan(self._segment, self._minute) if is_begun else None

    def _standing(self, wanted: Mapping[Group, int]) -> Plan:
        """The minute's plan: one that stands, or this one, which stands from now on."""
        expires_at = minute_start(self._minute + 1) + self._ports.run_lifetime + _BEYOND_RUNS
        plan = Plan(self._segment, self._minute, self._salt, expires_at, wanted)
        if self._ports.chunks.put_plan(plan):
            return plan
        try:
            return self._ports.chunks.get_plan(self._segment, self._minute) or plan
        except UnreadableRowError:
            if not self._is_late:  # which goes alone
                raise
            return plan

    def _key_of(self, message: Message, plan: Plan) -> ChunkKey | None:
        group, bucket = _group_of(message), _bucket_of(message, plan)
        return None if bucket is None else ChunkKey(self._segment, self._minute, *group, bucket)


def _group_of(message: Message) -> Group:
    return message.due_at.second, message.lane


def _bucket_of(message: Message, plan: Plan) -> int | None:
    return None if message.is_second else plan.bucket_of(_group_of(message), message.key.job_id)


def _member_of(message: Message, kind: SlotKind) -> Member:
    key = message.key
    spread_seconds = int((message.due_at - key.fire_at).total_seconds())
    return Member(key.owner, key.job_id, message.generation_id, kind, spread_seconds)
