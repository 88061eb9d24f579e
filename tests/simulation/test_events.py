"""Lifecycle events: what a subscriber hears of runs, jobs and the scheduler itself."""

from datetime import datetime, timedelta

import pytest

from carillon.domain.events import JOB_EVENTS, EventType
from carillon.domain.job import Job
from carillon.domain.policies import OnComplete, RetryPolicy
from carillon.domain.run import RunError
from carillon.domain.targets import TaskTarget
from carillon.executor.runs.lifecycle_events import BufferedEvents
from carillon.executor.targets import Failure
from carillon.stores.memory.messaging import MemoryEvents
from carillon.tick.counting import change_of
from tests.simulation.story import NOON
from tests.support.world import World

ONCE = "at 2026-12-01T12:01:00Z"


@pytest.fixture
def world() -> World:
    return World(NOON, segments=1)


def minute(number: int) -> datetime:
    return NOON + timedelta(minutes=number)


def listened(world: World, schedule: str = ONCE, **options: object) -> Job:
    return world.create("job", schedule, **{"events": JOB_EVENTS, **options})


def heard(world: World) -> list[tuple[str, int | None]]:
    """Types and attempts, in the order in which they were told."""
    return [(event.type.value, event.data.get("attempt")) for event in world.events.emitted]


def test_failures_are_told_with_what_follows_from_each(world: World) -> None:
    listened(world, retry=RetryPolicy(max_attempts=2))
    world.targets.behave = lambda call: Failure(RunError("E", "broken"))
    world.run_until(minute(5))
    assert heard(world)[:6] == [
        ("run.started", 1),
        ("run.failed", 1),
        ("run.retrying", 1),
        ("run.started", 2),
        ("run.failed", 2),
        ("run.dead", 2),
    ]
    assert world.events.emitted[5].data["reason"] == "exhausted"


def test_a_skip_is_told_with_its_reason(world: World) -> None:
    job = listened(world, "* * * * *")
    world.tick()
    world.pause(job)
    world.run_until(minute(1))
    assert heard(world) == [("run.skipped", 1)]
    assert world.events.emitted[0].data["reason"] == "paused"


def test_a_duplicate_tells_the_same_again_under_the_same_ids(world: World) -> None:
    listened(world)
    world.run_until(minute(1))
    before = world.events.emitted[1:]
    world.executor.handle(world.reports[0].message, minute(2))
    assert world.events.emitted[3:] == before


@pytest.mark.parametrize("on_complete", list(OnComplete))
def test_the_last_run_completes_the_job_whether_it_is_kept_or_not(
    world: World, on_complete: OnComplete
) -> None:
    job = listened(world, "* * * * *", max_runs=2, on_complete=on_complete)
    world.run_until(minute(4))
    completed = [e for e in world.events.emitted if e.type is EventType.JOB_COMPLETED]
    assert [(e.subject, e.occurred_at) for e in completed] == [(job.job_id, minute(2))]
    world.executor.handle(world.reports[-1].message, minute(5))
    again = [e for e in world.events.emitted if e.type is EventType.JOB_COMPLETED]
    assert again == [*completed, *completed]


def test_a_job_tells_only_what_it_has_chosen(world: World) -> None:
    world.create("silent", "* * * * *")
    world.create("job", "* * * * *", events=(EventType.RUN_SUCCEEDED,))
    world.run_until(minute(2))
    assert heard(world) == [("run.succeeded", 1)] * 2


def test_events_of_callbacks_say_that_they_are(world: World) -> None:
    """Who counts the successes of jobs leaves these out."""
    told = TaskTarget(name="told")
    world.create("job", ONCE, events=(EventType.RUN_SUCCEEDED,), on_success=told)
    world.run_until(minute(4))
    kinds = [(event.type.value, event.data.get("kind")) for event in world.events.emitted]
    assert kinds == [("run.succeeded", "scheduled"), ("run.succeeded", "callback")]


def test_the_scheduler_tells_once_when_it_begins_and_ceases_to_find_anything_due() -> None:
    """Two segments: the worker is idle when both of them are. Minutes are dispatched two ahead."""
    world = World(NOON, segments=2)
    world.create("even", "*/10 * * * *")
    world.create("odd", "11-59/10 * * * *")
    told = []
    for number in range(20):
        world.clock.set(minute(number))
        for _ in range(2):  # a doubled tick
            event = change_of(world.tick(), range(2), 3, world.clock.now())
            if event is not None:
                told.append((number, event.type, event.subject))
    idle, started = EventType.SCHEDULER_IDLE, EventType.SCHEDULER_STARTED
    assert told == [
        (number, what, "worker/3")
        for number, what in [(0, idle), (8, started), (10, idle), (18, started)]
    ]


def test_gathered_events_go_out_together_and_those_not_taken_are_counted() -> None:
    class Full(MemoryEvents):
        def emit(self, events: object) -> int:
            return 2

    world, sink = World(NOON), MemoryEvents()
    job = listened(world)
    world.run_until(minute(1))
    buffered, lost = BufferedEvents(sink), BufferedEvents(Full())
    assert buffered.emit(world.events.emitted) == lost.emit(world.events.emitted) == 0
    assert sink.emitted == []
    assert (buffered.flush(), lost.flush()) == (0, 2)
    assert sink.emitted == world.events.emitted
    assert buffered.flush() == lost.flush() == 0
    assert len(sink.emitted) == len({event.event_id for event in sink.emitted})
    assert {event.data["job_id"] for event in sink.emitted} == {job.job_id}
