"""Catch-up when something else happens too, and with grace: no occurrence ends without a record."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carillon.domain.decisions import SkipReason
from carillon.domain.job import Job
from carillon.domain.policies import CatchUp
from carillon.domain.run import Run, RunKind, RunStatus
from carillon.schedules import CalendarRule, Schedule, parse_schedule
from tests.simulation.stories.story import HOUR, MIDNIGHT, SECOND
from tests.support.world import FUNCTION_SECONDS, World
from tests.unit.schedules.strategies import exact_and_slow

TICKS_STOP = MIDNIGHT + timedelta(minutes=10, seconds=59)
TICKS_RETURN = MIDNIGHT + timedelta(hours=3, minutes=1)


def every_five_minutes(first: int, last: int) -> set[datetime]:
    """The instants from minute `first` to minute `last` after midnight, both of them included."""
    return {MIDNIGHT + timedelta(minutes=minute) for minute in range(first, last + 1, 5)}


def recorded(world: World, job: Job, schedule: Schedule) -> set[datetime]:
    """The instants that have a row of their own, or lie in the span of a row of missed ones."""
    instants: set[datetime] = set()
    for run in world.history(job):
        if run.key.kind is RunKind.MISSED:
            assert run.covers_from is not None
            before = run.covers_from - SECOND
            instants |= set(schedule.between(before, run.key.fire_at))
        else:
            instants.add(run.key.fire_at)
    return instants


@pytest.mark.parametrize("policy", [CatchUp.LATEST, CatchUp.SKIP])
def test_what_an_outage_passed_over_is_recorded_though_the_schedule_changed_in_it(
    policy: CatchUp,
) -> None:
    world = World(MIDNIGHT, segments=1)
    job = world.create("caught", "*/5 * * * *", catch_up=policy)
    world.run_until(TICKS_STOP)
    world.run_until(MIDNIGHT + timedelta(hours=2, minutes=2), ticking=False)
    world.new_generation(job, "7 5 * * *")
    world.run_until(TICKS_RETURN - SECOND, ticking=False)
    world.run_until(MIDNIGHT + timedelta(hours=4, minutes=10))
    assert every_five_minutes(5, 120) - recorded(world, job, job.schedule) == set()


def test_what_an_outage_passed_over_is_recorded_though_the_schedule_changes_after_it() -> None:
    """The message for the last occurrence is on its way, with what it stands for: the span before
    it must not be computed from the schedule that the job has when an executor gets to it."""
    world = World(MIDNIGHT, segments=1)
    job = world.create("caught", "*/5 * * * *")
    world.run_until(TICKS_STOP)
    world.run_until(TICKS_RETURN - SECOND, ticking=False)
    world.tick()
    world.clock.advance(2)
    world.new_generation(job, "7 5 * * *")
    world.run_until(MIDNIGHT + timedelta(hours=3, minutes=10))
    assert every_five_minutes(5, 180) - recorded(world, job, job.schedule) == set()


def test_a_pause_and_resume_in_an_outage_lose_nothing_when_the_newer_generation_comes_first() -> (
    None
):
    """Both generations send the outage's last occurrence. The queue keeps no order: the message
    that comes second is a duplicate, and the only one that knows of the span before the pause."""
    world = World(MIDNIGHT, segments=1)
    job = world.create("caught", "*/5 * * * *")
    world.run_until(TICKS_STOP)
    world.run_until(MIDNIGHT + timedelta(hours=1, minutes=2), ticking=False)
    paused = world.pause(job)
    world.run_until(MIDNIGHT + timedelta(hours=1, minutes=32), ticking=False)
    world.new_generation(paused)
    world.run_until(TICKS_RETURN - SECOND, ticking=False)
    world.tick()
    handle_newest_generation_first(world)
    world.run_until(MIDNIGHT + timedelta(hours=3, minutes=10))
    before_the_pause, after_it = every_five_minutes(5, 60), every_five_minutes(95, 190)
    assert (before_the_pause | after_it) - recorded(world, job, job.schedule) == set()


def handle_newest_generation_first(world: World) -> None:
    """Handle every message that is visible now."""
    ends_at = world.clock.now() + timedelta(seconds=FUNCTION_SECONDS)
    visible = [kept for kept in world.queue.kept() if kept.visible_at <= world.clock.now()]
    assert len({kept.message.generation_id for kept in visible}) == 2
    for kept in sorted(visible, key=lambda kept: kept.message.generation_id, reverse=True):
        world.executor.handle(kept.message, ends_at)
        world.queue.delete(kept.receipt)


STOP = MIDNIGHT + timedelta(minutes=10)
ANNOUNCED = MIDNIGHT + timedelta(minutes=12, seconds=59)
POLICIES = st.sampled_from([CatchUp.SKIP, CatchUp.LATEST])


def after_an_outage(
    schedule: str, back: datetime, policy: CatchUp, grace_seconds: int, **options: object
) -> tuple[World, Job]:
    """A job a minute after ticks have returned at `back`."""
    world = World(MIDNIGHT, segments=1)
    world.close("closed", "2026-12-01")
    job = world.create("job", schedule, catch_up=policy, grace=grace_seconds, **options)
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
    back = MIDNIGHT + HOUR
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
    back = MIDNIGHT + HOUR
    world, job = after_an_outage("*/5 * * * *", back, CatchUp.SKIP, grace_seconds=600)
    ran = [run.key.fire_at.minute for run in missed_rows(world, job, back) if run.started_at]
    assert ran == [55]


def test_grace_has_no_say_where_all_are_to_run() -> None:
    back = MIDNIGHT + HOUR
    world, job = after_an_outage("*/5 * * * *", back, CatchUp.ALL, grace_seconds=600)
    rows = missed_rows(world, job, back)
    assert [run.key.fire_at.minute for run in rows] == list(range(15, 60, 5))
    assert {run.status for run in rows} == {RunStatus.SUCCEEDED}


@pytest.mark.parametrize("rule", [CalendarRule.SKIP, CalendarRule.NEXT_BUSINESS_DAY])
@pytest.mark.parametrize("grace_seconds", [None, 3600])
def test_a_closed_day_within_the_grace_stands_for_nothing(
    grace_seconds: int | None, rule: CalendarRule
) -> None:
    """The last open occurrence runs as without a grace: none that runs is within it."""
    back = MIDNIGHT + timedelta(hours=1, minutes=30)
    world = World(MIDNIGHT - timedelta(hours=12), segments=1)
    world.close("closed", "2026-12-01")
    job = world.create("job", "0 * * * *", grace=grace_seconds, calendar=("closed", rule))
    world.tick()
    world.clock.set(back)
    world.run_until(back + timedelta(minutes=2))
    assert world.fired(job) == [MIDNIGHT - HOUR]


def test_what_a_calendar_moves_into_the_grace_runs_each() -> None:
    """The 1st is closed; at its times on the 2nd ticks were down, for an hour yet."""
    back = MIDNIGHT + timedelta(hours=37)
    moves = ("closed", CalendarRule.NEXT_BUSINESS_DAY)
    world, job = after_an_outage(
        "0 11,12 1 * *", back, CatchUp.SKIP, grace_seconds=3 * 3600, calendar=moves
    )
    assert world.fired(job) == [back - 2 * HOUR, back - HOUR]


def test_closed_ones_before_the_first_that_runs_are_covered_with_the_others() -> None:
    """All are within the grace: those of the closed day have one record, and the open ones run."""
    back = MIDNIGHT + timedelta(hours=26, minutes=30)
    skips = ("closed", CalendarRule.SKIP)
    world, job = after_an_outage(
        "0 */2 * * *", back, CatchUp.SKIP, grace_seconds=5 * 3600, calendar=skips
    )
    row, *ran = [run for run in world.history(job) if run.key.fire_at < back]
    assert (row.key.kind, row.covers_count, row.key.fire_at.hour) == (RunKind.MISSED, 11, 22)
    assert [(run.key.fire_at.hour, run.status) for run in ran] == [
        (0, RunStatus.SUCCEEDED),
        (2, RunStatus.SUCCEEDED),
    ]


def test_nothing_of_a_replaced_generation_runs_because_it_is_stood_for() -> None:
    """`skip` before and after the change, which only takes the grace away while ticks are down."""
    world = World(MIDNIGHT, segments=1)
    job = world.create("job", "*/5 * * * *", catch_up=CatchUp.SKIP, grace=600)
    world.run_until(STOP)
    world.clock.set(MIDNIGHT + timedelta(minutes=31))
    world.new_generation(job, grace=None)
    back = MIDNIGHT + HOUR
    world.clock.set(back)
    world.run_until(back + timedelta(minutes=2))
    rows = missed_rows(world, job, back - timedelta(minutes=10))
    assert {run.status for run in rows} == {RunStatus.SKIPPED}


def test_a_duplicate_that_comes_late_by_the_wheel_records_what_it_stands_for() -> None:
    """The replaced generation, with its grace, has the run of 17:31 first. The message of the other
    one stands for 14:30, too."""
    start = MIDNIGHT + timedelta(hours=11, minutes=4)
    world = World(start, segments=1)
    world.tick_ports = replace(world.tick_ports, catch_up_share=1)
    job = world.create("job", "every 181m", grace=20_000)
    world.create("others", "*/5 * * * *", catch_up=CatchUp.ALL)
    world.clock.advance(9000)
    world.new_generation(job, grace=None)
    back = start + timedelta(seconds=24_000)
    world.clock.set(back)
    world.run_until(back + timedelta(minutes=90))
    assert set(job.schedule.between(start, back)) - recorded(world, job, job.schedule) == set()


@pytest.mark.parametrize("schedule", ["*/10 * * * *", "at 2026-12-01T02:50:00Z"])
def test_what_is_in_time_when_ticks_are_back_stays_so_while_the_pace_holds_it_back(
    schedule: str,
) -> None:
    world = World(MIDNIGHT, segments=1)
    world.tick_ports = replace(world.tick_ports, catch_up_share=20)
    for number in range(10):
        world.create(f"all-{number}", "* * * * *", catch_up=CatchUp.ALL)
    job = world.create("job", schedule, catch_up=CatchUp.SKIP, grace=1500)
    world.run_until(STOP)
    back = MIDNIGHT + timedelta(hours=3)
    world.clock.set(back)
    world.run_until(back + timedelta(minutes=100))
    runs = missed_rows(world, job, back)
    starts = [run.started_at for run in runs if run.started_at is not None]
    assert min(starts) > back + timedelta(seconds=1500), "later than its grace"
    in_time = [run.key.fire_at.minute for run in runs if run.status is RunStatus.SUCCEEDED]
    assert in_time == ([50] if schedule.startswith("at") else [40, 50])


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
    until = back.replace(second=0) - SECOND - spread
    first = max(ANNOUNCED - spread, job.generation.from_at)
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
