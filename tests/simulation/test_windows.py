"""Windows: each job at a place of its own after the nominal time, to the second."""

from datetime import UTC, datetime, timedelta

import pytest

from carillon.domain.job import Job
from carillon.domain.policies import CatchUp
from carillon.domain.run import RunKind, RunStatus
from carillon.domain.wheel.entry import entries_of
from carillon.schedules import SlotKind, slots
from tests.support.world import World, times

MIDNIGHT = datetime(2026, 12, 1, tzinfo=UTC)


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


def test_what_is_due_before_a_pause_but_later_in_the_window_is_skipped_then_and_runs_after_it() -> (
    None
):
    """00:10 is before the first pause, its place at 00:14 within it: nothing starts in a pause.
    00:20 is before the second one, its place at 00:24 after the resume: it runs."""
    world = World(MIDNIGHT)
    job = world.create("paused", "*/10 * * * *", window="8m", fraction=0.5)
    world.run_until(MIDNIGHT + timedelta(minutes=12))
    paused = world.pause(job)
    world.run_until(MIDNIGHT + timedelta(minutes=16))
    resumed = world.refile(paused)
    world.run_until(MIDNIGHT + timedelta(minutes=21))
    paused = world.pause(resumed)
    world.run_until(MIDNIGHT + timedelta(minutes=22))
    world.refile(paused)
    world.run_until(MIDNIGHT + timedelta(minutes=35))
    outcomes = {run.key.fire_at: (run.status, run.reason) for run in world.history(job)}
    ten, twenty, thirty = times("00:10 00:20 00:30", MIDNIGHT)
    assert outcomes == {
        ten: (RunStatus.SKIPPED, "paused"),
        twenty: (RunStatus.SUCCEEDED, None),
        thirty: (RunStatus.SUCCEEDED, None),
    }
    assert effective(world, job) == times("00:24 00:34", MIDNIGHT)


def test_entries_of_a_paused_job_stay_until_their_last_effective_minute_is_dispatched() -> None:
    world = World(MIDNIGHT, segments=1)
    job = world.create("paused", "*/10 * * * *", window="100%", fraction=0.9)
    world.run_until(MIDNIGHT + timedelta(minutes=20))
    paused = world.pause(job)
    world.run_until(MIDNIGHT + timedelta(hours=2, minutes=5))
    left = [
        entry
        for indexed in entries_of(job)
        for entry in world.wheel.query(0, indexed.slot).entries
        if entry.key == indexed.key
    ]
    assert left == []
    world.refile(paused)
    world.run_until(MIDNIGHT + timedelta(hours=2, minutes=20))
    assert world.fired(job) == times("00:10 02:10", MIDNIGHT)
    skipped = [run.key.fire_at for run in world.history(job) if run.reason == "paused"]
    assert skipped[0] == MIDNIGHT + timedelta(minutes=20)


@pytest.mark.parametrize(("before", "after"), [(0.25, 0.75), (0.75, 0.25)])
def test_a_change_of_the_window_moves_every_later_run_and_doubles_none(
    before: float, after: float
) -> None:
    """The entries of the generation before are still there, and their messages name the same
    runs."""
    world = World(MIDNIGHT)
    job = world.create("moved", "*/4 * * * *", window="4m", fraction=before)
    world.run_until(MIDNIGHT + timedelta(minutes=5, seconds=30))
    world.refile(job, spread_seconds=int(240 * after))
    world.run_until(MIDNIGHT + timedelta(minutes=20))
    fired = times("00:04 00:08 00:12 00:16", MIDNIGHT)
    assert world.fired(job) == fired
    offsets = [240 * before] + 3 * [240 * after]
    expected = [t + timedelta(seconds=o) for t, o in zip(fired, offsets, strict=True)]
    assert effective(world, job) == expected


@pytest.mark.parametrize("policy", list(CatchUp))
def test_an_outage_is_caught_up_by_effective_times_and_recorded_by_nominal_ones(
    policy: CatchUp,
) -> None:
    world = World(MIDNIGHT)
    job = world.create("caught", "*/5 * * * *", window="5m", fraction=0.7, catch_up=policy)
    world.run_until(MIDNIGHT + timedelta(minutes=10, seconds=59))
    back_at = MIDNIGHT + timedelta(hours=1, minutes=1)
    world.run_until(back_at - timedelta(seconds=1), ticking=False)
    world.run_until(MIDNIGHT + timedelta(hours=1, minutes=14))
    own = {run.key.fire_at: run.status for run in world.history(job) if run.attempt}
    covered: set[datetime] = set()
    for row in world.history(job):
        if row.key.kind is RunKind.MISSED:
            assert row.covers_from is not None
            before = row.covers_from - timedelta(seconds=1)
            covered |= set(job.schedule.between(before, row.key.fire_at))
    assert not covered & own.keys()
    every = {MIDNIGHT + timedelta(minutes=n) for n in range(5, 71, 5)}
    assert covered | own.keys() == every
    # 00:55 is effective at 00:58:30: the last of the outage. 00:10 was announced before it.
    missed = {MIDNIGHT + timedelta(minutes=n) for n in range(15, 56, 5)}
    ran = {fire_at for fire_at, status in own.items() if status is RunStatus.SUCCEEDED}
    last = MIDNIGHT + timedelta(minutes=55)
    assert (
        missed & ran == {CatchUp.ALL: missed, CatchUp.LATEST: {last}, CatchUp.SKIP: set()}[policy]
    )


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
