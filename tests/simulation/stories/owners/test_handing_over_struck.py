"""Handing over when a step dies at any write, and when either owner does something meanwhile."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from carillon.domain.changes.handing_over import is_in_hand
from carillon.domain.job import Job, JobState
from carillon.domain.operation import OperationState
from carillon.domain.policies import CatchUp, OnComplete
from carillon.domain.run import RunStatus
from carillon.domain.spec.names import job_id_of
from carillon.executor.targets import Call, Outcome, Success
from carillon.schedules import CalendarRule
from carillon.services.job_quotas import JobQuotas
from tests.simulation.stories.operators.test_reindexing import twice
from tests.simulation.stories.owners.test_handing_over import (
    TEAM,
    calendar_of,
    hand_over,
    job_of,
    ran_by,
    taken_of,
)
from tests.simulation.stories.story import HOUR, MINUTE, NOON, SECOND, Killed, die, row_of
from tests.support.operation_kit import now_of
from tests.support.world import OWNER, World, quotas_of


@pytest.fixture
def world() -> World:
    return World(NOON, segments=2)


class Striking:
    """A store in which something happens before or after the n-th write of all."""

    def __init__(self, store: object, on_write: Callable[[Callable[[], Any]], Any]) -> None:
        self._store = store
        self._on_write = on_write

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if name not in ("put_entries", "remove_entries", "replace", "create", "send", "put"):
            return found
        return lambda *args, **named: self._on_write(lambda: found(*args, **named))


def strike(world: World, at: int, happen: Callable[[], None], *, after: bool) -> None:
    """Let something happen at the n-th write of the executors from now on, once."""
    writes = 0

    def on_write(write: Callable[[], Any]) -> Any:
        nonlocal writes
        writes += 1
        is_it = writes == at
        if is_it and not after:
            happen()
        answer = write()
        if is_it and after:
            happen()
        return answer

    strike_each(world, on_write)


def strike_each(world: World, on_write: Callable[[Callable[[], Any]], Any]) -> None:
    """Let each write of the executors from now on be what `on_write` makes of it."""
    ports = world.executor_ports
    indexer = world.indexer
    members = {name: Striking(getattr(ports, name), on_write) for name in ("jobs", "operations")}
    indexer = type(indexer)(
        members["jobs"],
        Striking(world.wheel, on_write),
        Striking(world.queue, on_write),
        world.clock,
        world.calendars,
    )
    changed: Any = {**members, "indexer": indexer}
    world.executor = type(world.executor)(replace(ports, **changed))


def run_with_deaths(world: World, until: datetime) -> int:
    """As `run_until`; a message whose handling dies comes again. Answers how many died."""
    died = 0
    while world.clock.now() <= until:
        if world.clock.now().second == 0:
            world.tick()
        try:
            world.execute()
        except Killed:
            died += 1
        world.clock.advance(1)
    return died


def test_what_resumes_a_job_and_comes_before_its_row_comes_again(world: World) -> None:
    """Seed 6620000378: a step died between two owners, and the pause ended before the next one."""
    job = world.create("job", "*/2 * * * *")
    before = row_of(world, job)
    world.run_until(NOON + 5 * MINUTE)
    paused = before.paused(NOON + MINUTE, resume_at=NOON + 3 * MINUTE)

    def slow(write: Callable[[], Any]) -> Any:
        world.clock.advance(10)
        world.execute()
        return write()

    jobs = Striking(world.jobs, slow)
    ports = jobs, world.wheel, world.queue, world.clock, world.calendars
    indexer = type(world.indexer)(*ports)
    assert indexer.commit_paused(paused, before.revision)
    world.run_until(NOON + 7 * MINUTE)
    assert row_of(world, job).state is JobState.ACTIVE


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("at", range(1, 36))
def test_it_goes_on_after_a_death_at_any_write(world: World, at: int, after: bool) -> None:
    for number in range(3):
        world.create(f"job {number}", "*/2 * * * *", catch_up=CatchUp.ALL)
    operation = hand_over(world)
    strike(world, at, die, after=after)
    assert run_with_deaths(world, NOON + 31 * MINUTE) <= 1
    assert now_of(world, operation).state is OperationState.SUCCEEDED
    for number in range(3):
        ran = ran_by(world, f"job {number}")
        old = job_of(world, OWNER, f"job {number}")
        assert old is not None
        assert [at.minute for at, _ in ran] == list(range(2, 32, 2))
        assert all((owner == TEAM) == (at > old.generation.from_at) for at, owner in ran)
    assert twice(world) == []


def test_what_came_due_during_a_late_commit_runs_though_its_process_dies_then(
    world: World,
) -> None:
    """It stood still for longer than others wait for a commit (9980002125)."""
    world.create("job", "every 20s", catch_up=CatchUp.ALL)
    world.run_until(NOON + 5 * MINUTE)
    hand_over(world)
    others, writes = world.executor, 0

    def on_write(write: Callable[[], Any]) -> Any:
        nonlocal writes
        writes += 1
        if writes != 9:  # the creation of the new row
            return write()
        world.executor = others
        world.run_until(world.clock.now() + 3 * MINUTE)
        write()
        raise Killed

    strike_each(world, on_write)
    assert run_with_deaths(world, NOON + 20 * MINUTE) == 1
    assert taken_of(world, "job").generation.from_at < NOON + 6 * MINUTE
    ran = [at for at, _ in ran_by(world, "job")]
    assert ran == [NOON + timedelta(seconds=20 * n) for n in range(1, 61)]


def test_a_pause_ends_though_its_job_s_new_row_comes_later_and_its_process_dies_then(
    world: World,
) -> None:
    """What resumes it has come and gone before."""
    job = world.create("job", "*/2 * * * *", catch_up=CatchUp.ALL)
    world.pause(job, until=NOON + 9 * MINUTE)
    world.run_until(NOON + 5 * MINUTE)
    hand_over(world)
    others, create = world.executor, world.jobs.create

    def late(job: Job) -> bool:
        world.jobs.create = create  # type: ignore[method-assign]
        world.executor = others
        world.run_until(NOON + 11 * MINUTE)
        create(job)
        raise Killed

    world.jobs.create = late  # type: ignore[method-assign]
    assert run_with_deaths(world, NOON + 31 * MINUTE) == 1
    assert taken_of(world, "job").state is JobState.ACTIVE
    assert [at.minute for at, _ in ran_by(world, "job")] == list(range(10, 32, 2))


def test_so_it_does_where_the_job_goes_back_to_its_first_owner(world: World) -> None:
    """The other owner has taken its name meanwhile, which hinders the hand-over, not its end."""
    job = world.create("job", "*/2 * * * *", catch_up=CatchUp.ALL)
    world.pause(job, until=NOON + 9 * MINUTE)
    world.run_until(NOON + 5 * MINUTE)
    hand_over(world)
    others, replaced = world.executor, world.jobs.replace

    def taking_its_name(job: Job, revision: int) -> bool:
        world.jobs.replace = late  # type: ignore[method-assign]
        theirs = world.new_job("job", "@daily")
        assert world.jobs.create(replace(theirs, owner=TEAM, job_id=job_id_of(TEAM, "job")))
        return replaced(job, revision)

    def late(job: Job, revision: int) -> bool:
        world.jobs.replace = replaced  # type: ignore[method-assign]
        world.executor = others
        world.run_until(NOON + 11 * MINUTE)
        assert replaced(job, revision)
        raise Killed

    world.jobs.replace = taking_its_name  # type: ignore[method-assign]
    assert run_with_deaths(world, NOON + 31 * MINUTE) == 1
    assert row_of(world, job).state is JobState.ACTIVE
    assert ran_by(world, "job") == [(NOON + n * MINUTE, OWNER) for n in range(10, 32, 2)]


def test_so_it_does_where_it_comes_while_the_step_asks_what_hinders_the_hand_over(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its stores are slow: the job would be its new owner's from a later instant on."""
    job = world.create("job", "every 10s", catch_up=CatchUp.ALL)
    world.pause(job, until=NOON + 9 * MINUTE)
    world.run_until(NOON + 9 * MINUTE - 5 * SECOND)
    hand_over(world)
    get = world.jobs.get

    def slow(owner: str, job_id: str) -> Job | None:
        if owner == TEAM:
            monkeypatch.undo()
            assert world.clock.now() < NOON + 9 * MINUTE
            world.clock.advance(15)
        return get(owner, job_id)

    monkeypatch.setattr(world.jobs, "get", slow)
    world.run_until(NOON + 10 * MINUTE)
    ran = [at for at, _ in ran_by(world, "job")]
    assert ran == [NOON + (54 + n) * 10 * SECOND for n in range(7)]


