"""Catch-up when something else happens too: no occurrence ends without a record."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from carillon.domain.job import Job
from carillon.domain.message import Missed
from carillon.domain.policies import CatchUp, Rate
from carillon.domain.run import RunKind, RunStatus
from carillon.domain.wheel.entry import message_of
from carillon.executor.batch import Handled
from carillon.schedules import Schedule
from tests.simulation.story import MIDNIGHT, SECOND, run_of
from tests.support.world import FUNCTION_SECONDS, World

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


@pytest.mark.parametrize(
    ("policy", "outcome"),
    [(CatchUp.LATEST, RunStatus.DEAD), (CatchUp.SKIP, RunStatus.SKIPPED)],
)
def test_a_catch_up_in_the_dead_letter_queue_is_recorded_with_all_that_it_passed_over(
    policy: CatchUp, outcome: RunStatus
) -> None:
    world = World(MIDNIGHT, segments=1)
    job = world.create("caught", "*/5 * * * *", catch_up=policy)
    world.clock.set(TICKS_RETURN + timedelta(days=11))
    missed = Missed(TICKS_STOP, policy, job.schedule)
    message = replace(message_of(job, MIDNIGHT + timedelta(hours=2, minutes=55)), missed=missed)
    world.executor.handle_dead(message, world.clock.now() + timedelta(seconds=FUNCTION_SECONDS))
    run = run_of(world, message.key)
    assert run.status is outcome
    assert recorded(world, job, job.schedule) == every_five_minutes(15, 175)


def test_a_catch_up_is_recorded_though_the_run_that_it_stands_for_waits_for_its_turn() -> None:
    """Found by the simulation: an executor had sent the latest occurrence in the place of a late
    one, and it waited behind another; the tick's own message of it was an older one then, and was
    dropped with all that it alone knew to be missed."""
    world = World(MIDNIGHT, segments=1)
    rate = Rate(1, 3600)
    job = world.create("caught", "*/5 * * * *", catch_up=CatchUp.LATEST, rate=rate)
    world.clock.set(TICKS_RETURN)
    ends_at = world.clock.now() + timedelta(seconds=FUNCTION_SECONDS)
    earlier = message_of(job, MIDNIGHT + timedelta(hours=2, minutes=50))
    plain = message_of(job, MIDNIGHT + timedelta(hours=2, minutes=55))
    world.executor.handle(replace(earlier, in_time=True), ends_at)
    assert world.executor.handle(replace(plain, in_time=True), ends_at).handled is Handled.DEFERRED
    missed = Missed(TICKS_STOP, CatchUp.LATEST, job.schedule)
    by_the_tick = replace(plain, missed=missed, in_time=True)
    assert world.executor.handle(by_the_tick, ends_at).handled is Handled.DROPPED
    assert recorded(world, job, job.schedule) == every_five_minutes(15, 175)
