"""Unions and exceptions, by literal times and against sets of instants."""

import gc
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from threading import Thread
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carillon.domain.spec.schedule_spec import STORED, ScheduleSpec
from carillon.schedules import (
    At,
    Cron,
    DstRule,
    Every,
    Fold,
    Gap,
    Union,
    parse_schedule,
)
from carillon.schedules.cron.days import Days
from carillon.schedules.kinds.exclusion_search import Exclusion
from carillon.schedules.parsing import MOST_COMBINATIONS_KEPT
from carillon.stores.dynamo import wheel
from tests.unit.schedules.strategies import combinations, exact, instants

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def combined(text: str, zone: str = "UTC", dst: DstRule | None = None) -> Union:
    schedule = parse_schedule(text, zone, dst=dst or DstRule())
    assert isinstance(schedule, Union)
    return schedule


def texts(found: Iterable[datetime]) -> list[str]:
    return [f"{instant:%m-%dT%H:%M:%S}".removesuffix(":00") for instant in found]


@pytest.mark.parametrize(
    ("text", "after", "until", "expected"),
    [
        # 2026-12-25 is a Friday.
        (
            "0 9 * * 1-5 | 0 12 * * 6 except * * 25 12 *",
            "2026-12-24",
            "2026-12-29",
            ["12-24T09:00", "12-26T12:00", "12-28T09:00"],
        ),
        # The same instant counts once.
        ("0 9 * * * | 0 */9 * * *", "2026-01-01", "2026-01-01T12:00", ["01-01T09:00"]),
        ("every 20m | */30 * * * *", "2026-01-01", "2026-01-01T01:00",
         ["01-01T00:20", "01-01T00:30", "01-01T00:40", "01-01T01:00"]),
        ("at 2026-01-01T00:00:07 | 0 0 1 1 *", "2025-12-31", "2026-02-01",
         ["01-01T00:00", "01-01T00:00:07"]),
        # An exception without seconds takes the minute, others their own instants.
        ("every 20s except 1 * * * *", "2026-01-01", "2026-01-01T00:02",
         ["01-01T00:00:20", "01-01T00:00:40", "01-01T00:02"]),
        ("every 20s except */40 * * * * *", "2026-01-01", "2026-01-01T00:01:20",
         ["01-01T00:00:20", "01-01T00:01:20"]),
        ("every 20s except every 1m", "2026-01-01", "2026-01-01T00:01:20",
         ["01-01T00:00:20", "01-01T00:00:40", "01-01T00:01:20"]),
        ("every 20s except at 2026-01-01T00:00:40Z", "2026-01-01", "2026-01-01T00:01:00",
         ["01-01T00:00:20", "01-01T00:01"]),
        ("0 9 * * * except cron(0 9 ? * 3#2 *)", "2026-12-07", "2026-12-10",
         ["12-07T09:00", "12-09T09:00"]),
    ],
)  # fmt: skip
def test_occurrences(text: str, after: str, until: str, expected: list[str]) -> None:
    schedule = combined(text)
    found = list(schedule.between(utc(after), utc(until)))
    assert texts(found) == expected
    backward = [schedule.previous(utc(until) + SECOND)]
    while len(backward) < len(found):
        backward.append(schedule.previous(backward[-1] or EPOCH))
    assert backward[::-1] == found


