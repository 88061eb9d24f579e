"""What a cron fires around a change of the clocks, found by looking at every second: slow, and
so plain that it can be checked by reading. It shares nothing with the engine. Below it, the
notation of the tables of literal times, and how a schedule is compared with either.

Its definition: the clocks of a zone are read at every step of a span. A wall time read twice is
repeated (a fold), and one that a reading jumps over is skipped (a gap). An expression fires at
the readings that match it, where a repeated one counts as its fold rule says, and with the gap
rule "run_after" also at the first reading after a gap that hid a matching wall time.
"""

import calendar
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache, lru_cache
from zoneinfo import ZoneInfo

from carillon.schedules import DEFAULT_DST, DstRule, Fold, Gap, Recurrence

_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_MINUTE = timedelta(minutes=1)
_SECOND = timedelta(seconds=1)
_LONGEST_FOLD = timedelta(hours=4)
"""Beyond the longest since 1970 (Antarctica/Casey, three hours)."""

DayTest = Callable[[date], bool]


@dataclass(frozen=True)
class Reading:
    """The clocks at one instant. `passes`: how often they show this wall time."""

    instant: datetime
    local_time: datetime
    pass_: int
    passes: int


@dataclass(frozen=True)
class Clocks:
    """All readings in (after, until], and what was skipped before each that follows a gap."""

    readings: tuple[Reading, ...]
    skipped: dict[datetime, tuple[datetime, ...]]


@lru_cache(maxsize=64)
def read_clocks(zone: str, after: datetime, until: datetime, step: timedelta) -> Clocks:
    """Reads the clocks at every step; the bounds are aware and lie on a step."""
    tz = UTC if zone == "UTC" else ZoneInfo(zone)
    seen: dict[datetime, list[datetime]] = {}
    skipped: dict[datetime, tuple[datetime, ...]] = {}
    before: datetime | None = None
    instant = after - _LONGEST_FOLD
    while instant <= until + _LONGEST_FOLD:
        local_time = instant.astimezone(tz).replace(tzinfo=None, fold=0)
        seen.setdefault(local_time, []).append(instant)
        if before is not None and local_time > before + step and after < instant <= until:
            skipped[instant] = tuple(_local_times(before + step, local_time, step))
        before = local_time
        instant += step
    readings = [
        Reading(instant, local_time, number, len(instants))
        for local_time, instants in seen.items()
        for number, instant in enumerate(instants, 1)
        if after < instant <= until
    ]
    return Clocks(tuple(sorted(readings, key=lambda reading: reading.instant)), skipped)


def _local_times(first: datetime, end: datetime, step: timedelta) -> Iterator[datetime]:
    while first < end:
        yield first
        first += step


@dataclass(frozen=True)
class Wanted:
    """The wall times that an expression matches, with the rules its dialect has by default."""

    seconds: frozenset[int]
    minutes: frozenset[int]
    hours: frozenset[int]
    is_day: DayTest
    gap: str
    fold: str

    @property
    def step(self) -> timedelta:
        """How often the clocks must be read: no change since 1973 is within a minute."""
        return _MINUTE if self.seconds == {0} else _SECOND

    def matches(self, local_time: datetime) -> bool:
        return (
            local_time.second in self.seconds
            and local_time.minute in self.minutes
            and local_time.hour in self.hours
            and self.is_day(local_time.date())
        )


def fires(
    expression: str,
    zone: str,
    after: datetime,
    until: datetime,
    gap: str | None = None,
    fold: str | None = None,
) -> list[datetime]:
    """The instants in (after, until] at which an expression fires; None: its dialect's rule."""
    wanted = parse(expression)
    gap, fold = gap or wanted.gap, fold or wanted.fold
    clocks = read_clocks(zone, after, until, wanted.step)
    found = {
        reading.instant
        for reading in clocks.readings
        if wanted.matches(reading.local_time) and _counts(reading, fold)
    }
    if gap == "run_after":
        found |= {
            instant
            for instant, local_times in clocks.skipped.items()
            if any(wanted.matches(local_time) for local_time in local_times)
        }
    return sorted(found)


def _counts(reading: Reading, fold: str) -> bool:
    if reading.passes == 1 or fold == "both":
        return True
    return reading.pass_ == (1 if fold == "first" else 2)


