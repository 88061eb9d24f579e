"""The missed-run watch where ticks or executors were late: once for an outage, and surely."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from carillon.domain.policies import CatchUp, Concurrency
from carillon.domain.run import RunKind, RunStatus
from carillon.errors import UnreadableRowError
from carillon.executor.runs import missed_check
from carillon.executor.targets import Success
from carillon.schedules import parse_schedule
from tests.simulation.stories.runs.test_completions import accepts, target
from tests.simulation.stories.runs.test_watch import FIRST, WITHIN, looks, rows, watched
from tests.simulation.stories.story import (
    HOUR,
    MINUTE,
    NOON,
    REFUSED,
    SECOND,
    handle,
    runs_of_kind,
    without_executors,
)
from tests.support.jobs import job_with
from tests.support.world import World


@pytest.fixture
def world() -> World:
    return World(NOON, segments=1)


@pytest.mark.parametrize("later", [CatchUp.LATEST, CatchUp.SKIP])
@pytest.mark.parametrize(("policy", "alarms"), [(CatchUp.LATEST, 0), (CatchUp.SKIP, 1)])
def test_what_came_late_is_left_to_the_next_of_its_generation_though_that_is_replaced(
    world: World, policy: CatchUp, alarms: int, later: CatchUp
) -> None:
    """Twenty came while executors were away. Under `latest` the last of them ran, under `skip` it
    is the one that is told of, whatever the policy is by then."""
    job = watched(world, "* * * * *", expect_within=7200, catch_up=policy)
    back = world.clock.now() + 20 * MINUTE
    without_executors(world, back)
    world.run_until(back + 5 * MINUTE)
    world.new_generation(job, "0 5 * * *", catch_up=later)
    world.run_until(back + 3 * HOUR)
    late = [run for run in world.history(job) if run.reason in ("catch_up", "misfire")]
    assert len(late) > 15
    assert len(rows(world, job)) == alarms


@pytest.mark.parametrize(
    "change",
    [
        {"catch_up": CatchUp.LATEST},
        {"catch_up": CatchUp.SKIP},
        {"schedule": parse_schedule("0 5 * * *", "UTC")},
    ],
)
@pytest.mark.parametrize(("policy", "alarms"), [(CatchUp.LATEST, 0), (CatchUp.SKIP, 1)])
def test_nor_is_it_told_of_otherwise_since_its_job_was_changed_in_a_pause(
    world: World, policy: CatchUp, alarms: int, change: dict[str, Any]
) -> None:
    """The generation stays the same until the job is resumed, its settings do not."""
    job = watched(world, "* * * * *", expect_within=7200, catch_up=policy)
    back = world.clock.now() + 20 * MINUTE
    without_executors(world, back)
    world.run_until(back + 5 * MINUTE)
    paused = world.pause(job)
    world.run_until(back + 6 * MINUTE)
    changed = job_with(paused, revision=3, updated_at=world.clock.now(), **change)
    assert world.jobs.replace(changed, 2)
    world.run_until(back + 3 * HOUR)
    assert len(rows(world, job)) == alarms


def test_what_gave_way_is_not_told_of_however_many_rows_follow_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its job was replaced since."""
    monkeypatch.setattr(missed_check, "_ROWS_READ", 3)
    job = watched(world, "* * * * *")
    without_executors(world, NOON + 8 * MINUTE)
    world.run_until(NOON + 8 * MINUTE)
    world.new_generation(job, "0 5 * * *")
    world.run_until(NOON + 19 * MINUTE)
    gave_way = [run for run in world.history(job) if run.reason == "catch_up"]
    assert len(gave_way) > 5
    assert looks(world, job) == []


def refusing_over_an_outage(world: World) -> None:
    """Every target refuses, and there is no tick from shortly after noon until 17:00."""
    world.targets.behave = lambda call: REFUSED
    world.run_until(NOON + MINUTE)
    world.clock.set(NOON + 5 * HOUR)
    world.run_until(NOON + 5 * HOUR + MINUTE)


@pytest.mark.parametrize("policy", [CatchUp.SKIP, CatchUp.LATEST])
def test_after_an_outage_the_last_occurrence_is_looked_at(world: World, policy: CatchUp) -> None:
    """Those before it have their rows by the job's catch-up; the watch tells that ticks came late,
    but once."""
    job = watched(world, catch_up=policy)
    refusing_over_an_outage(world)
    assert looks(world, job) == [NOON + timedelta(hours=4, minutes=30)]
    assert len(runs_of_kind(world, job, RunKind.MISSED)) == 1


