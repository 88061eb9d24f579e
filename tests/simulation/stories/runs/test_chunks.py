"""Chunks beside what moves jobs meanwhile: each occurrence runs once."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from carillon.domain.chunks import placing
from carillon.domain.chunks.message import ChunkMessage
from carillon.domain.job import Generation, Job
from carillon.domain.message import encode
from carillon.domain.policies import CatchUp
from carillon.domain.run import RunStatus
from carillon.domain.wheel.entry import message_of
from carillon.executor.router import Router
from carillon.executor.targets import Call, Success
from tests.simulation.stories.story import MINUTE
from tests.simulation.stories.time.test_zone_changes import ALMATY, OLD, pass_by, upgrade_functions
from tests.simulation.stories.zone_files import put, zones_put_back
from tests.support.jobs import job_with
from tests.support.world import World
from tests.unit.faults import dying

START = datetime(2026, 12, 8, 0, 0, 30, tzinfo=UTC)
UPGRADED_AT = datetime(2026, 12, 8, 3, 10, 30, tzinfo=UTC)


@pytest.fixture(autouse=True)
def old_zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with zones_put_back():
        put(monkeypatch, ALMATY, OLD)
        monkeypatch.setattr(placing, "FEWEST", 1)
        yield
        monkeypatch.undo()


def chunked_world() -> World:
    world = World(START, segments=1)
    world.tick_ports = replace(world.tick_ports, chunked=True, tzdata="old")
    return world


def times_run(world: World, job: Job) -> set[int]:
    """How often the occurrences of the job were run."""
    return set(Counter(world.fired(job)).values())


@pytest.mark.parametrize("schedule", ["5,25 2-23 * * *", "30 * * * *", "0,20,40 * * * *"])
def test_a_generation_that_meets_new_rules_of_its_zone_runs_once(
    schedule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The entry that brings it to its new slots is due itself then, in a chunk."""
    world = chunked_world()
    job = world.create("local", schedule, timezone=ALMATY)
    pass_by(world, UPGRADED_AT)
    upgrade_functions(world, monkeypatch, "half an hour forward")
    pass_by(world, UPGRADED_AT.replace(hour=7))
    assert world.chunks.chunks
    assert times_run(world, job) == {1}
    assert {run.status for run in world.history(job)} == {RunStatus.SUCCEEDED}


@pytest.mark.parametrize("schedule", ["5,25 2-23 * * *", "25 * * * *", "5,25,45 * * * *"])
def test_what_a_tick_had_sent_in_a_chunk_is_not_run_again_by_new_rules_of_its_zone(
    schedule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It died before it could record that. By the new rules, entries go alone for an hour."""
    world = chunked_world()
    job = world.create("local", schedule, timezone=ALMATY)
    pass_by(world, UPGRADED_AT.replace(minute=22))
    with dying(world.wheel, "put_control", after=1):
        world.tick()
    assert any(isinstance(each.order, ChunkMessage) for each in world.queue.kept())
    world.clock.advance(60)
    upgrade_functions(world, monkeypatch, "half an hour forward")
    pass_by(world, UPGRADED_AT.replace(hour=7))
    assert times_run(world, job) == {1}


def test_a_run_whose_turn_comes_late_reads_its_job_again() -> None:
    """More calls than a process has threads take turns, behind calls that last."""
    world = chunked_world()
    jobs = [world.create(name, "0 * * * *") for name in ("first", "second")]
    paused: list[Job] = []

    def in_turn(calls: Sequence[Callable[[], Any]]) -> list[Any]:
        answers = [calls[0]()]
        if len(calls) > 1:
            called = {call.job_id for call in world.targets.calls}
            paused.extend(world.pause(job) for job in jobs if job.job_id not in called)
            world.clock.advance(5)
        return answers + [call() for call in calls[1:]]

    pass_by(world, START.replace(hour=1, minute=55))
    world.targets.calls.clear()
    world.executor = Router(replace(world.executor_ports, side_by_side=in_turn))
    pass_by(world, START.replace(hour=2, minute=2))
    (job,) = paused
    assert world.fired(job) == []
    assert world.history(job)[-1].status is RunStatus.SKIPPED


def test_a_change_that_took_long_does_not_run_what_a_chunk_is_running() -> None:
    """Its generation begins before the occurrence, and is committed when the chunk has read the
    job: half an hour may lie between the two."""
    world = chunked_world()
    job = world.create("changed", "0 * * * *")
    slow = world.clock.now().replace(hour=1, minute=45)

    def commit_meanwhile(call: Call) -> Success:
        if call.fire_at.hour == 2 and len(world.fired(job)) == 2:
            generation = Generation(world.entropy.new_id(slow), slow.replace(microsecond=0))
            changed = job_with(job.in_new_generation(generation, slow), catch_up=CatchUp.ALL)
            assert world.indexer.index_job(changed, job.revision)
            world.executor.lane(
                encode(message_of(changed, call.fire_at)), world.clock.now() + MINUTE
            )
        return Success("done")

    world.targets.behave = commit_meanwhile
    pass_by(world, START.replace(hour=2, minute=5))
    assert times_run(world, job) == {1}
