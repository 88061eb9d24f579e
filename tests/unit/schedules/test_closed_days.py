from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carillon.schedules import CalendarRule, ClosedDays
from tests.unit.schedules.strategies import exact

SKIP, NEXT, PREVIOUS = CalendarRule
FIRST = date(2026, 1, 1)
days = st.integers(0, 60).map(lambda number: FIRST + timedelta(days=number))
ranges = st.lists(st.tuples(days, days).map(lambda pair: (min(pair), max(pair))), max_size=6)


def test_weekdays_and_ranges_close_days() -> None:
    closed = ClosedDays.of({5, 6}, [(date(2026, 12, 24), date(2026, 12, 25))])
    # 2026-12-26 is a Saturday.
    found = [day for day in range(20, 32) if date(2026, 12, day) in closed]
    assert found == [20, 24, 25, 26, 27]


def test_overlapping_and_adjacent_ranges_are_merged() -> None:
    def day(number: int) -> date:
        return date(2026, 5, number)

    pairs = [(day(10), day(12)), (day(1), day(3)), (day(4), day(4)), (day(11), day(20))]
    assert ClosedDays.of(set(), pairs).ranges == ((day(1), day(4)), (day(10), day(20)))
    assert ClosedDays.of(set(), pairs) == ClosedDays.of(set(), pairs[::-1])


def test_the_last_day_of_all_may_be_closed_twice() -> None:
    pair = (date.max, date.max)
    assert ClosedDays.of(set(), [pair, pair]).ranges == (pair,)


@exact
@given(st.sets(st.integers(0, 6)), ranges)
def test_a_day_is_closed_when_one_of_them_holds_it(
    weekdays: set[int], pairs: list[tuple[date, date]]
) -> None:
    closed = ClosedDays.of(weekdays, pairs)
    for number in range(-2, 70):
        day = FIRST + timedelta(days=number)
        expected = day.weekday() in weekdays or any(first <= day <= last for first, last in pairs)
        assert (day in closed) is expected


@pytest.mark.parametrize(
    ("day", "rule", "expected"),
    [
        # 2026-08-01 is a Saturday.
        (date(2026, 7, 31), NEXT, date(2026, 7, 31)),
        (date(2026, 8, 1), NEXT, date(2026, 8, 4)),
        (date(2026, 8, 1), PREVIOUS, date(2026, 7, 31)),
        (date(2026, 8, 3), PREVIOUS, date(2026, 7, 31)),
    ],
)
def test_open_day_from(day: date, rule: CalendarRule, expected: date) -> None:
    closed = ClosedDays.of({5, 6}, [(date(2026, 8, 3), date(2026, 8, 3))])
    assert closed.open_day_from(day, rule) == expected


@pytest.mark.parametrize(("rule", "step"), [(NEXT, 1), (PREVIOUS, -1)])
def test_it_looks_31_days_far(rule: CalendarRule, step: int) -> None:
    def closed_for(count: int) -> ClosedDays:
        last = FIRST + timedelta(days=step * (count - 1))
        return ClosedDays.of(set(), [(min(FIRST, last), max(FIRST, last))])

    assert closed_for(31).open_day_from(FIRST, rule) == FIRST + timedelta(days=31 * step)
    assert closed_for(32).open_day_from(FIRST, rule) is None
    assert ClosedDays.of(set(range(7)), []).open_day_from(FIRST, rule) is None
