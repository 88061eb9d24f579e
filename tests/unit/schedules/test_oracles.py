"""The cron engine against a look at every minute; `test_differential` asks cronsim and croniter."""

from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from carillon.schedules import Cron, DstRule, Fold, Gap
from tests.unit.schedules.strategies import (
    exact,
    exact_and_slow,
    expressions,
    instants,
    zone_names,
)

FAR_AHEAD = datetime(9000, 1, 1, tzinfo=UTC)


def _ours(schedule: Cron, after: datetime, count: int) -> list[datetime]:
    return list(islice(schedule.between(after, FAR_AHEAD), count))


@exact
@given(st.data(), expressions(), zone_names)
def test_a_second_field_does_not_change_the_rule(
    data: st.DataObject, expression: str, zone: str
) -> None:
    after = data.draw(instants(zone))
    dst = data.draw(st.builds(DstRule, st.sampled_from(Gap), st.sampled_from(Fold)))
    for rule in (DstRule(), dst):
        five = Cron(expression.upper(), zone, dst=rule)
        six = Cron(f"0 {expression.upper()}", zone, dst=rule)
        assert _ours(six, after, 30) == _ours(five, after, 30)


@exact_and_slow
@given(st.data(), expressions(), zone_names)
def test_elapsed_time_expressions_fire_whenever_the_clocks_show_a_match(
    data: st.DataObject, expression: str, zone: str
) -> None:
    minute, _, rest = expression.partition(" ")
    starred = minute if minute.startswith("*") else f"*,{minute}"
    schedule = Cron(f"{starred} {rest}".upper(), zone)
    after = data.draw(instants(zone)).replace(second=0, microsecond=0)
    minutes = [after + timedelta(minutes=count) for count in range(1, 12 * 60)]

    found = list(schedule.between(after, minutes[-1]))

    assert found == [instant for instant in minutes if _shows_match(schedule, instant)]


def _shows_match(schedule: Cron, instant: datetime) -> bool:
    return _matches(schedule, instant.astimezone(ZoneInfo(schedule.timezone)))


@exact_and_slow
@given(st.data(), st.integers(0, 59), st.integers(0, 23), zone_names)
def test_time_of_day_fires_once_when_the_clocks_first_reach_it(
    data: st.DataObject, minute: int, hour: int, zone: str
) -> None:
    schedule = Cron(f"{minute} {hour} * * *", zone)
    after = data.draw(instants(zone)).replace(second=0, microsecond=0)
    wanted = []
    highest = datetime.min
    # A day ahead, so that the clocks' highest reading is known when the span begins.
    for count in range(-1440, 2880):
        instant = after + timedelta(minutes=count)
        local_time = instant.astimezone(ZoneInfo(zone)).replace(tzinfo=None)
        if local_time > highest:
            due = local_time.replace(hour=hour, minute=minute)
            reached = due if due <= local_time else due - timedelta(days=1)
            if reached > highest and count > 0:
                wanted.append(instant)
            highest = local_time
    assert list(schedule.between(after, after + timedelta(minutes=2879))) == wanted


@exact_and_slow
@given(
    st.data(),
    expressions(),
    zone_names,
    st.sampled_from([None, *Gap]),
    st.sampled_from([None, *Fold]),
)
def test_every_dst_rule_by_its_definition(
    data: st.DataObject, expression: str, zone: str, gap: Gap | None, fold: Fold | None
) -> None:
    """A look at every minute: what the clocks show, whether they show it again, what they skip."""
    schedule = Cron(expression.upper(), zone, dst=DstRule(gap, fold))
    start = data.draw(instants(zone)).replace(second=0, microsecond=0)
    # Wide enough to tell a second pass by the first, and the other way round.
    local_times = [
        (instant, instant.astimezone(ZoneInfo(zone)).replace(tzinfo=None, fold=0))
        for instant in (start + timedelta(minutes=minute) for minute in range(-300, 1740))
    ]
    firsts: dict[datetime, datetime] = {}
    for instant, local_time in local_times:
        firsts.setdefault(local_time, instant)
    lasts = {local_time: instant for instant, local_time in local_times}
    wanted = {
        instant
        for instant, local_time in local_times
        if _matches(schedule, local_time)
        and (schedule.fold is not Fold.FIRST or firsts[local_time] == instant)
        and (schedule.fold is not Fold.SECOND or lasts[local_time] == instant)
    }
    for (_, earlier), (instant, later) in pairwise(local_times):
        skipped = range(1, int((later - earlier).total_seconds()) // 60)
        if schedule.gap is Gap.RUN_AFTER and any(
            _matches(schedule, earlier + timedelta(minutes=minute)) for minute in skipped
        ):
            wanted.add(instant)

    until = start + timedelta(minutes=1439)
    found = list(schedule.between(start, until))

    assert found == sorted(instant for instant in wanted if start < instant <= until)
    backward = []
    instant = until + timedelta(minutes=1)
    while (previous := schedule.previous(instant)) is not None and previous > start:
        backward.append(previous)
        instant = previous
    assert backward[::-1] == found


def _matches(schedule: Cron, local_time: datetime) -> bool:
    minute_of_day = local_time.hour * 60 + local_time.minute
    return minute_of_day in schedule.rule.minutes_of_day and schedule.rule.matches_day(
        local_time.date()
    )
