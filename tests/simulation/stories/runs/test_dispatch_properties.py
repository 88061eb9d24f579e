"""Whatever the schedule and whenever ticks come: dispatch yields exactly what the schedule does."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import accumulate

from hypothesis import given, settings
from hypothesis import strategies as st

from carillon.domain.calendar import Calendar, CalendarUse, Resolved, resolve
from carillon.domain.policies import CatchUp
from carillon.domain.run import RunKind, RunStatus
from carillon.domain.wheel.entry import entries_of, minute_end
from carillon.schedules import ClosedDays, Schedule, parse_schedule
from tests.simulation.stories.story import SECOND
from tests.support.jobs import job_with
from tests.support.world import OWNER, World
from tests.unit.schedules.strategies import (
    any_simple,
    calendar_rules,
    closed_days,
    combinations,
    crons,
    everies,
    exact_and_slow,
)

DENSE = st.sampled_from(
    ["* * * * *", "*/7 * * * *", "*/13 * * * * *", "every 37s", "every 61m"]
).map(parse_schedule)
STARTS = st.integers(0, 86_400 * 700).map(
    lambda s: datetime(2025, 1, 1, tzinfo=UTC) + timedelta(seconds=s)
)
TICK_GAPS = st.lists(st.integers(0, 400), min_size=1, max_size=12)
"""Seconds from one tick to the next: on time, doubled, late, missing."""


@settings(exact_and_slow, max_examples=30)
@given(
    schedule=st.one_of(DENSE, crons, everies(), any_simple(), combinations()),
    start=STARTS,
    gaps=TICK_GAPS,
    segments=st.integers(1, 3),
    spread_seconds=st.sampled_from([0, 0, 1, 59, 60, 61, 1800, 86_399]),
    share=st.none() | st.integers(5, 50),
    use=st.none() | calendar_rules.map(lambda rule: CalendarUse("days", rule)),
    data=st.data(),
)
def test_any_ticks_dispatch_exactly_the_occurrences_of_the_span(
    schedule: Schedule,
    start: datetime,
    gaps: list[int],
    segments: int,
    spread_seconds: int,
    share: int | None,
    use: CalendarUse | None,
    data: st.DataObject,
) -> None:
    closed: ClosedDays = data.draw(closed_days(start), "closed days")
    world = World(start, segments)
    world.tick_ports = replace(world.tick_ports, catch_up_share=share)
    row = Calendar(OWNER, "days", 1, closed.weekdays, closed.ranges, start, start)
    assert world.calendars.put(row, None)
    job = job_with(
        world.new_job("job", "* * * * *", catch_up=CatchUp.ALL),
        schedule=schedule,
        spread_seconds=spread_seconds,
        calendar=use,
    )
    resolved = resolve(schedule, use, closed)
    assert len(entries_of(job, resolved.sent)) <= 60
    assert world.indexer.index_job(job, None)
    for seconds in accumulate(gaps):
        world.clock.set(start + timedelta(seconds=seconds))
        world.tick()
    while (world.indexer.control(job.segment).throttled_until or start) > world.clock.now():
        world.clock.advance(60)
        world.tick()
    control = world.indexer.control(job.segment)
    assert control.backlog == ()
    dispatched_until = minute_end(control.watermark)
    last = dispatched_until - timedelta(seconds=spread_seconds)
    expected = list(resolved.sent.between(job.generation.from_at, last))
    sent = {received.message.key.fire_at for received in world.queue.kept()}
    assert sorted(sent) == expected

    world.clock.set(dispatched_until + SECOND)
    world.execute()
    succeeded = [run for run in world.history(job) if run.status is RunStatus.SUCCEEDED]
    now = world.clock.now() - timedelta(seconds=spread_seconds)
    landings = {fire_at: landing_at(resolved, fire_at) for fire_at in expected}
    over = sorted({at for at in landings.values() if at is not None and at <= now})
    assert [run.key.fire_at for run in succeeded] == over
    assert sorted(world.fired(job)) == over, "each once, however often it was sent"
    nowhere = {fire_at for fire_at, at in landings.items() if at is None}
    assert {run.key.fire_at for run in world.history(job)} == {*over, *nowhere}, "all are recorded"


@exact_and_slow
@given(
    schedule=st.one_of(DENSE, crons, everies(), any_simple(), combinations()),
    start=STARTS,
    gaps=st.lists(st.integers(0, 119), min_size=1, max_size=12),
    spread_seconds=st.sampled_from([0, 0, 59, 86_399]),
    within_seconds=st.sampled_from([1, 60, 600, 86_400, 7 * 86_400]) | st.integers(1, 7 * 86_400),
)
def test_a_watch_looks_at_each_occurrence_once_its_time_has_passed(
    schedule: Schedule,
    start: datetime,
    gaps: list[int],
    spread_seconds: int,
    within_seconds: int,
) -> None:
    later = timedelta(seconds=spread_seconds + within_seconds)
    world = World(start - later, segments=1)
    job = replace(
        world.new_job("job", "* * * * *", expect_within=within_seconds),
        schedule=schedule,
        spread_seconds=spread_seconds,
    )
    assert world.indexer.index_job(job, None)
    world.leap_to(start)
    for seconds in accumulate(gaps):
        world.clock.set(start + timedelta(seconds=seconds))
        world.tick()
    dispatched_until = minute_end(world.indexer.control(0).watermark)
    messages = [kept.message for kept in world.queue.kept()]
    looks = {m.key.fire_at: m.due_at for m in messages if m.key.kind is RunKind.WATCH}
    expected = schedule.between(job.generation.from_at, dispatched_until - later)
    assert looks == {fire_at: fire_at + later for fire_at in expected}


def landing_at(resolved: Resolved, fire_at: datetime) -> datetime | None:
    """When what was sent for `fire_at` runs."""
    return fire_at if resolved.is_moved_to(fire_at) else resolved.landing(fire_at)
