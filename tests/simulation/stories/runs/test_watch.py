"""The missed-run watch: a row and an event when no success came in time, whatever the cause."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from carillon.domain.events import EventType
from carillon.domain.job import Generation, HandOver, Job, Lane
from carillon.domain.policies import OnComplete, RetryPolicy
from carillon.domain.run import Resolution, Run, RunError, RunKey, RunKind, RunStatus
from carillon.domain.spec.owners import SYSTEM
from carillon.domain.wheel.entry import Slot
from carillon.executor.batch import Handled
from carillon.executor.targets import Failure, Outcome, Success
from carillon.schedules import CalendarRule, SlotKind
from tests.simulation.stories.story import (
    HOUR,
    MINUTE,
    NOON,
    REFUSED,
    SECOND,
    handle,
    runs_of_kind,
    succeeded,
    without_executors,
)
from tests.support.world import LIFETIME, OWNER, World

WITHIN = 10 * MINUTE
FIRST = NOON + 30 * MINUTE


@pytest.fixture
def world() -> World:
    return World(NOON, segments=1)


def watched(world: World, schedule: str = "30 * * * *", **options: object) -> Job:
    options = {"expect_within": 600, "events": (EventType.RUN_MISSED,), **options}
    return world.create("watched", schedule, **options)


def rows(world: World, job: Job) -> list[Run]:
    return runs_of_kind(world, job, RunKind.WATCH)


def looks(world: World, job: Job) -> list[datetime]:
    """The fire times that are told of as missed."""
    return [row.key.fire_at for row in rows(world, job)]


def until_first(world: World, seconds: float = 0) -> None:
    """Let time pass to so many seconds after the first look; every target refuses."""
    world.targets.behave = lambda call: REFUSED
    world.run_until(FIRST + WITHIN + seconds * SECOND)


def settled(world: World, dead: Run, again: RunStatus) -> None:
    """The dead run was redriven, and that is how its second run ended."""
    assert world.runs.claim(replace(dead, key=dead.key.redriven, status=again), None)
    assert world.runs.claim(replace(dead, settled=Resolution.REDRIVEN, token=9), dead)


def test_a_success_in_time_leaves_no_row_and_costs_no_write(world: World) -> None:
    job = watched(world)
    world.run_until(FIRST + WITHIN + SECOND)
    assert [report.handled for report in world.reports] == [Handled.RAN, Handled.CHECKED]
    assert rows(world, job) == []
    assert world.events.emitted == []


def test_a_dead_run_is_missed_on_the_second_with_a_row_and_an_event(world: World) -> None:
    job = watched(world)
    until_first(world, -1)
    assert rows(world, job) == []
    world.run_until(FIRST + WITHIN)
    (row,) = rows(world, job)
    assert (row.key.fire_at, row.status, row.reason) == (FIRST, RunStatus.MISSED, "not_succeeded")
    assert row.updated_at == FIRST + WITHIN
    dead = RunKey(OWNER, job.job_id, RunKind.SCHEDULED, FIRST).run_id
    assert row.note == f"{dead} is dead (refused): http_400: no"
    (event,) = world.events.emitted
    assert (event.type, event.subject) == (EventType.RUN_MISSED, row.key.run_id)
    assert (event.data["note"], event.data["status"]) == (row.note, "missed")


def test_an_executor_that_is_down_is_noticed_when_it_comes_back(world: World) -> None:
    """The lane is stuck: nobody has even begun the run, nor looked."""
    job = watched(world)
    without_executors(world, FIRST + 2 * WITHIN)
    behind = [kept.message for kept in world.queue.kept()]
    assert {message.key.kind for message in behind} == {RunKind.SCHEDULED, RunKind.WATCH}
    (look,) = (message for message in behind if message.key.kind is RunKind.WATCH)
    handle(world, look)
    (row,) = rows(world, job)
    assert row.note == "no run of it was recorded"


def test_a_duplicate_tells_the_same_event_again_and_puts_no_second_row(world: World) -> None:
    job = watched(world)
    until_first(world)
    look = world.reports[-1].message
    world.clock.advance(100)
    assert handle(world, look).handled is Handled.REPEATED
    assert len(rows(world, job)) == 1
    first, second = world.events.emitted
    assert first == second


def test_what_a_row_says_is_told_though_its_day_is_closed_since(world: World) -> None:
    """Seed 9910002328: an executor put the row and died, and others did before they told of it; by
    then no success was expected any more."""
    world.close("closed")
    job = watched(world, calendar=("closed", CalendarRule.SKIP))
    until_first(world)
    look = world.reports[-1].message
    world.close("closed", "2026-12-01")
    world.clock.advance(100)
    assert handle(world, look).handled is Handled.REPEATED
    assert len(rows(world, job)) == 1
    assert len(world.events.emitted) == 2


@pytest.mark.parametrize("waits", [0, 1])
def test_a_look_that_waited_tells_of_the_row_though_nothing_is_amiss_by_then(
    world: World, waits: int
) -> None:
    """Seed 9100001150: an executor put the row and died, and the message that came again found a
    reason to look later. That copy was in time, and so the row was told to nobody."""
    job = watched(world)
    until_first(world)
    look = world.reports[-1].message
    (dead,) = (run for run in world.history(job) if run.key.kind is RunKind.SCHEDULED)
    settled(world, dead, RunStatus.SUCCEEDED)
    world.clock.advance(300)
    copy = replace(look, wait_until=world.clock.now(), waits=waits)
    assert handle(world, copy).handled is (Handled.REPEATED if waits else Handled.CHECKED)
    assert len(world.events.emitted) == 1 + waits


def test_a_retry_that_comes_too_late_is_missed_though_it_will_succeed(world: World) -> None:
    job = watched(world, retry=RetryPolicy(max_attempts=2))
    answers: list[Outcome] = [Failure(RunError("E", "e"), retry_after_seconds=900), Success("ok")]
    world.targets.behave = lambda call: answers.pop(0)
    world.run_until(FIRST + 16 * MINUTE)
    (row,) = rows(world, job)
    assert row.note is not None
    assert "is retrying: E: e" in row.note
    assert succeeded(world, job) == [FIRST]


@pytest.mark.parametrize("again", [RunStatus.SUCCEEDED, RunStatus.DEAD])
def test_of_a_dead_letter_that_was_redriven_the_new_run_counts(
    world: World, again: RunStatus
) -> None:
    job = watched(world)
    world.targets.behave = lambda call: REFUSED
    world.run_until(FIRST + SECOND)
    (dead,) = world.history(job)
    settled(world, dead, again)
    world.run_until(FIRST + WITHIN)
    assert len(rows(world, job)) == (0 if again is RunStatus.SUCCEEDED else 1)


def test_what_is_paused_or_closed_or_not_watched_any_more_is_not_missed(world: World) -> None:
    world.close("closed", "2026-12-01")
    job = watched(world)
    closed = world.create(
        "closed", "30 * * * *", expect_within=600, calendar=("closed", CalendarRule.SKIP)
    )
    unwatched = world.create("unwatched", "30 * * * *", expect_within=600)
    world.targets.behave = lambda call: REFUSED
    world.run_until(FIRST - MINUTE)
    world.pause(job)
    world.new_generation(unwatched, expect_within=None)
    world.run_until(FIRST + WITHIN + SECOND)
    assert rows(world, job) == rows(world, closed) == rows(world, unwatched) == []


def test_an_occurrence_of_a_pause_is_not_missed_when_it_is_over(world: World) -> None:
    job = watched(world, expect_within=3000)
    world.run_until(FIRST - 5 * MINUTE)
    paused = world.pause(job)
    world.run_until(FIRST + 5 * MINUTE)
    world.new_generation(paused)
    world.run_until(FIRST + 70 * MINUTE)
    assert rows(world, job) == []


@pytest.mark.parametrize("end", ["pause", "change", "complete"])
def test_a_dated_chain_looks_after_what_its_generation_had_when_it_ends(
    world: World, end: str
) -> None:
    """Each look puts the next: the chain must outlive the generation by what is still to be
    seen."""
    complete = {"on_complete": OnComplete.DELETE, "max_runs": 3} if end == "complete" else {}
    job = watched(
        world,
        "every 61m",
        start_at=NOON - 60 * MINUTE,
        expect_within=4 * 3600,
        **complete,
    )
    world.targets.behave = lambda call: REFUSED
    fire_times = list(job.schedule.between(NOON, NOON + 130 * MINUTE))
    assert len(fire_times) == 3
    world.run_until(fire_times[-1] + 5 * MINUTE)
    if end == "pause":
        world.pause(job)
    if end == "change":
        world.new_generation(job, "0 0 1 1 *")
    world.run_until(fire_times[-1] + timedelta(hours=4, minutes=1))
    assert looks(world, job) == fire_times
    world.run_until(fire_times[-1] + 6 * HOUR)
    assert len(rows(world, job)) == 3


@pytest.mark.parametrize("status", [RunStatus.SUCCEEDED, RunStatus.DEAD])
def test_a_backfill_may_be_the_success(world: World, status: RunStatus) -> None:
    job = watched(world)
    world.targets.behave = lambda call: REFUSED
    world.run_until(FIRST + 5 * SECOND)
    (dead,) = world.history(job)
    key = RunKey(OWNER, job.job_id, RunKind.BACKFILL, FIRST, "operation")
    assert world.runs.claim(replace(dead, key=key, status=status), None)
    world.run_until(FIRST + WITHIN)
    assert len(rows(world, job)) == (0 if status is RunStatus.SUCCEEDED else 1)


@pytest.mark.parametrize("owner", [OWNER, "user/another"])
def test_a_backfill_under_the_name_and_owner_of_now_may_be_the_success(
    world: World, owner: str
) -> None:
    job = watched(world)
    until_first(world, -300)
    (dead,), now = world.history(job), world.clock.now()
    generation = Generation(world.entropy.new_id(now), now.replace(microsecond=0))
    renamed = job.renamed(generation, now, now + LIFETIME, SYSTEM, to="now")
    if owner != OWNER:
        renamed = replace(
            renamed, handed_to=HandOver(owner, generation.generation_id, is_done=True)
        )
    assert world.jobs.replace(renamed, job.revision)
    key = RunKey(owner, "now", RunKind.BACKFILL, FIRST, "operation")
    assert world.runs.claim(replace(dead, key=key, status=RunStatus.SUCCEEDED), None)
    world.run_until(FIRST + WITHIN)
    assert rows(world, job) == []


HOURLY, ONCE = "30 * * * *", "at 2026-12-01T12:30:00Z"


@pytest.mark.parametrize(
    ("schedule", "options", "act"),
    [
        (HOURLY, {}, World.pause),
        (HOURLY, {}, lambda world, job: world.new_generation(job, "0 5 * * *")),
        (HOURLY, {"pause_after_failures": 1}, None),
        (ONCE, {"on_complete": OnComplete.DELETE}, None),
        (ONCE, {"expect_within": 3600}, None),
        ("0 30 12 1 12 *", {"expect_within": 3600}, None),
    ],
)
def test_what_was_due_is_missed_whatever_becomes_of_its_job(
    world: World, schedule: str, options: dict[str, Any], act: Callable[[World, Job], Job] | None
) -> None:
    job = watched(world, schedule, **options)
    world.targets.behave = lambda call: REFUSED
    world.run_until(FIRST + MINUTE)
    if act is not None:
        act(world, job)
    world.run_until(FIRST + 2 * HOUR)
    assert looks(world, job) == [FIRST]


def test_its_standing_entries_go_when_the_generation_is_replaced(world: World) -> None:
    job = watched(world)
    world.run_until(FIRST + 20 * MINUTE)
    slot = Slot(SlotKind.HOURLY, 40)
    (entry,) = world.wheel.query(0, slot).items
    assert entry.key == f"{job.job_id}#{job.generation.generation_id}#watch"
    world.new_generation(job, "0 5 * * *")
    world.run_until(FIRST + 100 * MINUTE)
    assert world.wheel.query(0, slot).items == ()
    assert world.wheel.query(0, Slot(SlotKind.HOURLY, 30)).items == ()


def test_it_counts_from_the_place_in_the_window_and_goes_the_way_of_its_lane(world: World) -> None:
    job = watched(world, window="10m", fraction=0.5, priority=Lane.HIGH)
    world.targets.behave = lambda call: REFUSED
    effective = FIRST + timedelta(seconds=job.spread_seconds)
    assert job.spread_seconds > 0
    world.run_until(effective + WITHIN)
    (row,) = rows(world, job)
    assert (row.updated_at, row.effective_at) == (effective + WITHIN, effective)
    assert world.reports[-1].message.lane is Lane.HIGH
