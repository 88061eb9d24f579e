"""Jobs that are handed over to another owner while they fire."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from carillon.domain.calendar import Calendar
from carillon.domain.execution.successors import link_of, linked
from carillon.domain.job import Job, JobState
from carillon.domain.operation import Operation, OperationKind, OperationState
from carillon.domain.policies import Backoff, BackoffType, CatchUp, RetryPolicy
from carillon.domain.run import RunError, RunStatus
from carillon.domain.spec.after import After
from carillon.domain.spec.names import job_id_of
from carillon.domain.spec.owners import Author, AuthorKind, Via
from carillon.executor.operations.hand_over import HandingOver
from carillon.executor.targets import Call, Failure, Outcome, Success
from carillon.schedules import NEVER, CalendarRule
from carillon.services.job_quotas import JobQuotas
from tests.simulation.story import HOUR, MINUTE, NOON, SECOND, Killed, die, row_of
from tests.simulation.test_reindexing import twice
from tests.support.jobs import job_with
from tests.support.operation_kit import begin, now_of
from tests.support.world import OWNER, World, quotas_of

TEAM = "team/billing"
ANN = Author(AuthorKind.PERSON, "ann", "Ann", Via.CLI)
MOVE = NOON + 20 * MINUTE
UNTIL = NOON + 45 * MINUTE


@pytest.fixture
def world() -> World:
    return World(NOON, segments=2)


def hand_over(world: World, to: str = TEAM, **values: Any) -> Operation:
    kind = OperationKind.HAND_OVER
    return begin(world, kind, 1_000, to=to, author=ANN, **values)


def hand_back(world: World) -> None:
    operation = hand_over(world)
    assert world.operations.delete(OWNER, operation.operation_id, operation.revision)
    back = replace(operation, owner=TEAM, to=OWNER)
    assert world.operations.put(back, None)
    world.indexer.schedule_message(back.step_message(world.clock.now()))


def job_of(world: World, owner: str, name: str) -> Job | None:
    return world.jobs.get(owner, job_id_of(owner, name))


def taken_of(world: World, name: str) -> Job:
    job = job_of(world, TEAM, name)
    assert job is not None
    return job


def ran_by(world: World, name: str) -> list[tuple[datetime, str]]:
    """The fire times of a job's calls, under either owner, each with whose secrets it had."""
    return sorted((c.fire_at, c.owner) for c in world.targets.calls if c.job_name == name)


def all_kinds(world: World) -> list[str]:
    """The names of jobs of each kind that can move."""
    world.create("even", "*/2 * * * *", catch_up=CatchUp.ALL)
    world.create("quick", "every 20s")
    world.create("dated", "19,20,21,32 12 1 12 *")
    world.create("zone", "20,32 13 1 12 *", timezone="Europe/Berlin")
    world.create("once", "at 2026-12-01T12:30:30Z")
    world.create("window", "*/10 * * * *", window="5m", fraction=0.7)
    world.create("limited", "*/6 * * * *", max_runs=5)
    world.create("watched", "*/4 * * * *", expect_within=300)
    world.close("days", "2026-12-24")
    other = replace(calendar_of(world), owner=TEAM)
    assert world.calendars.put(other, None)
    world.create("closed", "*/5 * * * *", calendar=("days", CalendarRule.SKIP))
    timed = world.create("timed", "*/2 * * * *")
    world.pause(timed, until=NOON + 27 * MINUTE)
    return ["even", "quick", "dated", "zone", "once", "window", "limited", "watched", "closed"]


def calendar_of(world: World) -> Calendar:
    calendar = world.calendars.get(OWNER, "days")
    assert calendar is not None
    return calendar


def lived(at: datetime | None) -> tuple[World, Operation | None]:
    """A world whose jobs are all handed over at an instant, or stay."""
    world = World(NOON, segments=2)
    all_kinds(world)
    operation = None
    if at is not None:
        world.run_until(at)
        operation = hand_over(world)
        world.clock.set(world.clock.now().replace(microsecond=0))
    world.run_until(UNTIL)
    return world, operation


