"""A tick that has time sends just before a whole second, and is killed while it waits."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from threading import Barrier
from time import monotonic, sleep
from typing import Any

import pytest

from carillon.clock import ManualClock, SideBySideThreads, SystemClock
from carillon.domain.job import Job
from carillon.domain.spec.names import job_id_of
from carillon.domain.wheel.entry import Slot, minute_of
from carillon.domain.wheel.segment import Control
from carillon.errors import StoreUnavailableError
from carillon.tick.counting import SegmentOutcome
from carillon.tick.dispatcher import Dispatcher
from tests.support.world import OWNER, World
from tests.unit.faults import Killed

START = datetime(2026, 12, 1, 12, tzinfo=UTC)
ODD = timedelta(seconds=0.4)
JOBS = 12


@pytest.fixture
def world() -> World:
    """Every job is due in every minute; a tick has come, and the next one is to."""
    return made(segments=4)


def made(segments: int) -> World:
    world = World(START, segments=segments)
    for number in range(JOBS):
        world.create(f"job-{number}", "30 * * * * *")
    world.run_until(START + timedelta(seconds=59))
    world.clock.set(START + timedelta(minutes=1) + ODD)
    return world


def jobs_of(world: World) -> list[Job]:
    found = [world.jobs.get(OWNER, job_id_of(OWNER, f"job-{number}")) for number in range(JOBS)]
    return [job for job in found if job is not None]


def visible_times(world: World, since: int) -> set[datetime]:
    """Of the messages for the minutes from this one on."""
    kept = world.queue.kept()
    return {each.visible_at for each in kept if minute_of(each.message.due_at) >= since}


def controls(world: World) -> list[Control]:
    found = [world.wheel.get_control(segment) for segment in range(world.segments)]
    return [control for control in found if control is not None]


def test_messages_appear_just_before_their_second_and_the_tick_waits_once(world: World) -> None:
    began_at, last = world.clock.now(), minute_of(world.clock.now()) + 2
    assert sum(report.messages for report in world.tick()) == JOBS
    assert (world.clock.now() - began_at).total_seconds() == pytest.approx(0.57)
    due_at = START + timedelta(minutes=3, seconds=30)
    assert visible_times(world, last) == {due_at - timedelta(seconds=0.03)}
    world.run_until(START + timedelta(minutes=5))
    lags = [run.lag_seconds for job in jobs_of(world) for run in world.history(job)]
    assert all(lag is not None and 0 <= lag <= 1 for lag in lags), "never before its second"


def test_a_tick_killed_while_it_waits_has_sent_and_moved_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    queued, before = len(world.queue.kept()), [c.watermark for c in controls(world)]

    def die(seconds: float) -> None:
        if seconds > 0:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(world.clock, "sleep", die)
        with pytest.raises(Killed):
            world.tick()
    assert len(world.queue.kept()) == queued
    assert [control.watermark for control in controls(world)] == before
    world.run_until(START + timedelta(minutes=6))
    fired = [fire_at for job in jobs_of(world) for fire_at in world.fired(job)]
    wanted = [START + timedelta(minutes=n, seconds=30) for n in range(6)]
    assert sorted(fired) == sorted(wanted * JOBS)


def test_what_was_missed_goes_at_once_and_so_does_whatever_is_sent_beside_it() -> None:
    world = made(segments=1)
    world.clock.set(START + timedelta(minutes=20) + ODD)
    before = {one.receipt for one in world.queue.kept()}
    slept = slept_by(world)
    world.tick()
    assert slept == [], "neither for live minutes that no tick has served nor for a backlog"
    sent = [one for one in world.queue.kept() if one.receipt not in before]
    assert {one.message.due_at.minute for one in sent} >= {20, 21, 22}


def test_the_last_messages_of_a_herd_do_not_wait(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What came before them is on its way already."""
    monkeypatch.setattr("carillon.tick.outbox.FULL", 1)
    slept = slept_by(world)
    assert sum(report.messages for report in world.tick()) == JOBS
    assert slept == []


def slept_by(world: World) -> list[float]:
    slept: list[float] = []
    sleep_once: Callable[[float], None] = world.clock.sleep

    def counted(seconds: float) -> None:
        slept.append(seconds)
        sleep_once(seconds)

    world.clock.sleep = counted  # type: ignore[method-assign]
    return slept


class Slow:
    """A store each of whose calls takes a while, and which fails in one segment."""

    def __init__(self, store: Any, seconds: float, fails_in: int = -1) -> None:
        self._store = store
        self._seconds = seconds
        self._fails_in = fails_in

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._store, name)

        def slow(*args: Any, **more: Any) -> Any:
            sleep(self._seconds)
            return call(*args, **more)

        return slow

    def query(self, segment: int, slot: Slot, after_key: str | None = None) -> Any:
        sleep(self._seconds)
        if segment == self._fails_in:
            raise StoreUnavailableError("throttled")
        return self._store.query(segment, slot, after_key)


class Standing(ManualClock):
    """Real sleep, standing time: threads share it."""

    def sleep(self, seconds: float) -> None:
        SystemClock().sleep(seconds)


def test_segments_are_visited_side_by_side_and_fail_alone(world: World) -> None:
    clock = Standing(world.clock.now())
    ports = replace(
        world.tick_ports,
        clock=clock,
        wheel=Slow(world.wheel, 0.05, fails_in=2),
        side_by_side=SideBySideThreads(16),
    )
    began = monotonic()
    dispatcher = Dispatcher(ports, lease_owner="x" * 26, look_ahead_minutes=2)
    reports = dispatcher.tick(range(4), (), clock.now() + timedelta(seconds=52))
    assert monotonic() - began < 4 * 4 * 0.05 + 4 * 0.55, "one after the other"
    outcomes = {report.segment: report.outcome for report in reports}
    assert outcomes.pop(2) is SegmentOutcome.FAILED
    assert set(outcomes.values()) == {SegmentOutcome.DISPATCHED}


def test_the_threads_of_a_tick() -> None:
    """All calls are under way at one time; answers come in their order; what one raises is raised;
    more than there are threads take turns."""
    together, threads = Barrier(4), SideBySideThreads(4)

    def meet(number: int) -> int:
        together.wait(10)
        return number

    assert threads([partial(meet, number) for number in range(4)]) == [0, 1, 2, 3]
    assert threads([partial(int, number) for number in range(50)]) == list(range(50))
    assert threads([]) == []

    def raises() -> int:
        raise Killed

    with pytest.raises(Killed):
        threads([lambda: 1, raises])
