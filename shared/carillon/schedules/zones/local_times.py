"""From matching local times to instants: an expression in a zone, under a DST rule.

The instants are a set. For every transition that puts clocks back, the repeated local times fire at
the first pass, the second, or both; for every one that puts them forward, its own instant is added
where a skipped local time matches and the rule is run_after. All else fires as the clocks show it.
"""

from weakref import WeakValueDictionary

from carillon.schedules.base import LAST_SECOND, Fold, Gap
from carillon.schedules.cron.expression import Expression, compile_expression
from carillon.schedules.zones import offsets as zones

_DAY = 86_400
_KEPT_MINUTES = 16
_ALWAYS = (-(1 << 61), 1 << 61, 0)
_NEVER = (0, 0, 0)


class Instants:
    """All instants of an expression; equal ones are one object while any schedule holds it."""

    __slots__ = ("__weakref__", "_rule", "_runs_after", "_span", "fold", "minutes", "zone")

    def __init__(self, rule: Expression, zone: str, gap: Gap, fold: Fold) -> None:
        self._rule = rule
        self.zone = zone
        self._runs_after = gap is Gap.RUN_AFTER
        self.fold = fold
        # The last few minutes: all jobs that share the rule ask for the same ones.
        self.minutes: dict[int, tuple[int, ...]] = {}
        self.forget()

    def __reduce__(self) -> tuple[object, ...]:
        gap = Gap.RUN_AFTER if self._runs_after else Gap.SKIP
        return instants_of, (self._rule.text, self.zone, gap, self.fold)

    def forget(self) -> None:
        """Forgets what was worked out from the zone's rules."""
        self.minutes.clear()
        # Instants from, until, offset: there each match is shown once, and no transition matters.
        self._span = _ALWAYS if self.zone == "UTC" else _NEVER

    def seconds_of_minute(self, minute: int) -> tuple[int, ...]:
        """The seconds (0-59, ascending) of an epoch minute that are in the set."""
        minutes = self.minutes
        found = minutes.get(minute)
        if found is None:
            if len(minutes) >= _KEPT_MINUTES:
                minutes.clear()
            found = minutes[minute] = self._seconds_of_minute(minute * 60)
        return found

    def after(self, second: int) -> int | None:
        """The first instant strictly after an epoch second."""
        first, end, offset = self._span
        if first <= second + 1 < end:
            local_time = self._rule.after(second + offset)
            if local_time is not None and local_time - offset < end:
                return local_time - offset
        return self._after(second + 1)

    def before(self, second: int) -> int | None:
        """The last instant strictly before an epoch second."""
        first, end, offset = self._span
        if first < second <= end:
            local_time = self._rule.before(second + offset)
            if local_time is not None and local_time - offset >= first:
                return local_time - offset
        return self._before(second - 1)

    def _seconds_of_minute(self, start: int) -> tuple[int, ...]:
        if not 0 <= start <= LAST_SECOND:
            return ()
        first, end, offset = self._span
        if not first <= start <= end - 60:
            first, end, offset = self._enter(zones.span_at(self.zone, start))
        if first <= start <= end - 60 and not offset % 60:
            return self._rule.seconds if self._rule.matches_minute(start + offset) else ()
        found = []
        second = self.after(start - 1)
        while second is not None and second < start + 60:
            found.append(second - start)
            second = self.after(second)
        return tuple(found)

    def _enter(self, span: zones.Span) -> tuple[int, int, int]:
        first, end = self._shown(span)
        # A gap's skipped local times can fire at the very start.
        if span.before < span.offset and self._runs_after:
            first += 1
        self._span = entered = (first, end, span.offset)
        return entered

    def _shown(self, span: zones.Span) -> tuple[int, int]:
        """The instants (from, until) of a span at which what the clocks show may fire."""
        first, end = span.start, span.end
        if self.fold is Fold.FIRST and span.before > span.offset:
            first += span.before - span.offset
        if self.fold is Fold.SECOND and span.offset > span.following:
            end -= span.offset - span.following
        return first, end

    def _after(self, second: int) -> int | None:
        """The first instant at or after an epoch second, span by span."""
        while second <= LAST_SECOND:
            span = zones.span_at(self.zone, second)
            first, end = self._shown(span)
            low = max(second, first) + span.offset
            if second == span.start and span.before < span.offset and self._runs_after:
                low = span.start + span.before
            match = self._rule.after(low - 1)
            if match is not None and match - span.offset < end:
                self._enter(span)
                return max(match - span.offset, span.start)
            # Nothing lies between low and the match: go to the last span that cannot show it yet,
            # unless the clocks are put back before every search.
            if span.end + span.following < low:
                second = span.end
            elif match is None:
                return None
            else:
                second = max(span.end, match - _DAY)
        return None

    def _before(self, second: int) -> int | None:
        """The last instant at or before an epoch second, span by span."""
        while second >= 0:
            span = zones.span_at(self.zone, second)
            first, end = self._shown(span)
            high = min(second, end - 1) + span.offset
            match = self._rule.before(high + 1)
            if match is not None:
                if match - span.offset >= first:
                    self._enter(span)
                    return match - span.offset
                if self._runs_after and span.start + span.before <= match < first + span.offset:
                    return span.start
            if span.start + span.before - 1 > high:
                second = span.start - 1
            elif match is None:
                return None
            else:
                second = min(span.start - 1, match + _DAY)
        return None


_shared: WeakValueDictionary[tuple[str, str, Gap, Fold], Instants] = WeakValueDictionary()


def instants_of(expression: str, zone: str, gap: Gap, fold: Fold) -> Instants:
    """The instants of an expression in canonical text, in an IANA zone, under a DST rule."""
    key = (expression, zone, gap, fold)
    found = _shared.get(key)
    if found is None:
        found = _shared.setdefault(key, Instants(compile_expression(expression), zone, gap, fold))
    return found


def _forget_all() -> None:
    for instants in list(_shared.values()):
        instants.forget()


zones.when_cleared(_forget_all)
