"""Cron by sets of numbers: what is made of them fires when all of them match."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carillon.importers.cron_fields import CronFields
from carillon.importers.entries import Json
from carillon.schedules import parse_schedule

BEGIN = datetime(2027, 12, 25, tzinfo=UTC)
END = datetime(2028, 3, 5, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def fires(members: Json) -> list[datetime]:
    schedule = parse_schedule(members["schedule"], except_=tuple(members.get("except", ())))
    return list(schedule.between(BEGIN - MINUTE, END - MINUTE))


def subsets(low: int, high: int) -> st.SearchStrategy[frozenset[int]]:
    numbers = st.integers(low, high)
    every = st.just(frozenset(range(low, high + 1)))
    stepped = st.integers(2, high).map(lambda step: frozenset(range(low, high + 1, step)))
    return st.one_of(every, stepped, st.frozensets(numbers, min_size=1))


@settings(deadline=None)
@given(st.integers(0, 59), subsets(0, 23), subsets(1, 31), subsets(1, 12), subsets(0, 6))
def test_all_fields_must_match(
    minute: int,
    hours: frozenset[int],
    days: frozenset[int],
    months: frozenset[int],
    weekdays: frozenset[int],
) -> None:
    spans = (BEGIN + timedelta(hours=number) for number in range((END - BEGIN).days * 24))
    expected = [
        at + minute * MINUTE
        for at in spans
        if at.hour in hours
        and at.day in days
        and at.month in months
        and at.isoweekday() % 7 in weekdays
    ]
    fields = CronFields(frozenset({minute}), hours, days, months, weekdays)

    if expected:
        assert fires(fields.members) == expected


@pytest.mark.parametrize(
    ("fields", "members"),
    [
        (CronFields(), {"schedule": "* * * * *"}),
        (CronFields(minutes={0, 15, 30, 45}, hours={9}), {"schedule": "*/15 9 * * *"}),
        (CronFields({0}, {8, 9, 10, 17}), {"schedule": "0 8-10,17 * * *"}),
        (CronFields({0}, {0}, weekdays={1, 2, 3, 4, 5}), {"schedule": "0 0 * * 1-5"}),
        (CronFields({0}, {0}, days={1}, seconds={30}), {"schedule": "30 0 0 1 * *"}),
        # The 13th, if it is a Friday: our cron would take either.
        (
            CronFields({0}, {0}, days={13}, weekdays={5}),
            {"schedule": "0 0 13 * *", "except": ["* * * * 0-4,6"]},
        ),
        (
            CronFields({0}, {0}, days=set(range(1, 32, 2)), weekdays={5}),
            {"schedule": "0 0 */2 * 5"},
        ),
        (
            CronFields({0}, {0}, days={1}, last_day=True, other_days=("5#2",)),
            {"schedule": ["0 0 1,L * *", "0 0 * * 5#2"]},
        ),
        (CronFields({0}, {0}, days=set(), other_days=("0L",)), {"schedule": "0 0 * * 0L"}),
    ],
)
def test_the_text_is_short(fields: CronFields, members: dict[str, Any]) -> None:
    assert fields.members == members


def test_a_weekday_beside_one_by_its_place_takes_the_others_out() -> None:
    """The first Monday of the month, or the first day, on Mondays only."""
    fields = CronFields({0}, {0}, days={1}, weekdays={1}, other_days=("1#1",))

    assert fires(fields.members) == [
        datetime(2028, 1, 3, tzinfo=UTC),
        datetime(2028, 2, 7, tzinfo=UTC),
    ]
