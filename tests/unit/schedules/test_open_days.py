"""Schedules under a calendar, against an oracle that moves one occurrence after the other."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import islice, pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carillon.schedules import (
    At,
    CalendarRule,
    ClosedDays,
    Cron,
    Delay,
    DstRule,
    Every,
    Fold,
    Gap,
    OnOpenDays,
    Recurrence,
    Union,
    parse_schedule,
)
from carillon.schedules.calendars import open_days
from carillon.schedules.zones.wall_schedule import first_from
from tests.unit.schedules.strategies import (
    any_expressions,
    calendar_rules,
    closed_days,
    exact,
    exact_and_slow,
    instants,
    settings_of_schedules,
)

SKIP, NEXT, PREVIOUS = CalendarRule
DAY = timedelta(days=1)
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
WEEKENDS = ClosedDays.of({5, 6}, [])


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def texts(found: Iterator[datetime]) -> list[str]:
    return [f"{instant:%m-%dT%H:%M:%S}".removesuffix(":00") for instant in found]


def on_open_days(
    text: str, zone: str, closed: ClosedDays, rule: CalendarRule, **setting: Any
) -> OnOpenDays:
    return OnOpenDays(parse_schedule(text, zone, **setting), closed, rule)


@pytest.mark.parametrize(
    ("rule", "expected", "moved_from"),
    [
        (SKIP, [], ()),
        (NEXT, ["12-28T07:00"], (date(2026, 12, 25),)),
        (PREVIOUS, ["12-24T07:00"], (date(2026, 12, 25),)),
    ],
)
def test_fridays_around_christmas(
    rule: CalendarRule, expected: list[str], moved_from: tuple[date, ...]
) -> None:
    closed = ClosedDays.of({5, 6}, [(date(2026, 12, 25), date(2026, 12, 26))])
    schedule = on_open_days("0 9 * * FRI", "Europe/Riga", closed, rule)
    found = list(schedule.between(utc("2026-12-20"), utc("2026-12-31")))
    assert texts(iter(found)) == expected
    assert all(schedule.moved_from(instant) == moved_from for instant in found)
    assert schedule.moved_from(utc("2026-12-18T07:00")) == ()


def test_several_moved_to_one_instant_are_one_occurrence() -> None:
    schedule = on_open_days("0 9 * * *", "UTC", WEEKENDS, NEXT)
    # 2026-08-01 is a Saturday.
    found = list(schedule.between(utc("2026-07-31"), utc("2026-08-04")))
    assert texts(iter(found)) == ["07-31T09:00", "08-03T09:00"]
    assert schedule.moved_from(found[1]) == (date(2026, 8, 1), date(2026, 8, 2))


# Europe/Riga, 2026-03-29 (a Sunday): 03:00 EET -> 04:00 EEST, at 01:00 UTC.
# Europe/Riga, 2026-10-25 (a Sunday): 04:00 EEST -> 03:00 EET, at 01:00 UTC.
@pytest.mark.parametrize(
    ("text", "rule", "dst", "closed", "expected"),
    [
        # What the clocks did on the closed day does not matter on the open one.
        ("30 3 * * SUN", NEXT, DstRule(), WEEKENDS, ["03-30T00:30"]),
        # Moved into the gap: at the transition, or not at all.
        ("30 3 * * SAT", NEXT, DstRule(), ClosedDays.of({5}, []), ["03-29T01:00"]),
        ("30 3 * * SAT", NEXT, DstRule(gap=Gap.SKIP), ClosedDays.of({5}, []), []),
        ("30 3 * * MON", PREVIOUS, DstRule(), ClosedDays.of({0}, []), ["03-29T01:00"]),
    ],
)
def test_moved_around_a_gap(
    text: str, rule: CalendarRule, dst: DstRule, closed: ClosedDays, expected: list[str]
) -> None:
    schedule = on_open_days(text, "Europe/Riga", closed, rule, dst=dst)
    assert texts(schedule.between(utc("2026-03-28"), utc("2026-03-31"))) == expected


@pytest.mark.parametrize(
    ("fold", "expected"),
    [
        (None, ["10-25T00:30"]),
        (Fold.FIRST, ["10-25T00:30"]),
        (Fold.BOTH, ["10-25T00:30"]),
        (Fold.SECOND, ["10-25T01:30"]),
    ],
)
def test_moved_into_a_repeated_hour_fires_once(fold: Fold | None, expected: list[str]) -> None:
    schedule = on_open_days(
        "30 3 * * SAT", "Europe/Riga", ClosedDays.of({5}, []), NEXT, dst=DstRule(fold=fold)
    )
    assert texts(schedule.between(utc("2026-10-24"), utc("2026-10-27"))) == expected


# America/Nuuk, 2026-03-28 (a Saturday): 23:00 -> 00:00 of Sunday, at 01:00 UTC of the 29th.
@pytest.mark.parametrize(
    ("closed", "expected"),
    [
        # Saturday's: it fires at the transition, although Sunday has begun.
        (ClosedDays.of({6}, []), ["03-29T01:00", "03-31T00:30"]),
        (ClosedDays.of({5}, []), ["03-30T00:30", "03-31T00:30"]),
        (ClosedDays(), ["03-29T01:00", "03-30T00:30", "03-31T00:30"]),
    ],
)
def test_a_gap_that_ends_at_midnight(closed: ClosedDays, expected: list[str]) -> None:
    schedule = on_open_days("30 23 * * *", "America/Nuuk", closed, NEXT)
    after, until = utc("2026-03-29"), utc("2026-03-31T12:00")
    assert texts(schedule.between(after, until)) == expected
    backward = [schedule.previous(until)]
    while backward[-1] is not None and backward[-1] > after:
        backward.append(schedule.previous(backward[-1]))
    assert texts(iter([found for found in backward[::-1] if found and found > after])) == expected
    for instant in schedule.between(after, until):
        assert schedule.has(int(instant.timestamp()))


def test_what_is_moved_may_lie_beyond_the_end_and_before_the_start() -> None:
    # 2026-08-01 is a Saturday.
    late = on_open_days("0 9 * * *", "UTC", WEEKENDS, NEXT, end_at=utc("2026-08-01T12:00"))
    assert texts(late.between(utc("2026-07-30T12:00"), utc("2027-01-01"))) == [
        "07-31T09:00",
        "08-03T09:00",
    ]
    early = on_open_days("0 9 * * *", "UTC", WEEKENDS, PREVIOUS, start_at=utc("2026-08-01T00:00"))
    assert texts(early.between(utc("2026-01-01"), utc("2026-08-04"))) == [
        "07-31T09:00",
        "08-03T09:00",
    ]
    assert early.previous(utc("2026-08-01")) == utc("2026-07-31T09:00")
    assert early.previous(utc("2026-07-31T09:00")) is None


@pytest.mark.parametrize("rule", CalendarRule)
def test_when_every_day_is_closed_nothing_ever_fires(rule: CalendarRule) -> None:
    closed = ClosedDays.of(set(range(7)), [])
    for text in ("* * * * * *", "every 1s", "0 0 1 1 *"):
        schedule = on_open_days(text, "Europe/Riga", closed, rule)
        assert schedule.next(utc("2026-01-01")) is None
        assert schedule.previous(utc("2026-01-01")) is None
        assert schedule.seconds_of_minute(29_000_000) == ()


@pytest.mark.parametrize("rule", [NEXT, PREVIOUS])
def test_what_was_moved_is_found_without_a_look_at_far_days(
    rule: CalendarRule, monkeypatch: pytest.MonkeyPatch
) -> None:
    # All days of the base are closed: what stays is searched in vain, for each that was moved.
    schedule = on_open_days("* * * * * * except * * * * 1-5", "Europe/Riga", WEEKENDS, rule)
    looks: list[int] = []

    def counted(base: Recurrence, second: int) -> int | None:
        looks.append(second)
        return first_from(base, second)

    monkeypatch.setattr(open_days, "first_from", counted)
    found = list(islice(schedule.between(utc("2026-08-07T00:00"), utc("2026-08-11")), 100))
    assert len(found) == 100
    assert len(looks) < 500


@pytest.mark.parametrize("rule", CalendarRule)
def test_nothing_is_searched_beyond_the_end_of_a_span(
    rule: CalendarRule, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = ClosedDays.of(set(), [(date(2026, 1, 1), date(2190, 1, 1))])
    schedule = on_open_days("every 1s", "Europe/Riga", closed, rule)
    looks: list[date] = []

    def counted(days: ClosedDays, day: date) -> bool:
        looks.append(day)
        return days.ranges[0][0] <= day <= days.ranges[0][1]

    monkeypatch.setattr(ClosedDays, "__contains__", counted)
    assert not list(schedule.between(utc("2026-08-07"), utc("2026-08-11")))
    assert len(looks) < 100


def test_it_is_what_its_base_is() -> None:
    base = parse_schedule("at 2026-12-01T09:00:00 | at 2026-12-02T09:00:00", "Europe/Riga")
    schedule = OnOpenDays(base, WEEKENDS, NEXT)
    assert schedule.text == base.text
    assert (schedule.timezone, schedule.dst) == ("Europe/Riga", base.dst)
    assert not schedule.is_recurring
    assert on_open_days("0 9 * * *", "UTC", WEEKENDS, NEXT).is_recurring


@pytest.mark.parametrize(
    ("rule", "after", "expected"),
    [
        # 2026-08-01 is a Saturday.
        (SKIP, "2026-07-31T20:00", "2026-08-01T20:00"),
        (NEXT, "2026-07-30T20:00", "2026-07-31T20:00"),
        (NEXT, "2026-07-31T20:00", "2026-08-03T20:00"),
        # Friday at 20:00 is not after Friday at 20:00: the day before cannot be had.
        (PREVIOUS, "2026-07-31T20:00", "2026-08-03T20:00"),
        (PREVIOUS, "2026-08-01T20:00", "2026-08-03T20:00"),
    ],
)
def test_a_fixed_delay_takes_an_open_day(rule: CalendarRule, after: str, expected: str) -> None:
    schedule = OnOpenDays(Delay(86_400), WEEKENDS, rule)
    assert schedule.next(utc(after)) == utc(expected)
    assert schedule.previous(utc(after)) is None
    assert schedule.moved_from(utc(expected)) == ()


def test_a_longer_delay_may_go_back_to_the_open_day_before() -> None:
    schedule = OnOpenDays(Delay(3 * 86_400), WEEKENDS, PREVIOUS)
    assert schedule.next(utc("2026-07-29T20:00")) == utc("2026-07-31T20:00")


def test_a_fixed_delay_waits_for_the_end_of_a_long_closing() -> None:
    closed = ClosedDays.of(set(), [(date(2026, 1, 1), date(2026, 6, 30))])
    schedule = OnOpenDays(Delay(60), closed, NEXT)
    assert schedule.next(utc("2026-01-15T10:00:30")) == utc("2026-07-01T10:01:30")
    assert OnOpenDays(Delay(60), ClosedDays.of(set(range(7)), []), NEXT).next(EPOCH) is None


# --- the oracle -----------------------------------------------------------------------------


def oracle(schedule: OnOpenDays, after: datetime, until: datetime) -> list[datetime]:
    """All occurrences in (after, until], each occurrence of 33 days around moved by itself."""
    zone = ZoneInfo(schedule.timezone)
    around = (after - 33 * DAY, until + 33 * DAY)
    found = {
        instant
        for instant in schedule.base.between(*around)
        if instant.astimezone(zone).date() not in schedule.closed
    }
    if schedule.rule is not SKIP:
        for local_time in nominal(schedule.base, *around):
            target = schedule.closed.open_day_from(local_time.date(), schedule.rule)
            if target is not None and target != local_time.date():
                found |= landings(datetime.combine(target, local_time.time()), zone, schedule.dst)
    return sorted(instant for instant in found if after < instant <= until)


def nominal(base: Recurrence, after: datetime, until: datetime) -> set[datetime]:
    """The wall times of a base without exceptions that are in its bounds."""
    if isinstance(base, Union):
        return set().union(*(nominal(member, after, until) for member in base.schedules))
    zone = ZoneInfo(base.timezone)
    if not isinstance(base, Cron):
        if isinstance(base, At) and base.moment.tzinfo is None:
            return {base.moment}
        return {
            instant.astimezone(zone).replace(tzinfo=None, fold=0)
            for instant in base.between(after, until)
        }
    local_times = {
        instant.replace(tzinfo=None)
        for instant in Cron(base.expression).between(after - DAY, until + DAY)
    }
    if base.start_at is None and base.end_at is None:
        return local_times
    first, last = base.start_at or EPOCH, base.end_at or until + 9 * DAY
    return {local_time for local_time in local_times if first <= reached(local_time, zone) <= last}


def reached(local_time: datetime, zone: ZoneInfo) -> datetime:
    """When the clocks first show a wall time, or have skipped it."""
    instant = local_time.replace(tzinfo=zone, fold=0).astimezone(UTC)
    if instant.astimezone(zone).replace(tzinfo=None) == local_time:
        return instant
    instant = instant.replace(second=0) - timedelta(hours=5)
    while instant.astimezone(zone).replace(tzinfo=None) < local_time:
        instant += MINUTE
    return instant


def landings(local_time: datetime, zone: ZoneInfo, dst: DstRule) -> set[datetime]:
    instant = reached(local_time, zone)
    if instant.astimezone(zone).replace(tzinfo=None, fold=0) != local_time:
        return set() if dst.gap is Gap.SKIP else {instant}
    if dst.fold is Fold.SECOND:
        return {local_time.replace(tzinfo=zone, fold=1).astimezone(UTC)}
    return {instant}


@st.composite
def bases(draw: st.DrawFn) -> Recurrence:
    """Without exceptions, and not so dense that the oracle takes long."""
    setting = draw(settings_of_schedules())
    kind = draw(st.sampled_from(["cron", "cron", "every", "at", "combined"]))
    if kind == "at":
        del setting["start_at"], setting["end_at"]
        setting["dst"] = DstRule(fold=setting["dst"].fold)
        moment = draw(st.datetimes(datetime(2025, 1, 1), datetime(2026, 1, 1)))
        return At(moment.replace(microsecond=0), **setting)
    every = st.builds(lambda interval: Every(interval, 0, **setting), st.integers(7200, 900_000))
    cron = any_expressions.filter(_is_sparse).map(lambda text: Cron(text, **setting))
    if kind == "every":
        return draw(every)
    if kind == "cron":
        return draw(cron)
    return Union(tuple(draw(st.lists(cron | every, min_size=1, max_size=3))))


def _is_sparse(expression: str) -> bool:
    found = Cron(expression).between(utc("2025-06-01"), utc("2025-06-03"))
    return len(list(islice(found, 30))) < 30


@exact_and_slow
@given(st.data(), bases(), calendar_rules)
def test_it_agrees_with_the_oracle(
    data: st.DataObject, base: Recurrence, rule: CalendarRule
) -> None:
    moment = base.next(data.draw(instants(base.timezone)))
    after = moment or data.draw(instants(base.timezone))
    after -= timedelta(seconds=data.draw(st.integers(0, 4 * 86_400)))
    until = after + timedelta(days=10)
    closed = data.draw(closed_days(after))
    schedule = OnOpenDays(base, closed, rule)
    expected = oracle(schedule, after, until)

    assert list(schedule.between(after, until)) == expected
    for earlier, later in pairwise(expected):
        assert schedule.previous(later) == earlier
    assert expected == [] or schedule.previous(until + SECOND) == expected[-1]
    for minute in {int(instant.timestamp()) // 60 for instant in expected[:10]}:
        begin = EPOCH + minute * MINUTE
        if after < begin and begin + MINUTE <= until:
            of_minute = [instant - begin for instant in expected if instant - begin >= 0 * MINUTE]
            seconds = [part.seconds for part in of_minute if part < MINUTE]
            assert list(schedule.seconds_of_minute(minute)) == seconds
    for instant in expected[:10]:
        assert schedule.has(int(instant.timestamp()))
        assert base.has(int(instant.timestamp())) or schedule.moved_from(instant)


@exact_and_slow
@given(st.data(), bases(), calendar_rules)
def test_without_a_closed_day_it_is_the_base(
    data: st.DataObject, base: Recurrence, rule: CalendarRule
) -> None:
    after = data.draw(instants(base.timezone))
    schedule = OnOpenDays(base, ClosedDays(), rule)
    ahead = list(islice(base.between(after, after + timedelta(days=9000)), 5))
    assert list(islice(schedule.between(after, after + timedelta(days=9000)), 5)) == ahead
    for instant in ahead:
        assert schedule.previous(instant + SECOND) == instant
        assert schedule.moved_from(instant) == ()


@settings(exact, max_examples=150)
@given(st.data(), any_expressions, calendar_rules)
def test_dense_bases_agree_by_the_minute(
    data: st.DataObject, expression: str, rule: CalendarRule
) -> None:
    base = Cron(expression, data.draw(st.sampled_from(["UTC", "Europe/Riga", "Africa/Cairo"])))
    near = base.next(data.draw(instants(base.timezone)))
    if near is None:
        return
    schedule = OnOpenDays(base, data.draw(closed_days(near)), rule)
    start = schedule.next(near - 3 * DAY) or near
    minute = int(start.timestamp()) // 60
    for each in range(minute - 2, minute + 3):
        begin = EPOCH + each * MINUTE
        found = schedule.between(begin - SECOND, begin + 59 * SECOND)
        assert tuple(instant.second for instant in found) == schedule.seconds_of_minute(each)
