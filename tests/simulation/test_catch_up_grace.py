"""Catch-up with grace: what an outage delayed by less than it is no miss."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.domain.decisions import SkipReason
from shared.domain.job import Job
from shared.domain.policies import CatchUp
from shared.domain.run import Run, RunKind, RunStatus
from shared.recurrence import CalendarRule, parse_schedule
from tests.simulation.test_catch_up import recorded
from tests.simulation.world import World
from tests.unit.recurrence.strategies import exact_and_slow

MIDNIGHT = datetime(2026, 12, 1, tzinfo=UTC)
STOP = MIDNIGHT + timedelta(minutes=10)
ANNOUNCED = MIDNIGHT + timedelta(minutes=12, seconds=59)
POLICIES = st.sampled_from([CatchUp.SKIP, CatchUp.LATEST])


def after_an_outage(
    schedule: str, back: datetime, policy: CatchUp, grace_seconds: int, **options: object
) -> tuple[World, Job]:
    """A job a minute after ticks have returned at `back`."""
    world = World(MIDNIGHT, segments=1)
    world.close("closed", "2026-12-01")
    job = world.create("job", schedule, catch_up=policy, grace_seconds=grace_seconds, **options)
    world.run_until(STOP + timedelta(seconds=59))
    world.run_until(ANNOUNCED, ticking=False)
    world.clock.set(back)
    world.tick()
    world.run_until(back + timedelta(seconds=30))
    return world, job


def missed_rows(world: World, job: Job, back: datetime) -> list[Run]:
    minute = back.replace(second=0)
    return [run for run in world.history(job) if ANNOUNCED < run.key.fire_at < minute]


@pytest.mark.parametrize("policy", [CatchUp.SKIP, CatchUp.LATEST])
def test_what_is_within_the_grace_runs_and_the_first_of_it_covers_the_rest(policy: CatchUp) -> None:
    back = MIDNIGHT + timedelta(hours=1)
    world, job = after_an_outage("*/5 * * * *", back, policy, grace_seconds=720)
    row, *ran = missed_rows(world, job, back)
    assert [(run.key.fire_at.minute, run.status) for run in ran] == [
        (50, RunStatus.SUCCEEDED),
        (55, RunStatus.SUCCEEDED),
    ]
    assert (row.key.kind, row.reason) == (RunKind.MISSED, SkipReason.CATCH_UP)
    assert row.covers_from is not None
    assert (row.covers_from.minute, row.key.fire_at.minute, row.covers_count) == (15, 45, 7)


def test_what_is_due_exactly_its_grace_ago_is_missed() -> None:
    back = MIDNIGHT + timedelta(hours=1)
    world, job = after_an_outage("*/5 * * * *", back, CatchUp.SKIP, grace_seconds=600)
    ran = [run.key.fire_at.minute for run in missed_rows(world, job, back) if run.started_at]
    assert ran == [55]


def test_grace_has_no_say_where_all_are_to_run() -> None:
    back = MIDNIGHT + timedelta(hours=1)
    world, job = after_an_outage("*/5 * * * *", back, CatchUp.ALL, grace_seconds=600)
    rows = missed_rows(world, job, back)
    assert [run.key.fire_at.minute for run in rows] == list(range(15, 60, 5))
    assert {run.status for run in rows} == {RunStatus.SUCCEEDED}


@exact_and_slow
@given(
    schedule=st.sampled_from(["*/5 * * * *", "every 7m", "*/40 */3 * * * *", "every 181m"]),
    outage_seconds=st.integers(180, 4 * 3600),
    grace_seconds=st.integers(1, 4 * 3600),
    spread_seconds=st.sampled_from([0, 30, 400]),
    policy=POLICIES,
)
def test_the_policy_decides_about_what_is_later_than_the_grace(
    schedule: str, outage_seconds: int, grace_seconds: int, spread_seconds: int, policy: CatchUp
) -> None:
    back = ANNOUNCED + timedelta(seconds=1 + outage_seconds)
    world, job = after_an_outage(
        schedule,
        back,
        policy,
        grace_seconds,
        window=f"{spread_seconds + 1}s" if spread_seconds else "",
        fraction=0.999999,
    )
    spread = timedelta(seconds=job.spread_seconds)
    until = back.replace(second=0) - timedelta(seconds=1) - spread
    first = max(ANNOUNCED - spread, job.filing.from_at)
    due = list(parse_schedule(schedule).between(first, until))
    in_time = [at for at in due if at + spread > back - timedelta(seconds=grace_seconds)]
    late = [at for at in due if at not in in_time]
    rows = {run.key.fire_at: run for run in world.history(job) if first < run.key.fire_at <= until}
    own = {at: run for at, run in rows.items() if run.key.kind is RunKind.SCHEDULED}
    expected = dict.fromkeys(in_time, RunStatus.SUCCEEDED)
    if late and not in_time:
        runs = policy is CatchUp.LATEST
        expected[late.pop()] = RunStatus.SUCCEEDED if runs else RunStatus.SKIPPED
    assert {at: run.status for at, run in own.items()} == expected
    covering = [run for run in rows.values() if run.key.kind is RunKind.MISSED]
    spans = [(run.covers_from, run.key.fire_at, run.covers_count) for run in covering]
    assert spans == ([(late[0], late[-1], len(late))] if late else [])


@exact_and_slow
@given(
    hours_back=st.integers(2, 60),
    grace_seconds=st.integers(1, 60 * 3600),
    rule=st.sampled_from(list(CalendarRule)),
    policy=POLICIES,
)
def test_under_a_calendar_all_are_recorded_and_what_lands_within_the_grace_runs(
    hours_back: int, grace_seconds: int, rule: CalendarRule, policy: CatchUp
) -> None:
    back = MIDNIGHT + timedelta(hours=hours_back)
    world, job = after_an_outage(
        "0 */2 * * *", back, policy, grace_seconds, calendar=("closed", rule)
    )
    due = list(job.schedule.between(ANNOUNCED, back - timedelta(seconds=60)))
    open_days = [at for at in due if at.day != 1]
    stays = due if rule is CalendarRule.SKIP else open_days
    assert set(stays) - recorded(world, job, job.schedule) == set()
    in_time = {at for at in open_days if at > back - timedelta(seconds=grace_seconds)}
    assert in_time - set(world.fired(job)) == set()
    if rule is CalendarRule.SKIP:
        latest = set(open_days[-1:]) if policy is CatchUp.LATEST else set()
        ran = {at for at in world.fired(job) if ANNOUNCED < at < back - timedelta(seconds=60)}
        assert ran == (in_time or latest)