# Europe/Riga, 2026-03-29: 03:00 EET -> 04:00 EEST, at 01:00 UTC.
# Europe/Riga, 2026-10-25: 04:00 EEST -> 03:00 EET, at 01:00 UTC.
@pytest.mark.parametrize(
    ("text", "dst", "after", "expected"),
    [
        # A whole day out: also what the gap has moved within it.
        ("30 3 * * * except * * 29 3 *", DstRule(), "2026-03-28T12:00", ["03-30T00:30"]),
        # The exception names the time, the clocks show another: it is taken out all the same.
        ("30 3 * * * except 30 3 29 3 *", DstRule(), "2026-03-28T12:00", ["03-30T00:30"]),
        # The minute that the clocks show at the transition is out.
        ("30 3 * * * except 0 4 * * *", DstRule(), "2026-03-28T12:00", ["03-30T00:30"]),
        ("30 3 * * * except 0 5 * * *", DstRule(), "2026-03-28T12:00",
         ["03-29T01:00", "03-30T00:30"]),
        # Both passes show the minute, whatever the DST rule says of firing.
        ("*/30 3 * * * except 30 3 * * *", DstRule(), "2026-10-24T12:00",
         ["10-25T00:00", "10-25T01:00"]),
        ("*/30 3 * * * except 30 3 * * *", DstRule(Gap.SKIP, Fold.FIRST), "2026-10-24T12:00",
         ["10-25T00:00"]),
        # Exact instants: only the first pass is taken out.
        ("*/30 3 * * * except at 2026-10-25T03:30:00", DstRule(), "2026-10-24T12:00",
         ["10-25T00:00", "10-25T01:00", "10-25T01:30"]),
    ],
)  # fmt: skip
def test_exceptions_around_a_transition(
    text: str, dst: DstRule, after: str, expected: list[str]
) -> None:
    begin = utc(after)
    schedule = combined(text, "Europe/Riga", dst)
    assert texts(schedule.between(begin, begin + timedelta(hours=36, minutes=45))) == expected


@pytest.mark.parametrize("zone", ["UTC", "Europe/Riga"])
@pytest.mark.parametrize(
    ("text", "exception"),
    [
        ("* * * * *", "* * * * *"),
        ("* * * * * *", "* * * * * *"),
        ("0 9 * * *", "0 9 * * *"),
        ("cron(0/5 3 ? * SUN *)", "* * * * *"),
    ],
)
def test_a_search_that_finds_nothing_ends(zone: str, text: str, exception: str) -> None:
    schedule = Union((Cron(text, zone),), (Cron(exception, zone),))
    assert schedule.next(utc("2026-01-01")) is None
    assert schedule.previous(utc("2026-01-01")) is None
    assert schedule.seconds_of_minute(29_000_000) == ()


def test_what_only_a_second_pass_leaves_is_found() -> None:
    # By times of day, the exception's rule, the repeated hour is taken out at its first pass only.
    schedule = combined("* * * * * * except 0-59 0-59 0-23 * * *", "Europe/Riga")
    assert schedule.next(utc("2026-01-01")) == utc("2026-10-25T01:00")
    assert schedule.previous(utc("2026-10-25T01:00")) == utc("2025-10-26T01:59:59")


def test_a_search_leaps_over_what_is_taken_out() -> None:
    schedule = combined("* * * * * * except * 0-22 * * * | * 23 * 1-11 * | * 23 1-30 12 *")
    assert schedule.next(utc("2026-01-01")) == utc("2026-12-31T23:00")
    assert schedule.previous(utc("2026-12-31T23:00")) == utc("2025-12-31T23:59:59")


def test_questions_of_two_threads_do_not_mix(monkeypatch: pytest.MonkeyPatch) -> None:
    schedule = combined("* * * * * except * * 1-27 * * | * * * 3-11 *")
    in_month = Days.in_month

    def interrupted(days: Days, year: int, month: int) -> int:
        monkeypatch.setattr(Days, "in_month", in_month)
        other = Thread(target=schedule.next, args=[utc("2028-11-06")])
        other.start()
        other.join()
        return in_month(days, year, month)

    monkeypatch.setattr(Days, "in_month", interrupted)
    assert schedule.next(utc("2028-06-06")) == utc("2028-12-28")


_HALVES = " | ".join(f"every {2**k}s offset {2 ** (k - 1) - 1}s" for k in range(1, 20))


