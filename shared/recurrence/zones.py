"""Time zones: names, offsets, transitions, and the two directions between wall and instant.

Instants are epoch seconds. Walls are what the zone's clocks show, counted alike: seconds from
1970-01-01T00:00:00 on the wall. Offsets are seconds, positive east of Greenwich.
"""

import difflib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from shared.errors import InvalidFieldError
from shared.recurrence.messages import quoted
from shared.recurrence.value import LAST_SECOND

WALL_EPOCH = datetime(1970, 1, 1)
_SECOND = timedelta(seconds=1)
_DAY_SECONDS = 86_400

# Names that a system's zone folder offers beside the IANA ones: copies with another treatment
# of leap seconds, and whatever this one machine is set to.
_FOREIGN_PREFIXES = ("posix/", "right/")
_FOREIGN_NAMES = frozenset({"localtime", "posixrules", "Factory"})


class Transition(NamedTuple):
    """The instant from which the offset is another one."""

    second: int
    before: int
    after: int


class Span(NamedTuple):
    """Instants start <= t < end that share one offset."""

    start: int
    end: int
    offset: int


@lru_cache(maxsize=1024)
def load_zone(name: str) -> ZoneInfo:
    """The zone of an IANA name, from the system or from the tzdata package.

    Raises InvalidFieldError on `timezone`, with the names that the caller may have meant.
    """
    if name not in _FOREIGN_NAMES and not name.startswith(_FOREIGN_PREFIXES):
        try:
            return ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            pass
    known = "names are those of the IANA database, as UTC or Europe/Riga"
    likely = _similar_names(name)
    hint = f"did you mean {' or '.join(likely)}?" if likely else known
    raise InvalidFieldError("timezone", f"{quoted(name)} is no time zone: {hint}")


def offset_at(name: str, second: int) -> int:
    """The zone's offset at an instant."""
    if name == "UTC":
        return 0
    offset = datetime.fromtimestamp(second, load_zone(name)).utcoffset()
    return 0 if offset is None else offset // _SECOND


def instant_of(name: str, wall: int) -> int:
    """The instant at which the clocks show `wall`.

    The first one where they show it twice; where they skip it, as late after the transition as
    the wall lies after the gap's beginning (shifted forward by the gap).
    """
    if name == "UTC":
        return wall
    shown = WALL_EPOCH + timedelta(seconds=wall)
    offset = shown.replace(tzinfo=load_zone(name), fold=0).utcoffset()
    return wall if offset is None else wall - offset // _SECOND


def first_reached(name: str, wall: int) -> int:
    """The first instant at which the clocks have reached `wall`: in a gap, the transition."""
    instant = instant_of(name, wall)
    if instant + offset_at(name, instant) == wall:
        return instant
    return _last_transition(name, instant).second


def latest_wall(name: str, second: int) -> int:
    """The latest wall that the clocks have reached by an instant.

    The inverse of `first_reached`: while clocks that were put back repeat themselves, it stands
    still, so that no wall is reached twice.
    """
    if name == "UTC":
        return second
    if not datetime.fromtimestamp(second, load_zone(name)).fold:
        return second + offset_at(name, second)
    transition = _last_transition(name, second)
    return transition.second + transition.before - 1


def spans_from(name: str, second: int) -> Iterator[Span]:
    """Spans of one offset, ascending and gapless, from an instant on.

    A span also ends with its year, where nothing changes: years are looked at one by one.
    """
    if name == "UTC":
        yield Span(second, LAST_SECOND + 1, 0)
        return
    offset = offset_at(name, second)
    for year in range(_year_of(second), _year_of(LAST_SECOND) + 1):
        for transition in transitions(name, year):
            if transition.second > second:
                yield Span(second, transition.second, offset)
                second, offset = transition.second, transition.after
        end = year_start(year + 1)
        yield Span(second, end, offset)
        second = end


def spans_until(name: str, second: int) -> Iterator[Span]:
    """Spans of one offset, descending and gapless, of the instants before `second`."""
    if name == "UTC":
        yield Span(0, second, 0)
        return
    offset = offset_at(name, second - 1)
    for year in range(_year_of(second - 1), _year_of(0) - 1, -1):
        for transition in reversed(transitions(name, year)):
            if transition.second < second:
                yield Span(transition.second, second, offset)
                second, offset = transition.second, transition.before
        start = year_start(year)
        if start < second:
            yield Span(start, second, offset)
            second = start


@lru_cache(maxsize=8192)
def transitions(name: str, year: int) -> tuple[Transition, ...]:
    """The changes of a zone's offset in a UTC year (start < t <= end), ascending.

    Offsets are compared day by day: no zone changes its offset and takes that back in a day.
    """
    start, end = year_start(year), year_start(year + 1)
    found = []
    before = offset_at(name, start)
    for day in range(start, end, _DAY_SECONDS):
        after = offset_at(name, day + _DAY_SECONDS)
        if after != before:
            found.append(Transition(_change_between(name, day, before), before, after))
            before = after
    return tuple(found)


def _change_between(name: str, day: int, before: int) -> int:
    """The first second of the day after `day` whose offset is not `before`."""
    low, high = day, day + _DAY_SECONDS
    while high - low > 1:
        middle = (low + high) // 2
        if offset_at(name, middle) == before:
            low = middle
        else:
            high = middle
    return high


def _last_transition(name: str, second: int) -> Transition:
    """The last transition at or before an instant, which is known to follow one closely."""
    year = _year_of(second)
    for candidate in (*reversed(transitions(name, year)), *reversed(transitions(name, year - 1))):
        if candidate.second <= second:
            return candidate
    raise LookupError(f"{name} has no transition in the year before {second}")


def _year_of(second: int) -> int:
    return datetime.fromtimestamp(second, UTC).year


@lru_cache(maxsize=8192)
def year_start(year: int) -> int:
    """The first second of a UTC year."""
    return int(datetime(year, 1, 1, tzinfo=UTC).timestamp())


@lru_cache(maxsize=1)
def _searchable_names() -> dict[str, str]:
    """Lower-case names, and last parts of names, with the name that they stand for."""
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
