"""Slots and entries: where a job's occurrences are found when their minute comes."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from shared.domain.calendar import CalendarUse
from shared.domain.job import CatchUp, Job, Lane
from shared.domain.message import Message
from shared.domain.run import RunKey, RunKind
from shared.recurrence import Schedule, SlotKind, slots

TICK_OUTAGE_DAYS = 14
"""Ticks may be down this long and lose nothing: dated entries live so long beyond their minute
(DESIGN 4.5)."""
DATED_ENTRY_LIFETIME = timedelta(days=TICK_OUTAGE_DAYS)
YOUNG_ENTRY = timedelta(hours=1)
"""An entry of an unknown filing this young may belong to a creator that has yet to commit."""

_LETTER = {SlotKind.HOURLY: "h", SlotKind.DAILY: "d", SlotKind.DATED: "m"}
_KIND = {letter: kind for kind, letter in _LETTER.items()}


def minute_of(instant: datetime) -> int:
    """The epoch minute that an instant lies in."""
    return int(instant.timestamp()) // 60


def minute_start(minute: int) -> datetime:
    return datetime.fromtimestamp(minute * 60, UTC)


def minute_end(minute: int) -> datetime:
    """The last whole second of an epoch minute."""
    return datetime.fromtimestamp(minute * 60 + 59, UTC)


@dataclass(frozen=True, slots=True, order=True)
class Slot:
    """A minute bucket: minute of the UTC hour, of the UTC day, or one epoch minute."""

    kind: SlotKind
    number: int

    @property
    def key(self) -> str:
        """Its text in keys and messages: h17, d420, m29730240."""
        return f"{_LETTER[self.kind]}{self.number}"

    @classmethod
    def from_key(cls, key: str) -> "Slot":
        """Raises KeyError or ValueError for text that `key` cannot have made."""
        return cls(_KIND[key[0]], int(key[1:]))


def slots_of_minute(minute: int) -> tuple[Slot, Slot, Slot]:
    """The three slots that a tick visits for an epoch minute, in the order of the visit."""
    return (
        Slot(SlotKind.HOURLY, minute % 60),
        Slot(SlotKind.DAILY, minute % 1440),
        Slot(SlotKind.DATED, minute),
    )


@dataclass(frozen=True, slots=True)
class Entry:
    """A slim row: this job, under this filing, may be due in this slot of this segment.

    Either it carries a `schedule` (a standing entry, or in a dated slot one link of a chain) or a
    `message`, sent as it stands when `message.due_at` comes (a retry too far ahead for the queue).
    Entries are written once, never changed. Slots count effective times: nominal ones and
    `spread_seconds`. `zone_digest` tells by which rules of its zone a standing entry was filed.
    """

    segment: int
    slot: Slot
    owner: str
    job_id: str
    filing_id: str
    from_at: datetime
    lane: Lane = Lane.NORMAL
    catch_up: CatchUp = CatchUp.LATEST
    schedule: Schedule | None = None
    message: Message | None = None
    spread_seconds: int = 0
    calendar: CalendarUse | None = None
    zone_digest: str = ""

    @property
    def key(self) -> str:
        """The sort key inside the slot."""
        standing = f"{self.job_id}#{self.filing_id}"
        if self.message is not None:
            return f"{standing}#{self.message.key.sort_key}#{self.message.attempt}"
        return standing

    def message_at(self, fire_at: datetime) -> Message:
        """The message for the occurrence at `fire_at` that this entry stands for."""
        return Message(
            key=RunKey(self.owner, self.job_id, RunKind.SCHEDULED, fire_at),
            filing_id=self.filing_id,
            segment=self.segment,
            lane=self.lane,
            due_at=fire_at,
            slot_key=self.slot.key,
        )

    def link_at(self, fire_at: datetime) -> "Entry":
        """The link of the same dated chain at its occurrence `fire_at`."""
        return replace(self, slot=Slot(SlotKind.DATED, minute_of(fire_at)))

    def chain(self, until: datetime) -> Iterator[datetime]:
        """The occurrences from this dated link's minute on, up to `until`: they hang on it."""
        if self.schedule is None:
            return iter(())
        before = max(self.from_at, minute_start(self.slot.number) - timedelta(seconds=1))
        return self.schedule.between(before, until)

    @property
    def expires_at(self) -> datetime | None:
        """When the store may drop it; None for standing entries."""
        if self.slot.kind is not SlotKind.DATED:
            return None
        return minute_start(self.slot.number) + DATED_ENTRY_LIFETIME


def entries_of(job: Job) -> list[Entry]:
    """The entries of a job's filing: its standing slots, or the first link of its dated chain.

    Empty when the schedule has no occurrence left after the filing's `from_at`.
    """
    filed = slots(job.schedule)
    if filed.kind is not SlotKind.DATED:
        numbers: Iterable[int] = sorted(filed.numbers)
        return [_entry(job, Slot(filed.kind, number)) for number in numbers]
    first = job.schedule.next(job.filing.from_at)
    return [] if first is None else [_entry(job, Slot(SlotKind.DATED, minute_of(first)))]


def entry_of_message(message: Message) -> Entry:
    """The dated entry that sends `message` when it is due."""
    return Entry(
        segment=message.segment,
        slot=Slot(SlotKind.DATED, minute_of(message.due_at)),
        owner=message.key.owner,
        job_id=message.key.job_id,
        filing_id=message.filing_id,
        from_at=message.key.fire_at,
        lane=message.lane,
        message=message,
    )


def _entry(job: Job, slot: Slot) -> Entry:
    return Entry(
        segment=job.segment,
        slot=slot,
        owner=job.owner,
        job_id=job.job_id,
        filing_id=job.filing.filing_id,
        from_at=job.filing.from_at,
        lane=job.lane,
        catch_up=job.catch_up,
        schedule=job.schedule,
    )
