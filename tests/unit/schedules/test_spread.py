"""Windows: their text, the shortest gap they are measured by, and the offset they give."""

import tracemalloc
from datetime import datetime, timedelta
from itertools import islice, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carillon.errors import InvalidFieldError
from carillon.schedules import (
    CalendarRule,
    ClosedDays,
    Cron,
    Delay,
    DstRule,
    Fold,
    Gap,
    OnOpenDays,
    Schedule,
    Union,
    Window,
    parse_schedule,
    parse_window,
    spread_seconds,
)
from carillon.schedules.placement.window import shortest_gap_seconds, shortest_shifted_gap
from carillon.schedules.zones import offsets as zones
from tests.unit.schedules.strategies import (
    any_expressions,
    calendar_rules,
    closed_days,
    dst_rules,
    exact,
    instants,
    schedules,
    zone_names,
)

HOUR, DAY = 3600, 86_400
BOTH = DstRule(fold=Fold.BOTH)
SKIP_GAP = DstRule(gap=Gap.SKIP)


@pytest.mark.parametrize(
    ("text", "window", "canonical"),
    [
        ("15m", Window(seconds=900), "15m"),
        (" PT15M ", Window(seconds=900), "15m"),
        ("1s", Window(seconds=1), "1s"),
        ("24h", Window(seconds=DAY), "1d"),
        ("50%", Window(percent=50), "50%"),
        ("1 %", Window(percent=1), "1%"),
        ("100%", Window(percent=100), "100%"),
    ],
)
def test_text_of_windows(text: str, window: Window, canonical: str) -> None:
    assert parse_window(text) == window
    assert window.text == canonical
    assert parse_window(canonical) == window


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not a duration"),
        ("soon", "is not a duration"),
        ("0s", "0s is no window: use 1s to 1d"),
        ("24h1s", "1d1s is no window: use 1s to 1d"),
        ("0%", "0% is no window: use 1% to 100%"),
        ("101%", "101% is no window: use 1% to 100%"),
        ("1.5%", '"1.5%" is no percentage'),
        ("-5%", '"-5%" is no percentage'),
        ("%", '"%" is no percentage'),
    ],
)
def test_other_windows_are_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidFieldError) as refused:
        parse_window(text)
    assert refused.value.field == "window"
    assert message in refused.value.message


def test_a_window_is_one_of_the_two() -> None:
    for values in ((None, None), (60, 50)):
        with pytest.raises(ValueError, match="either seconds or a percentage"):
            Window(*values)


