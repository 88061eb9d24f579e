"""The pace of catching up: a backlog is dispatched at once, and its messages start one by one."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from carillon.domain.message import Message
from carillon.domain.policies import CatchUp
from carillon.domain.wheel.entry import Entry, Slot, minute_of
from carillon.domain.wheel.segment import Control
from carillon.errors import QueueUnavailableError
from carillon.tick.counting import SegmentOutcome
from tests.support.world import OWNER, World
from tests.unit.faults import dying

START = datetime(2026, 12, 1, 12, tzinfo=UTC)
BACK = START + timedelta(minutes=10)
JOBS = 9


@pytest.fixture
def world() -> World:
    return behind(JOBS, share=4)


def behind(jobs: int, share: int) -> World:
    """Ten minutes behind, with a message of each job."""
    world = World(START, segments=1)
    world.tick_ports = replace(world.tick_ports, catch_up_share=share)
    for number in range(jobs):
        world.create(f"job-{number}", "5 * * * *", catch_up=CatchUp.ALL)
    world.tick()
    world.clock.set(BACK)
    return world


def control_of(world: World) -> Control:
    control = world.wheel.get_control(0)
    assert control is not None
    return control


def places(world: World) -> list[float]:
    """Seconds after the return of the ticks at which queued messages may start."""
    return sorted((kept.message.starts_at - BACK).total_seconds() for kept in world.queue.kept())


def starts(world: World) -> list[datetime]:
    """When the runs of missed occurrences started."""
    jobs = world.jobs.list(OWNER, 100).items
    runs = [run for job in jobs for run in world.history(job) if run.key.fire_at < BACK]
    return sorted(run.started_at for run in runs if run.started_at is not None)


def count_writes(world: World, monkeypatch: pytest.MonkeyPatch) -> list[Control]:
    writes = []
    put = world.wheel.put_control

    def counted(control: Control, over: Control | None) -> bool:
        writes.append(control)
        return put(control, over)

    monkeypatch.setattr(world.wheel, "put_control", counted)
    return writes


def test_one_visit_gives_each_message_its_place(world: World) -> None:
    *_, report = world.tick()
    assert (report.outcome, report.messages) == (SegmentOutcome.DISPATCHED, JOBS)
    assert control_of(world).backlog == ()
    first, *others = places(world)
    assert first == -300, "the place of the first is now: it waits for nothing"
    assert others == [15 * number for number in range(1, JOBS)]
    assert {kept.visible_at for kept in world.queue.kept()} == {
        BACK + timedelta(seconds=15 * number) for number in range(JOBS)
    }


def test_places_are_ceil_second_never_before_their_time(world: World) -> None:
    world.tick_ports = replace(world.tick_ports, catch_up_share=7)
    world.clock.advance(0.4)
    world.tick()
    exact = [0.4 + number * 60 / 7 for number in range(1, JOBS)]
    for place, least in zip(places(world)[1:], exact, strict=True):
        assert least <= place < least + 1
        assert place == int(place)


def test_the_pace_goes_on_where_an_earlier_backlog_left_it(world: World) -> None:
    """Ticks stop again while messages still wait for their places."""
    world.tick_ports = replace(world.tick_ports, catch_up_share=1)
    world.tick()
    world.create("late", "13 * * * *", catch_up=CatchUp.ALL)
    world.clock.set(BACK + timedelta(minutes=4))
    world.tick()
    assert places(world)[1:] == [60 * number for number in range(1, JOBS + 1)]


def test_what_is_too_far_for_the_queue_goes_to_the_wheel_in_one_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = behind(jobs=20, share=1)
    batches: list[Sequence[Entry]] = []
    put = world.wheel.put_entries

    def counted(entries: Sequence[Entry]) -> None:
        batches.append(entries)
        put(entries)

    monkeypatch.setattr(world.wheel, "put_entries", counted)
    *_, report = world.tick()
    assert report.messages == 20
    (batch,) = batches
    assert places(world)[1:] == [60 * number for number in range(1, 16)]
    assert [entry.slot.number - minute_of(BACK) for entry in batch] == [16, 17, 18, 19]
    world.run_until(BACK + timedelta(minutes=20))
    assert starts(world) == [BACK + timedelta(minutes=number) for number in range(20)]
    assert {report.message.slot_key for report in world.reports} == {"h5"}, "or none tidies up"


def test_a_minute_that_begins_anew_has_the_places_that_it_had(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by seed 7310162: each time the queue took a part only, all of it stood further back."""
    send = world.queue.send

    def send_in_part(messages: Sequence[Message], delays: Sequence[float], *until: Any) -> None:
        send(messages[:4], delays[:4])
        raise QueueUnavailableError(len(messages[4:]), "the rest was not taken")

    with monkeypatch.context() as patch:
        patch.setattr(world.queue, "send", send_in_part)
        for _ in range(5):
            assert world.tick()[-1].outcome is SegmentOutcome.FAILED
    *_, report = world.tick()
    assert report.outcome is SegmentOutcome.DISPATCHED
    assert sorted({*places(world)})[1:] == [15 * number for number in range(1, JOBS)]