@pytest.mark.parametrize("seconds", [-31, -2, -1, 0, 1, 29, 58])
def test_each_occurrence_runs_once_the_former_owner_s_before_the_instant(seconds: int) -> None:
    world, operation = lived(MOVE + seconds * SECOND)
    stayed, _ = lived(None)
    assert operation is not None
    done = now_of(world, operation)
    assert (done.state, done.done, done.passed_over, done.left) == (
        OperationState.SUCCEEDED,
        10,
        0,
        (),
    )
    for name in [*all_kinds(World(NOON)), "timed"]:
        job, old = taken_of(world, name), job_of(world, OWNER, name)
        assert old is not None
        began_at = old.generation.from_at
        ran = ran_by(world, name)
        assert [at for at, _ in ran] == [at for at, _ in ran_by(stayed, name)], name
        assert all((owner == TEAM) == (at > began_at) for at, owner in ran), name
        assert (job.renamed_from, old.renamed_to) == (old.job_id, job.job_id)
        assert (old.state, old.author) == (JobState.RENAMED, ANN)
        assert job.author == ANN or name == "timed", "Carillon has resumed it since"
    assert twice(world) == []
    assert world.bad_entries == []


def test_a_retry_is_its_former_owner_s(world: World) -> None:
    down = RetryPolicy(5, Backoff(base_seconds=120, type=BackoffType.FIXED))
    world.create("job", "5,25 * * * *", retry=down)

    def behave(call: Call) -> Outcome:
        is_early = world.clock.now() < NOON + 8 * MINUTE
        return Failure(RunError("http_503", "down")) if is_early else Success("done")

    world.targets.behave = behave
    world.run_until(NOON + 6 * MINUTE)
    hand_over(world)
    world.run_until(NOON + 30 * MINUTE)
    ran = [(call.fire_at.minute, call.attempt, call.owner) for call in world.targets.calls]
    assert ran == [(5, 1, OWNER), (5, 2, OWNER), (5, 3, OWNER), (25, 1, TEAM)]


def test_a_paused_job_moves_paused_and_resumes_in_time(world: World) -> None:
    job = world.create("job", "*/2 * * * *")
    world.run_until(NOON + 3 * MINUTE)
    world.pause(row_of(world, job), until=NOON + 11 * MINUTE)
    world.run_until(NOON + 5 * MINUTE)
    hand_over(world)
    world.run_until(NOON + 7 * MINUTE)
    assert taken_of(world, "job").state is JobState.PAUSED
    world.run_until(NOON + 13 * MINUTE)
    assert [(at.minute, owner) for at, owner in ran_by(world, "job")] == [
        (0, OWNER),
        (2, OWNER),
        (12, TEAM),
    ][1:]


def test_a_job_whose_pause_is_over_is_resumed_first(world: World) -> None:
    job = world.create("job", "*/2 * * * *", catch_up=CatchUp.ALL)
    paused = replace(
        row_of(world, job).paused(NOON + SECOND, resume_at=NOON + 3 * MINUTE), updated_at=NOON
    )
    assert world.jobs.replace(paused, job.revision)  # its message is lost
    world.run_until(NOON + 9 * MINUTE)
    hand_over(world)
    world.run_until(NOON + 13 * MINUTE)
    assert [at.minute for at, _ in ran_by(world, "job")] == [4, 6, 8, 10, 12]
    assert twice(world) == []


def follower(world: World, name: str, before: Job) -> None:
    job = job_with(world.new_job(name, "every 1m"), schedule=NEVER, after=After(before.spec.name))
    link = link_of(job)
    assert link is not None
    assert world.jobs.relink(linked(before, link), before.successors)
    assert world.indexer.index_job(job, None)


