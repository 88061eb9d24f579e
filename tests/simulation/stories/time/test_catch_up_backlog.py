"""Three hours without ticks, 20,000 occurrences due in them: the backlog starts at its pace, and
what is due meanwhile starts in time."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from carillon.domain.decisions import SkipReason
from carillon.domain.job import Job
from carillon.domain.policies import CatchUp
from carillon.domain.run import Run, RunKind, RunStatus
from carillon.domain.wheel.entry import Entry, Slot, minute_of
from carillon.schedules import SlotKind, slots
from carillon.stores.memory.messaging import Received
from carillon.stores.ports import Page
from tests.simulation.stories.story import HOUR, MINUTE, SECOND
from tests.support.world import World

START = datetime(2026, 12, 1, 12, tzinfo=UTC)
LAST_TICK = START + MINUTE
ANNOUNCED = START + timedelta(minutes=3, seconds=59)
"""The last tick's minute and its look-ahead of two."""
RETURN = START + timedelta(hours=3, minutes=2)
MISSED_UNTIL = RETURN - SECOND

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

    def execute(self) -> None:
        ends_at = self.clock.now() + timedelta(seconds=60)
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


def behind(world: World) -> list[Received]:
    """What is queued of the backlog."""
    return [kept for kept in world.queue.kept() if kept.message.due_at < RETURN]


