"""`carillon admin spread`: jobs move to other segments while they fire."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from carillon.clock import ceil_second
from carillon.domain.execution.successors import link_of, linked
from carillon.domain.job import Job, JobState, segment_of
from carillon.domain.policies import CatchUp
from carillon.domain.spec.after import After
from carillon.domain.wheel.entry import minute_of
from carillon.errors import UnreadableRowError
from carillon.executor.targets import Call, Outcome, Success
from carillon.reindexing.spreading import Moves, Spread
from carillon.schedules import NEVER, CalendarRule
from carillon.stores.ports import Stores
from tests.simulation.stories.operators.test_reindexing import minutes, stores_of, twice
from tests.simulation.stories.story import HOUR, MINUTE, NOON, REFUSED, SECOND, Killed, die, row_of
from tests.support.jobs import job_with
from tests.support.world import World

FEW, MANY = 2, 7
UNTIL = NOON + 45 * MINUTE


def spread(world: World, segments: int, stores: Stores | None = None, **options: Any) -> Moves:
    """Move the jobs of a deployment whose ticks serve that many segments, and all before."""
    world.segments = max(world.segments, segments)
    work = Spread(stores or stores_of(world), world.clock, world.entropy, 900, segments, **options)
    work.run()
    return work.done


def stored(world: World) -> list[Job]:
    return list(world.jobs.scan(1_000, None).items)


def all_kinds(world: World) -> None:
    """Jobs of each kind, in all segments."""
    for number in range(4):
        world.create(f"even {number}", "*/2 * * * *", catch_up=CatchUp.ALL)
    for number in range(3):
        world.create(f"quick {number}", "every 20s")
        world.create(f"dated {number}", "20,21,32 12 1 12 *")
        world.create(f"zone {number}", "20,32 13 1 12 *", timezone="Europe/Berlin")
        world.create(f"once {number}", f"at 2026-12-01T12:{20 + number}:30Z")
        world.create(f"window {number}", "*/10 * * * *", window="5m", fraction=0.25 * (number + 1))
        world.create(f"delay {number}", f"every {5 + number}m after finish", max_runs=None)
        world.create(f"refused {number}", "*/4 * * * *", expect_within=300)
        world.create(f"limited {number}", "*/6 * * * *", max_runs=3 + number)
        timed = world.create(f"timed {number}", "*/2 * * * *")
        world.pause(timed, until=NOON + (20 + number) * MINUTE)
        follower(world, f"follower {number}", f"even {number}")


def follower(world: World, name: str, before: str) -> None:
    (predecessor,) = (job for job in stored(world) if job.spec.name == before)
    job = job_with(world.new_job(name, "every 1m"), schedule=NEVER, after=After(before))
    link = link_of(job)
    assert link is not None
    assert world.jobs.relink(linked(predecessor, link), predecessor.successors)
    assert world.indexer.index_job(job, None)


def behave(call: Call) -> Outcome:
    return REFUSED if call.job_name.startswith("refused") else Success("done")


def rows(world: World) -> list[tuple[object, ...]]:
    """What has become of every occurrence."""
    return sorted(
        (job.spec.name, row.key.kind.value, row.key.fire_at, row.status.value, row.attempt)
        for job in stored(world)
        for row in world.history(job)
    )


def lived(at: datetime, before: int = FEW, after: int = MANY) -> World:
    """A world in which jobs are moved at an instant, if the numbers differ."""
    world = World(NOON, segments=before)
    world.targets.behave = behave
    all_kinds(world)
    world.run_until(at - SECOND)
    world.clock.set(at)
    assert (spread(world, after).moved.total() > 10) is (before != after)
    world.clock.set(ceil_second(at))
    world.run_until(UNTIL)
    return world


@pytest.mark.parametrize("after", [(FEW, MANY), (MANY, FEW)], ids=["raised", "lowered"])
@pytest.mark.parametrize(
    "seconds", [0.0, 20 * 60 - 1.5, 20 * 60.0, 20 * 60 + 0.5, 20 * 60 + 29.5, 21 * 60 + 58, 32 * 60]
)
def test_everything_runs_as_if_nothing_had_been_moved(
    seconds: float, after: tuple[int, int]
) -> None:
    at = NOON + seconds * SECOND
    world = lived(at, *after)
    assert rows(world) == rows(lived(at, after=FEW))
    assert twice(world) == []
    assert world.bad_entries == []


@pytest.mark.parametrize(("before", "after"), [(FEW, MANY), (MANY, FEW)])
def test_each_job_is_where_its_id_says_and_again_nothing_is_left(before: int, after: int) -> None:
    world = World(NOON, segments=before)
    all_kinds(world)
    was = {job.job_id: job for job in stored(world)}
    rehearsed = spread(world, after, is_rehearsal=True)
    assert {job.job_id: job for job in stored(world)} == was
    moves = spread(world, after)
    assert moves.moved == rehearsed.moved
    assert moves.jobs == len(was)
    for job in stored(world):
        has_moved = job.segment != was[job.job_id].segment
        assert job.revision == was[job.job_id].revision + has_moved
        # What runs after another has nothing on the wheel.
        assert job.segment == segment_of(job.job_id, after) or job.spec.after is not None
    now = stored(world)
    assert spread(world, after).moved.total() == 0
    assert stored(world) == now


def test_what_the_jobs_had_before_is_removed_when_it_is_met() -> None:
    world = lived(NOON + 5 * MINUTE)
    world.run_until(NOON + 2 * HOUR)
    jobs = {job.job_id: job for job in stored(world)}
    for slot in world.wheel._slots.values():
        for entry in slot.values():
            job = jobs[entry.job_id]
            if entry.zone_digest and not entry.is_watch:
                assert entry.generation_id == job.generation.generation_id
                assert entry.segment == job.segment


def test_a_deleted_job_stays_and_is_revived_where_its_id_says(world: World) -> None:
    job = world.create("job", "*/2 * * * *")
    gone = job.deleted(world.clock.now(), NOON + 30 * 24 * HOUR)
    assert world.jobs.replace(gone, job.revision)
    assert spread(world, MANY).moved.total() == 0
    again = gone.replaced_by(world.new_job("job", "*/2 * * * *"))
    assert again.segment == segment_of(job.job_id, MANY)


@pytest.fixture
def world() -> World:
    return World(NOON, segments=1)


def test_an_occurrence_on_its_way_to_an_open_day_comes(world: World) -> None:
    world.close("closed", "2026-12-01")
    rule = CalendarRule.NEXT_BUSINESS_DAY
    job = world.create("moved", "10 12 * * *", calendar=("closed", rule))
    world.run_until(NOON + 20 * MINUTE)
    assert spread(world, MANY).moved.total() == 1
    tomorrow = NOON + timedelta(days=1, minutes=10)
    world.leap_to(tomorrow - MINUTE)
    world.run_until(tomorrow + MINUTE)
    assert [call.fire_at for call in world.targets.calls] == [tomorrow]
    assert job.job_id == world.targets.calls[0].job_id


@pytest.mark.parametrize("catch_up", CatchUp)
def test_what_was_due_in_an_outage_before_and_after_goes_by_catch_up(
    world: World, catch_up: CatchUp
) -> None:
    """What a generation owes it owes by itself, as where its schedule is changed in an outage."""
    job = world.create("job", "*/10 * * * *", catch_up=catch_up)
    world.run_until(NOON + 5 * MINUTE)
    world.run_until(NOON + 25 * MINUTE, ticking=False)
    spread(world, MANY)
    world.run_until(NOON + 47 * MINUTE, ticking=False)
    world.run_until(NOON + 75 * MINUTE)
    ran = {
        CatchUp.ALL: [10, 20, 30, 40, 50, 60, 70],
        CatchUp.LATEST: [20, 40, 50, 60, 70],
        CatchUp.SKIP: [50, 60, 70],
    }
    assert sorted(minutes(job, world)) == ran[catch_up]


class Interfering:
    """A store, with something that happens before the n-th call that writes to any."""

    def __init__(self, store: object, before: Callable[[], None]) -> None:
        self._store = store
        self._before = before

    def __getattr__(self, name: str) -> Any:
        if name in ("put_entries", "put_control", "remove_entries", "replace", "send"):
            self._before()
        return getattr(self._store, name)


def interfering(world: World, at: int, happen: Callable[[], None]) -> Stores:
    calls = iter(range(1, 1_000))

    def before() -> None:
        if next(calls) == at:
            happen()

    members: dict[str, Any] = {
        name: Interfering(getattr(world, name), before) for name in ("jobs", "wheel", "queue")
    }
    whole = stores_of(world)
    return Stores(**{**{n: getattr(whole, n) for n in Stores.__dataclass_fields__}, **members})


def a_few(world: World) -> list[Job]:
    """Jobs that all move, and fire every other minute."""
    names = (f"job {number}" for number in range(30))
    made = (world.create(name, "*/2 * * * *", catch_up=CatchUp.ALL) for name in names)
    return [job for job in made if segment_of(job.job_id, MANY) != job.segment][:3]


def assert_all_ran_once(world: World, jobs: list[Job]) -> None:
    until = world.clock.now() + 21 * MINUTE
    world.run_until(until)
    for job in jobs:
        assert minutes(job, world) == list(range(2, (until - NOON) // MINUTE + 1, 2))
        assert row_of(world, job).segment == segment_of(job.job_id, MANY)
    assert twice(world) == []


@pytest.mark.parametrize("at", range(1, 14))
def test_cut_off_between_any_two_writes_and_begun_anew_it_loses_nothing(
    world: World, at: int
) -> None:
    jobs = a_few(world)
    world.run_until(NOON + 3 * MINUTE + 57 * SECOND)
    with pytest.raises(Killed):
        spread(world, MANY, interfering(world, at, die))
    world.run_until(NOON + 9 * MINUTE)
    spread(world, MANY)
    assert_all_ran_once(world, jobs)


@pytest.mark.parametrize("still", [90 * SECOND, 20 * MINUTE, 2 * HOUR + 5 * MINUTE])
@pytest.mark.parametrize("at", range(1, 7))
def test_it_may_stand_still_between_any_two_writes(world: World, at: int, still: timedelta) -> None:
    """As on a laptop that is shut: the entries may be gone when it goes on."""
    jobs = a_few(world)
    world.run_until(NOON + 3 * MINUTE + 57 * SECOND)

    def stand_still() -> None:
        world.run_until(world.clock.now() + still)

    spread(world, MANY, interfering(world, at, stand_still))
    assert_all_ran_once(world, jobs)


def test_it_may_stand_still_behind_a_commit_until_ticks_send_chunks() -> None:
    """What it sends once more then has gone in these chunks, too."""
    world = World(NOON, segments=1)
    world.tick_ports = replace(world.tick_ports, chunked=True)
    jobs = [world.create(f"job {number}", "* * * * *", catch_up=CatchUp.ALL) for number in range(8)]
    moving = [job for job in jobs if segment_of(job.job_id, 2)]
    assert len(moving) > 3
    put, committed = world.jobs.replace, list[Job]()

    def stand_still(job: Job, revision: int) -> bool:
        is_put = put(job, revision)
        committed.append(job)
        if len(committed) == len(moving):
            world.leap_to(NOON + 65 * MINUTE)
            world.tick()
        return is_put

    world.jobs.replace = stand_still  # type: ignore[method-assign]
    spread(world, 2)
    world.run_until(NOON + 68 * MINUTE)
    plan = world.chunks.get_plan(1, minute_of(NOON + 66 * MINUTE))
    assert plan is not None
    assert plan.chunks
    assert twice(world) == []
    for job in moving:
        assert [minute for minute in minutes(job, world) if minute >= 65] == [65, 66, 67, 68]


@pytest.mark.parametrize("at", range(1, 5))
def test_a_change_of_its_owners_meanwhile_wins(world: World, at: int) -> None:
    paused, *_ = a_few(world)
    world.run_until(NOON + 5 * MINUTE)

    def pause() -> None:
        world.pause(row_of(world, paused))

    spread(world, MANY, interfering(world, at, pause))
    world.run_until(NOON + 15 * MINUTE)
    assert row_of(world, paused).segment == segment_of(paused.job_id, MANY)
    assert row_of(world, paused).state is JobState.PAUSED
    assert minutes(paused, world) == [2, 4]


def test_a_job_that_changes_at_every_step_or_cannot_be_read_is_told(world: World) -> None:
    jobs = a_few(world)
    world.jobs.replace = lambda job, revision: False  # type: ignore[method-assign]
    told = spread(world, MANY)
    assert told.moved.total() == 0
    assert f"job {jobs[0].job_id} of {jobs[0].owner} changed at every step" in told.left

    def unreadable(owner: str, job_id: str) -> Job | None:
        raise UnreadableRowError("its schedule is none")

    world.jobs.get = unreadable  # type: ignore[method-assign]
    told = spread(world, MANY)
    assert f"job {jobs[0].job_id} of {jobs[0].owner}: its schedule is none" in told.left
