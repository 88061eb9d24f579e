"""Catch-up where ticks were there and executors were not: what was sent, and came late."""

from datetime import datetime, timedelta
from itertools import pairwise

import pytest

from carillon.domain.events import EventType
from carillon.domain.job import Job
from carillon.domain.message import Message
from carillon.domain.policies import CatchUp, Rate, RetryPolicy
from carillon.domain.run import Run, RunKind, RunStatus
from tests.simulation.stories.story import (
    HOUR,
    MINUTE,
    NOON,
    run_of,
    runs_of_kind,
)
from tests.support.world import FUNCTION_SECONDS, World

BACK = NOON + timedelta(hours=1, seconds=30)
"""The executors are out from noon to here."""


@pytest.fixture
def world() -> World:
    return World(NOON - MINUTE, segments=1)


def without_executors(world: World, until: datetime) -> None:
    while world.clock.now() < until:
        if world.clock.now().second == 0:
            world.tick()
        world.clock.advance(1)


def own_rows(world: World, job: Job) -> list[Run]:
    """Its occurrences' rows in order of fire time."""
    rows = runs_of_kind(world, job, RunKind.SCHEDULED)
    return sorted(rows, key=lambda run: run.key.fire_at)


def after_an_hour(world: World, schedule: str, policy: CatchUp, grace: int | None) -> Job:
    job = world.create("job", schedule, catch_up=policy, grace=grace)
    without_executors(world, BACK)
    world.run_until(BACK + 3 * MINUTE)
    return job


@pytest.mark.parametrize(
    ("policy", "grace", "ran", "reason"),
    [
        (CatchUp.LATEST, None, 1, "catch_up"),
        (CatchUp.LATEST, 1500, 25, "catch_up"),
        (CatchUp.LATEST, 20, 1, "catch_up"),
        (CatchUp.SKIP, None, 1, "misfire"),
        (CatchUp.SKIP, 1500, 25, "misfire"),
        (CatchUp.SKIP, 20, 0, "misfire"),
        (CatchUp.ALL, None, 61, None),
    ],
)
def test_the_policy_holds_for_what_executors_were_out_for(
    world: World, policy: CatchUp, grace: int | None, ran: int, reason: str | None
) -> None:
    """MISSION F1: an hour without executors ran all 60 occurrences of each of them."""
    job = after_an_hour(world, "every 1m", policy, grace)
    missed = [run for run in own_rows(world, job) if run.key.fire_at <= BACK]
    assert [run.key.fire_at for run in missed] == [NOON + n * MINUTE for n in range(61)]
    assert [run.status for run in missed[61 - ran :]] == [RunStatus.SUCCEEDED] * ran
    passed_over = missed[: 61 - ran]
    assert {(run.status, run.reason) for run in passed_over} <= {(RunStatus.SKIPPED, reason)}
    if reason == "catch_up":
        named = {(run.note or "").partition(" ")[0] for run in passed_over}
        assert named == {missed[-1].key.run_id}
    # Nothing came twice, and what came since is as ever.
    assert len(world.fired(job)) == ran + 3


def test_the_latest_runs_though_its_own_message_has_yet_to_come(world: World) -> None:
    """It is late itself: the one before made it run. Of a job whose occurrences go alone."""
    job = world.create("job", "every 10m", retry=RetryPolicy(max_attempts=1))
    without_executors(world, BACK)
    kept = world.queue.kept()
    first = next(one for one in kept if one.message.key.fire_at == NOON)
    ends_at = BACK + timedelta(seconds=FUNCTION_SECONDS)
    report = world.executor.handle(first.message, ends_at)
    assert (report.run and report.run.status) is RunStatus.SKIPPED
    assert report.instead is not None
    assert world.fired(job) == [NOON + HOUR]
    run = run_of(world, report.instead.message.key)
    assert run.lag_seconds == 30


def test_a_steady_lag_starves_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lane that is two minutes behind all the time: each message makes another one run."""
    put = world.queue.put

    def late(message: Message, visible_at: datetime) -> int:
        return put(message, max(visible_at, message.due_at) + 2 * MINUTE)

    monkeypatch.setattr(world.queue, "put", late)
    job = world.create("job", "every 30s")
    world.run_until(NOON + 30 * MINUTE)
    fired = world.fired(job)
    assert len(fired) == len(set(fired)) >= 28
    assert all(b - a <= 2.5 * MINUTE for a, b in pairwise(sorted(fired)))
    assert fired[-1] >= NOON + 27 * MINUTE


def test_a_run_that_its_rate_held_back_is_not_late(world: World) -> None:
    """It came in time: its own policy held it back, while later ones became due."""
    job = world.create("job", "every 1m", rate=Rate(1, 300, "mail"), max_runs=5)
    world.run_until(NOON + 25 * MINUTE)
    assert world.fired(job) == [NOON + n * MINUTE for n in range(5)]
    assert {run.status for run in own_rows(world, job)} == {RunStatus.SUCCEEDED}


def test_a_fixed_delay_goes_on_however_late(world: World) -> None:
    job = world.create("job", "every 1m after finish")
    without_executors(world, BACK)
    world.run_until(BACK + 3 * MINUTE)
    statuses = {run.status for run in own_rows(world, job)}
    assert statuses == {RunStatus.SUCCEEDED}
    assert len(world.fired(job)) >= 3


@pytest.mark.parametrize(("policy", "rings"), [(CatchUp.LATEST, 0), (CatchUp.SKIP, 1)])
@pytest.mark.parametrize("within", [60, 7200])
def test_the_watch_rings_once_for_all_that_came_late(
    world: World, policy: CatchUp, rings: int, within: int
) -> None:
    job = watched(world, policy, within)
    world.run_until(BACK + 3 * MINUTE + timedelta(seconds=within))
    assert len(alarms(world, job)) == rings


def test_the_watch_rings_once_where_it_comes_before_the_runs(world: World) -> None:
    job = watched(world, CatchUp.LATEST, 60)
    for kept in world.queue.kept():
        if kept.message.key.kind is RunKind.WATCH and kept.visible_at <= BACK:
            world.executor.handle(kept.message, BACK + timedelta(seconds=FUNCTION_SECONDS))
            world.queue.delete(kept.receipt)
    world.run_until(BACK + 3 * MINUTE)
    assert [run.note for run in alarms(world, job)] == ["no run of it was recorded"]


def watched(world: World, policy: CatchUp, within: int) -> Job:
    """A job that was watched while the executors were out."""
    told = (EventType.RUN_MISSED,)
    job = world.create("job", "every 1m", catch_up=policy, expect_within=within, events=told)
    without_executors(world, BACK)
    return job


def alarms(world: World, job: Job) -> list[Run]:
    return runs_of_kind(world, job, RunKind.WATCH)
