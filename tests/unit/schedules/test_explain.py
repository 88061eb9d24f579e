"""One English sentence. A wrong one is worse than a clumsy one: sentences tell schedules apart."""

import random
from collections import defaultdict
from datetime import UTC, date, datetime, timedelta

import pytest

from carillon.errors import InvalidFieldError
from carillon.schedules import (
    CalendarRule,
    ClosedDays,
    Cron,
    DstRule,
    Fold,
    Gap,
    OnOpenDays,
    Window,
    parse_schedule,
)
from carillon.schedules.insight.sentence import sentence

RIGA = "Europe/Riga"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("at 2026-12-01T09:00:00", "once on 2026-12-01 at 09:00 in Europe/Riga"),
        ("at 2026-12-01T09:00:05Z", "once on 2026-12-01 at 09:00:05 UTC"),
        ("every 25m offset 2m", "every 25 minutes, offset by 2 minutes"),
        ("every 1h", "every hour"),
        ("every 1d12h", "every 1 day 12 hours"),
        ("every 10m after finish", "10 minutes after the end of the last run"),
        # Times of day.
        ("0 9 * * *", "every day at 09:00 in Europe/Riga"),
        ("0 9 * * 1-5", "every weekday at 09:00 in Europe/Riga"),
        ("0 9 * * SAT,SUN", "every Saturday and Sunday at 09:00 in Europe/Riga"),
        ("0,30 9 * * 4,1", "every Monday and Thursday at 09:00 and 09:30 in Europe/Riga"),
        ("30 15 9 * * 7", "every Sunday at 09:15:30 in Europe/Riga"),
        ("0 9 * 12 *", "every day in December at 09:00 in Europe/Riga"),
        ("0 9 * 6-8,12 MON", "every Monday in June to August and December at 09:00 in Europe/Riga"),
        ("0 9,17 1,15 * *", "at 09:00 and 17:00 on the 1st and the 15th of every month in " + RIGA),
        ("0 9 1-15 * *", "at 09:00 on the 1st to the 15th of every month in Europe/Riga"),
        ("0 9 25 12 *", "at 09:00 on the 25th of December in Europe/Riga"),
        ("0 9 L * *", "at 09:00 on the last day of every month in Europe/Riga"),
        ("0 9 LW,2 1 *", "at 09:00 on the 2nd and the last weekday of January in Europe/Riga"),
        ("0 9 * * 5L", "at 09:00 on the last Friday of every month in Europe/Riga"),
        ("0 9 * 3 TUE#2", "at 09:00 on the second Tuesday of March in Europe/Riga"),
        ("0 9 * * MON,5L", "at 09:00 on Mondays and on the last Friday of every month in " + RIGA),
        # Paces.
        ("* * * * *", "every minute"),
        ("* * * * * *", "every second"),
        ("*/10 * * * *", "every 10 minutes in Europe/Riga"),
        ("*/30 * * * *", "every 30 minutes in Europe/Riga"),
        ("*/30 9-17 * * *", "every 30 minutes between 09:00 and 17:59 in Europe/Riga"),
        ("15,45 9-17 * * *", "at minutes 15 and 45 of hours 9 to 17 in Europe/Riga"),
        ("*/7 * * * *", "every hour at minutes 0, 7, 14, 21, 28, 35, 42, 49 and 56 in Europe/Riga"),
        ("17 * * * *", "every hour at minute 17 in Europe/Riga"),
        ("5,10-15 * * * *", "every hour at minutes 5 and 10 to 15 in Europe/Riga"),
        ("*/10 9-17 * * 1-5", "every 10 minutes between 09:00 and 17:59 on weekdays in " + RIGA),
        ("* 22,23 * * *", "every minute between 22:00 and 23:59 in Europe/Riga"),
        ("*/15 1,3 * * *", "every 15 minutes of hours 1 and 3 in Europe/Riga"),
        ("30 9-17 * * *", "every hour from 09:30 to 17:30 in Europe/Riga"),
        ("0 */2 * * *", "every 2 hours from 00:00 to 22:00 in Europe/Riga"),
        ("1,2,9 3-5 * * *", "at minutes 1, 2 and 9 of hours 3 to 5 in Europe/Riga"),
        ("*/5 * * * * *", "every 5 seconds in Europe/Riga"),
        ("30 * * * * *", "every minute at second 30 in Europe/Riga"),
        ("*/5 * 9-10 * * *", "every 5 seconds between 09:00:00 and 10:59:59 in Europe/Riga"),
        ("7,8 */30 * 1 * *", "at seconds 7 and 8 of minutes 0 and 30 of every hour on the 1st of "
         "every month in Europe/Riga"),
        # Both day fields: either is enough, unless one begins with a star.
        ("0 9 13 * FRI", "at 09:00 on the 13th of every month or on Fridays (either is enough) in "
         "Europe/Riga"),
        ("0 9 13 3 FRI", "at 09:00 on the 13th of March or on Fridays in March (either is enough) "
         "in Europe/Riga"),
        ("0 9 */10 * 1-5", "at 09:00 on every weekday that falls on every 10th day from the 1st to "
         "the 31st of the month in Europe/Riga"),
        ("0 9 1,2 * */5", "at 09:00 on every Friday or Sunday that falls on the 1st or the 2nd of "
         "the month in Europe/Riga"),
        ("0 9 1-31 * MON", "every day at 09:00 in Europe/Riga"),
        # EventBridge.
        ("cron(0 18 ? * MON-FRI *)", "every weekday at 18:00 in Europe/Riga"),
        ("cron(15 10 ? * 6L 2022-2024)", "at 10:15 on the last Friday of every month in "
         "Europe/Riga, in 2022 to 2024"),
        ("cron(0 9 3W * ? *)", "at 09:00 on the weekday nearest the 3rd of every month in " + RIGA),
        ("cron(0/30 20-2 ? * 3#2 *)", "every 30 minutes of hours 0 to 2 and 20 to 23 on the "
         "second Tuesday of every month in Europe/Riga"),
        # Combinations.
        ("0 9 * * 1-5 | 0 12 * * 6 except * * 25 12 * | 0 12 1 * *",
         "every weekday at 09:00; and every Saturday at 12:00; but not on the 25th of December, "
         "nor at 12:00 on the 1st of every month, in Europe/Riga"),
        ("every 1h | at 2026-12-01T09:00:00Z except every 2h",
         "every hour; and once on 2026-12-01 at 09:00 UTC; but not what comes every 2 hours"),
    ],
)  # fmt: skip
def test_sentence(value: str, words: str) -> None:
    assert sentence(parse_schedule(value, RIGA)) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("0 9 * * *", "every day at 09:00 UTC"),
        ("17 * * * *", "every hour at minute 17"),
        ("*/10 9-17 * * 1-5", "every 10 minutes between 09:00 and 17:59 on weekdays, UTC"),
        ("0 9 L * *", "at 09:00 on the last day of every month, UTC"),
        ("*/5 * * 12 *", "every 5 minutes in December, UTC"),
        ("at 2026-12-01T09:00:00", "once on 2026-12-01 at 09:00 UTC"),
        ("0 9 * * * | 0 10 * * 1", "every day at 09:00; and every Monday at 10:00, UTC"),
        ("cron(* * * * ? 2027)", "every minute, UTC, in 2027"),
    ],
)
def test_utc_is_named_where_the_clock_matters(value: str, words: str) -> None:
    assert sentence(parse_schedule(value)) == words


