"""What holds for every schedule in every zone."""

import dataclasses
import pickle
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carillon.schedules import (
    At,
    Cron,
    DstRule,
    Every,
    Fold,
    Gap,
    Recurrence,
    Schedule,
    Union,
    parse_schedule,
)
from tests.unit.schedules.strategies import exact, instants, schedules

SECOND = timedelta(seconds=1)
MICROSECOND = timedelta(microseconds=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _minute(instant: datetime) -> int:
    return int((instant - EPOCH).total_seconds()) // 60


@exact
@given(st.data(), schedules)
def test_next_is_strictly_later_in_ceil_second_of_utc(
    data: st.DataObject, schedule: Schedule
) -> None:
    after = data.draw(instants(schedule.timezone))
    sequence = [after]
    while len(sequence) < 40 and (found := schedule.next(sequence[-1])) is not None:
        assert found.tzinfo is UTC
        assert found.microsecond == 0
        sequence.append(found)
    assert all(earlier < later for earlier, later in pairwise(sequence))
    if schedule.start_at is not None:
        assert all(found >= schedule.start_at for found in sequence[1:])
    # Asked from anywhere between two occurrences, the answer is the second of them.
    for earlier, later in pairwise(sequence[:10]):
        gap = (later - earlier) // MICROSECOND - 1
        middle = earlier + data.draw(st.integers(0, gap)) * MICROSECOND
        assert schedule.next(middle) == later


@exact
@given(st.data(), schedules)
def test_previous_is_next_backwards(data: st.DataObject, schedule: Schedule) -> None:
    after = data.draw(instants(schedule.timezone))
    first = schedule.next(after)
    if first is None:
        last = schedule.previous(after + SECOND)
        assert last is None or schedule.next(last) is None
        return
    before_first = schedule.previous(first)
    if before_first is None:
        # A combination stops searching where its exceptions take decades out.
        assert isinstance(schedule, Union) or schedule.next(EPOCH) == first
    else:
        assert before_first <= after
        assert schedule.next(before_first) == first
    forward = list(islice(schedule.between(after, after + timedelta(days=36_500)), 40))
    backward = [forward[-1]]
    while len(backward) < len(forward):
        found = schedule.previous(backward[-1])
        assert found is not None
        backward.append(found)
    assert backward[::-1] == forward


@exact
@given(st.data(), schedules)
def test_minutes_and_parts_of_a_span_add_up_to_it(data: st.DataObject, schedule: Schedule) -> None:
    near = schedule.next(data.draw(instants(schedule.timezone)))
    anchor = near if near is not None else data.draw(instants(schedule.timezone))
    after = anchor - timedelta(seconds=data.draw(st.integers(0, 7200)))
    length = data.draw(st.integers(1, 5 * 3600))
    until = after + timedelta(seconds=length)
    cuts = sorted(data.draw(st.lists(st.integers(0, length), max_size=5)))
    edges = [after, *(after + timedelta(seconds=cut) for cut in cuts), until]

    whole = list(schedule.between(after, until))

    parts = [list(schedule.between(start, end)) for start, end in pairwise(edges)]
    assert [found for part in parts for found in part] == whole
    minutes = range(_minute(after), _minute(until) + 1)
    by_minute = [
        EPOCH + timedelta(seconds=minute * 60 + second)
        for minute in minutes
        for second in schedule.seconds_of_minute(minute)
    ]
    assert [found for found in by_minute if after < found <= until] == whole


@exact
@given(st.data(), schedules)
def test_has_tells_each_second(data: st.DataObject, schedule: Schedule) -> None:
    near = schedule.next(data.draw(instants(schedule.timezone)))
    anchor = near if near is not None else data.draw(instants(schedule.timezone))
    first = int((anchor - EPOCH).total_seconds()) - data.draw(st.integers(0, 90))
    span = [EPOCH + timedelta(seconds=first - 1), EPOCH + timedelta(seconds=first + 99)]
    found = {int((instant - EPOCH).total_seconds()) for instant in schedule.between(*span)}
    assert {second for second in range(first, first + 100) if schedule.has(second)} == found


def test_between_is_lazy_and_includes_only_its_end() -> None:
    schedule = parse_schedule("* * * * * *")
    start = datetime(2026, 1, 1, tzinfo=UTC)
    forever = schedule.between(start, start.replace(year=9000))
    assert list(islice(forever, 2)) == [start + SECOND, start + 2 * SECOND]
    assert list(schedule.between(start, start + SECOND)) == [start + SECOND]
    assert list(schedule.between(start, start)) == []
    assert list(schedule.between(start + SECOND, start)) == []


def test_fractions_of_a_second_round_away_from_what_has_been() -> None:
    schedule = parse_schedule("every 1s")
    half = datetime(2026, 1, 1, 0, 0, 0, 500_000, tzinfo=UTC)
    assert schedule.next(half) == datetime(2026, 1, 1, 0, 0, 1, tzinfo=UTC)
    assert schedule.previous(half) == datetime(2026, 1, 1, tzinfo=UTC)


def test_every_second_of_a_minute_and_equal_values_share_the_answer() -> None:
    minute = _minute(datetime(2026, 1, 1, tzinfo=UTC))
    one, other = parse_schedule("* * * * * *"), parse_schedule({"cron": "*  * * * * *"})
    assert one.seconds_of_minute(minute) == tuple(range(60))
    assert other.seconds_of_minute(minute) is one.seconds_of_minute(minute)


def test_every_second_lies_in_minutes_of_the_epoch_before_1970_too() -> None:
    assert parse_schedule("every 1s").seconds_of_minute(-1) == ()
    assert parse_schedule("every 1s").seconds_of_minute(0) == tuple(range(1, 60))


def test_cron_may_fire_at_its_start_and_not_before() -> None:
    start = datetime(2026, 1, 1, 9, tzinfo=UTC)
    schedule = parse_schedule("0 9 * * *", start_at=start)
    assert schedule.next(start - timedelta(days=9)) == start
    assert schedule.next(start) == start + timedelta(days=1)
    assert schedule.previous(start + SECOND) == start
    assert schedule.previous(start) is None
    assert schedule.seconds_of_minute(_minute(start) - 1440) == ()
    assert schedule.seconds_of_minute(_minute(start)) == (0,)
    later = parse_schedule("0 9 * * *", start_at=start + SECOND)
    assert later.next(start - SECOND) == start + timedelta(days=1)
    assert later.previous(start + timedelta(hours=1)) is None


BOUNDED: list[Recurrence] = [
    Cron("*/10 * * * * *", "Europe/Riga"),
    Cron("0 9 * * *", "Europe/Riga"),
    Cron("cron(0/15 * ? * * *)", "America/New_York"),
    Every(25),
    Every(4000, 100),
]


@pytest.mark.parametrize("schedule", BOUNDED, ids=lambda schedule: schedule.text)
def test_an_end_may_be_an_occurrence_and_is_the_last(schedule: Recurrence) -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    second, third = list(islice(schedule.between(start, start + timedelta(days=9)), 3))[1:]
    for end_at in (second, third - SECOND):
        ended = dataclasses.replace(schedule, end_at=end_at)  # type: ignore[type-var]
        assert ended.next(second - SECOND) == second
        assert ended.next(second) is None
        assert ended.previous(start.replace(year=2030)) == second
        assert ended.has(int((second - EPOCH).total_seconds()))
        assert not ended.has(int((third - EPOCH).total_seconds()))
        assert second.second in ended.seconds_of_minute(_minute(second))
        if _minute(third) == _minute(second):
            assert third.second not in ended.seconds_of_minute(_minute(third))
        else:
            assert ended.seconds_of_minute(_minute(third)) == ()


def test_bounds_are_of_each_schedule_though_the_memo_is_shared() -> None:
    start = datetime(2026, 1, 1, 9, 0, 20, tzinfo=UTC)
    free = Cron("*/10 * * * * *")
    begun = Cron("*/10 * * * * *", start_at=start, end_at=start + timedelta(seconds=20))
    assert free.seconds_of_minute(_minute(start)) == (0, 10, 20, 30, 40, 50)
    assert begun.seconds_of_minute(_minute(start)) == (20, 30, 40)
    assert free.seconds_of_minute(_minute(start)) == (0, 10, 20, 30, 40, 50)


def test_an_at_after_its_end_is_no_occurrence() -> None:
    moment = datetime(2026, 1, 1, 9, tzinfo=UTC)
    ends_with_it, ends_before = At(moment, end_at=moment), At(moment, end_at=moment - SECOND)
    assert ends_with_it.next(EPOCH) == moment
    assert ends_with_it.seconds_of_minute(_minute(moment)) == (0,)
    assert ends_before.next(EPOCH) is None
    assert ends_before.previous(moment + SECOND) is None
    assert ends_before.seconds_of_minute(_minute(moment)) == ()


def test_the_rule_in_force_is_the_own_one_or_that_of_the_dialect() -> None:
    assert (Cron("0 9 * * *").gap, Cron("0 9 * * *").fold) == (Gap.RUN_AFTER, Fold.FIRST)
    assert (Cron("7 0 9 * * *").gap, Cron("7 0 9 * * *").fold) == (Gap.RUN_AFTER, Fold.FIRST)
    assert (Cron("0 * * * *").gap, Cron("0 * * * *").fold) == (Gap.SKIP, Fold.BOTH)
    assert (Cron("0 */2 9 * * *").gap, Cron("* 0 9 * * *").fold) == (Gap.SKIP, Fold.FIRST)
    assert (Cron("cron(0 9 * * ? *)").gap, Cron("cron(0 9 * * ? *)").fold) == (
        Gap.SKIP,
        Fold.FIRST,
    )
    own = Cron("0 9 * * *", dst=DstRule(fold=Fold.SECOND))
    assert (own.gap, own.fold) == (Gap.RUN_AFTER, Fold.SECOND)


def test_covers_the_shown_minute_whatever_second_and_rule() -> None:
    # Europe/Riga, 2026-10-25: 04:00 EEST -> 03:00 EET, at 01:00 UTC.
    schedule = Cron("30 30 3 * * *", "Europe/Riga")
    first = int(datetime(2026, 10, 25, 0, 30, tzinfo=UTC).timestamp())
    for second in (first, first + 59, first + 3600):
        assert schedule.covers_minute_of(second)
    for second in (first - 1, first + 60, first + 7200):
        assert not schedule.covers_minute_of(second)


def test_equal_crons_share_their_work_and_survive_pickling() -> None:
    one, other = Cron("5 4 * * *", "Europe/Riga"), Cron("5 4 * * *", "Europe/Riga")
    copied = pickle.loads(pickle.dumps(one))
    assert one == other == copied
    assert hash(one) == hash(other) == hash(copied)
    assert one != Cron("5 4 * * *", "Europe/Riga", dst=DstRule(Gap.SKIP))
    assert one.rule is other.rule is copied.rule
    minute = _minute(datetime(2026, 1, 1, 2, 5, tzinfo=UTC))
    assert one.seconds_of_minute(minute) == copied.seconds_of_minute(minute) == (0,)


def test_every_counts_from_the_epoch_or_from_its_start() -> None:
    start = datetime(2026, 1, 1, 0, 0, 17, tzinfo=UTC)
    from_epoch = parse_schedule("every 36h offset 30m")
    from_start = parse_schedule("every 36h offset 30m", start_at=start)
    found = from_epoch.next(start)
    assert found is not None
    assert (found - EPOCH) % timedelta(hours=36) == timedelta(minutes=30)
    first = start + timedelta(hours=36, minutes=30)
    assert from_start.next(EPOCH) == from_start.next(start) == first
    assert from_start.previous(first) is None
    assert from_start.next(first) == first + timedelta(hours=36)


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Pacific/Kiritimati"])
@pytest.mark.parametrize("text", ["59 23 31 12 *", "* * * * *", "* * * * * *", "every 1s"])
def test_the_end_of_the_calendar_ends_every_schedule(text: str, zone: str) -> None:
    schedule = parse_schedule(text, zone)
    end = datetime(9998, 12, 31, 23, 59, 59, tzinfo=UTC)
    last = schedule.previous(datetime.max.replace(tzinfo=UTC))
    assert last is not None
    assert end - timedelta(days=366) < last <= end
    assert schedule.next(end) is None
    assert schedule.next(datetime.max.replace(tzinfo=UTC)) is None
    assert schedule.next(last) is None
    assert schedule.previous(EPOCH) is None
    assert schedule.next(datetime.min.replace(tzinfo=UTC)) is not None
