"""Slots and entries: where a job's occurrences are found when their minute comes."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import islice

from carillon.domain.calendar import CalendarUse, shifts, shifts_back
from carillon.domain.chunks.placing import chunked_from
from carillon.domain.job import Job, Lane
from carillon.domain.message import Message
from carillon.domain.policies import CatchUp
from carillon.domain.run import RunKey, RunKind
from carillon.schedules import Delay, Recurrence, Schedule, SlotKind, slots
from carillon.schedules.base import EPOCH, LAST_SECOND
from carillon.schedules.placement.slots import is_zone_dependent, zone_digest

TICK_OUTAGE_DAYS = 14
"""Ticks may be down this long and lose nothing: dated entries live that long after their minute."""
DATED_ENTRY_LIFETIME = timedelta(days=TICK_OUTAGE_DAYS)
COMMITTED_WITHIN = timedelta(minutes=30)
"""A generation is committed so long after it was made, or not at all."""
YOUNG_ENTRY = 2 * COMMITTED_WITHIN
"""An entry of an unknown generation this young may belong to a creator that has yet to commit, by
whatever clocks."""
ZONE_CHANGE = timedelta(hours=26)
"""A change of a zone's rules moves a local time by less: the largest offsets of the IANA database
are +14 h and -12 h apart."""

_LAST_INSTANT = EPOCH + timedelta(seconds=LAST_SECOND)
LAST_MINUTE = LAST_SECOND // 60
"""The last epoch minute that there are instants of."""

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


EntryKey = tuple[Slot, str]
"""The address of an entry in its segment: its slot, and its key in that slot."""


def slots_of_minute(minute: int) -> tuple[Slot, Slot, Slot]:
    """The three slots that a tick visits for an epoch minute, in the order of the visit."""
    return (
        Slot(SlotKind.HOURLY, minute % 60),
        Slot(SlotKind.DAILY, minute % 1440),
        Slot(SlotKind.DATED, minute),
    )


@dataclass(frozen=True, slots=True)
class Entry:
    """A slim row: this job, under this generation, may be due in this slot of this segment.

    Either it carries a `schedule` (a standing entry, or in a dated slot one link of a chain) or a
    `message`, sent as it is when it may start (a retry too far ahead for the queue). Entries are
    written once, never changed. Slots count effective times: nominal ones and `spread_seconds`. An
    entry of a watch has `within_seconds`, which are part of that, and its messages ask after an
    occurrence instead of running it. `zone_digest` identifies the rules of its zone by which a
    standing entry was put. Its occurrences from epoch minute `chunked_from` on go in chunks (0:
    none).
    """

    segment: int
    slot: Slot
    owner: str
    job_id: str
    generation_id: str
    from_at: datetime
    lane: Lane = Lane.NORMAL
    catch_up: CatchUp = CatchUp.LATEST
    schedule: Schedule | None = None
    message: Message | None = None
    spread_seconds: int = 0
    calendar: CalendarUse | None = None
    zone_digest: str = ""
    grace_seconds: int = 0
    within_seconds: int = 0
    chunked_from: int = 0

    @property
    def is_watch(self) -> bool:
        return self.within_seconds > 0

    @property
    def key(self) -> str:
        """The sort key inside the slot. What a message stands for beside its run is a part of it:
        another message of the run must not take its place."""
        message = self.message
        if message is not None:
            waits = f"#{message.waits}" if message.waits else ""
            missed = message.missed and f"#since{int(message.missed.since.timestamp())}"
            standing = standing_key(self.job_id, self.generation_id)
            return f"{standing}#{message.key.sort_key}#{message.attempt}{waits}{missed or ''}"
        return standing_key(self.job_id, self.generation_id, is_watch=self.is_watch)

    @property
    def spread(self) -> timedelta:
        """From an occurrence's nominal to its effective time."""
        return timedelta(seconds=self.spread_seconds)

    def message_at(self, fire_at: datetime) -> Message:
        """The message for the occurrence with the nominal time `fire_at`."""
        kind = RunKind.WATCH if self.is_watch else RunKind.SCHEDULED
        return Message(
            key=RunKey(self.owner, self.job_id, kind, fire_at),
            generation_id=self.generation_id,
            segment=self.segment,
            lane=self.lane,
            due_at=fire_at + self.spread,
            slot_key=self.slot.key,
        )

    def next_entry_at(self, fire_at: datetime, done: int) -> "Entry":
        """The link of the same dated chain for its next occurrence, nominally at `fire_at`.

        It lies beyond the epoch minute `done`. If the zone matters, a link that only checks comes
        ZONE_CHANGE before the occurrence: by then its time may be an earlier one.
        """
        effective = fire_at + self.spread
        number = minute_of(effective)
        if self.schedule is not None and is_zone_dependent(self.schedule):
            look = minute_of(effective - ZONE_CHANGE)
            number = look if look > done else number
        return replace(self, slot=Slot(SlotKind.DATED, number))

    def beyond(self, horizon: int) -> "NextEntry | None":
        """The first occurrence of a dated chain beyond the horizon, an epoch minute, and its entry,
        to be indexed before the watermark moves."""
        if self.schedule is None:
            return None
        following = self.schedule.next(minute_end(horizon) - self.spread)
        return None if following is None else (following, self.next_entry_at(following, horizon))

    def chain(self, until: datetime, since: datetime | None = None) -> Iterator[datetime]:
        """The nominal times of the occurrences that hang on this dated link: those that are
        effective from its minute on up to `until`.

        `since` is the instant from which this zone's rules are in force, if they have replaced
        others: when that lies in the ZONE_CHANGE before the link, other rules may have put it
        here, and what the new ones yield from there on hangs on it too.
        """
        if self.schedule is None:
            return iter(())
        first = minute_start(self.slot.number)
        if since is not None and is_zone_dependent(self.schedule):
            first = since if first - ZONE_CHANGE < since < first else first
        before = max(self.from_at, first - self.spread - timedelta(seconds=1))
        return self.schedule.between(before, until - self.spread)

    @property
    def expires_at(self) -> datetime | None:
        """The instant from which the store may drop it; None for standing entries of a schedule
        without an end."""
        if self.slot.kind is SlotKind.DATED:
            return minute_start(self.slot.number) + DATED_ENTRY_LIFETIME
        last = None if self.schedule is None else _last_nominal(self.schedule)
        if last is None:
            return None
        return last + self.spread + DATED_ENTRY_LIFETIME