def test_bounds_are_told_in_local_time() -> None:
    start_at, end_at = datetime(2026, 6, 1, 6, tzinfo=UTC), datetime(2026, 12, 31, 22, tzinfo=UTC)
    daily = parse_schedule("0 9 * * *", RIGA, start_at, end_at)
    assert sentence(daily) == (
        "every day at 09:00 in Europe/Riga, from 2026-06-01 at 09:00 until 2027-01-01 at 00:00"
    )
    assert sentence(parse_schedule("every 5m", RIGA, start_at)) == (
        "every 5 minutes, from 2026-06-01 at 09:00 in Europe/Riga"
    )
    assert sentence(parse_schedule("every 5m", end_at=end_at)) == (
        "every 5 minutes, until 2026-12-31 at 22:00 UTC"
    )


@pytest.mark.parametrize(
    ("dst", "words"),
    [
        (DstRule(Gap.RUN_AFTER), " (times that the clocks skip run when they have jumped)"),
        (DstRule(Gap.SKIP, Fold.SECOND), " (times that the clocks skip are left out, "
         "times that they show twice run the second time)"),
    ],
)  # fmt: skip
def test_a_dst_rule_of_its_own_is_told(dst: DstRule, words: str) -> None:
    daily = "every day at 09:00"
    assert sentence(parse_schedule("0 9 * * *", RIGA, dst=dst)) == f"{daily} in Europe/Riga{words}"
    # Where it has nothing to rule, it is not told.
    assert sentence(parse_schedule("0 9 * * *", dst=dst)) == f"{daily} UTC"
    assert sentence(parse_schedule("every 1h", RIGA, dst=dst)) == "every hour"


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (CalendarRule.SKIP, "not on days closed in calendar holidays"),
        (CalendarRule.NEXT_BUSINESS_DAY, "moved to the next business day of calendar holidays"),
        (CalendarRule.PREVIOUS_BUSINESS_DAY,
         "moved to the previous business day of calendar holidays"),
    ],
)  # fmt: skip
def test_calendar_and_window_are_told(rule: CalendarRule, words: str) -> None:
    daily = parse_schedule("0 9 * * *")
    told = f"every day at 09:00 UTC, {words}"
    assert sentence(daily, calendar=("holidays", rule)) == told
    with_window = sentence(daily, calendar=("holidays", rule), window=Window(seconds=900))
    assert with_window == f"{told}, spread over 15 minutes"
    assert sentence(daily, window=Window(percent=50)).endswith(", spread over 50% of the interval")
    resolved = OnOpenDays(daily, ClosedDays.of({5, 6}, []), rule)
    assert sentence(resolved, calendar=("holidays", rule)) == told


