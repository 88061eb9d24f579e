"""Stale entries: those that can be of no use any more, once what they still owe is dispatched."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from carillon.clock import id_created_at
from carillon.domain.job import Job, JobState
from carillon.domain.message import Message
from carillon.domain.run import RunKind
from carillon.domain.wheel.entry import (
    YOUNG_ENTRY,
    Entry,
    EntryKey,
    Slot,
    entries_of,
    minute_of,
    standing_key,
    watch_entries_of,
)
from carillon.domain.wheel.segment import MOST_LOOK_AHEAD, Control
from carillon.schedules import SlotKind

ANNOUNCED_FOR = MOST_LOOK_AHEAD + timedelta(minutes=1)
"""An occurrence due later than this after an instant was announced after it."""


@dataclass(frozen=True, slots=True)
class Ended:
    """An entry that may be removed once every minute up to that of `owes_until` is dispatched."""

    key: EntryKey
    owes_until: datetime


def ended_entry(job: Job | None, message: Message, now: datetime) -> list[Ended]:
    """The standing entry that sent `message`, if it has outlived the end of its generation; else
    none.

    `job` is the row as it is now. The end of the generation removed its entries, so messages that
    may have been announced before prove nothing. No tick comes to a dated entry again: it expires.
    """
    if not message.slot_key:
        return []
    slot = Slot.from_key(message.slot_key)
    ended_at = _ended_at(job, message.generation_id, now)
    if ended_at is None or slot.kind is SlotKind.DATED:
        return []
    if message.due_at <= ended_at + ANNOUNCED_FOR:
        return []
    key, is_watch = message.key, message.key.kind is RunKind.WATCH
    entry_key = standing_key(key.job_id, message.generation_id, is_watch=is_watch)
    spread = message.due_at - key.fire_at
    return [Ended((slot, entry_key), _owes_until(job, ended_at, spread, is_watch=is_watch))]


def ended_entries(before: Job, after: Job, now: datetime) -> list[Ended]:
    """The entries of the generation that a change of the row, from `before` to `after`, has ended.

    None if it has ended none. Nor where the job was not active: it may have been changed since its
    entries were put, and they stay as they were. Of a dated chain it is the first link, if that is
    yet to come: a later one is ended by its visit.
    """
    ended_at = _ended_at(after, before.generation.generation_id, now)
    if ended_at is None or before.state is not JobState.ACTIVE:
        return []
    return [
        Ended((e.slot, e.key), _owes_until(after, ended_at, e.spread, is_watch=e.is_watch))
        for e in (*entries_of(before), *watch_entries_of(before))
        if _is_to_come(e, now)
    ]


def removable(ended: Iterable[Ended], control: Control | None) -> list[EntryKey]:
    """The entries that nothing needs any more, by the control item as it was read after the commit
    that ended their generation."""
    if control is None:
        return []
    return [entry.key for entry in ended if control.dispatched(entry.owes_until)]


def _ended_at(job: Job | None, generation_id: str, now: datetime) -> datetime | None:
    """An instant after which no occurrence of the generation counts; None while it may go on."""
    if job is not None and generation_id == job.generation.generation_id:
        if job.state is JobState.PAUSED:
            return job.paused_at
        return job.updated_at if job.is_tombstone else None
    if job is not None and generation_id < job.generation.generation_id:
        return job.generation.from_at
    made_at = id_created_at(generation_id)
    return made_at if now - made_at > YOUNG_ENTRY else None


def _owes_until(
    job: Job | None, ended_at: datetime, spread: timedelta, *, is_watch: bool
) -> datetime:
    """The effective time of the last occurrence that counts; for a missed-run check, the time of
    the check. But the runs of a deleted job are not checked."""
    is_deleted = job is not None and job.state is JobState.DELETED
    return ended_at if is_watch and is_deleted else ended_at + spread


def _is_to_come(entry: Entry, now: datetime) -> bool:
    return entry.slot.kind is not SlotKind.DATED or entry.slot.number > minute_of(now)
