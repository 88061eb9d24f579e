"""`at`: one instant."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import ClassVar

from carillon.errors import InvalidFieldError
from carillon.schedules.base import (
    DEFAULT_DST,
    EPOCH,
    DstRule,
    Fold,
    Gap,
    Recurrence,
    first_second_of,
    last_second_of,
    seconds_down,
)
from carillon.schedules.zones import offsets as zones


@dataclass(frozen=True, slots=True)
class At(Recurrence):
    """One occurrence, at `moment`: local time in `timezone` when naive, else an instant in UTC.

    A local time that the zone's clocks skip is shifted forward by the gap (02:30 runs at 03:30), as
    in RFC 5545; one that they show twice is the first, or the second where `dst` says so. Raises
    InvalidFieldError for a moment with a fraction of a second, outside of the years 1971-9997,
    before `start_at`, or skipped by the clocks where `dst` leaves such times out. One after
    `end_at` is no occurrence: the end of a union of several may lie before the last of them.
    """

    moment: datetime
    timezone: str = "UTC"
    start_at: datetime | None = None
    end_at: datetime | None = None
    dst: DstRule = DEFAULT_DST
    is_recurring: ClassVar[bool] = False
    first_second: int = field(init=False, repr=False, compare=False)
    last_second: int = field(init=False, repr=False, compare=False)
    _local_or_second: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        moment = self.moment
        if moment.microsecond:
            raise InvalidFieldError(
                "schedule.at", "has a fraction of a second: instants are whole seconds"
            )
        if not 1970 < moment.year < 9998:
            raise InvalidFieldError("schedule.at", "must lie in the years 1971 to 9997")
        keep = object.__setattr__
        keep(self, "first_second", first_second_of(self.start_at))
        keep(self, "last_second", last_second_of(self.end_at))
        # The second of a naive moment may change with the zone's rules, so it is not kept here.
        keep(self, "_local_or_second", seconds_down(moment if moment.tzinfo else _as_utc(moment)))
        self._refuse_never()

    def _refuse_never(self) -> None:
        if self.dst.gap is Gap.SKIP and self.is_skipped:
            raise InvalidFieldError(
                "schedule.at",
                f"{self._moment_text} does not exist in {self.timezone}: the clocks skip it, and "
                "dst.gap is skip",
            )
        if self.second < self.first_second:
            raise InvalidFieldError(
                "start_at", f"is later than the only occurrence, {self.text}: leave it out"
            )

    @property
    def second(self) -> int:
        """The occurrence in epoch seconds."""
        if self.moment.tzinfo is not None:
            return self._local_or_second
        return _instant_of(self.timezone, self._local_or_second, self.dst.fold is Fold.SECOND)

    @property
    def is_skipped(self) -> bool:
        """True if the zone's clocks never show the moment."""
        if self.moment.tzinfo is not None:
            return False
        second = zones.instant_of(self.timezone, self._local_or_second)
        return second + zones.offset_at(self.timezone, second) != self._local_or_second

    @property
    def text(self) -> str:
        return f"at {self._moment_text}"

    def second_after(self, second: int) -> int | None:
        found = self.second
        return found if found > second else None

    def second_before(self, second: int) -> int | None:
        found = self.second
        return found if found < second else None

    def seconds_of_minute(self, minute: int) -> tuple[int, ...]:
        found = self.second
        is_there = found // 60 == minute and self.first_second <= found <= self.last_second
        return (found % 60,) if is_there else ()

    @property
    def _moment_text(self) -> str:
        if self.moment.tzinfo is None:
            return self.moment.isoformat(timespec="seconds")
        return f"{self.moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


NEVER = At(datetime(1971, 1, 1, tzinfo=UTC), end_at=EPOCH)
"""The schedule without an occurrence: it ends before its only one."""


def _as_utc(local_time: datetime) -> datetime:
    return local_time.replace(tzinfo=UTC, fold=0)


@lru_cache(maxsize=16_384)
def _instant_of(timezone: str, local_time: int, second_pass: bool) -> int:
    return zones.instant_of(timezone, local_time, second_pass)


zones.when_cleared(_instant_of.cache_clear)