def test_a_second_outage_gives_what_stands_on_the_wheel_new_places() -> None:
    world = behind(jobs=20, share=1)
    world.tick()
    world.execute()
    again = BACK + timedelta(minutes=30)
    world.clock.set(again)
    world.tick()
    world.run_until(again + timedelta(minutes=4))
    started = [(at - again).total_seconds() for at in starts(world)]
    assert started == [-1800, *[0] * 15, 0, 60, 120, 180], "those in the queue had their places"


def test_a_live_occurrence_on_a_link_of_the_backlog_is_not_held_back() -> None:
    """The link of a chain stands in a minute of the backlog, and all that follows hangs on it."""
    world = World(START, segments=1)
    world.tick_ports = replace(world.tick_ports, catch_up_share=1)
    for number in range(5):
        world.create(f"all-{number}", "* * * * *", catch_up=CatchUp.ALL)
    job = world.create("rare", "every 61m", start_at=START - timedelta(minutes=58))
    world.tick()
    back = START + timedelta(minutes=64)
    world.clock.set(back)
    world.tick()
    first, second = job.schedule.between(START, back)
    assert (first, second) == (START + timedelta(minutes=3), back)
    (kept,) = [
        kept
        for kept in world.queue.kept()
        if kept.message.key.job_id == job.job_id and kept.message.key.fire_at == second
    ]
    assert (kept.visible_at, kept.message.wait_until) == (back, None)


def test_a_visit_of_the_backlog_costs_two_writes(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes = count_writes(world, monkeypatch)
    world.tick()
    assert len(writes) == 4, "two for the live minutes, two for the backlog"


def test_a_doubled_tick_writes_nothing_while_another_works_on_the_backlog(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with dying(world.queue, "send"):
        world.tick()
    assert control_of(world).backlog != ()
    writes = count_writes(world, monkeypatch)
    deadline = world.clock.now() + timedelta(seconds=50)
    outcomes = [one.outcome for one in world.dispatcher().tick((0,), (), deadline)]
    assert outcomes == [SegmentOutcome.CURRENT, SegmentOutcome.HELD]
    assert world.dispatcher().tick((), (0,), deadline) == []
    assert writes == []
    world.clock.advance(60)
    world.tick()
    sent = Counter(kept.message.key.job_id for kept in world.queue.kept())
    assert len(sent) == JOBS
    assert set(sent.values()) == {1}


def test_checkpoints_of_a_slow_live_minute_keep_the_place_in_the_backlog(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or a minute longer than a visit would begin anew each time, and never end."""
    send = world.queue.send

    def slow_send(messages: Sequence[Message], delays: Sequence[float], *until: Any) -> None:
        send(messages, delays)
        world.clock.advance(8)

    for number in range(5):
        world.create(f"live-{number}", "13 * * * *")
    monkeypatch.setattr("carillon.tick.outbox.FULL", 1)
    monkeypatch.setattr(world.queue, "send", slow_send)
    deadline = world.clock.now() + timedelta(seconds=20)
    world.dispatcher().tick(range(1), (), deadline)
    before = control_of(world).backlog_cursor
    assert before is not None
    world.clock.set(BACK + timedelta(minutes=1))
    deadline = world.clock.now() + timedelta(seconds=20)
    (live, *_) = world.dispatcher().tick(range(1), (), deadline)
    assert live.outcome is SegmentOutcome.OUT_OF_TIME
    control = control_of(world)
    assert control.cursor is not None
    assert (control.cursor.minute, control.backlog_cursor) == (minute_of(BACK) + 3, before)


def test_a_minute_that_takes_longer_to_count_than_a_lease_lasts_is_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Live minutes take the segment over when the lease has lapsed, and nothing was recorded."""
    world = behind(jobs=60, share=60)
    query, met = world.wheel.query, {minute_of(BACK)}

    def slow(segment: int, slot: Slot, after_key: str | None = None) -> object:
        world.clock.advance(9 if slot.key == "h5" else 0)
        minute = minute_of(world.clock.now())
        if minute not in met:
            met.add(minute)
            world.dispatcher().dispatch(0, world.clock.now() + timedelta(seconds=52))
        return query(segment, slot, after_key)

    monkeypatch.setattr(world.wheel, "query", slow)
    for number in range(6):
        world.clock.set(BACK + timedelta(minutes=3 * number))
        world.tick()
    assert len({kept.message.key.job_id for kept in world.queue.kept()}) == 60
    assert not control_of(world).backlog