NextEntry = tuple[datetime, Entry]
"""An occurrence of a chain and the entry for it."""


def standing_key(job_id: str, generation_id: str, *, is_watch: bool = False) -> str:
    """The sort key of a generation's entries with a schedule, and of those of its watch."""
    return f"{job_id}#{generation_id}#watch" if is_watch else f"{job_id}#{generation_id}"


def entries_of(job: Job, sent: Recurrence | None = None) -> list[Entry]:
    """The entries of a job's generation: its standing slots, or the first link of its dated chain,
    or the message of a fixed delay's first occurrence.

    `sent` is the schedule under the job's calendar, where that moves occurrences. Empty when the
    schedule has none left after the generation's `from_at`. A calendar that leaves none is no
    reason: it may be opened again.
    """
    from_at = job.generation.from_at
    first = (sent or job.schedule).next(from_at) or job.schedule.next(from_at)
    if first is None:
        return []
    if isinstance(job.schedule, Delay):
        return [entry_of_message(message_of(job, first))]
    return _filed(_entry(job), first)


def watch_entries_of(job: Job) -> list[Entry]:
    """The entries of the job's watch: as if its occurrences came `expect_within_seconds` later.

    Empty without a watch. A job with a fixed delay, or a calendar that moves occurrences, has none.
    """
    first = job.schedule.next(job.generation.from_at) if _is_watched(job) else None
    return [] if first is None else _filed(_watch_entry(job), first)


