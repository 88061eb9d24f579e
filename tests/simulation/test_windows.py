"""Windows: each job at a place of its own after the nominal time, to the second."""

from datetime import datetime, timedelta

import pytest

from carillon.domain.job import Job
from carillon.schedules import SlotKind, slots
from tests.simulation.story import MIDNIGHT
from tests.support.world import World, times


def effective(world: World, job: Job) -> list[datetime]:
    """When the job's runs started, oldest first."""
    return [run.started_at for run in world.history(job) if run.started_at is not None]


@pytest.mark.parametrize(
    ("schedule", "window", "fraction", "offset_seconds"),
    [
        ("*/10 * * * *", "5m", 0.5, 150),
        ("*/10 * * * *", "100%", 0.9999, 599),
        ("17 * * * *", "90s", 0.999, 89),
        ("0 0 * * *", "2h", 0.51, 3672),
        ("every 30s", "50%", 0.5, 7),
        ("at 2026-12-01T00:20:00", "15m", 0.123, 110),
        ("every 1001m", "24h", 0.03, 1801),
    ],
)
def test_each_run_starts_at_its_place_to_the_second_and_keeps_its_nominal_time(
    schedule: str, window: str, fraction: float, offset_seconds: int
) -> None:
    world = World(MIDNIGHT - timedelta(minutes=30))
    before = MIDNIGHT - timedelta(minutes=990)
    start_at = before if schedule == "every 1001m" else None
    job = world.create("spread", schedule, window=window, fraction=fraction, start_at=start_at)
    assert job.spread_seconds == offset_seconds
    until = MIDNIGHT + timedelta(hours=1, minutes=30)
    world.run_until(until)
    offset = timedelta(seconds=offset_seconds)
    nominal = list(job.schedule.between(job.generation.from_at, until - offset))
    assert world.fired(job) == nominal
    assert nominal, "something is shown"
    assert effective(world, job) == [fire_at + offset for fire_at in nominal]
    history = world.history(job)
    assert {run.lag_seconds for run in history} == {0.0}, "lag counts from the effective time"
    assert [run.effective_at for run in history] == effective(world, job)


def test_a_job_created_between_nominal_and_effective_time_has_that_occurrence_behind_it() -> None:
    world = World(MIDNIGHT + timedelta(seconds=30))
    job = world.create("late", "*/2 * * * *", window="2m", fraction=0.75)
    world.run_until(MIDNIGHT + timedelta(minutes=6))
    assert world.fired(job) == times("00:02 00:04", MIDNIGHT)
    assert effective(world, job) == times("00:03:30 00:05:30", MIDNIGHT)


def test_a_spread_herd_is_not_at_one_second() -> None:
    world = World(MIDNIGHT)
    jobs = [world.create(f"job-{number}", "5 * * * *", window="60s") for number in range(40)]
    world.run_until(MIDNIGHT + timedelta(minutes=7))
    starts = [start for job in jobs for start in effective(world, job)]
    assert len(starts) == 40
    assert len(set(starts)) > 20
    assert min(starts) >= MIDNIGHT + timedelta(minutes=5)
    assert max(starts) < MIDNIGHT + timedelta(minutes=6)


@pytest.mark.parametrize(("before", "after"), [(0.25, 0.75), (0.75, 0.25)])
def test_a_change_of_the_window_moves_every_later_run_and_doubles_none(
    before: float, after: float
) -> None:
    """The entries of the generation before are still there, and their messages name the same
    runs."""
    world = World(MIDNIGHT)
    job = world.create("moved", "*/4 * * * *", window="4m", fraction=before)
    world.run_until(MIDNIGHT + timedelta(minutes=5, seconds=30))
    world.new_generation(job, spread_seconds=int(240 * after))
    world.run_until(MIDNIGHT + timedelta(minutes=20))
    fired = times("00:04 00:08 00:12 00:16", MIDNIGHT)
    assert world.fired(job) == fired
    offsets = [240 * before] + 3 * [240 * after]
    expected = [t + timedelta(seconds=o) for t, o in zip(fired, offsets, strict=True)]
    assert effective(world, job) == expected


def test_a_dated_chain_with_a_window_goes_on_link_by_link() -> None:
    world = World(MIDNIGHT, segments=1)
    job = world.create("rare", "every 181m", start_at=MIDNIGHT, window="1h", fraction=0.5)
    assert slots(job.schedule, job.spread_seconds).kind is SlotKind.DATED
    world.run_until(MIDNIGHT + timedelta(hours=10))
    nominal = [MIDNIGHT + timedelta(minutes=181 * n) for n in (1, 2, 3)]
    assert world.fired(job) == nominal
    assert effective(world, job) == [t + timedelta(minutes=30) for t in nominal]


def test_two_members_that_meet_at_one_instant_are_one_run() -> None:
    world = World(MIDNIGHT)
    job = world.create("both", ["*/2 * * * *", "*/3 * * * *"], except_=["8 * * * *"])
    world.run_until(MIDNIGHT + timedelta(minutes=10))
    assert world.fired(job) == times("00:02 00:03 00:04 00:06 00:09 00:10", MIDNIGHT)
    assert len(world.history(job)) == 6
