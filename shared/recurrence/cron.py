"""`cron`: a cron expression in a time zone."""

from dataclasses import dataclass
from datetime import datetime

from shared.recurrence import zones
from shared.recurrence.dst import DEFAULT_DST, DstRule
from shared.recurrence.expression import Expression, compile_expression
from shared.recurrence.value import LAST_SECOND, Recurrence

_LAST_WALL = LAST_SECOND + 86_400


@dataclass(frozen=True, slots=True)
class Cron(Recurrence):
    """A cron expression, of 5 fields or of 6 with the second first, by Debian's rules.

    Where clocks are put forward or back, an expression whose minutes and hours do not begin with
    a star fires once per wall time: a skipped one at the transition, a repeated one at its first
    pass (several skipped at one transition are one occurrence). All others fire whenever the
    clocks show a matching time: not in a gap, twice in a repeated hour. So do all expressions of
    6 fields, whatever their hours: the engine, cronsim, exempts them from Debian's rule.

    Raises InvalidFieldError on `schedule.cron`. `start_at` itself may be an occurrence.
    """

    expression: str
    timezone: str = "UTC"
    start_at: datetime | None = None
    end_at: datetime | None = None
    dst: DstRule = DEFAULT_DST

    def __post_init__(self) -> None:
        compile_expression(self.expression)

    @property
    def rule(self) -> Expression:
        return compile_expression(self.expression)

    @property
    def text(self) -> str:
        return self.expression

    def as_json(self) -> dict[str, str]:
        return {"cron": self.expression}

    def second_after(self, second: int) -> int | None:
        rule = self.rule
        if not rule.is_time_of_day:
            return self._shown_after(rule, second)
        wall = rule.after(zones.latest_wall(self.timezone, second))
        if wall is None or wall > _LAST_WALL:
            return None
        return zones.first_reached(self.timezone, wall)

    def second_before(self, second: int) -> int | None:
        rule = self.rule
        if not rule.is_time_of_day:
            return self._shown_before(rule, second)
        wall = rule.before(zones.latest_wall(self.timezone, second - 1) + 1)
        return None if wall is None else zones.first_reached(self.timezone, wall)

    def _shown_after(self, rule: Expression, second: int) -> int | None:
        """The first instant after `second` at which the clocks show a match."""
        searched = match = None
        for span in zones.spans_from(self.timezone, second + 1):
            wall = span.start + span.offset
            # The match found for an earlier span stands, unless the clocks have skipped it or
            # have gone back to where no search began.
            if searched is None or match is None or not searched <= wall <= match:
                searched, match = wall, rule.after(wall - 1)
                if match is None:
                    return None
            if match < span.end + span.offset:
                return match - span.offset
        return None

    def _shown_before(self, rule: Expression, second: int) -> int | None:
        """The last instant before `second` at which the clocks show a match."""
        searched = match = None
        for span in zones.spans_until(self.timezone, second):
            wall = span.end + span.offset
            if searched is None or match is None or not match < wall <= searched:
                searched, match = wall, rule.before(wall)
                if match is None:
                    return None
            if match >= span.start + span.offset:
                return match - span.offset
        return None
