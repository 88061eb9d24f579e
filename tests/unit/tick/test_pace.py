"""The pace of catching up: shares of minutes, and the place in a backlog that is left for later."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from functions.tick.outbox import Outbox
from functions.tick.visit import SegmentOutcome
from shared.domain.message import Message
from shared.domain.policies import CatchUp
from shared.domain.segment import Control
from shared.domain.wheel import message_of, minute_of
from tests.simulation.world import World

START = datetime(2026, 12, 1, 12, tzinfo=UTC)
BACK = START + timedelta(minutes=10)


@pytest.fixture
def world() -> World:
    """Ten minutes behind, with a share of four messages a minute."""
    world = World(START, segments=1)
    world.tick_ports = replace(world.tick_ports, catch_up_share=4)
    for number in range(9):
        world.create(f"job-{number}", "5 * * * *", catch_up=CatchUp.ALL)
    world.tick()
    world.clock.set(BACK)
    return world


def control_of(world: World) -> Control:
    control = world.wheel.get_control(0)
    assert control is not None
    return control


def sent_ids(world: World) -> list[str]:
    return [kept.message.key.job_id for kept in world.queue.kept()]


def test_a_visit_leaves_what_is_beyond_its_share_to_the_next_minute(world: World) -> None:
    counts = []
    for _ in range(3):
        *_, report = world.tick()
        counts.append((report.outcome, report.messages))
        world.clock.advance(60)
    assert counts == [
        (SegmentOutcome.PACED, 4),
        (SegmentOutcome.PACED, 4),
        (SegmentOutcome.DISPATCHED, 1),
    ]
    assert len(sent_ids(world)) == len(set(sent_ids(world))) == 9, "none twice"
    assert control_of(world).backlog == ()


def test_a_visit_of_the_backlog_costs_two_writes(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes = []
    put = world.wheel.put_control

    def counted(control: Control, over: Control | None) -> bool:
        writes.append(control)
        return put(control, over)

    monkeypatch.setattr(world.wheel, "put_control", counted)
    world.tick()
    assert len(writes) == 4, "two for the live minutes, two for the backlog"


def test_checkpoints_of_a_slow_live_minute_keep_the_place_in_the_backlog(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or it would begin its minute anew each time, and never come further than its share."""
    for number in range(5):
        world.create(f"live-{number}", "13 * * * *")
    world.tick()
    before = control_of(world).backlog_cursor
    assert before is not None
    send = world.queue.send

    def slow_send(messages: Sequence[Message], delays: Sequence[int]) -> None:
        send(messages, delays)
        world.clock.advance(8)

    monkeypatch.setattr("functions.tick.outbox.FLUSH_AT", 1)
    monkeypatch.setattr(world.queue, "send", slow_send)
    world.clock.set(BACK + timedelta(minutes=1))
    deadline = world.clock.now() + timedelta(seconds=20)
    (live, *_) = world.dispatcher().tick(range(1), (), deadline)
    assert live.outcome is SegmentOutcome.OUT_OF_TIME
    control = control_of(world)
    assert control.cursor is not None
    assert (control.cursor.minute, control.backlog_cursor) == (minute_of(BACK) + 3, before)


def test_an_entrys_messages_go_together_though_they_exceed_the_share(world: World) -> None:
    world.create("dense", "*/10 * * * * *", catch_up=CatchUp.ALL)
    world.tick()
    world.clock.set(BACK + timedelta(minutes=5))
    *_, report = world.tick()
    assert (report.outcome, report.messages) == (SegmentOutcome.PACED, 4)
    while control_of(world).backlog:
        world.clock.advance(60)
        *_, report = world.tick()
        assert report.messages <= 4 + 5


def test_a_share_is_spread_over_the_minute_and_a_later_time_of_its_own_counts() -> None:
    world = World(START, segments=1)
    job = world.create("job", "* * * * *")
    outbox = Outbox(world.queue, world.clock, share=3)
    message = message_of(job, START - timedelta(hours=1))
    late = replace(message, due_at=START + timedelta(seconds=500))
    for each in (message, message, late, message):
        outbox.add(each)
    assert outbox.is_used_up
    outbox.flush()
    delays = [(kept.visible_at - START).total_seconds() for kept in world.queue.kept()]
    assert sorted(delays) == [0, 20, 59, 500]
