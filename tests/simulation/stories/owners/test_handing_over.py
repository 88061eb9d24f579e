"""Jobs that are handed over to another owner while they fire."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest

from carillon.domain.calendar import Calendar
from carillon.domain.changes.handing_over import is_in_hand
from carillon.domain.events import EventType
from carillon.domain.execution.successors import link_of, linked
from carillon.domain.job import Job, JobState
from carillon.domain.operation import Operation, OperationKind, OperationState
from carillon.domain.policies import Backoff, BackoffType, CatchUp, OnComplete, Rate, RetryPolicy
from carillon.domain.quotas import Load
from carillon.domain.run import RunError
from carillon.domain.spec.after import After
from carillon.domain.spec.names import job_id_of
from carillon.domain.spec.owners import Author, AuthorKind, Via
from carillon.domain.wheel.segment import Control
from carillon.errors import UnreadableRowError
from carillon.executor.operations.hand_over import HandingOver
from carillon.executor.targets import Call, Failure, Outcome, Success
from carillon.schedules import NEVER, CalendarRule
from carillon.services.missed_search import MissedSearch
from tests.simulation.stories.operators.test_reindexing import twice
from tests.simulation.stories.story import MINUTE, NOON, SECOND, row_of
from tests.support.jobs import job_with
from tests.support.operation_kit import begin, now_of
from tests.support.world import OWNER, World

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


@pytest.mark.parametrize("until", [None, NOON + 10 * MINUTE])
def test_what_a_pause_stops_does_not_start_since_the_job_is_another_s(
    world: World, until: datetime | None
) -> None:
    """Neither a retry nor a run that waits; what comes after the end of the pause does."""
    down = RetryPolicy(3, Backoff(base_seconds=300, type=BackoffType.FIXED))
    fails = world.create("fails", "5 * * * *", retry=down)
    waits = world.create("waits", "4,5 * * * *", rate=Rate(1, 600))
    world.targets.behave = lambda call: Failure(RunError("http_503", "down"))
    world.run_until(NOON + 6 * MINUTE)
    for job in (fails, waits):
        world.pause(row_of(world, job), until=until)
    called = len(world.targets.calls)
    hand_over(world)
    world.run_until(NOON + 30 * MINUTE)
    assert (len(world.targets.calls) == called) == (until is None)
    for job in (fails, waits):
        (run,) = world.runs.list(OWNER, job.job_id, 1).items
        assert run.key.fire_at == NOON + 5 * MINUTE
        assert (run.reason == "paused") == (until is None)


@pytest.mark.parametrize(
    ("schedule", "options"),
    [
        ("*/5 * * * *", {"max_runs": 2}),
        ("*/5 * * * *", {"max_runs": 2, "window": "5m", "fraction": 0.7}),
        ("every 5m after finish", {"end_at": NOON + 12 * MINUTE}),
    ],
)
@pytest.mark.parametrize("on_complete", OnComplete)
def test_the_end_of_its_last_run_is_that_of_the_job(
    world: World, on_complete: OnComplete, schedule: str, options: dict[str, Any]
) -> None:
    """Under the new owner, who never has a run of it."""
    ends = {"on_complete": on_complete, "events": [EventType.JOB_COMPLETED], **options}
    fixed = RetryPolicy(5, Backoff(base_seconds=120, type=BackoffType.FIXED))
    world.create("job", schedule, retry=fixed, **ends)

    def behave(call: Call) -> Outcome:
        is_early = world.clock.now() < NOON + 13 * MINUTE
        return Failure(RunError("http_503", "down")) if is_early else Success("done")

    world.targets.behave = behave
    world.run_until(NOON + 11 * MINUTE)
    hand_over(world)
    world.run_until(NOON + 12 * MINUTE)
    assert taken_of(world, "job").state is JobState.ACTIVE
    world.run_until(NOON + 20 * MINUTE)
    wanted = JobState.COMPLETED if on_complete is OnComplete.DELETE else JobState.ACTIVE
    assert taken_of(world, "job").state is wanted
    assert {event.subject for event in world.events.emitted} == {job_id_of(TEAM, "job")}
    assert {call.owner for call in world.targets.calls} == {OWNER}


def test_a_retry_finds_its_former_owner_s_row_however_late(world: World) -> None:
    job = world.create("job", "5 * * * *", retry=RetryPolicy(9, Backoff(cap_seconds=7 * 86_400)))
    hand_over(world)
    world.run_until(NOON + 3 * MINUTE)
    row = row_of(world, job)
    assert row.state is JobState.RENAMED
    assert row.expires_at is not None
    assert row.expires_at > NOON + timedelta(days=8 * 7 + 25)


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


@pytest.mark.parametrize("what", ["job", "quota"])
def test_what_the_other_owner_has_that_cannot_be_read_is_not_told(
    world: World, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    world.create("job", "*/2 * * * *")
    read = world.jobs.get

    def get(owner: str, job_id: str) -> Job | None:
        return spoil(owner) if owner == TEAM else read(owner, job_id)

    def spoil(*_: Any) -> Any:
        raise UnreadableRowError("ValidationError: input_value='Bearer hunter2'")

    if what == "job":
        monkeypatch.setattr(world.jobs, "get", get)
    else:
        monkeypatch.setattr(world.executor_ports.job_quotas, "add", spoil)
    operation = hand_over(world)
    world.run_until(NOON + 2 * MINUTE)
    (left,) = now_of(world, operation).left
    assert left == "job: a row of its name, its calendar or the quota cannot be read"


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


def test_what_loses_its_tag_before_it_moves_stays(world: World) -> None:
    """Steps choose jobs and then move them: seconds apart, or minutes where there are many."""
    job = world.create("job", "@daily", tags={"x": "1"})
    operation = hand_over(world, tags=(("x", "1"),))
    while not now_of(world, operation).in_hand:
        world.run_until(world.clock.now() + SECOND)
    untagged = job.spec.model_copy(update={"tags": {}})
    assert world.jobs.replace(replace(job, spec=untagged, revision=2), 1)

    world.run_until(NOON + 2 * MINUTE)

    assert job_of(world, TEAM, "job") is None
    told = now_of(world, operation)
    assert (told.state, told.done, told.passed_over) == (OperationState.SUCCEEDED, 0, 1)
    assert told.left == ("job: it was changed, and is none of those that are handed over",)


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
    job = world.create("job", "*/2 * * * *")
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
    job, now = row_of(world, job), world.clock.now()
    search = MissedSearch(world.executor_ports.history)
    assert search.newest(job, job.schedule, NOON + SECOND, now, now, 20).items == ()


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


def spoilt(world: World, bad: int, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Have a segment's control item be unreadable; the answer mends it."""
    read = world.wheel.get_control

    def get_control(segment: int) -> Control | None:
        if segment == bad:
            raise UnreadableRowError(f"the control item of segment {segment} cannot be read")
        return read(segment)

    monkeypatch.setattr(world.wheel, "get_control", get_control)
    return partial(monkeypatch.setattr, world.wheel, "get_control", read)


