"""The tick's protocol on memory stores: leases, announcements, checkpoints, failures."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from carillon.domain.message import Message
from carillon.domain.policies import CatchUp
from carillon.domain.run import RunStatus
from carillon.domain.wheel.entry import Slot, entry_of_message, message_of, minute_of
from carillon.domain.wheel.segment import Control, first_control
from carillon.errors import QueueUnavailableError
from carillon.schedules import SlotKind
from carillon.stores.segments import segments_in_use
from carillon.tick.counting import SegmentOutcome
from carillon.tick.dispatcher import Dispatcher
from carillon.tick.segment_visit import Visit
from tests.support.world import World
from tests.unit.faults import dying, failing

START = datetime(2026, 12, 1, 12, tzinfo=UTC)


@pytest.fixture
def world() -> World:
    return World(START, segments=1)


def control_of(world: World) -> Control:
    control = world.wheel.get_control(0)
    assert control is not None
    return control


def sent_times(world: World) -> list[datetime]:
    return sorted(received.message.key.fire_at for received in world.queue.kept())


def count_calls(
    world: World, monkeypatch: pytest.MonkeyPatch, name: str
) -> Callable[[], list[object]]:
    calls: list[object] = []
    original = getattr(world.wheel, name)

    def counted(*args: object, **kwargs: object) -> object:
        calls.append(args)
        return original(*args, **kwargs)

    monkeypatch.setattr(world.wheel, name, counted)
    return lambda: calls


def test_the_ordinary_minute_costs_two_writes_per_segment_and_none_per_entry(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(30):
        world.create(f"job-{number}", "* * * * *")
    world.tick()
    world.clock.advance(60)
    control_writes = count_calls(world, monkeypatch, "put_control")
    entry_writes = count_calls(world, monkeypatch, "put_entries")
    (report,) = world.tick()
    assert (report.messages, report.minutes) == (30, 1)
    assert len(control_writes()) == 2
    assert entry_writes() == []


def test_a_doubled_tick_writes_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.create("job", "* * * * *")
    world.tick()
    writes = count_calls(world, monkeypatch, "put_control")
    (report,) = world.tick()
    assert report.outcome is SegmentOutcome.CURRENT
    assert writes() == []


def test_while_another_tick_holds_the_lease_nothing_is_done(world: World) -> None:
    world.create("job", "* * * * *")
    with dying(world.wheel, "put_control", after=1):
        world.tick()
    (report,) = world.tick()
    assert report.outcome is SegmentOutcome.HELD
    world.clock.advance(46)
    (report,) = world.tick()
    assert report.outcome is SegmentOutcome.DISPATCHED


def test_a_tick_killed_between_send_and_advance_loses_and_doubles_nothing(world: World) -> None:
    job = world.create("job", "*/1 * * * *")
    with dying(world.wheel, "put_control", after=1):
        world.tick()
    world.clock.advance(60)
    world.tick()
    assert len(sent_times(world)) > len(set(sent_times(world))), "the messages are doubled"
    world.run_until(START + timedelta(minutes=3))
    expected = [START + timedelta(minutes=n) for n in (1, 2, 3)]
    assert world.fired(job) == expected, "the runs are not"


def test_a_herd_longer_than_the_tick_makes_progress_by_checkpoints(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [world.create(f"job-{number}", "5 * * * *") for number in range(40)]
    world.clock.set(START + timedelta(minutes=3))
    send = world.queue.send

    def slow_send(messages: Sequence[Message], delays: Sequence[float], *until: Any) -> None:
        send(messages, delays)
        world.clock.advance(4 * len(messages))

    monkeypatch.setattr(world.queue, "send", slow_send)
    monkeypatch.setattr("carillon.tick.outbox.FULL", 1)
    outcomes = []
    for _ in range(12):
        world.clock.set(world.clock.now().replace(second=0) + timedelta(minutes=1))
        outcomes += [report.outcome for report in world.tick()]
    assert SegmentOutcome.OUT_OF_TIME in outcomes
    assert control_of(world).watermark >= minute_of(START + timedelta(minutes=5))
    sent = {received.message.key.job_id for received in world.queue.kept()}
    assert sent == {job.job_id for job in jobs}
    assert len(world.queue.kept()) < 3 * len(jobs), "it does not begin anew each time"


def test_a_lost_lease_is_a_normal_end(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.create("job", "* * * * *")
    query = world.wheel.query

    def slow_query(segment: int, slot: Slot, after_key: str | None = None) -> object:
        monkeypatch.setattr(world.wheel, "query", query)
        world.clock.advance(46)
        (other,) = world.tick()
        assert other.outcome is SegmentOutcome.DISPATCHED
        return query(segment, slot, after_key)

    monkeypatch.setattr(world.wheel, "query", slow_query)
    (report,) = world.tick()
    assert report.outcome is SegmentOutcome.LOST


def test_when_the_queue_fails_the_watermark_stays_and_the_lease_is_freed(world: World) -> None:
    world.create("job", "* * * * *")
    world.tick()
    before = control_of(world)
    world.clock.advance(60)
    with failing(world.queue, "send", QueueUnavailableError(1, "down")):
        (report,) = world.tick()
    assert report.outcome is SegmentOutcome.FAILED
    after = control_of(world)
    assert after.watermark == before.watermark
    assert after.horizon == before.horizon + 1
    assert not after.held_at(world.clock.now())
    (report,) = world.tick()
    assert (report.outcome, report.messages) == (SegmentOutcome.DISPATCHED, 1)


def test_a_gap_moves_to_the_backlog_with_the_acquisition_itself(world: World) -> None:
    world.tick()
    watermark = control_of(world).watermark
    world.clock.advance(600)
    with dying(world.wheel, "put_control", after=1):
        world.tick()
    control = control_of(world)
    (gap,) = control.backlog
    assert (gap.done, gap.until) == (watermark, minute_of(world.clock.now()) - 1)
    assert control.watermark == gap.until


def test_live_minutes_come_before_the_backlog(world: World) -> None:
    job = world.create("job", "* * * * *", catch_up=CatchUp.ALL)
    world.tick()
    world.clock.advance(3600)
    world.tick()
    order = [
        received.message.key.fire_at
        for received in sorted(world.queue.kept(), key=lambda kept: kept.receipt)
    ]
    now = world.clock.now()
    first_backlog = next(i for i, t in enumerate(order) if START + timedelta(minutes=3) <= t < now)
    assert any(t >= now for t in order[:first_backlog])
    world.execute()
    assert set(world.fired(job)) == {START + timedelta(minutes=n) for n in range(1, 61)}


def test_horizon_and_watermark_never_fall_with_a_shorter_look_ahead(world: World) -> None:
    world.tick()
    before = control_of(world)
    world.clock.advance(60)
    shorter = Dispatcher(world.tick_ports, lease_owner="x" * 26, look_ahead_minutes=1)
    shorter.tick([0], [], world.clock.now() + timedelta(seconds=50))
    after = control_of(world)
    assert after.horizon >= before.horizon
    assert after.watermark >= before.watermark


def test_a_tick_takes_over_what_nobody_holds_but_leaves_others_alone() -> None:
    world = World(START, segments=4)
    world.tick()
    world.clock.advance(60)
    deadline = world.clock.now() + timedelta(seconds=50)
    held = world.dispatcher().begin(3, deadline)
    reports = world.dispatcher().tick([0, 2], [3, 1], deadline)
    assert [(each.segment, each.outcome) for each in reports] == [
        (segment, SegmentOutcome.DISPATCHED) for segment in (0, 2, 1)
    ]
    assert world.dispatcher().tick((), [1, 2, 3], deadline) == []
    assert isinstance(held, Visit)
    assert held.run().outcome is SegmentOutcome.DISPATCHED


def test_segments_only_grow(world: World) -> None:
    for segment in range(8):
        world.wheel.put_control(first_control(segment, START), None)
    assert segments_in_use(world.wheel, 4) == 8
    assert segments_in_use(world.wheel, 16) == 16


def test_the_filer_sends_what_is_announced_and_the_tick_the_rest(world: World) -> None:
    world.tick()
    horizon = control_of(world).horizon
    world.create("job", "* * * * *")
    announced = range(minute_of(START) + 1, horizon + 1)
    assert [minute_of(fire_at) for fire_at in sent_times(world)] == list(announced)


def test_a_retry_entry_is_sent_whatever_became_of_the_filing(world: World) -> None:
    job = world.create("job", "* * * * *")
    due_at = START + timedelta(minutes=30)
    message = replace(message_of(job, START + timedelta(minutes=1)), attempt=2, due_at=due_at)
    entry = entry_of_message(message)
    assert entry.slot == Slot(SlotKind.DATED, minute_of(due_at))
    world.indexer.put_entry(entry)
    world.clock.set(due_at - timedelta(minutes=1))
    world.tick()
    assert message in [received.message for received in world.queue.kept()]


def test_catch_up_leaves_alone_what_a_dead_tick_had_announced(world: World) -> None:
    """The dead tick may have sent any of it: passing over 12:00:20 would record a skip of a run.

    Found by tests/integration/test_concurrent_ticks.py.
    """
    job = world.create("job", "every 20s")
    with dying(world.wheel, "put_control", after=1):
        world.tick()
    world.clock.advance(60)
    world.tick()
    world.run_until(START + timedelta(minutes=2))
    assert {run.status for run in world.history(job)} == {RunStatus.SUCCEEDED}
    assert set(world.fired(job)) == {START + timedelta(seconds=20 * n) for n in range(1, 7)}