# The day ahead is 2026-07-01; Riga's clocks go back on 2026-10-25, at 01:00 UTC.
@pytest.mark.parametrize(
    ("text", "zone", "after", "expected"),
    [
        ("*/10 * * * * * except */10 * * * 7 *", "UTC", "2026-06-30T23:59:50", "2026-08-01"),
        ("*/10 * * * * * except */10 * * * 7 *", "Europe/Riga", "2026-06-30T20:59:50",
         "2026-07-31T21:00"),
        ("* * * * * * except 1-59 * * * * * | 0 1-59 * * * * | 0 0 1-23 * * *", "UTC",
         "2026-07-01", "2026-07-02"),
        # One day in 28 years is left.
        ("* * * * * * except * * * * 1,3-12 * | * * * 1-28 * * | * * * * * 1-6", "UTC",
         "2004-02-29T23:59:59", "2032-02-29"),
        # Each second exception takes half of what the others leave: 524,287 in a row are taken.
        (f"every 1s except {_HALVES}", "UTC", "2026-07-03T18:31:27", "2026-07-09T20:09:35"),
        ("every 7s except every 14s | * 0-22 * * * | * 23 * 1-11 * | * 23 1-30 12 *", "UTC",
         "2026-07-01", "2026-12-31T23:00:03"),
        ("* * * * * * except * 0-2,4-23 * * * | cron(* 3 * * ? *) | 0-29 * 3 * * * "
         "| 30-59 0-58 3 * * *", "Europe/Riga", "2026-07-01", None),
        ("* * * * * * except * 0-2,4-23 * * * | 0-59 0-59 3 * * *", "Europe/Riga", "2026-07-01",
         "2026-10-25T01:00"),
        # An `at` counts however far it is; as an exception it takes out but itself.
        ("0 9 1 1 * | at 2190-03-01T00:00:00 except * * * 1 *", "UTC", "2026-07-01",
         "2190-03-01"),
        ("0 0 31 12 * except at 2026-12-31T00:00:00 | cron(0 0 31 12 ? 2027)", "UTC", "2026-07-01",
         "2028-12-31"),
    ],
)  # fmt: skip
def test_what_is_left_is_found_however_much_is_taken_out(
    text: str, zone: str, after: str, expected: str | None
) -> None:
    instant = utc(after)
    members, _, exceptions = text.partition(" except ")
    schedule = Union(
        tuple(_simple(part, zone) for part in members.split("|")),
        tuple(_simple(part, zone) for part in exceptions.split("|")),
    )
    assert schedule.next(instant) == (None if expected is None else utc(expected))
    if expected is not None:
        # Nothing lies between the two.
        assert schedule.previous(utc(expected)) == schedule.previous(instant + SECOND)


def _simple(text: str, zone: str) -> At | Every | Cron:
    schedule = parse_schedule(text, zone)
    assert isinstance(schedule, At | Every | Cron)
    return schedule