def test_three_hours_of_backlog_drain_while_live_runs_keep_their_time() -> None:
    world, jobs = stopped_and_returned(PER_POLICY, PACE_PER_MINUTE)
    due = [fire_times(number, ANNOUNCED, MISSED_UNTIL) for number in range(len(jobs))]
    assert sum(map(len, due)) >= 20_000

    minutes = 0
    messages = sum(map(len, due[2::3])) + 2 * PER_POLICY
    world.tick()
    assert not any(world.indexer.control(segment).backlog for segment in range(SEGMENTS))
    while behind(world):
        handled_before = len(world.reports)
        world.run_until(world.clock.now() + timedelta(seconds=59))
        live = len(jobs) * 60 // PERIOD_SECONDS
        handled = len(world.reports) - handled_before - live
        assert handled <= PACE_PER_MINUTE + SEGMENTS
        minutes += 1
    least = -(-messages // PACE_PER_MINUTE)
    assert least <= minutes <= least + 1, "segments are not equally full"
    end = world.clock.now() + timedelta(minutes=2)
    world.run_until(end)

    lags = live_lags(world, jobs)
    assert len(lags) >= sum(
        len(fire_times(n, MISSED_UNTIL, end - SECOND)) for n in range(len(jobs))
    )
    assert max(lags) <= LAG_BOUND_SECONDS
    for number, job in enumerate(jobs):
        missed = [run for run in world.history(job) if ANNOUNCED < run.key.fire_at <= MISSED_UNTIL]
        expect_policy(job.spec.catch_up, missed, due[number])
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
    world.run_until(RETURN + MINUTE)
    assert max(live_lags(world, jobs)) > 10 * LAG_BOUND_SECONDS


@pytest.mark.parametrize("ticks", [1, 3])
def test_places_are_given_once_however_often_the_tick_comes(ticks: int) -> None:
    world, _ = stopped_and_returned(20, 6 * SEGMENTS)
    for _ in range(ticks):
        world.tick()
    starts: Counter[int] = Counter()
    far = []
    for segment in range(SEGMENTS):
        for minute in range(minute_of(RETURN), minute_of(RETURN) + 60):
            entries = world.wheel.query(segment, Slot(SlotKind.DATED, minute)).items
            far += [entry.message for entry in entries if entry.message is not None]
    near = [kept.message for kept in behind(world)]
    for message in [*near, *far]:
        starts[minute_of(max(message.starts_at, RETURN)) - minute_of(RETURN)] += 1
    assert set(starts) == set(range(len(starts)))
    assert max(starts.values()) <= 6 * SEGMENTS
    assert near != []
    assert far != []
    assert sum(starts.values()) == len({message.key for message in [*near, *far]})


def test_the_share_is_spread_over_its_minute() -> None:
    world, _ = stopped_and_returned(20, 6 * SEGMENTS)
    world.tick()
    seconds = sorted((kept.visible_at - RETURN).total_seconds() for kept in behind(world))
    assert seconds[: 12 * SEGMENTS] == sorted([*range(0, 120, 10)] * SEGMENTS)


def test_the_messages_of_one_link_keep_the_pace_too() -> None:
    """All of an outage hangs on one link of a chain, thousands of them."""
    start = datetime(2026, 12, 31, 23, 50, tzinfo=UTC)
    world = World(start, segments=1)
    world.tick_ports = replace(world.tick_ports, catch_up_share=30)
    job = world.create("dense", "*/10 * * 1 1 *", catch_up=CatchUp.ALL)
    assert slots(job.schedule).kind is SlotKind.DATED
    world.tick()
    back = start + timedelta(hours=2)
    world.clock.set(back)
    late_until = back - SECOND
    late = list(job.schedule.between(start, late_until))
    world.run_until(back + timedelta(minutes=len(late) // 30 + 2))
    runs = [run for run in world.history(job) if run.key.fire_at <= late_until]
    assert [run.key.fire_at for run in runs] == late
    started = Counter(minute_of(run.started_at) for run in runs if run.started_at is not None)
    assert max(started.values()) <= 30
    live = [run for run in world.history(job) if run.key.fire_at >= back]
    assert max(run.lag_seconds or 0 for run in live) <= LAG_BOUND_SECONDS


def test_live_occurrences_of_a_chain_do_not_wait_for_the_backlog() -> None:
    world = world_behind(share=4)
    job = world.create("rare", "every 181m", start_at=START - HOUR)
    assert slots(job.schedule).kind is SlotKind.DATED
    world.run_until(START + timedelta(minutes=10))
    back = START + timedelta(hours=3)  # the link of 14:01 is in the backlog; 17:02 is live
    world.clock.set(back)
    world.run_until(START + timedelta(hours=6))
    lags = {run.key.fire_at: run.lag_seconds for run in world.history(job)}
    live = list(job.schedule.between(back, START + timedelta(hours=6)))
    assert live != []
    assert all(lags[fire_at] == 0 for fire_at in live)


def test_no_pace_outlives_the_entry_of_a_one_shot() -> None:
    """Ticks may be down 14 days and lose nothing, and then its entry goes: four hours later here,
    while the pace has six hours of messages before it."""
    world = World(START, segments=1)
    world.tick_ports = replace(world.tick_ports, catch_up_share=1)
    once = START + timedelta(hours=2)
    for number in range(3):
        world.create(f"all-{number}", "* * * * *", end_at=once, catch_up=CatchUp.ALL)
    job = world.create("once", f"at {once:%Y-%m-%dT%H:%M:%SZ}")
    world.run_until(START + timedelta(minutes=2))
    query = world.wheel.query

    def expiring(segment: int, slot: Slot, after_key: str | None = None) -> Page[Entry]:
        page, now = query(segment, slot, after_key), world.clock.now()
        kept = [entry for entry in page.items if (entry.expires_at or now) >= now]
        return replace(page, items=tuple(kept))

    world.wheel.query = expiring  # type: ignore[method-assign]
    world.clock.set(START + timedelta(days=13, hours=22))
    for _ in range(7 * 60):
        world.tick()
        world.execute()
        world.clock.advance(60)
    assert world.fired(job) == [once]


def world_behind(share: int) -> World:
    """Ten jobs that are to run all that an outage misses."""
    world = World(START, segments=1)
    world.tick_ports = replace(world.tick_ports, catch_up_share=share)
    for number in range(10):
        world.create(f"all-{number}", "* * * * *", catch_up=CatchUp.ALL)
    return world
