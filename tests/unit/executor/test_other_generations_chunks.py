"""Messages of other generations, and chunks that have the occurrence, too."""

from dataclasses import replace
from datetime import timedelta

import pytest

from carillon.domain.chunks.placing import Plan
from carillon.domain.job import Job, Lane
from carillon.domain.wheel.entry import message_of
from carillon.executor.batch import Handled
from tests.support.jobs import job_with
from tests.support.world import LIFETIME
from tests.unit.executor.chunk_kit import DUE_AT, member_of
from tests.unit.executor.kit import LEASE_SECONDS
from tests.unit.executor.packed_kit import World, renewed

BRIEF = 5
HALF_PAST = DUE_AT - timedelta(minutes=90)


@pytest.fixture
def world() -> World:
    return World("a", "b", "c")


def replaced(world: World, name: str, **changes: object) -> tuple[Job, Job]:
    """The job as it was, and as it has been since long before."""
    first = world.by_name[name]
    second = job_with(renewed(world, first, HALF_PAST), **changes)
    assert world.jobs.replace(second, first.revision)
    world.by_name[name] = second
    return first, second


def test_in_place_of_another_it_looks_at_the_chunk_of_that(world: World) -> None:
    first, second = replaced(world, "b")
    world.pack()
    assert world.called() == [("a", 1), ("b", 1), ("c", 1)]
    world.drain()
    for job in (second, first):
        with world.dying(world.jobs, "get"):
            world.handle(replace(message_of(job, DUE_AT), in_time=True), BRIEF)
        world.clock.advance(BRIEF + 2)
    again = world.handle(replace(message_of(first, DUE_AT), in_time=True))
    assert again.handled is Handled.DROPPED
    assert world.called() == [("a", 1), ("b", 1), ("c", 1)]


def test_two_occurrences_of_a_job_that_are_due_at_once_are_two(world: World) -> None:
    """Generations with other places in the job's window."""
    world.make("w", "* * * * *")
    first, second = replaced(world, "w", window="2m", spread_seconds=60)
    members = tuple(map(member_of, (first, second)))
    order = replace(world.order(), members=(*world.order("a").members, *members))
    world.crash_after_claim(order, BRIEF)
    world.clock.advance(BRIEF + 2)
    world.handle_chunk(order)
    world.execute()
    world.pack("w", at=DUE_AT + timedelta(minutes=1))
    calls = [call.fire_at for call in world.targets.calls if call.job_name == "w"]
    assert sorted(calls) == [DUE_AT - timedelta(minutes=1), DUE_AT]


def test_a_run_is_fenced_once_no_chunk_that_may_have_it_is_held(world: World) -> None:
    first, second = replaced(world, "b", window="2m", spread_seconds=60)
    order = world.order("a")
    later = replace(order.key, minute=order.key.minute + 1)
    plan = Plan(0, later.minute, "salt", DUE_AT + LIFETIME, {(0, Lane.NORMAL): 1})
    assert world.chunks.put_plan(plan)
    world.clock.set(later.due_at)
    world.crash_after_claim(replace(order, members=(member_of(first),)))
    world.crash_after_claim(replace(order, key=later, members=(member_of(second),)), BRIEF)
    world.clock.advance(BRIEF + 2)
    packed, key = world.executor_ports.packed, message_of(first, DUE_AT).key
    assert not packed.fence(key, "a canceller's")
    world.clock.advance(LEASE_SECONDS)
    assert packed.fence(key, "a canceller's")
    held = [world.chunks.get(each) for each in (order.key, later)]
    assert [each and each.claim_id for each in held] == ["a canceller's"] * 2
