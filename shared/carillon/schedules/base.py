"""The interface of every schedule: a value that yields instants."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import ClassVar

from carillon.errors import InvalidFieldError


class Gap(StrEnum):
    """The treatment of a local time that the clocks skip."""

    RUN_AFTER = "run_after"
    """It fires at the transition; several that are skipped together are one occurrence."""
    SKIP = "skip"


class Fold(StrEnum):
    """At which pass a local time fires that the clocks show twice."""

    FIRST = "first"
    SECOND = "second"
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class DstRule:
    """A job's own rule; None leaves that half to the default of its schedule's dialect."""

    gap: Gap | None = None
    fold: Fold | None = None

    @property
    def text(self) -> str:
        """Its compact form: `run_after/both`, `skip/`, or "" when all is left to the default."""
        if self.gap is None and self.fold is None:
            return ""
        return f"{self.gap or ''}/{self.fold or ''}"

    @classmethod
    def from_text(cls, text: str) -> "DstRule":
        """The rule of a compact form; raises InvalidFieldError on `dst`."""
        gap, _, fold = text.partition("/")
        try:
            return cls(Gap(gap) if gap else None, Fold(fold) if fold else None)
        except ValueError as error:
            raise InvalidFieldError("dst", f"{text[:40]!r} is no rule: {error}") from error


DEFAULT_DST = DstRule()


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ENDLESS_FROM = datetime(2199, 1, 1, tzinfo=UTC)
"""A schedule that continues into the last year of EventBridge's cron has no last occurrence."""
FIRST_SECOND = 0
LAST_SECOND = int(datetime(9998, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp())
"""Epoch seconds that schedules live in. A year is kept free at the end, so that local times
and the steps of an engine cannot leave the calendar."""

_SECOND = timedelta(seconds=1)


class Recurrence(ABC):
    """A rule giving instants, without state; equal values yield equal instants.

    `timezone` is an IANA name. No occurrence lies before `start_at` or after `end_at` (aware UTC);
    both may be occurrences themselves. `dst` overrides the rule for skipped and repeated times.
    Subclasses are frozen dataclasses and answer in epoch seconds; this class speaks datetimes.
    """

    __slots__ = ()

    timezone: str
    start_at: datetime | None
    end_at: datetime | None
    dst: DstRule
    is_recurring: ClassVar[bool] = True

    @property
    @abstractmethod
    def text(self) -> str:
        """The canonical compact text; `parse_schedule` of it gives an equal value."""

    @abstractmethod
    def second_after(self, second: int) -> int | None:
        """The first occurrence strictly after an epoch second >= `first_second` - 1."""

    @abstractmethod
    def second_before(self, second: int) -> int | None:
        """The last occurrence strictly before an epoch second; it may lie before the start."""

    @property
    def first_second(self) -> int:
        """The first epoch second at which an occurrence may lie."""
        return first_second_of(self.start_at)

    @property
    def last_second(self) -> int:
        """The last epoch second at which an occurrence may lie."""
        return last_second_of(self.end_at)

    def next(self, after: datetime) -> datetime | None:
        """The first occurrence strictly after an aware instant; None when there is none."""
        return _instant(self._next_second(seconds_down(after)))

    def previous(self, before: datetime) -> datetime | None:
        """The last occurrence strictly before an aware instant; None when there is none."""
        bound = min(seconds_up(before), self.last_second + 1)
        if bound <= self.first_second:
            return None
        found = self.second_before(bound)
        return _instant(None if found is None or found < self.first_second else found)

    def between(self, after: datetime, until: datetime) -> Iterator[datetime]:
        """All occurrences in (after, until], ascending, found as they are asked for."""
        last = seconds_down(until)
        second = self._next_second(seconds_down(after))
        while second is not None and second <= last:
            yield datetime.fromtimestamp(second, UTC)
            second = self._next_second(second)

    def last_between(self, after: datetime, until: datetime) -> datetime | None:
        """The last occurrence in (after, until]. Where there is none nothing before is searched:
        the last one may be years ago."""
        if next(self.between(after, until), None) is None:
            return None
        return self.previous(until + timedelta.resolution)

    def has(self, second: int) -> bool:
        """True if an epoch second is an occurrence."""
        return (
            self.first_second <= second <= self.last_second
            and self.second_after(second - 1) == second
        )

    def seconds_of_minute(self, minute: int) -> tuple[int, ...]:
        """The seconds (0-59, ascending) that are occurrences in an epoch minute.

        Exactly what `between` yields there. The tick asks this of every entry that it visits.
        """
        first = minute * 60
        found = []
        second = self._next_second(first - 1)
        while second is not None and second < first + 60:
            found.append(second - first)
            second = self._next_second(second)
        return tuple(found)

    def bits(self, start: int, end: int) -> int:
        """The occurrences in [start, end) as a number: bit n is the epoch second start + n."""
        found = 0
        second = self._next_second(start - 1)
        while second is not None and second < end:
            found |= 1 << (second - start)
            second = self._next_second(second)
        return found

    def _next_second(self, second: int) -> int | None:
        second = max(second, self.first_second - 1)
        last = self.last_second
        if second >= last:
            return None
        found = self.second_after(second)
        return None if found is None or found > last else found


@dataclass(frozen=True, slots=True)
class Derived(Recurrence):
    """A recurrence made of another: it has the text, zone and bounds of its `base`, and is never
    stored."""

    base: Recurrence
    timezone: str = field(init=False, repr=False, compare=False)
    start_at: datetime | None = field(init=False, repr=False, compare=False)
    end_at: datetime | None = field(init=False, repr=False, compare=False)
    dst: DstRule = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("timezone", "start_at", "end_at", "dst"):
            object.__setattr__(self, name, getattr(self.base, name))

    @property
    def is_recurring(self) -> bool:  # type: ignore[override]  # the kind alone does not tell
        return self.base.is_recurring

    @property
    def text(self) -> str:
        return self.base.text


def first_second_of(start_at: datetime | None) -> int:
    """The first epoch second of what begins at an aware instant, or of all time."""
    return FIRST_SECOND if start_at is None else max(FIRST_SECOND, seconds_up(start_at))


def last_second_of(end_at: datetime | None) -> int:
    """The last epoch second of what ends, inclusive, at an aware instant, or of all time."""
    return LAST_SECOND if end_at is None else min(LAST_SECOND, seconds_down(end_at))


def seconds_down(instant: datetime) -> int:
    """Epoch seconds of an aware instant, rounded down, without going through floats."""
    since = instant - EPOCH
    return since.days * 86_400 + since.seconds


def seconds_up(instant: datetime) -> int:
    """Epoch seconds of an aware instant, rounded up."""
    return -((EPOCH - instant) // _SECOND)


def _instant(second: int | None) -> datetime | None:
    return None if second is None else datetime.fromtimestamp(second, UTC)
