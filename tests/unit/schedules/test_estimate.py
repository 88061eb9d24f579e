import time
from datetime import UTC, datetime, timedelta

import pytest

from carillon.schedules import CalendarRule, ClosedDays, OnOpenDays, parse_schedule
from carillon.schedules.insight.rates import MONTH_DAYS, fires_per_month, most_fires_per_day

NOW = datetime(2026, 9, 10, 12, 34, 56, tzinfo=UTC)
MONTH = timedelta(days=MONTH_DAYS)


@pytest.mark.parametrize(
    "value",
    [
        "at 2026-09-20T00:00:00",
        "at 2026-12-01T00:00:00",
        "every 7m offset 3m",
        "every 40d",
        "every 5m",
        "17 * * * *",
        "*/5 * * * *",
        "0 9 * * 1-5",
        "0 0 29 2 *",
        "0 9-17 * * *",
        "0 9 * * 1-5 | 0 9,12 * * *",
        "* 9-12 * * * except * 10 * * *",
        "* * * * * except * 3-23 * * *",
        "* * * * * * except * 0-11,13-23 * * * | 0-9,11-59 12 * * *",
    ],
)
@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_few_are_counted_one_by_one(value: str, zone: str) -> None:
    # 2026-11-01 06:00Z: 02:00 EDT -> 01:00 EST.
    for after in (NOW, datetime(2026, 10, 20, tzinfo=UTC)):
        schedule = parse_schedule(value, zone)
        expected = sum(1 for _ in schedule.between(after, after + MONTH))
        assert fires_per_month(schedule, after) == expected


@pytest.mark.parametrize(
    ("value", "start_at", "end_at"),
    [
        ("every 1s", None, NOW + timedelta(days=2)),
        ("every 7s offset 3s", NOW + timedelta(days=3), None),
        ("every 7s offset 3s", NOW - timedelta(seconds=30), NOW + timedelta(hours=5)),
        ("17 * * * *", NOW + timedelta(days=3), NOW + timedelta(days=9)),
        ("* * * * * *", NOW + timedelta(days=3), NOW + timedelta(days=3, seconds=1000)),
        ("17 * * * *", NOW + timedelta(days=40), None),
        ("17 * * * *", None, NOW - timedelta(days=1)),
    ],
)
def test_bounds_are_kept(value: str, start_at: datetime | None, end_at: datetime | None) -> None:
    schedule = parse_schedule(value, "UTC", start_at, end_at)
    expected = sum(1 for _ in schedule.between(NOW, NOW + MONTH))
    assert fires_per_month(schedule, NOW) == expected


@pytest.mark.parametrize(
    ("value", "zone", "expected"),
    [
        ("* * * * * *", "UTC", 2_592_000),
        ("* * * * *", "Europe/Riga", 43_200),
        ("*/2 * 9-16 * * 1-5", "Europe/Riga", 22 * 8 * 1_800),
        ("* * * * * * | every 1s", "UTC", 2_592_000),
        ("* * * * * * except * 0-11 * * *", "UTC", 1_296_000),
        ("cron(* * * * ? *)", "UTC", 43_200),
    ],
)
def test_many_are_estimated(value: str, zone: str, expected: int) -> None:
    assert fires_per_month(parse_schedule(value, zone), NOW) == pytest.approx(expected, rel=0.03)


def test_a_day_that_is_all_but_over_does_not_count() -> None:
    # NOW is at 12:34 of 10 September.
    assert fires_per_month(parse_schedule("* * 0-3 10 9 *"), NOW) == 0


def test_there_is_nothing_left_to_count_at_the_end_of_time() -> None:
    late = datetime(9999, 12, 20, tzinfo=UTC)
    for value in ("* * * * *", "every 1h", "every 1h after finish"):
        assert fires_per_month(parse_schedule(value), late) == 0


def test_a_delay_is_counted_for_runs_that_take_no_time() -> None:
    assert fires_per_month(parse_schedule("every 1h after finish"), NOW) == 720
    start_at, end_at = NOW + timedelta(days=1), NOW + timedelta(days=2)
    bounded = parse_schedule("every 1h after finish", "UTC", start_at, end_at)
    assert fires_per_month(bounded, NOW) == 25
    assert fires_per_month(parse_schedule("every 40d after finish"), NOW) == 0


@pytest.mark.parametrize("rule", CalendarRule)
@pytest.mark.parametrize(
    ("value", "expected"),
    [("every 1h after finish", 21.48 * 24), ("every 1m after finish", 21.48 * 1_440)],
)
def test_a_delay_is_counted_on_open_days(value: str, expected: float, rule: CalendarRule) -> None:
    delay = parse_schedule(value)
    weekends = OnOpenDays(delay, ClosedDays.of({5, 6}, []), rule)
    assert fires_per_month(weekends, NOW) == pytest.approx(expected, rel=0.01)
    open_always = OnOpenDays(delay, ClosedDays(), rule)
    assert fires_per_month(open_always, NOW) == fires_per_month(delay, NOW)
    closed_always = OnOpenDays(delay, ClosedDays.of(set(range(7)), []), rule)
    assert fires_per_month(closed_always, NOW) == 0


def test_a_calendar_takes_its_days_out() -> None:
    weekends = ClosedDays.of({5, 6}, [])
    # NOW is a Thursday, the end a Saturday.
    for value, expected in (("0 9 * * *", 21), ("* * * * * *", 21.48 * 86_400)):
        under = OnOpenDays(parse_schedule(value), weekends, CalendarRule.SKIP)
        assert fires_per_month(under, NOW) == pytest.approx(expected, rel=0.01)


def test_it_is_quick_however_often_a_schedule_fires() -> None:
    for value in ("* * * * * *", "*/5 * * * *", "every 1s", "*/7 * * * * * | * * * * * *"):
        schedule = parse_schedule(value, "Europe/Riga")
        fires_per_month(schedule, NOW)
        took = min(_seconds(lambda: fires_per_month(schedule, NOW)) for _ in range(5))  # noqa: B023
        assert took < 0.2


def _seconds(call: object) -> float:
    assert callable(call)
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


@pytest.mark.parametrize(
    ("value", "most"),
    [
        ("at 2026-12-01T00:00:00", 1),
        ("every 25m", 58),
        ("every 1s after finish", 86_400),
        ("*/10 9-17 * * 1", 54),
        ("* * * * * * | * * * * *", 86_400),
        ("0 9 * * * | 0 10 * * *", 2),
    ],
)
def test_most_fires_per_day(value: str, most: int) -> None:
    schedule = parse_schedule(value)
    assert most_fires_per_day(schedule) == most
    under = OnOpenDays(schedule, ClosedDays(), CalendarRule.SKIP)
    assert most_fires_per_day(under) == most
