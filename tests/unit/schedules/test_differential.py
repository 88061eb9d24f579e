"""The engine against others, on thousands of random expressions: the oracle that reads the clocks
(every zone, rule and dialect, around every kind of change), cronsim and croniter (where they mean
the same). The same examples in every run.

Where cronsim 2.8 means something else, or errs, it is not asked:
- it exempts expressions of 6 fields from Debian's rule for a time of day, which ours follow;
- it reads `16-16/2` as `16/2` (and so does the engine; Debian's reads 16), which is not asked;
- on the day of a change it misses or moves occurrences of expressions whose minute or hour begins
  with a star: it steps by whole hours (Lord Howe), and begins days at a midnight that may not
  exist (Santiago, Beirut). On other days, and in zones without changes, it is right.
croniter (7.0) means the same in UTC for numbers, names, lists, ranges and steps, with these
exceptions, which are not asked: both day fields restricted (it knows no AND for `*/2`), steps from
one day of the week as `5/2` (its week has 7 days, Debian's field 0-7), and ranges of one value (it
reads `26-26` as a star). Its L, W and # are a dialect of its own.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from itertools import islice
from random import Random
from zoneinfo import ZoneInfo

import pytest
from croniter import croniter  # type: ignore[import-untyped]
from cronsim import CronSim

from carillon.errors import InvalidFieldError
from carillon.schedules import DEFAULT_DST, DstRule, Fold, Gap, Recurrence, parse_schedule
from tests.unit.schedules.dst_oracle import assert_fires, fires, utc

CHANGES = [
    ("Europe/Riga", "2027-03-28T01:00"),
    ("Europe/Riga", "2027-10-31T01:00"),
    ("America/New_York", "2027-03-14T07:00"),
    ("America/New_York", "2027-11-07T06:00"),
    ("Australia/Lord_Howe", "2027-10-02T15:30"),
    ("Australia/Lord_Howe", "2027-04-03T15:00"),
    ("America/Santiago", "2027-09-05T04:00"),
    ("America/Santiago", "2027-04-04T03:00"),
    ("Asia/Beirut", "2027-03-27T22:00"),
    ("Asia/Beirut", "2027-10-30T21:00"),
    ("Asia/Amman", "2022-02-24T22:00"),
    ("Asia/Amman", "2021-10-28T22:00"),
    ("Africa/Casablanca", "2026-03-22T02:00"),
    ("Africa/Casablanca", "2026-02-15T02:00"),
    ("Pacific/Apia", "2011-12-30T10:00"),  # a missing day
    ("Pacific/Apia", "2021-04-03T14:00"),
    ("Antarctica/Troll", "2027-03-28T01:00"),  # two hours
    ("Antarctica/Troll", "2027-10-31T01:00"),
    ("Antarctica/Casey", "2010-03-04T15:00"),  # three hours back
    ("Europe/Dublin", "2027-10-31T01:00"),  # winter time is the exception there
    ("Pacific/Chatham", "2027-09-25T14:00"),  # gap at 02:45
    ("America/Havana", "2027-11-07T05:00"),  # fold at 00:00
    ("America/Nuuk", "2027-03-28T01:00"),  # gap at 23:00 of the 27th
    ("Asia/Pyongyang", "2018-05-04T15:00"),  # half an hour, at 23:30
    ("Pacific/Kwajalein", "1993-08-21T12:00"),  # a missing day
    ("UTC", "2027-03-28T01:00"),
]
ZONES = sorted({zone for zone, _ in CHANGES})
STEADY_ZONES = {"UTC": 0, "Asia/Kolkata": 330, "Asia/Kathmandu": 345, "Etc/GMT+5": -300}
"""Minutes ahead of UTC, without changes since 1990."""

GAPS = (None, Gap.RUN_AFTER, Gap.SKIP)
FOLDS = (None, Fold.FIRST, Fold.SECOND, Fold.BOTH)
SHARDS = range(3)
"""Each seeds its own examples; a failure is found again by its number alone."""

WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")


def _term(random: Random, low: int, high: int, *, star: bool = True) -> str:
    first = random.randint(low, high - 1)
    last = random.randint(first + 1, high)
    forms = [str(first), str(last), f"{first}-{last}", f"{first}-{last}/{random.randint(1, 9)}"]
    forms += [f"{first}/{random.randint(1, high)}"]
    if star:
        forms += [f"*/{random.randint(2, high)}", "*/15" if high == 59 else "*/2"]
    return random.choice(forms)


def _field(random: Random, low: int, high: int, *, any_: float, star: bool = True) -> str:
    """`any_`: how likely it is a bare star."""
    if random.random() < any_:
        return "*"
    return ",".join(_term(random, low, high, star=star) for _ in range(random.choice((1, 1, 1, 2))))


def _minute(random: Random) -> str:
    return random.choice([_field(random, 0, 59, any_=0.1), "0", "30", "0,30", "*/20"])


def _hour(random: Random, near: int) -> str:
    """Often that hour."""
    forms = [str(near), str(near), f"{near},{random.randint(0, 23)}", f"{min(near, 20)}-23/2"]
    return random.choice([*forms, f"0-{near}", "*", "*/2", _field(random, 0, 23, any_=0.1)])


def _month_day(random: Random, near: int) -> str:
    if random.random() < 0.5:
        return random.choice(["*", "*", "*", str(near), f"*/2,{near}"])
    return random.choice([_field(random, 1, 31, any_=0), "L", "LW", "*/2", "1-15,L", "28,29,30,31"])


def _weekday(random: Random) -> str:
    if random.random() < 0.6:
        return "*"
    name = random.choice(WEEKDAYS)
    which = f"{name}#{random.randint(1, 5)}"
    forms = [_field(random, 0, 7, any_=0), name, "MON-FRI", "5L", which, f"{name},6-7", "*/3"]
    return random.choice(forms)


def _unix(random: Random, local_time: datetime, *, seconds: bool) -> str:
    """An expression that has a good chance to match about that wall time."""
    month = random.choice(["*", "*", "*", _field(random, 1, 12, any_=0), random.choice(MONTHS)])
    day = _month_day(random, local_time.day)
    fields = [_minute(random), _hour(random, local_time.hour), day, month, _weekday(random)]
    if seconds:
        fields.insert(0, random.choice(["0", "30", "59", "*/20", "5-55/25", "7,8"]))
    return " ".join(fields)


def _eventbridge(random: Random, local_time: datetime) -> str:
    hour = random.choice(
        [_hour(random, local_time.hour), _hour(random, local_time.hour), "22-3", "20-2"]
    )
    month = random.choice(["*", "*", _field(random, 1, 12, any_=0), "JAN-JUN", "JUL-DEC"])
    days = ["*", "*", str(local_time.day), _field(random, 1, 31, any_=0, star=False), "L", "LW"]
    days += [f"{random.randint(1, 28)}W", "1/2"]
    weekdays = ["*", "MON-FRI", "1", "7", "2-6", "1,3,5,7", "SUN,SAT", "6L", "L"]
    weekdays += [f"{random.randint(1, 7)}#{random.randint(1, 5)}"]
    day, weekday = (
        (random.choice(days), "?") if random.random() < 0.5 else ("?", random.choice(weekdays))
    )
    year = random.choice(["*", "*", "*", "2000-2030", "1970/1", "2027,2022,2021,2010-2012,2026"])
    return f"cron({_minute(random)} {hour} {day} {month} {weekday} {year})"


def _about(random: Random, zone: str, change: datetime) -> datetime:
    """What the clocks show about a change, or skip there."""
    before = (change - timedelta(hours=3)).astimezone(ZoneInfo(zone)).replace(tzinfo=None)
    return before + timedelta(hours=random.randint(2, 5))


def _schedule(expression: str, zone: str, dst: DstRule = DEFAULT_DST) -> Recurrence | None:
    """None: no date matches, which is refused."""
    try:
        return parse_schedule(expression, zone, dst=dst)
    except InvalidFieldError as error:
        if "matches no date" in str(error):
            return None
        raise


@pytest.mark.parametrize("shard", SHARDS)
@pytest.mark.parametrize("dialect", ["unix", "seconds", "eventbridge"])
def test_agrees_with_the_oracle_around_every_change(dialect: str, shard: int) -> None:
    random = Random(f"{dialect} {shard}")
    compared = 0
    for _ in range(80 if dialect == "seconds" else 150):
        zone, at = random.choice(CHANGES)
        change = utc(at)
        local_time = _about(random, zone, change)
        if dialect == "eventbridge":
            expression = _eventbridge(random, local_time)
        else:
            expression = _unix(random, local_time, seconds=dialect == "seconds")
        dst = DstRule(random.choice(GAPS), random.choice(FOLDS))
        span = timedelta(hours=3 if dialect == "seconds" else 30)
        schedule = _schedule(expression, zone, dst)
        expected = fires(expression, zone, change - span, change + span, dst.gap, dst.fold)
        if schedule is None:
            assert not expected, expression
            continue
        try:
            assert_fires(schedule, change - span, change + span, expected)
        except AssertionError as error:
            raise AssertionError(f"{expression!r} in {zone} under {dst} at {at}") from error
        compared += len(expected)
    assert compared > (150 if dialect == "seconds" else 1000)


def _first(schedule: Recurrence, after: datetime, count: int) -> list[datetime]:
    return list(islice(schedule.between(after, datetime(9000, 1, 1, tzinfo=UTC)), count))


def _cronsim(expression: str, start: datetime, count: int) -> list[datetime]:
    """Its first occurrences, without those that a fresh start repeats."""
    found: list[datetime] = []
    for occurrence in CronSim(expression, start):
        instant = occurrence.astimezone(UTC) if occurrence.tzinfo else occurrence
        if instant > (found[-1] if found else start):
            found.append(instant)
        if len(found) == count:
            break
    return found


def _start(random: Random) -> datetime:
    return datetime(1995, 1, 1) + timedelta(seconds=random.randrange(60 * 365 * 86_400))


@pytest.mark.parametrize("shard", SHARDS)
def test_agrees_with_cronsim_where_the_clocks_never_change(shard: int) -> None:
    random = Random(f"steady {shard}")
    for number in range(500):
        expression = _unix(random, _start(random), seconds=number % 3 == 0)
        zone, minutes = random.choice(list(STEADY_ZONES.items()))
        start = _start(random)
        schedule = _schedule(expression, zone)
        ahead = timezone(timedelta(minutes=minutes))
        if schedule is None:
            continue
        # cronsim steps naive wall times, which is all there is in these zones.
        expected = [
            local_time.replace(tzinfo=ahead).astimezone(UTC)
            for local_time in _cronsim(expression, start, 12)
        ]
        found = _first(schedule, start.replace(tzinfo=ahead), 12)
        assert found == expected, (expression, zone, start)


@pytest.mark.parametrize("shard", SHARDS)
def test_agrees_with_cronsim_on_times_of_day_in_every_zone(shard: int) -> None:
    random = Random(f"times of day {shard}")
    for _ in range(300):
        zone, at = random.choice(CHANGES)
        change = utc(at)
        _, _, *days = _unix(random, _about(random, zone, change), seconds=False).split()
        minute = _field(random, 0, 59, any_=0, star=False)
        hour = random.choice([str(_about(random, zone, change).hour), "0-4", "1,23", "2/3"])
        expression = " ".join([minute, hour, *days])
        start = change + timedelta(seconds=random.randint(-2 * 86_400, 86_400))
        schedule = _schedule(expression, zone)
        if schedule is None:
            continue
        tz = UTC if zone == "UTC" else ZoneInfo(zone)
        expected = _cronsim(expression, start.astimezone(tz), 12)
        expected = [instant for instant in expected if instant > start]
        found = _first(schedule, start, len(expected))
        assert found == expected, (expression, zone, start)


@pytest.mark.parametrize("shard", SHARDS)
def test_agrees_with_cronsim_on_wildcards_on_days_without_a_change(shard: int) -> None:
    random = Random(f"wildcards {shard}")
    compared = 0
    for number in range(150):
        zone, at = random.choice(CHANGES)
        expression = _unix(random, _start(random), seconds=number % 3 == 0)
        # Nothing changes there within the ten days before this one.
        after = utc(at) - timedelta(days=10, seconds=random.randrange(86_400))
        until = utc(at) - timedelta(days=4)
        schedule = _schedule(expression, zone)
        if schedule is None:
            continue
        tz = UTC if zone == "UTC" else ZoneInfo(zone)
        expected = list(_until(CronSim(expression, after.astimezone(tz)), until, 200))
        assert list(islice(schedule.between(after, until), 200)) == expected, (expression, zone, at)
        compared += len(expected)
    assert compared > 1000


def _until(occurrences: Iterator[datetime], until: datetime, count: int) -> Iterator[datetime]:
    for occurrence in islice(occurrences, count):
        if (instant := occurrence.astimezone(UTC)) > until:
            return
        yield instant


@pytest.mark.parametrize("shard", SHARDS)
@pytest.mark.parametrize("seconds", [False, True])
def test_agrees_with_croniter_in_utc(shard: int, seconds: bool) -> None:
    random = Random(f"croniter {shard} {seconds}")
    for _ in range(200):
        month = random.choice(["*", "*", _field(random, 1, 12, any_=0), random.choice(MONTHS)])
        day, weekday = "*", "*"
        if random.random() < 0.5:
            day = _field(random, 1, 31, any_=0)
        else:
            weekday = random.choice(["*", "MON-FRI", "0", "7", "SUN,SAT", "1-5/2", "2,4-6"])
        fields = [_field(random, 0, 59, any_=0.2), _field(random, 0, 23, any_=0.3)]
        fields += [day, month, weekday]
        if seconds:
            fields.insert(0, _field(random, 0, 59, any_=0.1))
        expression = " ".join(fields)
        schedule = _schedule(expression, "UTC")
        if schedule is None:
            continue
        start = _start(random).replace(tzinfo=UTC)
        theirs = croniter(expression, start, second_at_beginning=True)
        expected = [theirs.get_next(datetime) for _ in range(12)]
        found = _first(schedule, start, 12)
        assert found == expected, (expression, start)
        # Backwards it may differ by none either.
        theirs = croniter(expression, start, second_at_beginning=True)
        instant = start
        for _ in range(4):
            before = schedule.previous(instant)
            assert before == theirs.get_prev(datetime), (expression, start)
            assert before is not None
            instant = before
