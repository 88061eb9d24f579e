"""`at`: one instant."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import ClassVar

from shared.errors import InvalidFieldError
from shared.recurrence import zones
from shared.recurrence.dst import DEFAULT_DST, DstRule
from shared.recurrence.value import Recurrence, seconds_down


@dataclass(frozen=True, slots=True)
class At(Recurrence):
    """One occurrence, at `moment`: wall time in `timezone` when naive, else an instant in UTC.

    A wall time that the zone's clocks skip is shifted forward by the gap (02:30 runs at 03:30);
    one that they show twice is the first. Raises InvalidFieldError for a moment with a fraction
    of a second, outside of the years 1971-9997, or before `start_at`.
    """

    moment: datetime
    timezone: str = "UTC"
    start_at: datetime | None = None
    end_at: datetime | None = None
    dst: DstRule = DEFAULT_DST
    is_recurring: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.moment.microsecond:
            raise InvalidFieldError(
                "schedule.at", "has a fraction of a second: instants are whole seconds"
            )
        if not 1970 < self.moment.year < 9998:
            raise InvalidFieldError("schedule.at", "must lie in the years 1971 to 9997")
        if self.second < self.first_second:
            raise InvalidFieldError(
                "start_at", f"is later than the only occurrence, {self.text}: leave it out"
            )

    @property
    def second(self) -> int:
        """The occurrence in epoch seconds."""
        if self.moment.tzinfo is not None:
            return seconds_down(self.moment)
        wall = (self.moment - zones.WALL_EPOCH).total_seconds()
        return zones.instant_of(self.timezone, int(wall))

    @property
    def text(self) -> str:
        return f"at {self._moment_text}"

    def as_json(self) -> dict[str, str]:
        return {"at": self._moment_text}

    def second_after(self, second: int) -> int | None:
        return self.second if self.second > second else None

    def second_before(self, second: int) -> int | None:
        return self.second if self.second < second else None

    @property
    def _moment_text(self) -> str:
        if self.moment.tzinfo is None:
            return self.moment.isoformat(timespec="seconds")
        return f"{self.moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