@pytest.mark.parametrize("policy", list(CatchUp))
def test_what_was_dispatched_before_an_outage_is_looked_at_after_it(
    world: World, policy: CatchUp
) -> None:
    """Only the looks fall into the outage, at 14:00 and 15:00; the runs of 12:30 and 13:30 died in
    time."""
    job = watched(world, catch_up=policy, expect_within=5400)
    world.targets.behave = lambda call: REFUSED
    world.run_until(NOON + 105 * MINUTE)
    dead = [run.key.fire_at for run in world.history(job) if run.status is RunStatus.DEAD]
    assert dead == [FIRST, FIRST + HOUR]
    back = NOON + timedelta(hours=4, minutes=10)
    world.clock.set(back)
    world.run_until(back + 2 * MINUTE)
    assert looks(world, job)[:2] == dead


@pytest.mark.parametrize(("policy", "alarms"), [(CatchUp.LATEST, []), (CatchUp.SKIP, [7])])
def test_what_a_catch_up_passed_over_is_not_told_of_by_checks_that_come_after_it(
    world: World, policy: CatchUp, alarms: list[int]
) -> None:
    """The outage is shorter than `expect_within`: each check comes in time, and finds no run of its
    occurrence."""
    job = watched(world, "* * * * *", catch_up=policy)
    world.run_until(NOON + MINUTE)
    world.clock.set(NOON + 8 * MINUTE)
    world.run_until(NOON + 20 * MINUTE)
    (covering,) = runs_of_kind(world, job, RunKind.MISSED)
    assert covering.covers_from == NOON + 4 * MINUTE
    assert looks(world, job) == [NOON + minute * MINUTE for minute in alarms]


def test_what_came_due_while_a_resumption_was_late_is_told_of_by_what_stands_for_it(
    world: World,
) -> None:
    job = watched(world, "* * * * *", expect_within=1200)
    world.run_until(NOON + MINUTE)
    world.pause(job, NOON + 3 * MINUTE)
    world.clock.set(NOON + 9 * MINUTE)
    world.targets.behave = lambda call: REFUSED
    world.run_until(NOON + 9 * MINUTE)
    world.targets.behave = lambda call: Success("ok")
    world.run_until(NOON + 30 * MINUTE)
    (covering,) = runs_of_kind(world, job, RunKind.MISSED)
    assert covering.covers_count == 5
    assert looks(world, job)[:1] == [NOON + 8 * MINUTE]


def test_what_waits_in_vain_is_told_of_though_the_next_does_so_too(world: World) -> None:
    """A key is never free: each occurrence is skipped once its grace is over, while the next waits
    already. None is left to a later one, which would be left to the next again, and so on."""
    key = Concurrency("db", 1)
    world.targets.behave = accepts
    world.create("holder", "at 2026-12-01T12:00:30Z", target=target(86_000, None), concurrency=key)
    job = watched(world, "*/2 * * * *", catch_up=CatchUp.SKIP, grace=300, concurrency=key)
    world.run_until(NOON + 17 * MINUTE)
    assert looks(world, job) == [NOON + minute * MINUTE for minute in (2, 4, 6)]


@pytest.mark.parametrize("change", ["paused", "replaced"])
def test_the_last_that_an_outage_skipped_is_told_of_whatever_the_job_is_by_then(
    world: World, change: str
) -> None:
    """The next one ran in time. By its reason the skip could be that of one which gave way to a
    later one, as under `latest`, the policy of now."""
    job = watched(world, "* * * * *", catch_up=CatchUp.SKIP)
    world.run_until(NOON + MINUTE)
    world.clock.set(NOON + 8 * MINUTE + 30 * SECOND)
    world.tick()
    world.run_until(NOON + 11 * MINUTE)
    if change == "replaced":
        world.new_generation(job, "0 5 * * *", catch_up=CatchUp.LATEST)
    else:
        paused = job_with(world.pause(job), catch_up=CatchUp.LATEST)
        assert world.jobs.replace(replace(paused, revision=paused.revision + 1), paused.revision)
    world.run_until(NOON + 20 * MINUTE)
    assert looks(world, job) == [NOON + 7 * MINUTE]


def test_a_check_waits_for_the_row_of_a_catch_up_that_has_yet_to_start(world: World) -> None:
    """The outage is longer than `expect_within`: checks come in time before it is caught up on."""
    world.tick_ports = replace(world.tick_ports, catch_up_share=1)
    world.create("other", "* * * * *")
    job = watched(world, "* * * * *")
    world.run_until(NOON + MINUTE)
    world.clock.set(NOON + 20 * MINUTE)
    world.run_until(NOON + 33 * MINUTE)
    (covering,) = runs_of_kind(world, job, RunKind.MISSED)
    assert covering.updated_at >= NOON + 21 * MINUTE
    assert looks(world, job) == []


def test_it_tells_though_the_segment_cannot_be_read(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = watched(world)
    without_executors(world, FIRST + WITHIN)
    (look,) = (each for each in world.queue.kept() if each.message.key.kind is RunKind.WATCH)

    def unreadable(segment: int) -> None:
        raise UnreadableRowError(f"control item of segment {segment}")

    monkeypatch.setattr(world.wheel, "get_control", unreadable)
    handle(world, look.message)
    assert looks(world, job) == [FIRST]