@lru_cache(maxsize=1024)
def parse(expression: str) -> Wanted:
    """Reads a valid expression, unix of 5 or 6 fields or `cron(...)`. It refuses nothing."""
    text = expression.upper()
    if text.startswith("CRON("):
        return _eventbridge(text.removeprefix("CRON(").removesuffix(")").split())
    fields = text.split()
    second = fields.pop(0) if len(fields) == 6 else "0"
    minute, hour, day, month, weekday = fields
    # Debian's cron(8): a time of day is a job whose minute and hour do not begin with a star.
    is_time_of_day = not minute.startswith("*") and not hour.startswith("*")
    # Debian's crontab(5): either day field is enough, unless one of them begins with a star.
    both = day.startswith("*") or weekday.startswith("*")
    months = _numbers(month, 1, 12, _MONTHS, 1)
    by_day = [_month_day(term) for term in day.split(",")]
    by_weekday = [_weekday(term, 0) for term in weekday.split(",")]

    @cache
    def is_day(day: date) -> bool:
        answers = any(test(day) for test in by_day), any(test(day) for test in by_weekday)
        return day.month in months and (all(answers) if both else any(answers))

    return Wanted(
        _numbers(second, 0, 59),
        _numbers(minute, 0, 59),
        _numbers(hour, 0, 23),
        is_day,
        gap="run_after" if is_time_of_day else "skip",
        fold="first" if is_time_of_day else "both",
    )


def _eventbridge(fields: list[str]) -> Wanted:
    minute, hour, day, month, weekday, year = fields
    months = _numbers(month, 1, 12, _MONTHS, 1)
    years = _numbers(year, 1970, 2199)
    tests = (
        [_weekday(term, 1) for term in weekday.split(",")]
        if day == "?"
        else [_month_day(term) for term in day.split(",")]
    )

    @cache
    def is_day(day: date) -> bool:
        return day.month in months and day.year in years and any(test(day) for test in tests)

    hours = _numbers(hour, 0, 23)
    # AWS, "Daylight saving time on EventBridge Scheduler": skipped in spring, once in autumn.
    return Wanted(frozenset({0}), _numbers(minute, 0, 59), hours, is_day, "skip", "first")


def _numbers(
    text: str, low: int, high: int, names: tuple[str, ...] = (), first: int = 0
) -> frozenset[int]:
    def number(word: str) -> int:
        return names.index(word) + first if word in names else int(word)

    found: set[int] = set()
    for term in text.split(","):
        base, _, step = term.partition("/")
        start, _, end = base.partition("-")
        if base == "*":
            begin, last = low, high
        elif end:
            begin, last = number(start), number(end)
        else:
            begin = number(start)
            last = high if step else begin
        if last < begin:  # `20-2`, which AWS documents, goes over the end
            last += high - low + 1
        for value in range(begin, last + 1, int(step or 1)):
            found.add((value - low) % (high - low + 1) + low)
    return frozenset(found)


def _month_day(term: str) -> DayTest:
    if term == "L":
        return lambda day: day.day == max(_days_of_month(day))
    if term == "LW":
        return lambda day: day.day == max(_working_days(day))
    if term.endswith("W"):
        wish = int(term[:-1])
        return lambda day: day.day == min(_working_days(day), key=lambda number: abs(number - wish))
    numbers = _numbers(term, 1, 31)
    return lambda day: day.day in numbers


def _weekday(term: str, sunday: int) -> DayTest:
    """`sunday`: the number of that day, 0 (and 7) in unix and 1 at AWS."""

    def weekdays(text: str) -> frozenset[int]:
        last = 7
        return frozenset((n - sunday) % 7 for n in _numbers(text, sunday, last, _DAYS, sunday))

    if term == "L":
        return lambda day: day.isoweekday() == calendar.SATURDAY + 1
    if term.endswith("L"):
        wish = weekdays(term[:-1])
        return lambda day: (
            day.isoweekday() % 7 in wish and (day + timedelta(days=7)).month != day.month
        )
    if "#" in term:
        name, _, which = term.partition("#")
        wish = weekdays(name)
        return lambda day: day.isoweekday() % 7 in wish and (day.day - 1) // 7 + 1 == int(which)
    wish = weekdays(term)
    return lambda day: day.isoweekday() % 7 in wish


def _days_of_month(day: date) -> range:
    return range(1, calendar.monthrange(day.year, day.month)[1] + 1)


def _working_days(day: date) -> list[int]:
    return [number for number in _days_of_month(day) if day.replace(day=number).weekday() < 5]


_MOST_READINGS = 20_000

