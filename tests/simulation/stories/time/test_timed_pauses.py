"""Pauses that end by themselves: at their instant, once, and over any outage."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from carillon.domain.decisions import Defer, Drop, SkipReason
from carillon.domain.execution.resuming import decide_resume, resume_message, resumed_after
from carillon.domain.job import Generation, Job, JobState
from carillon.domain.policies import CatchUp, RetryPolicy
from carillon.domain.run import RunKind
from carillon.domain.wheel import announced
from carillon.executor.batch import Handled
from carillon.schedules import CalendarRule
from carillon.stores.memory.rows import MemoryJobStore
from tests.simulation.stories.operators.test_reindexing import twice
from tests.simulation.stories.owners.test_handing_over_struck import run_with_deaths, strike_each
from tests.simulation.stories.story import (
    HOUR,
    MIDNIGHT,
    MINUTE,
    SECOND,
    Killed,
    die,
    row_of,
    succeeded,
)
from tests.support.world import World

PAUSED_AT = MIDNIGHT + 10 * MINUTE
UNTIL = MIDNIGHT + HOUR


def paused(schedule: str | list[str] = "*/5 * * * *", **options: Any) -> tuple[World, Job]:
    """A job that is paused at ten past midnight until one o'clock."""
    world = World(MIDNIGHT, segments=1)
    job = world.create("job", schedule, **options)
    world.run_until(PAUSED_AT)
    return world, world.pause(job, UNTIL)


def out(world: World, from_at: datetime, until: datetime) -> None:
    """No tick in between."""
    world.run_until(from_at)
    world.run_until(until, ticking=False)


def covers(world: World, job: Job) -> list[tuple[datetime | None, int | None]]:
    history = world.history(job)
    return [(r.covers_from, r.covers_count) for r in history if r.key.kind is RunKind.MISSED]


def minutes(first: int, last: int, step: int = 5) -> list[datetime]:
    return [MIDNIGHT + number * MINUTE for number in range(first, last + 1, step)]


def test_a_job_resumes_at_its_instant_by_itself() -> None:
    world, job = paused()

    world.run_until(UNTIL + 12 * MINUTE)

    assert succeeded(world, job) == minutes(5, 10) + minutes(60, 70)
    resumed = row_of(world, job)
    assert (resumed.state, resumed.resume_at) == (JobState.ACTIVE, None)
    assert resumed.generation.from_at == UNTIL - SECOND
    assert resumed.previous is not None
    assert resumed.previous.until_at == job.paused_at


@pytest.mark.parametrize("catch_up", CatchUp)
def test_catch_up_decides_where_the_resumption_was_due_in_an_outage(catch_up: CatchUp) -> None:
    world, job = paused(catch_up=catch_up)
    out(world, UNTIL - 10 * MINUTE, UNTIL + 32 * MINUTE)

    world.run_until(UNTIL + 42 * MINUTE)

    late = minutes(60, 90)
    ran = {CatchUp.ALL: late, CatchUp.LATEST: late[-1:], CatchUp.SKIP: []}[catch_up]
    assert succeeded(world, job) == minutes(5, 10) + ran + minutes(95, 100)
    wanted = [] if catch_up is CatchUp.ALL else [(late[0], len(late) - 1)]
    assert covers(world, job) == wanted
    if catch_up is CatchUp.SKIP:
        (skipped,) = [r for r in world.history(job) if r.key.fire_at == late[-1]]
        assert skipped.reason == SkipReason.CATCH_UP


@pytest.mark.parametrize("catch_up", CatchUp)
def test_what_a_calendar_moves_out_of_the_outage_is_not_passed_over(catch_up: CatchUp) -> None:
    moves = ("closed", CalendarRule.NEXT_BUSINESS_DAY)
    world, job = paused("5 1 1 12 *", catch_up=catch_up, calendar=moves)
    world.close("closed", "2026-12-01")
    out(world, UNTIL - 10 * MINUTE, UNTIL + 32 * MINUTE)
    world.run_until(UNTIL + 42 * MINUTE)

    world.leap_to(UNTIL + 24 * HOUR)
    world.run_until(UNTIL + 24 * HOUR + 10 * MINUTE)

    assert succeeded(world, job) == [UNTIL + 24 * HOUR + 5 * MINUTE]


