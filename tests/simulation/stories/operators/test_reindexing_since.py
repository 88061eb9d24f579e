"""The instant from which on a reindexing has jobs owe what was due: an operator's, or that of what
ticks have settled; and the segments that it mends."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from carillon.domain.job import Job
from carillon.domain.policies import CatchUp
from carillon.domain.run import RunKind
from carillon.reindexing.reindexing import Done, Reindex
from carillon.stores.segments import segments_in_use
from tests.simulation.stories.operators.test_reindexing import (
    AFTER,
    LOST,
    MENDED,
    lose,
    lose_wheel,
    minutes,
    put_wheel,
    reindex,
    stores_of,
    twice,
)
from tests.simulation.stories.story import MINUTE, NOON, runs_of_kind
from tests.support.world import World


@pytest.fixture
def world() -> World:
    return World(NOON, segments=2)


def test_it_begins_where_its_operator_says(world: World) -> None:
    """An outage was being caught up when the wheel was lost: rows after it tell of none before."""
    job = world.create("job", "*/10 * * * *", catch_up=CatchUp.ALL)
    world.run_until(NOON + 9 * MINUTE)
    world.leap_to(NOON + 19 * MINUTE)
    world.run_until(LOST)
    lose_wheel(world)
    world.clock.set(MENDED)
    reindex(world, since=NOON + 9 * MINUTE)
    world.run_until(AFTER)
    assert sorted(minutes(job, world)) == [10, 20, 30, 40, 50, 60, 70]


def test_what_ticks_have_yet_to_catch_up_on_stays_owed(world: World) -> None:
    """Only entries are lost: a newer run tells nothing of what the control items still owe."""
    job = world.create("job", "*/10 * * * *", catch_up=CatchUp.ALL)
    world.run_until(NOON + 5 * MINUTE)
    world.run_until(NOON + timedelta(minutes=39, seconds=59), ticking=False)
    deadline = world.clock.now() + timedelta(seconds=50)
    world.dispatcher().dispatch(job.segment, deadline)  # live minutes come first
    world.execute()
    assert minutes(job, world) == [40]
    put_wheel(world, {"_slots": {}, "_orders": {}})
    reindex(world)
    world.run_until(AFTER)
    assert sorted(minutes(job, world)) == [10, 20, 30, 40, 50, 60, 70]


def test_so_does_what_a_later_one_is_to_represent(world: World) -> None:
    """Seed 9711000488: half of an outage's minutes had been read, and sent nothing yet."""
    job = world.create("job", "*/10 * * * *")
    world.run_until(NOON + 5 * MINUTE)
    world.run_until(NOON + timedelta(minutes=39, seconds=59), ticking=False)
    world.dispatcher().dispatch(job.segment, world.clock.now() + timedelta(seconds=50))
    world.execute()
    seen = world.wheel.get_control(job.segment)
    assert seen is not None
    (gap,) = seen.backlog
    assert world.wheel.put_control(
        replace(seen, token=seen.token + 1, backlog=(replace(gap, done=gap.done + 20),)), over=seen
    )
    reindex(world)
    world.run_until(AFTER)
    assert sorted(minutes(job, world)) == [30, 40, 50, 60, 70]
    (covering,) = runs_of_kind(world, job, RunKind.MISSED)
    assert covering.covers_count == 2


