"""Faults that must stay where they are: one segment's, one row's, one outage's, one
generation's."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from carillon.domain.calendar import Calendar
from carillon.domain.job import Generation, Job, Lane
from carillon.domain.message import Message
from carillon.domain.policies import CatchUp
from carillon.domain.wheel.entry import Entry, Slot, entries_of, minute_of
from carillon.domain.wheel.segment import Control
from carillon.errors import StoreUnavailableError, UnreadableRowError
from carillon.schedules import CalendarRule, SlotKind, slots
from carillon.tick.counting import SegmentOutcome
from tests.support.jobs import job_with
from tests.support.world import FUNCTION_SECONDS, World

START = datetime(2026, 12, 1, 12, tzinfo=UTC)


def on_the_wheel(world: World, job: Job) -> list[Entry]:
    """The standing entries of exactly this generation of a job that are still there."""
    return [
        found
        for entry in entries_of(job)
        for found in world.wheel.query(entry.segment, entry.slot).items
        if found.key == entry.key
    ]


def in_new_generation(world: World, job: Job) -> Job:
    """The job under a new generation; not indexed."""
    now = world.clock.now()
    return job.in_new_generation(
        Generation(world.entropy.new_id(now), now.replace(microsecond=0)), now
    )


def test_a_control_item_of_anothers_segment_that_cannot_be_read_does_not_stop_the_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(START, segments=2)
    get_control = world.wheel.get_control

    def throttled(segment: int) -> Control | None:
        if segment == 1:
            raise StoreUnavailableError("throttled")
        return get_control(segment)

    monkeypatch.setattr(world.wheel, "get_control", throttled)
    reports = world.dispatcher().tick([0], [1], START + timedelta(seconds=50))
    assert [(report.segment, report.outcome) for report in reports] == [
        (0, SegmentOutcome.DISPATCHED),
        (1, SegmentOutcome.FAILED),
    ]


@pytest.mark.parametrize("error", [UnreadableRowError, StoreUnavailableError])
def test_a_job_row_that_cannot_be_read_holds_up_no_other_job_and_keeps_its_chain(
    monkeypatch: pytest.MonkeyPatch, error: type[StoreUnavailableError]
) -> None:
    """The tick reads the job of a dated link before it files the next one. A row of a later
    version, of a time zone that is no more, or of a partition that is throttled may come back."""
    world = World(START, segments=1)
    others = [world.create(f"other-{number}", "10 * * * *") for number in range(5)]
    before = START - timedelta(minutes=1001)
    job = world.create("unreadable", "every 1001m offset 10m", start_at=before)
    assert slots(job.schedule).kind is SlotKind.DATED
    fire_at = START + timedelta(minutes=10)
    world.run_until(START + timedelta(minutes=7))
    get = world.jobs.get

    def read(owner: str, job_id: str) -> Job | None:
        if job_id == job.job_id:
            raise error("not now")
        return get(owner, job_id)

    with monkeypatch.context() as patch:
        patch.setattr(world.jobs, "get", read)
        world.run_until(START + timedelta(minutes=15))
    assert [world.fired(other) for other in others] == [[fire_at]] * len(others)
    assert any(error.__name__ in where for where in world.bad_entries)
    following = Slot(SlotKind.DATED, minute_of(fire_at + timedelta(minutes=1001)))
    assert [entry.job_id for entry in world.wheel.query(0, following).items] == [job.job_id]
    world.run_until(START + timedelta(minutes=16))
    assert world.fired(job) == [fire_at], "the occurrence has waited for its row"


def test_catching_up_holds_the_lease_for_no_more_than_a_minute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The tick's function may be given fifteen minutes, and sending takes long here: meanwhile the
    ticks of the next minutes come, and their live minutes must not wait for the backlog."""
    world = World(START, segments=1)
    for number in range(20):
        world.create(f"job-{number}", "* * * * *", catch_up=CatchUp.ALL)
    world.tick()
    back_at = START + timedelta(hours=2)
    world.clock.set(back_at)
    monkeypatch.setattr("carillon.tick.outbox.FULL", 1)
    send = world.queue.send
    held: list[datetime] = []

    def slow(messages: Sequence[Message], delays: Sequence[float], *until: Any) -> None:
        send(messages, delays)
        minute = minute_of(world.clock.now())
        world.clock.advance(0.5)
        if minute_of(world.clock.now()) == minute:
            return
        with monkeypatch.context() as patch:
            patch.setattr(world.queue, "send", send)
            if [report.outcome for report in world.tick()] == [SegmentOutcome.HELD]:
                held.append(world.clock.now())

    monkeypatch.setattr(world.queue, "send", slow)
    reports = world.dispatcher().tick([0], (), back_at + timedelta(minutes=15))
    assert [report.backlog for report in reports] == [True, True], "the outage is not yet made up"
    assert len(held) <= 1


def test_entries_of_a_filing_that_lost_its_commit_leave_the_wheel() -> None:
    """Of two resumes at once, one loses: its entries yield the same instants as the winner's, and
    every one of its messages is a duplicate. Duplicates have to tidy up as well."""
    world = World(START, segments=1)
    job = world.create("job", "*/10 * * * *")
    world.clock.advance(1)
    lost = in_new_generation(world, job)
    assert not world.indexer.index_job(lost, job.revision + 1)
    assert len(on_the_wheel(world, lost)) == 6
    world.run_until(START + timedelta(hours=3))
    assert on_the_wheel(world, lost) == []
    assert len(on_the_wheel(world, job)) == 6
    assert world.fired(job) == [START + timedelta(minutes=10 * n) for n in range(1, 19)]


def test_entries_of_a_replaced_filing_leave_the_wheel_when_its_lane_is_the_slower_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The new generation's message always has the run first: the old one's only meets what is
    done."""
    world = World(START, segments=1)
    job = world.create("job", "*/10 * * * *")
    world.run_until(START + timedelta(minutes=1))
    changed = in_new_generation(world, job_with(job, priority=Lane.HIGH))
    assert world.indexer.index_job(changed, job.revision)

    def execute_high_lane_first() -> None:
        ends_at = world.clock.now() + timedelta(seconds=FUNCTION_SECONDS)
        for lane in (Lane.HIGH, Lane.NORMAL):
            for received in world.queue.receive(world.clock.now(), 100, lane):
                world.executor.handle(received.message, ends_at)
                world.queue.delete(received.receipt)

    monkeypatch.setattr(world, "execute", execute_high_lane_first)
    world.run_until(START + timedelta(hours=3))
    assert on_the_wheel(world, job) == []
    assert len(on_the_wheel(world, changed)) == 6


def test_a_calendar_that_no_version_can_read_is_asked_for_once_a_tick(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(START, segments=2)
    rolling = ("holidays", CalendarRule.PREVIOUS_BUSINESS_DAY)
    for number in range(12):
        world.create(f"job-{number}", "* * * * *", calendar=rolling)
    world.tick()
    world.clock.advance(60)
    asked: list[str] = []

    def unreadable(owner: str, name: str) -> Calendar | None:
        asked.append(name)
        raise UnreadableRowError("of a later version")

    monkeypatch.setattr(world.calendars, "get", unreadable)
    reports = world.tick()
    assert asked == ["holidays"]
    assert {report.outcome for report in reports} == {SegmentOutcome.DISPATCHED}
    assert sum(report.messages for report in reports) == 12
    assert len(world.bad_entries) == 12, "each is told of"