def test_a_segment_that_cannot_be_read_holds_up_no_other_job(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own jobs go on when an operator has mended it."""
    jobs = [world.create(f"job-{number}", "*/2 * * * *") for number in range(8)]
    bad = jobs[0].segment
    assert {job.segment for job in jobs} == {0, 1}
    mend = spoilt(world, bad, monkeypatch)
    operation = hand_over(world)
    world.run_until(NOON + 3 * MINUTE)
    moved = {job.spec.name for job in jobs if job_of(world, TEAM, job.spec.name) is not None}
    assert moved == {job.spec.name for job in jobs if job.segment != bad}
    mend()
    world.run_until(NOON + 6 * MINUTE)
    assert now_of(world, operation).state is OperationState.SUCCEEDED
    assert all(job_of(world, TEAM, job.spec.name) is not None for job in jobs)
    for job in jobs:
        assert {at.minute for at, _ in ran_by(world, job.spec.name)} == {2, 4, 6}


def test_a_row_that_cannot_be_read_between_two_owners_goes_on_once_it_is_mended(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or the job would be nobody's, and its name taken."""
    job = world.create("job", "*/2 * * * *")
    get = world.jobs.get

    def unreadable(owner: str, job_id: str) -> Job | None:
        found = get(owner, job_id)
        if found is not None and found.state is JobState.RENAMED:
            raise UnreadableRowError("a job of a later version")
        return found

    monkeypatch.setattr(world.jobs, "get", unreadable)
    operation = hand_over(world)
    world.run_until(NOON + 3 * MINUTE)
    monkeypatch.setattr(world.jobs, "get", get)
    world.run_until(NOON + 5 * MINUTE)
    assert now_of(world, operation).state is OperationState.SUCCEEDED
    assert not is_in_hand(row_of(world, job))
    assert ran_by(world, "job") == [(NOON + minutes * MINUTE, TEAM) for minutes in (2, 4)]


def test_what_cannot_be_resumed_or_counted_stays_and_holds_up_no_other(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [world.create(f"job-{number}", "*/2 * * * *") for number in range(8)]
    timed, full = (next(job for job in jobs if job.segment == each) for each in (0, 1))
    world.pause(timed, until=NOON + MINUTE)
    spoilt(world, 0, monkeypatch)
    add = world.executor_ports.job_quotas.add

    def add_or_fail(owner: str, load: Load) -> None:
        monkeypatch.setattr(world.executor_ports.job_quotas, "add", add)
        raise UnreadableRowError("use of a later version")

    monkeypatch.setattr(world.executor_ports.job_quotas, "add", add_or_fail)
    world.run_until(NOON + 2 * MINUTE)
    operation = hand_over(world)
    world.run_until(NOON + 4 * MINUTE)
    assert {text.partition(":")[0] for text in now_of(world, operation).left} == {
        timed.spec.name,
        full.spec.name,
    }
    moved = {job.spec.name for job in jobs if job_of(world, TEAM, job.spec.name) is not None}
    assert moved == {job.spec.name for job in jobs if job.segment == 1} - {full.spec.name}
