"""Cron by sets of numbers, of which all must match: as Celery and APScheduler mean it."""

from collections.abc import Set
from dataclasses import dataclass

from carillon.importers.entries import Json

ALL_MINUTES = frozenset(range(60))
ALL_HOURS = frozenset(range(24))
ALL_DAYS = frozenset(range(1, 32))
ALL_MONTHS = frozenset(range(1, 13))
ALL_WEEKDAYS = frozenset(range(7))


@dataclass(frozen=True, slots=True)
class CronFields:
    """`weekdays` count from 0, Sunday. `other_days` are terms of the day-of-week field (`5L`,
    `FRI#2`), and `last_day` is that of the month: each is as good as one of `days`."""

    minutes: Set[int] = ALL_MINUTES
    hours: Set[int] = ALL_HOURS
    days: Set[int] = ALL_DAYS
    months: Set[int] = ALL_MONTHS
    weekdays: Set[int] = ALL_WEEKDAYS
    seconds: Set[int] | None = None
    last_day: bool = False
    other_days: tuple[str, ...] = ()

    @property
    def members(self) -> Json:
        """The members `schedule` and `except` of a job."""
        month_days = [self._month_days] if self.days or self.last_day else []
        pairs = [(days, "*") for days in month_days] + [("*", term) for term in self.other_days]
        if self.weekdays == ALL_WEEKDAYS:
            return self._joined(pairs)
        named = _term(self.weekdays, 0, 6)
        if pairs == [("*", "*")]:
            return self._joined([("*", named)])
        # Where one field begins with a star our cron joins them by AND, otherwise by OR.
        if len(pairs) == 1 and not self.other_days and pairs[0][0].startswith("*"):
            return self._joined([(pairs[0][0], named)])
        others = _term(ALL_WEEKDAYS - self.weekdays, 0, 6)
        return {**self._joined(pairs), "except": [f"* * * * {others}"]}

    @property
    def _month_days(self) -> str:
        last = ["L"] if self.last_day else []
        return ",".join([*([_term(self.days, 1, 31)] if self.days else []), *last])

    def _joined(self, pairs: list[tuple[str, str]]) -> Json:
        texts = [self._text(days, weekdays) for days, weekdays in pairs]
        return {"schedule": texts[0] if len(texts) == 1 else texts}

    def _text(self, days: str, weekdays: str) -> str:
        second = [] if self.seconds is None else [_term(self.seconds, 0, 59)]
        times = [*second, _term(self.minutes, 0, 59), _term(self.hours, 0, 23)]
        return " ".join([*times, days, _term(self.months, 1, 12), weekdays])


def _term(numbers: Set[int], low: int, high: int) -> str:
    """The shortest plain text of a field."""
    ordered = sorted(numbers)
    for step in range(1, (high - low) // 2 + 2):
        if ordered == list(range(low, high + 1, step)):
            return "*" if step == 1 else f"*/{step}"
    spans: list[list[int]] = []
    for number in ordered:
        if spans and spans[-1][1] == number - 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in spans)
