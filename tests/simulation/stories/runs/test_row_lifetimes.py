"""Rows must not expire while something that needs them is still to come.

Every case lies within what a deployment promises: ticks may be down for fourteen days, a message
may lie in its queue as long as the queue keeps it. What absorbs a duplicate, and what a retry goes
on from, has to live through both, one after the other.
"""

from datetime import UTC, datetime, timedelta

import pytest

from carillon.domain.policies import Backoff, RetryPolicy
from carillon.domain.run import RunError, RunStatus
from carillon.executor.targets import Call, Failure, Outcome, Success
from carillon.settings import Settings
from tests.support.world import World

START = datetime(2026, 12, 1, 12, tzinfo=UTC)
SETTINGS = Settings.from_environment(
    {
        "JOBS_TABLE": "jobs",
        "WHEEL_TABLE": "wheel",
        "RUNS_TABLE": "runs",
        "LANE_QUEUES": '{"high": "h", "normal": "n", "low": "l", "slow": "s"}',
        "SEGMENTS": "1",
        "RUN_RETENTION_DAYS": "7",
        "QUEUE_RETENTION_DAYS": "10",
    }
)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """A deployment that keeps runs for no longer than it must."""
    monkeypatch.setattr("tests.support.world.LIFETIME", SETTINGS.run_lifetime)
    return World(START, segments=1)


def expire(world: World) -> None:
    """Remove the runs that DynamoDB's TTL would have removed by now."""
    rows = world.runs._rows
    for run in [run for run in rows.values() if run.expires_at < world.clock.now()]:
        del rows[run.key]


def tick_and_execute(world: World, *, tick_on_day: int, days_in_queue: int) -> None:
    """The ticks return on a day after START, and the lane's executors so many days later."""
    world.clock.set(START + timedelta(days=tick_on_day))
    world.tick()
    world.clock.advance(timedelta(days=days_in_queue).total_seconds())
    expire(world)
    world.execute()


def test_a_retry_that_waits_a_week_finds_its_run(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is due on day 7, when the ticks are down; they send it at last, and the queue holds it."""

    def busy_at_first(call: Call) -> Outcome:
        return Failure(RunError("busy", "later")) if call.attempt == 1 else Success(None)

    monkeypatch.setattr(world.entropy, "fraction", lambda: 0.0)
    world.targets.behave = busy_at_first
    a_week = int(timedelta(days=7).total_seconds())
    policy = RetryPolicy(2, Backoff(base_seconds=a_week, factor=1, cap_seconds=a_week))
    job = world.create("job", "at 2026-12-01T12:01:00", retry=policy)
    world.run_until(START + timedelta(minutes=1, seconds=1))
    (run,) = world.history(job)
    assert run.next_attempt_at == START + timedelta(days=7, minutes=1)
    tick_and_execute(world, tick_on_day=20, days_in_queue=9)
    assert [(run.status, run.attempt) for run in world.history(job)] == [(RunStatus.SUCCEEDED, 2)]


def test_a_check_that_comes_when_its_run_has_expired_tells_of_nothing(world: World) -> None:
    """It is due on day 7, too, long after a success whose row is gone by the time it comes."""
    job = world.create("job", "at 2026-12-01T12:01:00", expect_within=7 * 86_400)
    world.run_until(START + timedelta(minutes=1, seconds=1))
    assert [run.status for run in world.history(job)] == [RunStatus.SUCCEEDED]
    tick_and_execute(world, tick_on_day=20, days_in_queue=9)
    assert world.history(job) == []
    assert len(world.reports) == 2