def test_intervals_that_are_no_whole_part_of_a_day_are_not_searched_for_decades(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # All is taken out, and no two days are alike: each that is looked at costs its time.
    days = set[int]()
    left_of = Exclusion._left_of

    def counted(self: Exclusion, day: int, offset: int) -> int:
        days.add(day)
        return left_of(self, day, offset)

    monkeypatch.setattr(Exclusion, "_left_of", counted)
    union = Union((Every(86_398), Every(172_798)), (Cron("0-58/2 * * * * *"),))
    assert union.next(utc("2026-01-01")) is None
    assert len(days) < 2_000


def test_what_was_checked_before_is_read_without_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    # A tick reads the schedules of everybody's entries: none of them may hold it up.
    def search(*_: object) -> int | None:
        raise AssertionError

    monkeypatch.setattr(Union, "second_after", search)
    text = "every 14s | 0 9 * * * except every 7s"
    schedule = parse_schedule(text)
    spec = ScheduleSpec.model_validate({"schedule": text}, context=STORED)
    of_entry = wheel._schedule(text, "UTC", None, None, "")
    assert schedule.text == spec.parsed(None).text == of_entry.text == text


def test_few_combinations_are_kept_in_memory() -> None:
    """A tick meets thousands of them, and each may be large."""
    gc.collect()
    most = sum(isinstance(each, Union) for each in gc.get_objects()) + MOST_COMBINATIONS_KEPT
    more = MOST_COMBINATIONS_KEPT + 200
    met = [wheel.schedule_of(f"every {n}s | 0 9 * * *", {}) for n in range(1, more)]
    assert len(set(met)) == len(met)
    del met
    gc.collect()
    assert sum(isinstance(each, Union) for each in gc.get_objects()) <= most


def test_an_instant_far_ahead_is_found_when_nothing_is_taken_out() -> None:
    schedule = combined("at 2190-01-01T00:00:00 | at 2191-01-01T00:00:00 except * * 25 12 *")
    assert schedule.next(utc("2026-01-01")) == utc("2190-01-01")


def test_members_must_agree() -> None:
    nine = Cron("0 9 * * *", "Europe/Riga")
    for members, exceptions in (
        ((nine, Cron("0 10 * * *")), ()),
        ((nine, Cron("0 10 * * *", "Europe/Riga", utc("2026-01-01"))), ()),
        ((nine,), (Cron("0 10 * * *"),)),
        ((), ()),
    ):
        with pytest.raises(ValueError, match="must agree"):
            Union(members, exceptions)


def test_only_instants_do_not_recur() -> None:
    at, every = At(utc("2026-01-01")), Every(60)
    assert not Union((at, At(utc("2027-01-01")))).is_recurring
    assert Union((at, every)).is_recurring


def expected_of(schedule: Union, after: datetime, until: datetime) -> list[datetime]:
    """The set that the docstring describes, built as it is described."""
    union = {found for member in schedule.schedules for found in member.between(after, until)}
    zone = ZoneInfo(schedule.timezone)
    for exception in schedule.exceptions:
        union = {instant for instant in union if exception.next(instant - SECOND) != instant}
        if isinstance(exception, Cron) and not exception.rule.has_seconds:
            union = {
                instant
                for instant in union
                if not exception.rule.matches_minute(_wall(instant.astimezone(zone)))
            }
    return sorted(union)


def _wall(shown: datetime) -> int:
    return int(shown.replace(tzinfo=UTC, fold=0).timestamp())


@settings(exact, max_examples=80)
@given(st.data(), combinations())
def test_it_is_the_union_without_the_exceptions(data: st.DataObject, schedule: Union) -> None:
    moment = data.draw(instants(schedule.timezone)).replace(microsecond=0)
    member = data.draw(st.sampled_from(schedule.schedules))
    after = (member.next(moment) or moment) - timedelta(seconds=data.draw(st.integers(1, 7200)))
    # So long that exceptions leave something, so short that not too much is listed.
    two_hours = (after, after + timedelta(hours=2))
    listed = [list(islice(each.between(*two_hours), 100)) for each in schedule.schedules]
    is_dense = any(len(found) == 100 for found in listed)
    until = after + (timedelta(minutes=20) if is_dense else timedelta(days=4))
    expected = expected_of(schedule, after, until)

    assert list(schedule.between(after, until)) == expected
    for earlier, later in pairwise(expected[:30]):
        assert schedule.previous(later) == earlier
    for instant in expected[:10]:
        assert schedule.has(int(instant.timestamp()))
    removed = {found for member in schedule.schedules for found in member.between(after, until)}
    for instant in sorted(removed - set(expected))[:10]:
        assert not schedule.has(int(instant.timestamp()))
    for instant in [after, *expected[:5]]:
        minute = int(instant.timestamp()) // 60 + 1
        begin = EPOCH + minute * MINUTE
        if begin + MINUTE <= until:
            found = [each for each in expected if begin <= each < begin + MINUTE]
            assert schedule.seconds_of_minute(minute) == tuple(each.second for each in found)