def test_what_cannot_move_stays_and_says_why(world: World) -> None:
    world.create("managed", "*/2 * * * *", managed_by="manifest/app")
    first = world.create("first", "*/2 * * * *")
    follower(world, "then", first)
    world.close("days", "2026-12-24")
    world.create("shifted", "*/2 * * * *", calendar=("days", CalendarRule.NEXT_BUSINESS_DAY))
    world.create("closed", "*/2 * * * *", calendar=("days", CalendarRule.SKIP))
    world.create("taken", "*/2 * * * *")
    theirs = replace(world.new_job("taken", "@daily"), owner=TEAM, job_id=job_id_of(TEAM, "taken"))
    assert world.indexer.index_job(theirs, None)
    world.create("free", "*/2 * * * *")
    operation = hand_over(world)
    world.run_until(NOON + 2 * MINUTE)
    done = now_of(world, operation)
    assert (done.state, done.done, done.passed_over) == (OperationState.SUCCEEDED, 1, 6)
    assert list(done.left) == [
        "closed: team/billing has no calendar days",
        "first: it runs after another job, or another runs after it",
        "managed: manifest/app manages it: use force, and move that, too",
        "shifted: its calendar's rule moves occurrences to other days",
        "taken: team/billing has a job 'taken'",
        "then: it runs after another job, or another runs after it",
    ]
    assert job_of(world, TEAM, "free")
    other = replace(calendar_of(world), owner=TEAM, weekdays=frozenset({0}))
    assert world.calendars.put(other, None)
    again = hand_over(world, force=True)
    world.run_until(NOON + 4 * MINUTE)
    assert now_of(world, again).left[0] == "closed: calendar days of team/billing closes other days"
    assert taken_of(world, "managed").managed_by == "manifest/app"


def test_only_what_is_chosen_moves(world: World) -> None:
    world.create("a", "@daily", parent="p", tags={"x": "1"})
    world.create("b", "@daily", parent="p", tags={"x": "2"})
    c = world.create("c", "@daily")
    hand_over(world, parent="p", tags=(("x", "1"),))
    world.run_until(NOON + MINUTE)
    assert [job_of(world, TEAM, name) is not None for name in "abc"] == [True, False, False]
    hand_over(world, job_id=c.job_id)
    world.run_until(NOON + 2 * MINUTE)
    assert [job_of(world, TEAM, name) is not None for name in "abc"] == [True, False, True]


def test_what_was_being_chosen_when_it_was_cancelled_is_not_in_hand(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = world.create("job", "*/2 * * * *")
    operation = hand_over(world)
    listed = world.jobs.list

    def list_then_cancel(*args: Any) -> Any:
        running = now_of(world, operation)
        cancelled = running.cancelled(world.clock.now(), running.expires_at)
        assert world.operations.put(cancelled, running.revision)
        return listed(*args)

    monkeypatch.setattr(world.jobs, "list", list_then_cancel)
    world.run_until(NOON + 5 * MINUTE)
    ended = now_of(world, operation)
    assert (ended.state, ended.in_hand) == (OperationState.CANCELLED, ())
    assert world.jobs.get(OWNER, job.job_id) == job


def test_it_can_go_on_and_come_back(world: World) -> None:
    """Each owner's row remembers the one before; the occurrences go on without a gap."""
    world.create("job", "*/2 * * * *")
    at = NOON
    for number in range(4):
        at += 4 * MINUTE
        world.run_until(at)
        (hand_over if number % 2 == 0 else hand_back)(world)
    world.run_until(NOON + 19 * MINUTE)
    ran = [(at.minute, owner) for at, owner in ran_by(world, "job")]
    assert [minute for minute, _ in ran] == list(range(2, 20, 2))
    assert {owner for _, owner in ran} == {OWNER, TEAM}
    assert twice(world) == []


def test_what_has_come_back_stays_whoever_did_the_step_before(world: World) -> None:
    """Seed 9750000605: a process stood still, another did its step, and the job came back."""
    job = world.create("job", "*/2 * * * *")
    world.run_until(NOON + MINUTE)
    operation = hand_over(world)
    while not (taken := now_of(world, operation)).in_hand:
        world.clock.advance(1)
        world.execute()
    world.run_until(NOON + 4 * MINUTE)
    hand_back(world)
    world.run_until(NOON + 8 * MINUTE)
    before = row_of(world, job)
    HandingOver(world.executor_ports).step(taken, world.clock.now() + MINUTE)
    assert row_of(world, job) == before
    assert before.state is JobState.ACTIVE


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
