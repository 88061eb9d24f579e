"""Standing entries after a change of their zone's rules: where they belong, and what they owe.

An upgrade of the time zone database may move a schedule's occurrences to slots that its generation
has no entry in. The first of its old entries that a tick reads brings the generation there.
"""

from collections.abc import Iterator
from dataclasses import replace

from carillon.domain.calendar import Resolved, shifts_back
from carillon.domain.chunks.looking import CLAIMED_WITHIN
from carillon.domain.chunks.placing import SETTLED_AFTER, chunked_from
from carillon.domain.message import Message
from carillon.domain.wheel.entry import Entry, NextEntry, Slot, minute_end, minute_of
from carillon.domain.wheel.segment import Control
from carillon.schedules import SlotKind, slots
from carillon.schedules.placement.slots import digest_of_zone, zone_digest

_MINUTES_BETWEEN_VISITS = {SlotKind.HOURLY: 60, SlotKind.DAILY: 1440}


def zone_has_changed(entry: Entry) -> bool:
    """True if a standing entry was put by other rules of its zone than today's."""
    return (
        entry.zone_digest != ""
        and entry.schedule is not None
        and entry.zone_digest != digest_of_zone(entry.schedule.timezone)
    )


def marked(entry: Entry, message: Message) -> Message:
    """The message of an entry; as a second one where its generation goes in chunks by then, but
    this entry does not, to be brought to new rules or brought there within an hour: a tick that
    died by the old ones may have sent the occurrence in a chunk."""
    minute = minute_of(message.due_at)
    if not entry.chunked_from or entry.slot.kind is SlotKind.DATED:
        return message
    if minute >= entry.chunked_from and not zone_has_changed(entry):
        return message
    return replace(message, is_second=chunked_from(entry.generation_id) <= minute)


def migrated(entry: Entry, horizon: int) -> tuple[Entry, list[Entry], NextEntry | None]:
    """A standing entry as one of today's rules, the others that its generation has by them, and
    the first link of what is a dated chain today.

    What is owed up to `horizon`, the last minute that is announced, goes alone; so do all
    occurrences as long as those of an entry that was put just now.

    The entry stays where it is. It is to be put last, when the others are there and what they owe
    is sent: until then a tick that reads it begins anew. There are no others when the schedule is
    indexed as a dated chain today.
    """
    moves = shifts_back(entry.calendar)
    if entry.schedule is None:
        return entry, [], None
    settled = horizon + int(SETTLED_AFTER.total_seconds()) // 60
    later = max(entry.chunked_from, settled) if entry.chunked_from else 0
    digest = zone_digest(entry.schedule, entry.spread_seconds, moves)
    own = replace(entry, zone_digest=digest, chunked_from=later)
    indexed = slots(entry.schedule, entry.spread_seconds, moves)
    places = [Slot(indexed.kind, number) for number in sorted(indexed.numbers)]
    others = [replace(own, slot=place) for place in places if place != own.slot]
    return own, others, None if own.zone_digest else replace(own, chunked_from=0).beyond(horizon)


def owed_messages(
    entry: Entry, minute: int, control: Control, horizon: int, resolved: Resolved | None = None
) -> Iterator[Message]:
    """The messages that the generation of an old entry owes, up to `horizon`, at its visit in
    `minute`.

    It was last visited one round of its slot before. Occurrences since then, under the new rules,
    may have been passed by where the generation had no entry; those that the backlog still comes to
    are left to it. `resolved` is the schedule under its calendar.
    """
    if entry.schedule is None:
        return
    sent = entry.schedule if resolved is None else resolved.sent
    new_rules_from = control.tzdata_from or control.watermark + 1
    last_visit = minute - _MINUTES_BETWEEN_VISITS[entry.slot.kind]
    after = max(last_visit, min(new_rules_from - 1, control.watermark, minute - 1))
    to_come = [
        # Live minutes are dispatched before the backlog: all of it is yet to come then.
        (backlog.done if minute > backlog.until else max(minute, backlog.done), backlog.until)
        for backlog in control.backlog
    ]
    before = max(entry.from_at, minute_end(after) - entry.spread)
    for fire_at in sent.between(before, minute_end(horizon) - entry.spread):
        effective = minute_of(fire_at + entry.spread)
        if not any(done < effective <= until for done, until in to_come):
            message = marked(entry, entry.message_at(fire_at))
            if message.is_second and effective >= minute - 1:
                # Its minute may have no plan yet by which to look for a chunk.
                message = replace(message, wait_until=message.due_at + CLAIMED_WITHIN)
            yield message
