"""What became of a segment in a tick."""

from dataclasses import dataclass
from enum import StrEnum


class SegmentOutcome(StrEnum):
    DISPATCHED = "dispatched"
    CURRENT = "current"
    """Everything up to the look-ahead is dispatched already: a doubled tick writes nothing."""
    HELD = "held"
    """Another tick holds the lease, or won the race for it."""
    LOST = "lost"
    """Another tick took the segment over while this one worked on it."""
    OUT_OF_TIME = "out_of_time"
    """The progress is recorded; the next tick goes on from there."""
    FAILED = "failed"
    """The store or the queue failed, or its control item cannot be read, or something that nobody
    thought of; the next tick goes on behind what was sent. Other segments go on."""


@dataclass(frozen=True, slots=True)
class SegmentReport:
    """What became of one segment in one tick. `lag_minutes` is how far dispatch lags behind,
    `rehomed` the number of filings that new rules of a time zone have brought to other slots.
    `idle` says whether nothing is left that was due, `was_idle` the same of the visit before."""

    segment: int
    outcome: SegmentOutcome
    messages: int = 0
    minutes: int = 0
    lag_minutes: int = 0
    backlog: bool = False
    reason: str = ""
    rehomed: int = 0
    was_idle: bool = False
    idle: bool = False
