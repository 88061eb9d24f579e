"""A reindexing that is cut off, or that ticks and owners come between."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from carillon.domain.job import Job, JobState
from carillon.domain.policies import CatchUp
from carillon.domain.run import RunKind
from carillon.domain.wheel.segment import LEASE, acquired
from carillon.reindexing.reindexing import Done, Reindex
from carillon.reindexing.scanning import scanned
from carillon.stores.memory.wheel import MemoryWheelStore
from tests.simulation.stories.operators.test_reindexing import (
    AFTER,
    LOST,
    MENDED,
    lose,
    lose_wheel,
    minutes,
    reindex,
    stores_of,
    twice,
)
from tests.simulation.stories.story import MINUTE, NOON, Killed, die, row_of, runs_of_kind
from tests.support.world import World


@pytest.fixture
def world() -> World:
    return World(NOON, segments=2)


def test_a_tick_at_work_loses_its_lease(world: World) -> None:
    job = world.create("job", "*/10 * * * *")
    world.run_until(LOST)
    lose_wheel(world)
    seen = world.indexer.control(job.segment)
    held = acquired(seen, "a tick", world.clock.now(), 2)
    assert held is not None
    assert world.wheel.put_control(held, over=seen)
    reindex(world)
    freed = replace(held, lease_until=None, watermark=held.horizon)
    assert not world.wheel.put_control(freed, over=held)
    world.run_until(AFTER)
    assert minutes(job, world)[2:] == [30, 40, 50, 60, 70]


class Interfering:
    """The wheel, with something that happens before the n-th call of those that write."""

    def __init__(self, wheel: MemoryWheelStore, at: int, happen: Callable[[], None]) -> None:
        self._wheel = wheel
        self._left = at
        self._happen = happen

    def __getattr__(self, name: str) -> Any:
        if name in ("put_entries", "put_control"):
            self._left -= 1
            if self._left == 0:
                self._happen()
        return getattr(self._wheel, name)


def four_jobs(world: World) -> list[Job]:
    return [world.create(f"job {n}", "*/2 * * * *", catch_up=CatchUp.ALL) for n in range(4)]


def assert_all_ran_once(world: World, jobs: list[Job]) -> None:
    for job in jobs:
        assert sorted(minutes(job, world)) == list(range(2, 75, 2))
    assert twice(world) == []


@pytest.mark.parametrize("at", range(1, 9))
def test_cut_off_between_any_two_writes_and_begun_anew_it_loses_nothing(
    world: World, at: int
) -> None:
    jobs = four_jobs(world)
    lose(world)
    with pytest.raises(Killed):
        reindex(world, Interfering(world.wheel, at, die))
    world.run_until(MENDED + 6 * MINUTE)
    reindex(world)
    world.run_until(AFTER)
    assert_all_ran_once(world, jobs)


@pytest.mark.parametrize("at", range(1, 6))
def test_ticks_that_come_between_any_two_writes_pass_nothing_by(world: World, at: int) -> None:
    """It stands still for longer than its lease, and all the while ticks come."""
    jobs = four_jobs(world)
    lose(world)

    def stand_still() -> None:
        world.run_until(world.clock.now() + 2 * LEASE + 2 * MINUTE)

    reindex(world, Interfering(world.wheel, at, stand_still))
    world.run_until(AFTER)
    assert_all_ran_once(world, jobs)


@pytest.mark.parametrize("at", range(1, 4))
def test_a_change_of_its_owners_meanwhile_wins(world: World, at: int) -> None:
    paused = world.create("paused", "*/10 * * * *")
    changed = world.create("changed", "*/10 * * * *")
    lose(world)

    def change() -> None:
        world.pause(paused)
        world.new_generation(changed, "5-59/10 * * * *")

    reindex(world, Interfering(world.wheel, at, change))
    world.run_until(AFTER)
    stored = row_of(world, paused)
    assert (stored.state, stored.revision) == (JobState.PAUSED, 2)
    assert [at for at in minutes(paused, world) if at > 47] == []
    assert [at for at in minutes(changed, world) if at > 47] == [55, 65, 75]
    assert twice(world) == []


class TestTicksBetweenBatches:
    """They read all entries of the minutes that a job is owed, also those of jobs that owe
    nothing and are yet to come."""

    @pytest.fixture(autouse=True)
    def batches_of_one(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("carillon.reindexing.reindexing.BATCH", 1)
        world.segments = 1

    def reindex_beside_ticks(self, world: World) -> None:
        def tick(_: Done) -> None:
            world.tick()
            world.execute()

        Reindex(stores_of(world), world.clock, world.entropy, 900).run(tick)

    @pytest.mark.parametrize("catch_up", CatchUp)
    def test_call_nothing_missed_that_has_run(self, world: World, catch_up: CatchUp) -> None:
        """The entries of one job alone are lost."""
        for number in range(4):
            world.create(f"job {number}", "*/10 * * * *", catch_up=catch_up)
        world.run_until(NOON + 25 * MINUTE)
        lost, *others = scanned(world.jobs, [])
        for entries in world.wheel._slots.values():
            for key in [key for key in entries if key.startswith(lost.job_id)]:
                del entries[key]
        world.run_until(MENDED)
        self.reindex_beside_ticks(world)
        world.run_until(AFTER)
        for job in others:
            assert minutes(job, world) == [10, 20, 30, 40, 50, 60, 70]
            assert runs_of_kind(world, job, RunKind.MISSED) == []
        again = {CatchUp.ALL: [30, 40], CatchUp.LATEST: [40], CatchUp.SKIP: []}[catch_up]
        assert minutes(lost, world) == [10, 20, *again, 50, 60, 70]
        assert twice(world) == []

    def test_nor_while_checks_come_again(self, world: World) -> None:
        """Each was made since its job's last run: nothing is lost."""
        schedules = ["5 12 * * *", *["*/10 * * * *"] * 4, "5 12 * * *"]
        jobs = [
            world.create(f"job {n}", each, expect_within=60) for n, each in enumerate(schedules)
        ]
        world.run_until(NOON + 65 * MINUTE)
        self.reindex_beside_ticks(world)
        world.run_until(AFTER)
        assert [row for job in jobs for row in runs_of_kind(world, job, RunKind.MISSED)] == []
        assert twice(world) == []