@pytest.mark.parametrize(
    ("text", "zone", "dst", "expected"),
    [
        ("every 25m offset 2m", "Europe/Riga", DstRule(), 1500),
        ("every 10m after finish", "UTC", DstRule(), 600),
        ("at 2026-12-01T09:00:00", "UTC", DstRule(), None),
        ("0 9 * * *", "UTC", DstRule(), DAY),
        # The day on which clocks are put forward is shorter.
        ("0 9 * * *", "Europe/Riga", DstRule(), DAY - HOUR),
        ("0 9 * * *", "Australia/Lord_Howe", DstRule(), DAY - HOUR // 2),
        ("0 9 * * *", "Antarctica/Troll", DstRule(), DAY - 2 * HOUR),
        ("0 9 * * MON", "Europe/Riga", DstRule(), 7 * DAY - HOUR),
        # Riga's clocks never change between the two.
        ("0 9 1,20 8 *", "Europe/Riga", DstRule(), 19 * DAY),
        # 2026-03-29 03:00 EET -> 04:00 EEST: 03:30 runs at 04:00, and 04:05 is near.
        ("30 3 * * * | 5 4 * * *", "Europe/Riga", DstRule(), 300),
        ("30 3 * * * | 5 4 * * *", "Europe/Riga", SKIP_GAP, 35 * 60),
        # 2026-10-25 04:00 EEST -> 03:00 EET.
        ("30 3 * * *", "Europe/Riga", BOTH, HOUR),
        ("55 3 * * *", "Europe/Riga", DstRule(Gap.SKIP, Fold.SECOND), DAY),
        ("0,50 3 * * *", "Europe/Riga", BOTH, 600),
        ("*/50 3 * * *", "Europe/Riga", DstRule(), 600),
        ("*/20 * * * * *", "Europe/Riga", DstRule(), 20),
        ("59 59 23 * * * | 0 0 0 * * *", "UTC", DstRule(), 1),
        # Saturday at noon, and working days at nine: never nearer than a day.
        ("0 9 * * 1-5 | 0 12 * * 6", "UTC", DstRule(), DAY),
        ("0 0 29 2 *", "UTC", DstRule(), 1461 * DAY),
        ("0 0 * 2 MON#5", "UTC", DstRule(), 10_227 * DAY),
        ("cron(0 9 1 1 ? 2026)", "UTC", DstRule(), None),
        ("cron(0 9 1 1 ? 2090-2094)", "UTC", DstRule(), 365 * DAY),
        ("at 2026-01-01T00:00:10 | at 2026-01-01T00:00:17", "UTC", DstRule(), 7),
        ("at 2026-01-01T00:00:00 | 0 0 * * *", "UTC", DstRule(), DAY),
        ("at 2026-01-01T00:00:10 | 0 0 * * *", "UTC", DstRule(), 10),
        ("at 2026-01-01T23:59:00 | every 1d", "UTC", DstRule(), 60),
        ("every 1h | every 25m", "UTC", DstRule(), 300),
        ("every 1h | 30 9 * * *", "UTC", DstRule(), 1800),
        ("every 1h | 0 9 * * *", "UTC", DstRule(), 3600),
        # What exceptions take out makes gaps longer: they have no say.
        ("every 5m except */10 * * * *", "UTC", DstRule(), 300),
    ],
)
def test_shortest_gap(text: str, zone: str, dst: DstRule, expected: int | None) -> None:
    assert shortest_gap_seconds(parse_schedule(text, zone, dst=dst)) == expected


def test_many_kinds_of_days_take_little_memory() -> None:
    """Lists of their seconds took a request most of its 512 MB, and 20 s."""
    text = " | ".join(f"*/2 * * {1 + day} * {day % 7}" for day in range(8))
    schedule = parse_schedule(text)
    tracemalloc.start()
    try:
        assert shortest_gap_seconds(schedule) == 2
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 5_000_000


def test_bounds_and_calendars_do_not_change_the_gap() -> None:
    start = datetime(2026, 6, 1)
    bounded = parse_schedule("0 9 * * *", "Europe/Riga", start, start + timedelta(days=9))
    assert shortest_gap_seconds(bounded) == DAY - HOUR
    closed = OnOpenDays(bounded, ClosedDays.of({6}, []), CalendarRule.SKIP)
    assert shortest_gap_seconds(closed) == DAY - HOUR


@exact
@given(st.data(), schedules)
def test_no_two_occurrences_are_nearer_than_the_shortest_gap(
    data: st.DataObject, schedule: Schedule
) -> None:
    gap = shortest_gap_seconds(schedule)
    after = data.draw(instants(schedule.timezone)) - timedelta(hours=5)
    found = list(islice(schedule.between(after, after + timedelta(days=9000)), 60))
    if gap is None:
        assert len(found) <= 1
    else:
        nearest = min(((b - a).total_seconds() for a, b in pairwise(found)), default=gap)
        assert nearest >= gap


@settings(exact, max_examples=40)
@given(st.lists(any_expressions, min_size=1, max_size=2, unique=True), zone_names, dst_rules)
def test_of_crons_it_is_the_nearest_that_there_is(
    expressions: list[str], zone: str, dst: DstRule
) -> None:
    crons = tuple(Cron(expression, zone, dst=dst) for expression in expressions)
    schedule = Union(crons) if len(crons) > 1 else crons[0]
    gap = shortest_gap_seconds(schedule)
    begin = datetime.fromtimestamp(zones.year_start(2024), tz=zones.load_zone("UTC"))
    found = list(islice(schedule.between(begin, begin + timedelta(days=37 * 365.25)), 10_000))
    # Listed as a whole, or too dense for it.
    if 2 <= len(found) < 10_000:
        assert gap == min((b - a).total_seconds() for a, b in pairwise(found))


@pytest.mark.parametrize(
    ("window", "text", "fraction", "expected"),
    [
        (Window(seconds=900), "0 9 * * *", 0.0, 0),
        (Window(seconds=900), "0 9 * * *", 0.5, 450),
        (Window(seconds=900), "0 9 * * *", 0.999_999, 899),
        # Never past the next nominal time.
        (Window(seconds=900), "*/5 * * * *", 0.5, 150),
        (Window(seconds=900), "* * * * * *", 0.999_999, 0),
        (Window(seconds=900), "at 2026-12-01T09:00:00", 0.5, 450),
        (Window(percent=50), "every 1h", 0.5, 900),
        (Window(percent=100), "every 1h", 0.999_999_9, 3599),
        (Window(percent=33), "every 10s", 0.5, 1),
        (Window(percent=10), "every 10m after finish", 0.5, 30),
        (Window(percent=100), "0 9 * * MON", 0.5, 7 * DAY // 2),
    ],
)
def test_offset(window: Window, text: str, fraction: float, expected: int) -> None:
    assert spread_seconds(window, parse_schedule(text), fraction) == expected


@pytest.mark.parametrize(
    ("text", "zone", "expected"),
    [
        # Saturday's 09:00 and a closed Monday's 09:30 may meet on one day.
        ("0 9 * * 6 | 30 9 * * 1", "UTC", 1800),
        ("0 9 * * MON", "UTC", DAY),
        ("0 9 * * MON", "Europe/Riga", DAY - HOUR),
        ("50 23 * * 1 | 10 0 * * 4", "UTC", 20 * 60),
        # 2026-03-29 03:00 EET -> 04:00 EEST: what is moved there runs at 04:00.
        ("cron(30 3 ? * SAT *) | cron(5 4 ? * MON *)", "Europe/Riga", 300),
        ("every 25h", "UTC", HOUR),
        ("every 3d | 30 9 * * 1", "UTC", 9 * HOUR + 1800),
        ("at 2026-01-01T09:00:00 | at 2026-03-01T09:20:00", "Europe/Riga", 1200),
        ("at 2026-01-01T09:00:00", "UTC", None),
        ("every 10m after finish", "UTC", 600),
    ],
)
def test_what_a_calendar_moves_comes_no_nearer(text: str, zone: str, expected: int | None) -> None:
    schedule = parse_schedule(text, zone)
    assert shortest_shifted_gap(schedule) == expected
    room = DAY if expected is None else min(DAY, expected)
    assert spread_seconds(Window(seconds=DAY), schedule, 0.5, shifts=True) == room // 2


@settings(exact, max_examples=60)
@given(st.data(), schedules, calendar_rules)
def test_no_two_moved_occurrences_are_nearer_than_the_rolling_gap(
    data: st.DataObject, schedule: Schedule, rule: CalendarRule
) -> None:
    after = data.draw(instants(schedule.timezone)) - timedelta(hours=30)
    moved = OnOpenDays(schedule, data.draw(closed_days(after)), rule)
    gap = shortest_shifted_gap(schedule)
    found = list(islice(moved.between(after, after + timedelta(days=2000)), 40))
    if gap is None:
        assert len(found) <= 1
    elif rule is not CalendarRule.SKIP:
        nearest = min(((b - a).total_seconds() for a, b in pairwise(found)), default=gap)
        assert nearest >= gap


def test_rounding_does_not_reach_the_next_occurrence() -> None:
    just_below_one = 1 - 2**-53
    schedule = parse_schedule("every 3650d")
    assert spread_seconds(Window(percent=100), schedule, just_below_one) == 3650 * DAY - 1
    assert spread_seconds(Window(seconds=60), parse_schedule("every 1m"), just_below_one) == 59


def test_a_percentage_needs_an_interval() -> None:
    for text in ("at 2026-12-01T09:00:00", "cron(0 9 1 1 ? 2030)"):
        with pytest.raises(InvalidFieldError, match="50% of what") as refused:
            spread_seconds(Window(percent=50), parse_schedule(text), 0.5)
        assert refused.value.field == "window"


@settings(exact, max_examples=100)
@given(
    st.one_of(
        st.integers(1, DAY).map(lambda seconds: Window(seconds=seconds)),
        st.integers(1, 100).map(lambda percent: Window(percent=percent)),
    ),
    st.one_of(schedules, st.integers(1, 10**6).map(Delay)),
    st.floats(0, 1, exclude_max=True),
)
def test_the_offset_stays_in_the_window_and_before_the_next_occurrence(
    window: Window, schedule: Schedule, fraction: float
) -> None:
    gap = shortest_gap_seconds(schedule)
    if gap is None and window.percent is not None:
        return
    offset = spread_seconds(window, schedule, fraction)
    assert offset >= 0
    if window.seconds is not None:
        assert offset < window.seconds
    if gap is not None:
        assert offset < gap
