"""Chunks beside what moves jobs meanwhile: each occurrence runs once."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from carillon.domain.chunks import placing
from carillon.domain.job import Job
from carillon.domain.run import RunStatus
from tests.simulation.test_zone_changes import ALMATY, OLD, pass_by, upgrade_functions
from tests.simulation.zone_files import put, zones_put_back
from tests.support.world import World

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