@pytest.mark.parametrize("catch_up", [CatchUp.LATEST, CatchUp.SKIP])
def test_what_was_passed_over_for_a_later_day_does_not_run_on_that_day(catch_up: CatchUp) -> None:
    """As after an outage at the tick: that of the 2nd belongs to the 1st."""
    moves = ("closed", CalendarRule.PREVIOUS_BUSINESS_DAY)
    schedule = ["5 1 2 12 *", "10 1 1 12 *"]
    world, job = paused(schedule, catch_up=catch_up, calendar=moves)
    world.close("closed", "2026-12-02")
    out(world, UNTIL - 10 * MINUTE, UNTIL + 32 * MINUTE)
    world.run_until(UNTIL + 42 * MINUTE)

    world.leap_to(UNTIL + 24 * HOUR)
    world.run_until(UNTIL + 24 * HOUR + 10 * MINUTE)

    latest = [UNTIL + 10 * MINUTE] if catch_up is CatchUp.LATEST else []
    assert succeeded(world, job) == latest


def test_what_is_within_the_grace_runs_and_one_row_has_the_rest() -> None:
    world, job = paused(grace=15 * 60)
    out(world, UNTIL - 10 * MINUTE, UNTIL + 32 * MINUTE)

    world.run_until(UNTIL + 42 * MINUTE)

    assert succeeded(world, job) == minutes(5, 10) + minutes(80, 100)
    assert covers(world, job) == [(UNTIL, 4)]


@pytest.mark.parametrize("rule", [CalendarRule.SKIP, CalendarRule.NEXT_BUSINESS_DAY])
def test_a_closed_day_within_the_grace_stands_for_nothing(rule: CalendarRule) -> None:
    """As after an outage at the tick, whose last open occurrence runs."""
    until = MIDNIGHT - HOUR
    world = World(MIDNIGHT - 2 * HOUR, segments=1)
    world.close("closed", "2026-12-01")
    job = world.create("job", "*/10 * * * *", grace=20 * 60, calendar=("closed", rule))
    world.pause(job, until)
    out(world, until - 10 * MINUTE, MIDNIGHT + 22 * MINUTE)

    world.run_until(MIDNIGHT + 32 * MINUTE)

    assert succeeded(world, job) == [MIDNIGHT - 10 * MINUTE]
    assert covers(world, job) == [(until, 5)]


def test_the_pace_of_a_backlog_holds_no_resumption_back() -> None:
    """What is due when ticks are back is live, and what was within the grace then stays so."""
    world, job = paused(catch_up=CatchUp.SKIP, grace=15 * 60)
    world.tick_ports = replace(world.tick_ports, catch_up_share=1)
    world.create("other", "* * * * *", catch_up=CatchUp.ALL)
    out(world, UNTIL - 10 * MINUTE, UNTIL + 32 * MINUTE)

    world.run_until(UNTIL + 62 * MINUTE)

    assert succeeded(world, job) == minutes(5, 10) + minutes(80, 120)


def test_of_very_many_late_ones_the_newest_run_each_and_one_row_has_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(announced, "MOST_LATE", 5)
    world, job = paused("every 10s", catch_up=CatchUp.ALL)
    out(world, UNTIL - 10 * MINUTE, UNTIL + 4 * MINUTE)

    world.run_until(UNTIL + 6 * MINUTE)

    after = [at for at in succeeded(world, job) if at >= UNTIL]
    (row,) = covers(world, job)
    assert row[0] == UNTIL
    assert len(after) + (row[1] or 0) == 37, "each has run, or is in the row"
    assert 5 <= len(after) < 25


def test_a_late_resumption_sends_a_few_messages_only() -> None:
    world, job = paused("every 1s")
    out(world, UNTIL - 10 * MINUTE, UNTIL + 3 * HOUR)
    handled = len(world.reports)

    world.run_until(UNTIL + 3 * HOUR + MINUTE)

    assert len(world.reports) - handled < 300
    ((_, count),) = covers(world, job)
    assert count is None, "too many to be counted"


