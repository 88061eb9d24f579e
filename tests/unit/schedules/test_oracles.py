"""The cron engine against a look at every minute; `test_differential` asks cronsim and croniter."""

from datetime import datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from carillon.schedules import Cron, DstRule, Fold, Gap
from tests.unit.schedules.strategies import (
    exact_and_slow,
    expressions,
    instants,
    zone_names,
)


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