RULES = {
    "default": DEFAULT_DST,
    "run_after": DstRule(gap=Gap.RUN_AFTER),
    "skip": DstRule(gap=Gap.SKIP),
    "first": DstRule(fold=Fold.FIRST),
    "second": DstRule(fold=Fold.SECOND),
    "both": DstRule(fold=Fold.BOTH),
}


@dataclass(frozen=True)
class Case:
    """What an expression under a rule fires in (after, until]."""

    zone: str
    expression: str
    rule: str
    after: datetime
    until: datetime
    expected: tuple[datetime, ...]

    def __str__(self) -> str:
        return f"{self.zone} {self.expression} {self.rule} {self.until:%Y-%m-%dT%H%M}"

    @property
    def is_short(self) -> bool:
        """Soon enough read by the oracle, which reads the clocks at every step."""
        return (self.until - self.after) / parse(self.expression).step <= _MOST_READINGS

    def fires_by_oracle(self) -> tuple[datetime, ...]:
        rule = RULES[self.rule]
        found = fires(self.expression, self.zone, self.after, self.until, rule.gap, rule.fold)
        return tuple(found)


@dataclass(frozen=True)
class Table:
    """Literal times around one change of a zone's clocks.

    `at` is its instant, and `clocks` what they show then, before and after it. In `rows` an
    expression with its bounds, `30 3 * * *  27T00:00 .. 30T00:00`, is followed by indented lines
    that give the occurrences for rules, `skip:  27T01:30 29T00:30`. All is UTC; what is left out
    of a time is as in the time before it, and at first as in `at`.
    """

    zone: str
    at: str
    clocks: tuple[str, str]
    rows: str

    @property
    def rules(self) -> set[str]:
        """All that can make a difference here; each expression says what it does under each."""
        before, after = self.clocks
        if before < after:
            return {"default", "run_after", "skip"}
        return {"default", "first", "second", "both"}

    def cases(self) -> Iterator[Case]:
        """Raises AssertionError where an expression leaves a rule out."""
        expression, bounds, unsaid = "", "", set[str]()
        for line in self.rows.strip().splitlines():
            if not line.startswith(" "):
                assert not unsaid, f"{expression} lacks {unsaid}"
                expression, bounds = line.split("  ")
                unsaid = self.rules
                continue
            rules, times = line.strip().split(":  ")
            after, until = (self._times(bound)[0] for bound in bounds.split(" .. "))
            expected = () if times == "none" else tuple(self._times(times))
            for rule in rules.split():
                unsaid.remove(rule)
                yield Case(self.zone, expression, rule, after, until, expected)
        assert not unsaid, f"{expression} lacks {unsaid}"

    def _times(self, text: str) -> list[datetime]:
        found: list[datetime] = []
        day = self.at[:10]
        for word in text.split():
            date_, _, time = word.rpartition("T")
            if date_:
                day = self.at[: 10 - len(date_)] + date_
            found.append(utc(f"{day}T{time}"))
        return found

    def assert_clocks(self) -> None:
        """The time zone database still has this change."""
        tz, instant = ZoneInfo(self.zone), utc(self.at)
        before = (instant - _SECOND).astimezone(tz).replace(tzinfo=None) + _SECOND
        after = instant.astimezone(tz).replace(tzinfo=None)
        assert (before, after) == tuple(datetime.fromisoformat(clock) for clock in self.clocks)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def assert_fires(
    schedule: Recurrence, after: datetime, until: datetime, expected: Iterable[datetime]
) -> None:
    """Asked in every way, a schedule fires in (after, until] exactly when expected."""
    wanted = list(expected)
    assert list(schedule.between(after, until)) == wanted
    assert list(_forward(schedule, after, until)) == wanted
    assert list(_backward(schedule, after, until))[::-1] == wanted
    near = {instant + step * _MINUTE for instant in wanted for step in (-1, 0, 1)}
    for minute in sorted({int(instant.timestamp()) // 60 for instant in near}):
        first = datetime.fromtimestamp(minute * 60, UTC)
        if after < first and first + _MINUTE <= until:
            seconds = tuple(t.second for t in wanted if first <= t < first + _MINUTE)
            assert schedule.seconds_of_minute(minute) == seconds


def _forward(schedule: Recurrence, after: datetime, until: datetime) -> Iterator[datetime]:
    found = schedule.next(after)
    while found is not None and found <= until:
        yield found
        found = schedule.next(found)


def _backward(schedule: Recurrence, after: datetime, until: datetime) -> Iterator[datetime]:
    found = schedule.previous(until + _SECOND)
    while found is not None and found > after:
        yield found
        found = schedule.previous(found)