def message_of(job: Job, fire_at: datetime) -> Message:
    """The message for a job's scheduled occurrence with the nominal time `fire_at`: attempt 1."""
    key = RunKey(job.owner, job.job_id, RunKind.SCHEDULED, fire_at)
    due_at = fire_at + timedelta(seconds=job.spread_seconds)
    return Message.of(job, key, due_at, after_finish=isinstance(job.schedule, Delay))


def messages_until(job: Job, sent: Recurrence, until: datetime) -> list[Message]:
    """The messages for a generation's occurrences with effective times up to `until`.

    `sent` is the schedule under the job's calendar. Of a fixed delay there is but the first: the
    others follow from the runs.
    """
    last = until - timedelta(seconds=job.spread_seconds)
    fire_times = sent.between(job.generation.from_at, last)
    if isinstance(job.schedule, Delay):
        fire_times = islice(fire_times, 1)
    return [message_of(job, fire_at) for fire_at in fire_times]


def watch_messages_until(job: Job, until: datetime) -> list[Message]:
    """The messages of the missed-run check for the occurrences of a generation that it examines by
    `until`."""
    if not _is_watched(job):
        return []
    watch = _watch_entry(job)
    fire_times = job.schedule.between(watch.from_at, until - watch.spread)
    return [watch_message_of(job, fire_at) for fire_at in fire_times]


def watch_message_of(job: Job, fire_at: datetime) -> Message:
    """The message of the missed-run check for the occurrence with the nominal time `fire_at`."""
    return replace(_watch_entry(job).message_at(fire_at), slot_key="")


def entry_of_message(message: Message) -> Entry:
    """The dated entry that sends `message` when it may start."""
    return Entry(
        segment=message.segment,
        slot=Slot(SlotKind.DATED, minute_of(message.starts_at)),
        owner=message.key.owner,
        job_id=message.key.job_id,
        generation_id=message.generation_id,
        from_at=message.key.fire_at,
        lane=message.lane,
        message=message,
    )


def _filed(entry: Entry, first: datetime) -> list[Entry]:
    """The entry in each slot of its schedule; of a dated chain, the link for the nominal `first`.

    `entry` is in the dated slot of its generation's beginning.
    """
    if entry.schedule is None:
        return []
    moves = shifts_back(entry.calendar)
    indexed = slots(entry.schedule, entry.spread_seconds, moves)
    if indexed.kind is SlotKind.DATED:
        return [replace(entry, chunked_from=0).next_entry_at(first, done=entry.slot.number)]
    digest = zone_digest(entry.schedule, entry.spread_seconds, moves)
    places = [Slot(indexed.kind, number) for number in sorted(indexed.numbers)]
    return [replace(entry, slot=place, zone_digest=digest) for place in places]


def _entry(job: Job) -> Entry:
    """An entry of the job's generation, before it has its slots."""
    return Entry(
        segment=job.segment,
        slot=Slot(SlotKind.DATED, minute_of(job.generation.from_at)),
        owner=job.owner,
        job_id=job.job_id,
        generation_id=job.generation.generation_id,
        from_at=job.generation.from_at,
        lane=job.spec.priority,
        catch_up=job.spec.catch_up,
        schedule=job.schedule,
        spread_seconds=job.spread_seconds,
        calendar=job.spec.calendar,
        grace_seconds=job.spec.grace or 0,
        chunked_from=chunked_from(job.generation.generation_id) if job.is_plain else 0,
    )


def _is_watched(job: Job) -> bool:
    has_instants = not isinstance(job.schedule, Delay) and not shifts(job.spec.calendar)
    return bool(job.spec.expect_within) and has_instants


def _watch_entry(job: Job) -> Entry:
    """An entry of the job's watch, before it has its slots."""
    entry, within_seconds = _entry(job), job.spec.expect_within or 0
    spread_seconds = entry.spread_seconds + within_seconds
    return replace(
        entry, spread_seconds=spread_seconds, within_seconds=within_seconds, chunked_from=0
    )


def _last_nominal(schedule: Schedule) -> datetime | None:
    """The end of a schedule's life, where its form shows it."""
    if schedule.end_at is not None:
        return schedule.end_at
    return None if schedule.is_recurring else schedule.previous(_LAST_INSTANT)