@pytest.mark.parametrize("step", ["resume", "again", "longer"])
def test_what_an_owner_does_meanwhile_counts(step: str) -> None:
    world, job = paused()
    world.run_until(MIDNIGHT + 30 * MINUTE)
    match step:
        case "resume":
            world.new_generation(job)
        case "again":
            resumed = world.new_generation(job)
            world.clock.advance(60)
            world.pause(resumed)
        case "longer":
            world.pause(job, UNTIL + 30 * MINUTE)

    world.run_until(UNTIL + 45 * MINUTE)

    after = [at for at in succeeded(world, job) if at > PAUSED_AT]
    wanted = {"resume": minutes(35, 105), "again": [], "longer": minutes(90, 105)}
    assert after == wanted[step]


def test_a_pause_whose_row_was_never_written_resumes_nothing() -> None:
    world = World(MIDNIGHT, segments=1)
    job = world.create("job", "*/5 * * * *")
    lost = replace(job.paused(world.clock.now()), resume_at=MIDNIGHT + 3 * MINUTE)
    world.indexer.schedule_message(resume_message(lost))

    world.run_until(MIDNIGHT + 11 * MINUTE)

    assert Handled.DROPPED in [report.handled for report in world.reports]
    assert row_of(world, job) == job
    assert succeeded(world, job) == minutes(5, 10)


@pytest.mark.parametrize(("late", "wait"), [(0, 10), (25, 25), (70, 41)])
def test_copies_of_what_resumes_a_young_pause_stay_few(late: int, wait: int) -> None:
    """Seed 10000008625: a pause with nine seconds left was handed over. Each copy waited for ten
    seconds again and again, whatever had been resumed, and half of them were doubled."""
    world = World(MIDNIGHT, segments=1)
    job = world.create("job", "*/5 * * * *")
    lost = job.paused(MIDNIGHT, resume_at=MIDNIGHT + 9 * SECOND)
    now = MIDNIGHT + (9 + late) * SECOND
    decision = decide_resume(job, resume_message(lost), now)
    assert isinstance(decision, Defer)
    assert decision.at == now + wait * SECOND

    resumed = lost.in_new_generation(Generation("later", resumed_after(lost, now)), now)
    assert isinstance(decide_resume(resumed, resume_message(lost), now), Drop)


def test_an_executor_that_dies_at_the_commit_leaves_it_to_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Its occurrences go alone, and are handled before it dies.
    world, job = paused(retry=RetryPolicy(max_attempts=1))
    world.run_until(UNTIL - SECOND)
    with monkeypatch.context() as patched:
        patched.setattr(MemoryJobStore, "replace", die)
        with pytest.raises(Killed):
            world.run_until(UNTIL + MINUTE)

    world.run_until(UNTIL + 22 * MINUTE)

    assert row_of(world, job).generation.from_at == UNTIL - SECOND
    assert succeeded(world, job) == minutes(5, 10) + minutes(65, 80)


def test_what_came_due_during_a_late_commit_runs_though_its_executor_dies_then() -> None:
    """It stood still for longer than others wait for a commit."""
    world, job = paused("every 20s", catch_up=CatchUp.ALL)
    world.run_until(UNTIL - SECOND)
    others, writes = world.executor, 0

    def on_write(write: Callable[[], Any]) -> Any:
        nonlocal writes
        writes += 1
        if writes != 4:  # the row
            return write()
        world.executor = others
        world.run_until(UNTIL + 3 * MINUTE)
        write()
        raise Killed

    strike_each(world, on_write)
    assert run_with_deaths(world, UNTIL + 12 * MINUTE) == 1

    ran = [at for at in succeeded(world, job) if at >= UNTIL]
    assert ran == [UNTIL + timedelta(seconds=20 * number) for number in range(37)]
    assert twice(world) == []


def test_the_watch_looks_at_what_ran() -> None:
    world, job = paused(expect_within=120)
    out(world, UNTIL - 10 * MINUTE, UNTIL + 32 * MINUTE)

    world.run_until(UNTIL + timedelta(minutes=50))

    assert [r for r in world.history(job) if r.key.kind is RunKind.WATCH] == []