def _random_field(chance: random.Random, low: int, high: int, stars: int = 3) -> str:
    number = chance.randint(low, high)
    other = chance.randint(number, high)
    return chance.choice(
        ["*"] * stars
        + [f"*/{chance.randint(1, 12)}", str(number), str(number), f"{number}-{other}"]
        + [f"{number},{other}", f"{number}-{other}/{chance.randint(1, 4)}"]
    )


def _random_crons(count: int) -> list[Cron]:
    chance = random.Random(20261125)
    found: dict[str, Cron] = {}
    while len(found) < count:
        fields = [
            _random_field(chance, 0, 3),
            _random_field(chance, 0, 23),
            chance.choice([_random_field(chance, 1, 4, 9), "L", "LW", "1,L", "31"]),
            _random_field(chance, 1, 4, 12),
            chance.choice([_random_field(chance, 0, 7, 9), "5L", "1#2", "1,5L", "1#5,2"]),
        ]
        if chance.random() < 0.4:
            fields.insert(0, _random_field(chance, 0, 2))
        elif chance.random() < 0.3:
            days = [("3W", "?"), ("L", "?"), ("?", "2#1"), ("?", "2")]
            fields[2], fields[4] = chance.choice(days)
            fields = [f"cron({fields[0]}", *fields[1:], chance.choice(["*)", "2027)", "2026/2)"])]
        try:
            cron = parse_schedule(" ".join(fields))
        except InvalidFieldError:
            continue
        assert isinstance(cron, Cron)
        found[cron.text] = cron
    return list(found.values())


def _meaning(cron: Cron) -> tuple[object, ...]:
    """What fires in UTC: the times of day and the days of three leap cycles."""
    rule, first = cron.rule, date(2024, 1, 1)
    days = tuple(rule.matches_day(first + timedelta(days=n)) for n in range(12 * 365 + 3))
    return (rule.seconds, rule.minutes, rule.hours, days)


def test_schedules_that_fire_at_other_times_have_other_sentences() -> None:
    alike = defaultdict(list)
    for cron in _random_crons(6_000):
        alike[sentence(cron)].append(cron)
    shared = [crons for crons in alike.values() if len(crons) > 1]
    assert len(shared) > 100
    for crons in shared:
        meanings = {_meaning(cron) for cron in crons[:6]}
        assert len(meanings) == 1, (sentence(crons[0]), [cron.text for cron in crons])


@pytest.mark.parametrize("time", ["0 9", "5 23", "30 15 0", "59 0 12"])
@pytest.mark.parametrize("weekday", ["*", "1-5", "0,6", "MON", "2,4,7", "FRI-SAT"])
def test_simple_sentences_can_be_read_back(time: str, weekday: str) -> None:
    cron = parse_schedule(f"{time} * * {weekday}")
    again = parse_schedule(sentence(cron).removesuffix(" UTC"))
    assert isinstance(cron, Cron)
    assert isinstance(again, Cron)
    assert _meaning(again) == _meaning(cron)
