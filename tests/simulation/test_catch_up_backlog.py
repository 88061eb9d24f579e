"""Three hours without ticks, 20,000 occurrences due in them: the backlog drains at its pace, and
what is due meanwhile starts in time."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from shared.domain.decisions import SkipReason
from shared.domain.job import Job
from shared.domain.policies import CatchUp
from shared.domain.run import Run, RunKind, RunStatus
from tests.simulation.world import World

START = datetime(2026, 12, 1, 12, tzinfo=UTC)
LAST_TICK = START + timedelta(minutes=1)
ANNOUNCED = START + timedelta(minutes=3, seconds=59)
"""The last tick's minute and its look-ahead of two."""
RETURN = START + timedelta(hours=3, minutes=2)
MISSED_UNTIL = RETURN - timedelta(seconds=1)

SEGMENTS = 4
PACE_PER_MINUTE = 3000
CAPACITY_PER_SECOND = 60
"""What all executors handle together: little more than the pace and the live load."""
LAG_BOUND_SECONDS = 1.5
PERIOD_SECONDS = 300
PER_POLICY = 190
"""Jobs of each of the three policies, with 36 missed occurrences each."""


class BoundedWorld(World):
    """Executors handle no more than CAPACITY_PER_SECOND messages in each second."""

    most_kept = 0

    def execute(self) -> None:
        ends_at = self.clock.now() + timedelta(seconds=60)
        self.most_kept = max(self.most_kept, len(self.queue.kept()))
        for received in self.queue.receive(self.clock.now(), CAPACITY_PER_SECOND):
            self.reports.append(self.executor.handle(received.message, ends_at))
            self.queue.delete(received.receipt)


def stopped_and_returned(per_policy: int, pace_per_minute: int | None) -> tuple[World, list[Job]]:
    """Jobs every five minutes, spread over all seconds, at the moment when the ticks return."""
    world = BoundedWorld(START, SEGMENTS)
    share = None if pace_per_minute is None else pace_per_minute // SEGMENTS
    world.tick_ports = replace(world.tick_ports, catch_up_share=share)
    policies = [CatchUp.SKIP, CatchUp.LATEST, CatchUp.ALL] * per_policy
    jobs = [
        world.create(f"job-{n}", f"every 5m offset {offset_of(n)}s", catch_up=policy)
        for n, policy in enumerate(policies)
    ]
    world.run_until(LAST_TICK)
    while world.queue.kept():
        world.run_until(world.clock.now(), ticking=False)
    world.clock.set(RETURN)
    return world, jobs


def offset_of(number: int) -> int:
    """Its second of the five minutes: all of them are used evenly, whatever the policy."""
    return number * 7 % PERIOD_SECONDS


def fire_times(number: int, after: datetime, until: datetime) -> list[datetime]:
    """By arithmetic alone."""
    first = int(after.timestamp()) // PERIOD_SECONDS * PERIOD_SECONDS + offset_of(number)
    seconds = range(first, int(until.timestamp()) + 1, PERIOD_SECONDS)
    instants = [datetime.fromtimestamp(second, UTC) for second in seconds]
    return [instant for instant in instants if instant > after]


def live_lags(world: World, jobs: list[Job]) -> list[float]:
    """The lags of the runs that were due after the ticks returned."""
    rows = [run for job in jobs for run in world.history(job) if run.key.fire_at >= RETURN]
    return [run.lag_seconds for run in rows if run.lag_seconds is not None]


def backlog_is_left(world: World) -> bool:
    return any(world.filer.control(segment).backlog for segment in range(SEGMENTS))


def test_three_hours_of_backlog_drain_while_live_runs_keep_their_time() -> None:
    world, jobs = stopped_and_returned(PER_POLICY, PACE_PER_MINUTE)
    due = [fire_times(number, ANNOUNCED, MISSED_UNTIL) for number in range(len(jobs))]
    assert sum(map(len, due)) >= 20_000

    minutes = 0
    while backlog_is_left(world) or world.clock.now() == RETURN:
        sent_before = len(world.reports) + len(world.queue.kept())
        world.run_until(world.clock.now() + timedelta(seconds=59))
        sent = len(world.reports) + len(world.queue.kept()) - sent_before
        live = len(jobs) * 3 * 60 // PERIOD_SECONDS + 10  # at first three minutes of them at once
        assert sent <= PACE_PER_MINUTE + live
        minutes += 1
    messages = sum(map(len, due[2::3])) + 2 * PER_POLICY
    least = -(-messages // PACE_PER_MINUTE)
    assert least <= minutes <= least + 1, "segments are not equally full"
    end = world.clock.now() + timedelta(minutes=2)
    world.run_until(end)

    lags = live_lags(world, jobs)
    assert len(lags) >= sum(
        len(fire_times(n, MISSED_UNTIL, end - timedelta(seconds=1))) for n in range(len(jobs))
    )
    assert max(lags) <= LAG_BOUND_SECONDS
    for number, job in enumerate(jobs):
        missed = [run for run in world.history(job) if ANNOUNCED < run.key.fire_at <= MISSED_UNTIL]
        expect_policy(job.catch_up, missed, due[number])
    assert world.bad_entries == []


def expect_policy(policy: CatchUp, rows: list[Run], due: list[datetime]) -> None:
    """Exactly the runs and the skip rows that the policy wants for the occurrences `due`."""
    own = [run for run in rows if run.key.kind is RunKind.SCHEDULED]
    covering = [run for run in rows if run.key.kind is RunKind.MISSED]
    if policy is CatchUp.ALL:
        assert [run.key.fire_at for run in own] == due
        assert {run.status for run in own} == {RunStatus.SUCCEEDED}
        assert covering == []
        return
    (last,), (row,) = own, covering
    assert last.key.fire_at == due[-1]
    if policy is CatchUp.LATEST:
        assert last.status is RunStatus.SUCCEEDED
    else:
        assert (last.status, last.reason) == (RunStatus.SKIPPED, SkipReason.CATCH_UP)
    assert (row.status, row.reason) == (RunStatus.SKIPPED, SkipReason.CATCH_UP)
    assert (row.covers_from, row.key.fire_at) == (due[0], due[-2])
    assert row.covers_count == len(due) - 1


def test_without_a_pace_the_backlog_would_delay_what_is_due() -> None:
    """The test above can fail: executors of this capacity are too slow for all of it at once."""
    world, jobs = stopped_and_returned(60, None)
    world.run_until(RETURN + timedelta(minutes=1))
    assert max(live_lags(world, jobs)) > 10 * LAG_BOUND_SECONDS


@pytest.mark.parametrize("workers", [1, 3])
def test_the_share_of_a_minute_is_sent_once_however_often_the_tick_comes(workers: int) -> None:
    world, _ = stopped_and_returned(40, 4 * SEGMENTS)
    for _ in range(workers):
        world.tick()
    behind = [kept.message for kept in world.queue.kept() if kept.message.due_at < RETURN]
    assert len(behind) == 4 * SEGMENTS
    world.clock.advance(60)
    world.tick()
    behind = [kept.message for kept in world.queue.kept() if kept.message.due_at < RETURN]
    assert len(behind) == 8 * SEGMENTS


def test_the_share_is_spread_over_its_minute() -> None:
    world, _ = stopped_and_returned(40, 6 * SEGMENTS)
    world.tick()
    behind = [kept for kept in world.queue.kept() if kept.message.due_at < RETURN]
    seconds = sorted((kept.visible_at - RETURN).total_seconds() for kept in behind)
    assert seconds == sorted([0, 10, 20, 30, 40, 50] * SEGMENTS)
