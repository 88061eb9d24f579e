"""`cron`: a cron expression in a time zone."""

from dataclasses import dataclass, field
from datetime import datetime

from carillon.schedules.base import (
    DEFAULT_DST,
    DstRule,
    Fold,
    Gap,
    Recurrence,
    first_second_of,
    last_second_of,
)
from carillon.schedules.cron.expression import Expression, compile_expression
from carillon.schedules.zones import offsets as zones
from carillon.schedules.zones.local_times import Instants, instants_of


@dataclass(frozen=True, slots=True)
class Cron(Recurrence):
    """A cron expression: unix, of 5 fields or of 6 with the second first, or EventBridge's.

    Where clocks are put forward or back, `dst` decides what happens, else the dialect. Unix is
    Debian's cron: an expression whose minutes and hours do not begin with a star, with seconds or
    without, fires once per local time, a skipped one at the transition (several skipped at one are
    one occurrence), a repeated one at its first pass; all others fire whenever the clocks show a
    matching time. EventBridge's `cron(…)` leaves out what is skipped, and fires at the first pass
    of what is repeated.

    `expression` is canonical text. Raises InvalidFieldError on `schedule.cron` and `timezone`.
    """

    expression: str
    timezone: str = "UTC"
    start_at: datetime | None = None
    end_at: datetime | None = None
    dst: DstRule = DEFAULT_DST
    rule: Expression = field(init=False, repr=False, compare=False)
    first_second: int = field(init=False, repr=False, compare=False)
    last_second: int = field(init=False, repr=False, compare=False)
    _instants: Instants = field(init=False, repr=False, compare=False)
    _minutes: dict[int, tuple[int, ...]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Read once: hashing the expression again for each question would cost the most.
        keep = object.__setattr__
        keep(self, "rule", compile_expression(self.expression))
        keep(self, "first_second", first_second_of(self.start_at))
        keep(self, "last_second", last_second_of(self.end_at))
        instants = instants_of(self.expression, self.timezone, self.gap, self.fold)
        keep(self, "_instants", instants)
        keep(self, "_minutes", instants.minutes)

    def __reduce__(self) -> tuple[object, ...]:
        values = (self.expression, self.timezone, self.start_at, self.end_at, self.dst)
        return Cron, values

    @property
    def gap(self) -> Gap:
        """The rule for skipped local times: the schedule's own, or its dialect's."""
        return self.dst.gap or self.rule.default_dst[0]

    @property
    def fold(self) -> Fold:
        """The rule for repeated local times: the schedule's own, or its dialect's."""
        return self.dst.fold or self.rule.default_dst[1]

    @property
    def seconds_of_day(self) -> tuple[int, ...]:
        """The local seconds of the day (0-86399) at which it can fire, ascending."""
        return self.rule.seconds_of_day

    @property
    def text(self) -> str:
        return self.expression

    def second_after(self, second: int) -> int | None:
        return self._instants.after(second)

    def second_before(self, second: int) -> int | None:
        return self._instants.before(second)

    def has(self, second: int) -> bool:
        minute, rest = divmod(second, 60)
        return rest in self.seconds_of_minute(minute)

    def seconds_of_minute(self, minute: int) -> tuple[int, ...]:
        # The memo of all schedules that share the expression, read without another call.
        try:
            found = self._minutes[minute]
        except KeyError:
            found = self._instants.seconds_of_minute(minute)
        if not found:
            return found
        start = minute * 60
        if self.first_second <= start and start + 59 <= self.last_second:
            return found
        first, last = self.first_second - start, self.last_second - start
        return tuple(second for second in found if first <= second <= last)

    def covers_minute_of(self, second: int) -> bool:
        """True if the minute that the clocks show at an epoch second matches.

        The field of seconds, the DST rule and the bounds do not matter.
        """
        return self.rule.matches_minute(second + zones.offset_at(self.timezone, second))