def test_nor_does_a_tick_between_two_batches_settle_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It works the outage off, with the entries of the first batch alone."""
    monkeypatch.setattr("carillon.reindexing.reindexing.BATCH", 1)
    world.segments = 1
    jobs = [world.create(f"job {n}", "*/10 * * * *", catch_up=CatchUp.ALL) for n in range(3)]
    world.run_until(NOON + 5 * MINUTE)
    world.run_until(NOON + timedelta(minutes=39, seconds=59), ticking=False)
    world.dispatcher().dispatch(0, world.clock.now() + timedelta(seconds=50))
    world.execute()
    put_wheel(world, {"_slots": {}, "_orders": {}})
    work = Reindex(stores_of(world), world.clock, world.entropy, 900)

    def tick(_: Done) -> None:
        world.tick()

    work.run(tick)
    world.run_until(AFTER)
    for job in jobs:
        assert sorted(minutes(job, world)) == [10, 20, 30, 40, 50, 60, 70]


@pytest.mark.parametrize("catch_up", [CatchUp.LATEST, CatchUp.SKIP])
def test_begun_anew_with_an_earlier_instant_it_leaves_nothing_out(
    world: World, catch_up: CatchUp
) -> None:
    """All is lost in the middle of a catch-up; the first time newer runs hide what is older, and a
    row ends where that of the second time does."""
    job = world.create("job", "*/10 * * * *", catch_up=catch_up)
    world.run_until(NOON + 5 * MINUTE)
    world.run_until(NOON + timedelta(minutes=59, seconds=59), ticking=False)
    world.dispatcher().dispatch(job.segment, world.clock.now() + timedelta(seconds=50))
    world.execute()
    lose_wheel(world)
    world.clock.set(NOON + 85 * MINUTE)
    reindex(world)
    world.run_until(NOON + 87 * MINUTE)
    reindex(world, since=NOON + 5 * MINUTE)
    world.run_until(NOON + 95 * MINUTE)
    assert minutes(job, world) == [60, *([80] if catch_up is CatchUp.LATEST else []), 90]
    spans = [(row.covers_from, row.key.fire_at) for row in runs_of_kind(world, job, RunKind.MISSED)]
    assert sorted(spans) == [
        (NOON + 10 * MINUTE, NOON + 60 * MINUTE),
        (NOON + 70 * MINUTE, NOON + 70 * MINUTE),
    ]
    assert twice(world) == []


class TestWindows:
    """Ticks count effective times, histories nominal ones: at 12:10 + 6:18 and so on."""

    @pytest.fixture
    def world(self) -> World:
        return World(NOON, segments=1)

    def windowed(self, world: World, **settings: Any) -> Job:
        return world.create("job", "*/10 * * * *", window="9m", fraction=0.7, **settings)

    def test_an_instant_between_an_occurrence_and_its_start_loses_nothing(
        self, world: World
    ) -> None:
        job = self.windowed(world, expect_within=300)
        world.run_until(NOON + 21 * MINUTE)
        reindex(world, since=world.clock.now())
        world.run_until(AFTER)
        assert minutes(job, world) == [10, 20, 30, 40, 50, 60]
        assert twice(world) == []

    @pytest.mark.parametrize("catch_up", [CatchUp.ALL, CatchUp.LATEST])
    def test_nor_does_an_outage_that_began_there(self, world: World, catch_up: CatchUp) -> None:
        """A newer run tells of a live minute, which came before the backlog."""
        job = self.windowed(world, catch_up=catch_up)
        world.run_until(NOON + 12 * MINUTE)
        world.run_until(NOON + timedelta(minutes=45, seconds=59), ticking=False)
        world.dispatcher().dispatch(0, world.clock.now() + timedelta(seconds=50))
        world.run_until(NOON + timedelta(minutes=46, seconds=59), ticking=False)
        assert minutes(job, world) == [40]
        reindex(world)
        world.run_until(AFTER)
        assert minutes(job, world)[0] == 40
        missed = [
            (row.covers_from, row.key.fire_at) for row in runs_of_kind(world, job, RunKind.MISSED)
        ]
        if catch_up is CatchUp.ALL:
            assert sorted(minutes(job, world)) == [10, 20, 30, 40, 50, 60]
            assert missed == []
        else:
            assert minutes(job, world) == [40, 50, 60]
            assert missed == [(NOON + 10 * MINUTE, NOON + 30 * MINUTE)]


def test_segments_beyond_a_lowered_number_are_served_again(world: World) -> None:
    """Ticks look for those beyond it up to the first that has no control item."""
    world.segments = 7
    jobs = [world.create(f"job-{number}", "*/2 * * * *") for number in range(3)]
    assert {job.segment for job in jobs} == {5, 6}
    lose(world)
    reindex(world)
    assert segments_in_use(world.wheel, configured=2) == 7


def test_one_segment_is_mended_alone(world: World) -> None:
    jobs = [world.create(f"job {number}", "*/10 * * * *") for number in range(6)]
    world.run_until(LOST)
    lose_wheel(world)
    done = reindex(world, only=0)
    world.run_until(AFTER)
    assert done.jobs == sum(job.segment == 0 for job in jobs)
    assert set(done.since) == {0}
    for job in jobs:
        assert minutes(job, world)[2:] == ([30, 40, 50, 60, 70] if job.segment == 0 else [])
