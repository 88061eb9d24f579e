"""The shares of a minute: how many ticks serve it, and the segments of each."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import ceil


@dataclass(frozen=True, slots=True)
class Share:
    """The part of tick `number` among the `of` that serve a minute; the root's has number 0."""

    number: int
    of: int


NO_SHARE = Share(0, 0)
"""Of an event that cannot be read: the tick serves only what nobody holds."""


def share_in(event: object) -> Share | None:
    """The share that an invocation's event names, None for the root's. It never has the minute."""
    if not isinstance(event, dict) or "share" not in event:
        return None
    number, of = event["share"], event.get("of")
    # A boolean is an int, but no number.
    if type(number) is int and type(of) is int and 0 <= number < of:
        return Share(number, of)
    return NO_SHARE


def in_order(segments: int, minute: int) -> tuple[int, ...]:
    """All segments. The first one changes from minute to minute, so that none starves when time
    runs out."""
    first = minute % segments
    return (*range(first, segments), *range(first))


def segments_of(order: Sequence[int], share: Share) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The segments that a share begins with, and the others as it looks at them afterwards: each
    share begins elsewhere."""
    own = tuple(order[share.number :: share.of]) if share.of else ()
    others = (*order[share.number :], *order[: share.number])
    return own, tuple(segment for segment in others if segment not in own)


@dataclass(frozen=True, slots=True)
class Weight:
    """A segment as the root has weighed it: the messages that it has decided or sent there within
    so many seconds, and whether an outage has left minutes behind."""

    messages: int
    seconds: float
    has_backlog: bool = False


SHARE_SECONDS = 2.0
"""What takes less is done before another tick has begun."""
SHARE_MESSAGES = 500
"""One tick sends so many within the tenth of a second that an ordinary minute is sent in."""


@dataclass(frozen=True, slots=True)
class Worth:
    """The least work that is worth a tick of its own."""

    seconds: float = SHARE_SECONDS
    messages: int = SHARE_MESSAGES


class Bound(StrEnum):
    """The reason for a number of ticks: what allows no more of them."""

    WORKERS = "workers"
    """The deployment has no more (`tick_workers`)."""
    SEGMENTS = "segments"
    """No more segments are left."""
    SECONDS = "seconds"
    """At the speed measured so far there is no work for more."""
    MESSAGES = "messages"
    """As few messages are left."""


@dataclass(frozen=True, slots=True)
class Shares:
    """The number of ticks for a minute, the root included, and its reason."""

    of: int
    bound: Bound


def shares(weight: Weight, segments_left: int, workers: int, worth: Worth) -> Shares:
    """The ticks for a minute of whose segments one is weighed; 1: the root alone.

    A hash fills segments evenly, so each that is left takes what the first one took. The work of a
    backlog is not known, but that all segments have it.
    """
    most = {Bound.WORKERS: workers, Bound.SEGMENTS: segments_left}
    if not weight.has_backlog:
        most[Bound.SECONDS] = ceil(weight.seconds * segments_left / worth.seconds)
        most[Bound.MESSAGES] = ceil(weight.messages * segments_left / worth.messages)
    bound = min(most, key=lambda each: most[each])
    return Shares(max(1, most[bound]), bound)
