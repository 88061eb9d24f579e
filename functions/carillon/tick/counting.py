"""Counts of a tick: late entries by owner, and the report of a segment."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import partial

from carillon.clock import Clock
from carillon.domain.events import Event, EventType
from carillon.domain.message import Message
from carillon.domain.wheel.entry import Entry, minute_of, slots_of_minute
from carillon.domain.wheel.pace import BUCKETS, bucket_of
from carillon.domain.wheel.segment import Control
from carillon.stores.cursors import pages
from carillon.stores.ports import WheelStore

_SUBJECT = "scheduler"

LateOf = Callable[[Entry, int], list[Message]]
"""Counts the late messages of an entry that is read in an epoch minute; may raise anything."""


def count_late(
    wheel: WheelStore, control: Control, late_of: LateOf, clock: Clock, deadline: datetime
) -> tuple[tuple[int, ...], int]:
    """The number of late messages in the backlog of a segment, by the bucket of their owner, and
    the last minute that was counted: of a long backlog, whatever was counted by the `deadline`,
    be it a part of one minute. Its lease is not renewed meanwhile.

    An entry that cannot be counted counts for nothing: its dispatch reports it. Raises
    StoreUnavailableError.
    """
    counts, minute = [0] * BUCKETS, -1
    for minute in _minutes(control):
        for entry in _entries(wheel, control.segment, minute):
            counts[bucket_of(entry.owner)] += _number(late_of, entry, minute)
            if clock.now() >= deadline:
                break
        if clock.now() >= deadline:
            break
    return tuple(counts), minute


def _number(late_of: LateOf, entry: Entry, minute: int) -> int:
    try:
        return len(late_of(entry, minute))
    except Exception:  # it is set aside when it is dispatched
        return 0


def _minutes(control: Control) -> Iterator[int]:
    for backlog in control.backlog:
        yield from range(backlog.done + 1, backlog.until + 1)


def _entries(wheel: WheelStore, segment: int, minute: int) -> Iterator[Entry]:
    for slot in slots_of_minute(minute):
        for page in pages(partial(wheel.query, segment, slot)):
            yield from page.items


class SegmentOutcome(StrEnum):
    DISPATCHED = "dispatched"
    CURRENT = "current"
    """Everything up to the look-ahead is dispatched already: a doubled tick writes nothing."""
    HELD = "held"
    """Another tick holds the lease, or won the race for it."""
    LOST = "lost"
    """Another tick took the segment over while this one worked on it."""
    OUT_OF_TIME = "out_of_time"
    """The progress is recorded; the next tick continues from there."""
    FAILED = "failed"
    """The store or the queue failed, or its control item cannot be read, or an unforeseen error;
    the next tick continues behind the messages that were sent. Other segments are not affected."""


@dataclass(frozen=True, slots=True)
class SegmentReport:
    """The result of one tick for one segment. `messages` is the number of those sent, `occurrences`
    the number in those, `lag_minutes` the lag of its dispatch, `migrated` the number of generations
    that new rules of a time zone have brought to other slots. `idle` is True if nothing is left
    that was due, `was_idle` the same for the visit before."""

    segment: int
    outcome: SegmentOutcome
    messages: int = 0
    occurrences: int = 0
    minutes: int = 0
    lag_minutes: int = 0
    backlog: bool = False
    reason: str = ""
    migrated: int = 0
    was_idle: bool = False
    idle: bool = False


def change_of(reports: Sequence[SegmentReport], own: Sequence[int], now: datetime) -> Event | None:
    """The event that the scheduler is idle or is so no longer, as the root sees it by its `own`
    segments: all of them, unless it has invited shares.

    None when nothing has changed. The control items remember how it was; a doubled tick finds the
    change made. A tick that fails may leave a change untold; a root that has begun with idle
    segments of a scheduler that is not may tell of its start once more.
    """
    was_idle: dict[int, bool] = {}
    idle: dict[int, bool] = {}
    for report in reports:
        if report.segment in own:
            was_idle.setdefault(report.segment, report.was_idle)
            idle[report.segment] = report.idle
    if not idle or all(was_idle.values()) == all(idle.values()):
        return None
    what = EventType.SCHEDULER_IDLE if all(idle.values()) else EventType.SCHEDULER_STARTED
    event_id = f"{_SUBJECT}/{minute_of(now)}/{what.value}"
    messages = sum(report.messages for report in reports)
    return Event(event_id, what, _SUBJECT, now, {"messages": messages})
