"""The message of a chunk, and the bodies of queue messages."""

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from carillon.clock import id_created_at
from carillon.domain import message as single
from carillon.domain.message import Message
from carillon.domain.policies import Lane
from carillon.domain.run import RunKey, RunKind
from carillon.domain.wheel.entry import LAST_MINUTE, minute_start, slots_of_minute
from carillon.errors import MalformedMessageError, reason_of
from carillon.schedules import SlotKind

VERSION = 2
CHUNK_BEGINS = f'{{"v":{VERSION},'
"""How the body of a chunk's message begins."""


@dataclass(frozen=True, slots=True, order=True)
class ChunkKey:
    """The identity of a chunk: bucket `bucket` of what is due in a lane of a segment in one second
    of an epoch minute."""

    segment: int
    minute: int
    second: int
    lane: Lane
    bucket: int

    @property
    def name(self) -> str:
        """Its text in keys and logs: 3#29730240#0#normal#17."""
        return f"{self.segment}#{self.minute}#{self.second}#{self.lane.value}#{self.bucket}"

    @property
    def due_at(self) -> datetime:
        """The effective time of its occurrences."""
        return minute_start(self.minute) + timedelta(seconds=self.second)


@dataclass(frozen=True, slots=True)
class Member:
    """An occurrence in a chunk. `kind` is that of the slot in which its entry stands."""

    owner: str
    job_id: str
    generation_id: str
    kind: SlotKind
    spread_seconds: int = 0


@dataclass(frozen=True, slots=True)
class ChunkMessage:
    """The order to handle the occurrences of a chunk together, each as a first attempt.

    `store_waits` counts its waits for a store; since `unreadable_since`, in whole seconds, a row
    cannot be read.
    """

    key: ChunkKey
    members: tuple[Member, ...]
    store_waits: int = 0
    unreadable_since: datetime | None = None

    @property
    def lane(self) -> Lane:
        return self.key.lane

    @property
    def owners(self) -> tuple[str, ...]:
        """The owner of each of its occurrences."""
        return tuple(member.owner for member in self.members)

    @property
    def starts_at(self) -> datetime:
        """The instant before which it must not be handled."""
        return self.key.due_at

    def delay_seconds(self, now: datetime) -> float:
        """As of a message for one run."""
        return single.delay_until(self.starts_at, now)

    def alone(self, member: Member) -> Message:
        """The message for one of its occurrences."""
        due_at = self.key.due_at
        fire_at = due_at - timedelta(seconds=member.spread_seconds)
        slots = {slot.kind: slot for slot in slots_of_minute(self.key.minute)}
        return Message(
            key=RunKey(member.owner, member.job_id, RunKind.SCHEDULED, fire_at),
            generation_id=member.generation_id,
            segment=self.key.segment,
            lane=self.key.lane,
            due_at=due_at,
            slot_key=slots[member.kind].key,
        )


Order = Message | ChunkMessage
"""Whatever lanes carry."""

_LETTERS = {SlotKind.HOURLY: "h", SlotKind.DAILY: "d"}
_KINDS = {letter: kind for kind, letter in _LETTERS.items()}


def encode(order: Order) -> str:
    """The queue body of a message."""
    if isinstance(order, Message):
        return single.encode(order)
    key = order.key
    owners = list(dict.fromkeys(order.owners))
    places = {owner: place for place, owner in enumerate(owners)}
    body: dict[str, Any] = {
        "v": VERSION,
        "chunk": [key.segment, key.minute, key.second, key.lane.value, key.bucket],
        "owners": owners,
        "runs": [
            [each.job_id, each.generation_id, places[each.owner], _LETTERS[each.kind]]
            + ([each.spread_seconds] if each.spread_seconds else [])
            for each in order.members
        ],
    }
    if order.store_waits:
        body["store_waits"] = order.store_waits
    if order.unreadable_since is not None:
        body["unreadable_since"] = int(order.unreadable_since.timestamp())
    return json.dumps(body, separators=(",", ":"))


def decode(body: str) -> Order:
    """Read a queue body; raises MalformedMessageError."""
    if not body.startswith(CHUNK_BEGINS):
        return single.decode(body)
    try:
        return _chunk_message(json.loads(body))
    except Exception as error:  # whatever a body makes of the parsers, nobody can read it
        raise MalformedMessageError(reason_of(error)) from error


def _chunk_message(form: dict[str, Any]) -> ChunkMessage:
    segment, minute, second, lane, bucket = form["chunk"]
    key = ChunkKey(int(segment), int(minute), int(second), Lane(lane), int(bucket))
    if not (key.minute <= LAST_MINUTE and 0 <= key.second < 60):
        raise ValueError(f"{key.name} lies outside of the time that jobs live in")
    members = tuple(_member(form["owners"], *each) for each in form["runs"])
    if not members:
        raise ValueError("a chunk of no runs")
    if not all(0 <= each.spread_seconds <= key.minute * 60 for each in members):
        raise ValueError("a run lies outside of the time that jobs live in")
    since = form.get("unreadable_since")
    return ChunkMessage(
        key,
        members,
        int(form.get("store_waits", 0)),
        None if since is None else single.instant_of(since),
    )


def _member(
    owners: list[str], job_id: str, generation_id: str, place: int, letter: str, spread: int = 0
) -> Member:
    id_created_at(generation_id)
    if place < 0:
        raise ValueError(f"{place} is no owner's place")
    for text in (owners[place], job_id):
        text.encode()  # a lone surrogate can be sent, but in no row
    return Member(owners[place], job_id, generation_id, _KINDS[letter], int(spread))
