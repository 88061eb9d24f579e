"""The version of the time zone database beside outages: what one says of a minute, the other keeps.

Occurrences that a catch-up has passed over stay so, whatever the ticks know of zones; a new
database that comes with the end of an outage leaves the outage to the catch-up.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from carillon.domain.job import Job
from carillon.domain.message import Message
from carillon.domain.policies import CatchUp
from carillon.domain.wheel.entry import Slot, minute_of
from carillon.domain.wheel.segment import Backlog, Cursor
from carillon.schedules import SlotKind
from tests.simulation.stories.story import MIDNIGHT, MINUTE
from tests.simulation.stories.time.test_zone_changes import ALMATY, OLD, pass_by, upgrade_functions
from tests.simulation.stories.zone_files import put, zones_put_back
from tests.support.world import World

NINE_AND_TEN = "15 9,10 10-11 12 *"
"""A dated chain: at 04:15Z and 05:15Z of the 10th and the 11th."""
PASSING_OVER = pytest.mark.parametrize("policy", [CatchUp.SKIP, CatchUp.LATEST])


@pytest.fixture(autouse=True)
def old_zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with zones_put_back():
        put(monkeypatch, ALMATY, OLD)
        yield
        monkeypatch.undo()


@PASSING_OVER
@pytest.mark.parametrize("days", [0, 2], ids=lambda days: f"{days} days after the first tick")
def test_what_a_catch_up_passed_over_does_not_run_a_day_later(policy: CatchUp, days: int) -> None:
    world = World(datetime(2026, 12, 10 - days, 3, tzinfo=UTC), segments=1)
    job = world.create("local", NINE_AND_TEN, timezone=ALMATY, catch_up=policy)
    pass_by(world, datetime(2026, 12, 10, 4, 5, tzinfo=UTC))
    world.clock.set(datetime(2026, 12, 10, 6, 30, tzinfo=UTC))
    pass_by(world, datetime(2026, 12, 11, 8, tzinfo=UTC))
    caught_up = [datetime(2026, 12, 10, 5, 15, tzinfo=UTC)] if policy is CatchUp.LATEST else []
    after = [datetime(2026, 12, 11, hour, 15, tzinfo=UTC) for hour in (4, 5)]
    assert world.fired(job) == caught_up + after


def test_a_dated_chain_of_a_zone_is_sent_once(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(datetime(2026, 12, 8, tzinfo=UTC), segments=1)
    world.create("local", NINE_AND_TEN, timezone=ALMATY)
    sent: list[datetime] = []
    send = world.queue.send

    def counted(messages: Sequence[Message], delays: Sequence[float], *until: Any) -> None:
        sent.extend(message.key.fire_at for message in messages)
        send(messages, delays)

    monkeypatch.setattr(world.queue, "send", counted)
    pass_by(world, datetime(2026, 12, 11, 8, tzinfo=UTC))
    assert sent == [
        datetime(2026, 12, d, hour, 15, tzinfo=UTC) for d in (10, 11) for hour in (4, 5)
    ]


@PASSING_OVER
def test_new_rules_that_come_with_the_end_of_an_outage_leave_it_to_the_catch_up(
    policy: CatchUp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Live minutes come first: one of them meets the old entry before the backlog does."""
    world, job = with_new_rules_after_an_outage(policy, monkeypatch)
    pass_by(world, BACK + timedelta(hours=2))
    caught_up = [BACK.replace(minute=0)] if policy is CatchUp.LATEST else []
    assert sorted(world.fired(job)) == [*caught_up, *AFTER]
    assert {run.covers_from for run in world.history(job)} == {None, TICKS_STOP.replace(minute=30)}


def test_a_minute_that_was_begun_before_meets_the_new_entries(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A tick ran out of time in the backlog's next minute, behind the place of the new entry."""
    world, job = with_new_rules_after_an_outage(CatchUp.ALL, monkeypatch)
    missed = BACK.replace(minute=0)
    seen = world.indexer.control(0)
    cursor = Cursor(minute_of(missed), Slot(SlotKind.HOURLY, 0).key, "~")
    before = minute_of(missed) - 1
    begun = replace(seen, horizon=before + 2, watermark=before, cursor=cursor)
    assert world.wheel.put_control(begun, over=seen)
    pass_by(world, BACK + timedelta(hours=2))
    assert sorted(world.fired(job))[-3:] == [missed, *AFTER]


TICKS_STOP = datetime(2026, 12, 9, 18, 11, tzinfo=UTC)
BACK = datetime(2026, 12, 9, 22, 29, tzinfo=UTC)
AFTER = [datetime(2026, 12, 9, 23, tzinfo=UTC), datetime(2026, 12, 10, 0, tzinfo=UTC)]


def with_new_rules_after_an_outage(
    policy: CatchUp, monkeypatch: pytest.MonkeyPatch
) -> tuple[World, Job]:
    """An hourly job, at half past, and by the new rules at the hour from 19:00Z on."""
    start = datetime(2026, 12, 9, 18, tzinfo=UTC)
    world = World(start, segments=1)
    job = world.create("hourly", "30 * * * *", timezone=ALMATY, catch_up=policy)
    pass_by(world, TICKS_STOP - MINUTE)
    world.clock.set(BACK)
    upgrade_functions(world, monkeypatch, "half an hour forward")
    return world, job


@PASSING_OVER
def test_the_minutes_before_the_first_tick_of_a_segment_are_no_outage(policy: CatchUp) -> None:
    """A indexer has made its control item; the tick of that minute would have announced them."""
    world = World(MIDNIGHT + timedelta(seconds=10), segments=1)
    job = world.create("new", "*/20 * * * * *", catch_up=policy)
    world.run_until(MIDNIGHT + timedelta(minutes=4))
    assert [run.reason for run in world.history(job) if run.reason] == []
    assert sorted(world.fired(job)) == list(
        job.schedule.between(job.generation.from_at, world.clock.now())
    )


def test_a_first_tick_that_is_hours_late_ends_an_outage() -> None:
    world = World(MIDNIGHT + timedelta(seconds=10), segments=1)
    job = world.create("new", "*/10 * * * *", catch_up=CatchUp.SKIP)
    world.run_until(MIDNIGHT + timedelta(hours=3, seconds=30), ticking=False)
    world.run_until(MIDNIGHT + timedelta(hours=3, minutes=15))
    assert world.fired(job) == [MIDNIGHT + timedelta(hours=3, minutes=10)]


def test_so_does_one_of_a_second_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another tick has the live minutes, and dies: the backlog of the first outage comes to the old
    entry, before that of the second comes to the minute that was begun."""
    world, job = with_new_rules_after_an_outage(CatchUp.ALL, monkeypatch)
    missed = BACK.replace(minute=0)
    seen, before = world.indexer.control(0), minute_of(missed) - 1
    gap = Backlog(seen.horizon, seen.watermark, before, BACK.replace(hour=21, minute=59))
    cursor = Cursor(before + 1, Slot(SlotKind.HOURLY, 0).key, "~")
    begun = replace(seen, horizon=before + 2, watermark=before, backlog=(gap,), cursor=cursor)
    assert world.wheel.put_control(begun, over=seen)
    world.dispatcher().dispatch(0, BACK + MINUTE, backlog=True)
    pass_by(world, BACK + timedelta(hours=2))
    assert sorted(world.fired(job))[-3:] == [missed, *AFTER]