@pytest.mark.parametrize("is_taken", [False, True])
def test_a_job_whose_last_run_ends_between_two_owners_is_complete(
    world: World, is_taken: bool
) -> None:
    """A step dies behind the end of the job. It is complete with its first owner, too, where the
    other one takes its name then."""
    job = world.create("job", "at 2026-12-01T12:05:00", on_complete=OnComplete.DELETE)

    def behave(call: Call) -> Outcome:
        hand_over(world)
        strike(world, 5, die, after=True)
        with pytest.raises(Killed):
            world.run_until(world.clock.now() + 5 * SECOND)
        assert is_in_hand(row_of(world, job))
        if is_taken:
            theirs = world.new_job("job", "@daily")
            assert world.jobs.create(replace(theirs, owner=TEAM, job_id=job_id_of(TEAM, "job")))
        return Success("done")

    world.targets.behave = behave
    world.run_until(NOON + 25 * MINUTE)
    assert not is_in_hand(row_of(world, job))
    left = row_of(world, job) if is_taken else taken_of(world, "job")
    assert left.state is JobState.COMPLETED


@pytest.mark.parametrize("at", [5, 6, 7, 8])
@pytest.mark.parametrize("schedule", ["every 20s", "*/2 * * * *"])
def test_what_arrives_between_two_owners_runs_where_the_job_comes_back(
    world: World, at: int, schedule: str
) -> None:
    """A step dies behind the end of the job, and the other owner takes its name then."""
    world.create("job", schedule, catch_up=CatchUp.ALL)
    world.run_until(NOON + 5 * MINUTE)
    operation = hand_over(world)
    strike(world, at, die, after=True)
    assert run_with_deaths(world, NOON + 6 * MINUTE) == 1
    theirs = world.new_job("job", "@daily")
    assert world.jobs.create(replace(theirs, owner=TEAM, job_id=job_id_of(TEAM, "job")))
    world.run_until(NOON + 30 * MINUTE)
    assert now_of(world, operation).left == (f"job: {TEAM} has a job 'job'",)
    apart = timedelta(seconds=20 if schedule == "every 20s" else 120)
    ran = [at for at, _ in ran_by(world, "job")]
    assert ran == [NOON + n * apart for n in range(1, 1 + 30 * MINUTE // apart)]
    assert twice(world) == []


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("at", range(1, 25))
def test_an_owner_is_handed_no_more_than_its_quota(world: World, at: int, after: bool) -> None:
    """Whatever write a step dies at: a row that was left too high is counted again."""
    rows = world.jobs, world.uses, world.clock, world.entropy
    quotas = JobQuotas(quotas_of(jobs=2), *rows)
    world.executor_ports = replace(world.executor_ports, job_quotas=quotas)
    for number in range(3):
        world.create(f"job {number}", "*/2 * * * *", catch_up=CatchUp.ALL)
    operation = hand_over(world)
    strike(world, at, die, after=after)
    assert run_with_deaths(world, NOON + 31 * MINUTE) <= 1
    told = now_of(world, operation)
    assert (told.state, told.passed_over) == (OperationState.SUCCEEDED, 1)
    assert told.left[0].endswith(f"{TEAM} has no room for it: its use of jobs is 2 of 2")
    moved = [job_of(world, TEAM, f"job {number}") for number in range(3)]
    assert sum(job is not None for job in moved) == 2
    for number in range(3):
        ran = ran_by(world, f"job {number}")
        assert [fire_at.minute for fire_at, _ in ran] == list(range(2, 32, 2))
    assert twice(world) == []


@pytest.mark.parametrize("at", range(1, 14))
@pytest.mark.parametrize("deed", ["name", "pause", "delete", "calendar"])
def test_what_either_owner_does_meanwhile_counts(world: World, at: int, deed: str) -> None:
    """The name may be taken, the calendar go, the job change between any two writes."""
    world.close("days", "2026-12-24")
    assert world.calendars.put(replace(calendar_of(world), owner=TEAM), None)
    job = world.create("job", "*/2 * * * *", calendar=("days", CalendarRule.SKIP))

    def happen() -> None:
        now = world.clock.now()
        stored = job_of(world, OWNER, "job")
        assert stored is not None
        taken = job_of(world, TEAM, "job")
        if deed == "name" and taken is None:
            fresh = world.new_job("job", "@daily")
            theirs = replace(fresh, owner=TEAM, job_id=job_id_of(TEAM, "job"))
            assert world.indexer.index_job(theirs, None)
        elif deed == "calendar":
            assert world.calendars.delete(TEAM, "days", 1)
        elif deed in ("pause", "delete") and not stored.is_tombstone:
            changed = stored.paused(now)
            if deed == "delete":
                changed = stored.deleted(now, now + 24 * HOUR)
            assert world.jobs.replace(changed, stored.revision)

    operation = hand_over(world)
    strike(world, at, happen, after=False)
    world.run_until(NOON + 13 * MINUTE)
    assert now_of(world, operation).is_final
    old, new = row_of(world, job), job_of(world, TEAM, "job")
    is_new = new is not None and new.handed_from is not None
    assert is_new is (old.handed_to is not None), "it is somebody's, and of one only"
    ran = [at.minute for at, _ in ran_by(world, "job")]
    if old.state is JobState.DELETED or JobState.PAUSED in (old.state, new and new.state):
        assert ran == []
    else:
        assert ran == [2, 4, 6, 8, 10, 12]
    assert twice(world) == []


def test_it_cannot_fail_for_good_between_two_owners(world: World) -> None:
    """Executors die at every step for half an hour; the job goes on from the instant on."""
    job = world.create("job", "*/2 * * * *", catch_up=CatchUp.ALL)
    operation = hand_over(world)
    create, deaths = world.jobs.create, 0

    def dying(job: Job) -> bool:
        nonlocal deaths
        deaths += 1
        raise Killed

    world.jobs.create = dying  # type: ignore[method-assign]
    while world.clock.now() <= NOON + 30 * MINUTE:
        if world.clock.now().second == 0:
            world.tick()
        for received in world.queue.receive(world.clock.now(), 10):
            ends_at = world.clock.now() + timedelta(seconds=60)
            try:
                world.executor.lane(received.body, ends_at)
            except Killed:
                # At last the dead-letter consumer has it.
                world.clock.advance(120)
                world.executor.dead(received.body, world.clock.now() + timedelta(seconds=60))
            world.queue.delete(received.receipt)
        world.clock.advance(1)
    assert deaths > 5
    assert now_of(world, operation).in_hand == (job.job_id,)
    world.jobs.create = create  # type: ignore[method-assign]
    world.run_until(NOON + 61 * MINUTE)
    assert now_of(world, operation).state is OperationState.SUCCEEDED
    assert [at.minute for at, _ in ran_by(world, "job")][:29] == list(range(2, 60, 2))
    assert all(run.status is RunStatus.SUCCEEDED for run in world.history(taken_of(world, "job")))
    assert twice(world) == []
