"""Time zones: names, offsets, transitions, and the two directions between local time and instant.

Instants are epoch seconds. Walls are what the zone's clocks show, counted alike: seconds from
1970-01-01T00:00:00 on the local time. Offsets are seconds, positive east of Greenwich.

All that is known of a zone comes through `load_zone` and is kept; `clear_caches` forgets it.
"""

import difflib
from bisect import bisect_right
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from carillon.errors import InvalidFieldError, quoted

LOCAL_EPOCH = datetime(1970, 1, 1)
_SECOND = timedelta(seconds=1)

# Names that a system's zone folder offers beside the IANA ones: copies with another treatment
# of leap seconds, and whatever this one machine is set to.
_FOREIGN_PREFIXES = ("posix/", "right/")
_FOREIGN_NAMES = frozenset({"localtime", "posixrules", "Factory"})

_SLICE_BITS = 25
"""Spans are found and kept by slices of 2**25 seconds, about 388 days."""
_PROBE_SECONDS = 1 << 19
"""Offsets are compared every six days: since 1970 no zone has changed its offset and taken that
back sooner than after a week (a test walks all zones of the database)."""
_LAST_PROBE = int(datetime(9999, 12, 30, tzinfo=UTC).timestamp())


class Transition(NamedTuple):
    """The instant from which the offset is another one."""

    second: int
    before: int
    after: int


class Span(NamedTuple):
    """Instants start <= t < end that share one offset.

    `before` is the offset just before it, `following` that from its end on. Where a span is cut
    though nothing changes, these are its own.
    """

    start: int
    end: int
    before: int
    offset: int
    following: int


_UTC_SPAN = Span(-(1 << 62), 1 << 62, 0, 0, 0)
_forgetting: list[Callable[[], None]] = []


def load_zone(name: str) -> ZoneInfo:
    """The zone of an IANA name, from the system or from the tzdata package.

    Raises InvalidFieldError on `timezone`, with the names that the caller may have meant.
    """
    zone = _zone(name)
    if zone is not None:
        return zone
    known = "names are those of the IANA database, as UTC or Europe/Riga"
    likely = _similar_names(name)
    hint = f"did you mean {' or '.join(likely)}?" if likely else known
    raise InvalidFieldError("timezone", f"{quoted(name)} is no time zone: {hint}")


def when_cleared(forget: Callable[[], None]) -> None:
    """Has `clear_caches` call this too: for caches of what was worked out from a zone's rules."""
    _forgetting.append(forget)


def clear_caches() -> None:
    """Forgets everything that was worked out from zones, as when their rules are replaced."""
    for cached in (_zone, _slice, transitions, _searchable_names):
        cached.cache_clear()
    for forget in _forgetting:
        forget()


def offset_at(name: str, second: int) -> int:
    """The zone's offset at an instant."""
    return span_at(name, second).offset


def span_at(name: str, second: int) -> Span:
    """The span that an instant lies in."""
    if name == "UTC":
        return _UTC_SPAN
    starts, spans = _slice(name, second >> _SLICE_BITS)
    return spans[bisect_right(starts, second) - 1]


def instant_of(name: str, local_time: int, second_pass: bool = False) -> int:
    """The instant at which the clocks show `local_time`.

    Where they show it twice, the first one or the second. Where they skip it, as late after the
    transition as the local time lies after the gap's beginning (shifted forward by the gap: RFC
    5545).
    """
    transition = _transition_over(name, local_time)
    if transition is None:
        span = span_at(name, local_time - 86_400)
        while local_time - span.offset >= span.end:
            span = span_at(name, span.end)
        return local_time - span.offset
    is_second = second_pass and transition.after < transition.before
    return local_time - (transition.after if is_second else transition.before)


def first_reached(name: str, local_time: int) -> int:
    """The first instant at which the clocks have reached `local_time`: in a gap, the transition."""
    transition = _transition_over(name, local_time)
    if transition is not None and transition.after > transition.before:
        return transition.second
    return instant_of(name, local_time)


@lru_cache(maxsize=8192)
def transitions(name: str, year: int) -> tuple[Transition, ...]:
    """The changes of a zone's offset in a UTC year (start < t <= end), ascending."""
    end = year_start(year + 1)
    found = []
    span = span_at(name, year_start(year))
    while span.end <= end:
        if span.following != span.offset:
            found.append(Transition(span.end, span.offset, span.following))
        span = span_at(name, span.end)
    return tuple(found)


def _transition_over(name: str, local_time: int) -> Transition | None:
    """The transition whose clocks skip the local time, or show it twice."""
    span = span_at(name, local_time - 86_400)
    # No offset reaches a day: the local time is shown, or skipped, within a day of its UTC reading.
    while span.end <= local_time + 86_400:
        low, high = sorted((span.offset, span.following))
        if span.end + low <= local_time < span.end + high:
            return Transition(span.end, span.offset, span.following)
        span = span_at(name, span.end)
    return None


@lru_cache(maxsize=8192)
def _slice(name: str, number: int) -> tuple[tuple[int, ...], tuple[Span, ...]]:
    """The spans of a slice, ascending and gapless, and where each of them starts."""
    zone = load_zone(name)
    start, end = number << _SLICE_BITS, (number + 1) << _SLICE_BITS
    before = _offset(zone, start - 1)
    offset = _offset(zone, start)
    spans = []
    begun = start
    for probe in range(start, end, _PROBE_SECONDS):
        reached = _offset(zone, probe + _PROBE_SECONDS)
        if reached == offset:
            continue
        change = _change_between(zone, probe, offset)
        # A change at the end itself is the next slice's first span: no empty one is made here.
        if change < end:
            spans.append(Span(begun, change, before, offset, reached))
            begun, before, offset = change, offset, reached
    spans.append(Span(begun, end, before, offset, _offset(zone, end)))
    return tuple(span.start for span in spans), tuple(spans)


def _change_between(zone: ZoneInfo, low: int, before: int) -> int:
    """The first second of the probe after `low` whose offset is not `before`."""
    high = low + _PROBE_SECONDS
    while high - low > 1:
        middle = (low + high) // 2
        if _offset(zone, middle) == before:
            low = middle
        else:
            high = middle
    return high


def _offset(zone: ZoneInfo, second: int) -> int:
    offset = datetime.fromtimestamp(min(second, _LAST_PROBE), zone).utcoffset()
    return 0 if offset is None else offset // _SECOND


@lru_cache(maxsize=1024)
def _zone(name: str) -> ZoneInfo | None:
    if name in _FOREIGN_NAMES or name.startswith(_FOREIGN_PREFIXES):
        return None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


@lru_cache(maxsize=8192)
def year_start(year: int) -> int:
    """The first second of a UTC year."""
    return int(datetime(year, 1, 1, tzinfo=UTC).timestamp())


@lru_cache(maxsize=1)
def _searchable_names() -> dict[str, str]:
    """Lower-case names, and last parts of names, with the name that each means."""
    names = sorted(available_timezones() - _FOREIGN_NAMES)
    parts = {name.rpartition("/")[2].lower(): name for name in reversed(names)}
    return parts | {name.lower(): name for name in names}


def _similar_names(name: str) -> list[str]:
    searchable = _searchable_names()
    wanted = name[:64].strip().lower().replace(" ", "_")
    if wanted in searchable:
        return [searchable[wanted]]
    close = difflib.get_close_matches(wanted, searchable, n=3, cutoff=0.75)
    return list(dict.fromkeys(searchable[key] for key in close))
