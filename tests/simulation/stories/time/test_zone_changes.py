"""An upgrade of the time zone database while jobs stand on the wheel.

Almaty, fictitiously: clocks show UTC+5, and by the new database they are put forward or back on
2026-12-10 at 00:00 (2026-12-09T19:00Z). Instants that are dispatched when the new functions begin
are those of the old rules; all later ones are those of the new rules. None is lost, none is
doubled, and from the day after on each comes on its second. (An upgrade that comes while the
clocks differ already is like clocks that are changed at that moment.)
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from carillon.domain.job import Job
from carillon.domain.run import RunStatus
from carillon.domain.wheel.entry import Slot, entries_of, minute_end, minute_of
from carillon.schedules import CalendarRule, Schedule, SlotKind, parse_schedule, slots
from tests.simulation.stories.story import HOUR, Killed, row_of
from tests.simulation.stories.zone_files import put, zone_of, zones_put_back
from tests.support.world import World

ALMATY = "Asia/Almaty"
START = datetime(2026, 12, 8, 22, tzinfo=UTC)
CHANGE = datetime(2026, 12, 9, 19, tzinfo=UTC)
END = datetime(2026, 12, 12, 8, tzinfo=UTC)
OLD = zone_of(5)
NEW = {
    "forward": zone_of(5, (CHANGE, 6)),
    "back": zone_of(5, (CHANGE, 4)),
    "half an hour forward": zone_of(5, (CHANGE, 5.5)),
}


UPGRADES = {
    "more than a day ahead": datetime(2026, 12, 8, 23, 0, 30, tzinfo=UTC),
    "hours ahead": datetime(2026, 12, 9, 12, 0, 30, tzinfo=UTC),
    "hours late": datetime(2026, 12, 9, 22, 0, 30, tzinfo=UTC),
    "with the next one on its way": datetime(2026, 12, 10, 3, 58, 30, tzinfo=UTC),
}
CASES = [
    ("0 9 * * *", SlotKind.DAILY, ""),
    ("0 9 * * *", SlotKind.DAILY, "2h"),
    ("5,25 2-23 * * *", SlotKind.DAILY, ""),
    ("30 * * * *", SlotKind.HOURLY, ""),
    ("0 9 10 12 *", SlotKind.DATED, ""),
    ("15 9,10 10-11 12 *", SlotKind.DATED, ""),
    ("0 9 10 12 *", SlotKind.DATED, "2h"),
    ("at 2026-12-10T09:00:00", SlotKind.DATED, ""),
]
"""Schedules, the kind of their slots, and windows."""
EVERY_UPGRADE = pytest.mark.parametrize("upgrade", UPGRADES)
EVERY_CHANGE = pytest.mark.parametrize("change", NEW)


@pytest.fixture(autouse=True)
def old_zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with zones_put_back():
        put(monkeypatch, ALMATY, OLD)
        yield
        monkeypatch.undo()


def anew(schedule: Schedule) -> Schedule:
    """The schedule as a process reads it that knows the zone by its present rules."""
    return parse_schedule(
        schedule.text, schedule.timezone, schedule.start_at, schedule.end_at, schedule.dst
    )


def upgrade_functions(world: World, monkeypatch: pytest.MonkeyPatch, change: str) -> None:
    """New processes with a new database: they read every stored schedule anew."""
    put(monkeypatch, ALMATY, NEW[change])
    world.tick_ports = replace(world.tick_ports, tzdata="new")
    for slot in world.wheel._slots.values():
        for key, entry in slot.items():
            if entry.schedule is not None:
                slot[key] = replace(entry, schedule=anew(entry.schedule))
    for row_key, job in world.jobs._rows.items():
        world.jobs._rows[row_key] = replace(job, schedule=anew(job.schedule))


def pass_by(world: World, until: datetime) -> None:
    """A tick each minute, and executors that take what is visible then."""
    while world.clock.now() <= until:
        world.tick()
        world.execute()
        world.clock.advance(60)


def run_over(
    world: World, job: Job, monkeypatch: pytest.MonkeyPatch, change: str, upgrade: str
) -> list[datetime]:
    """Let the days pass with the upgrade in them; the instants that are to fire, by both rules."""
    world.tick_ports = replace(world.tick_ports, tzdata="old")
    pass_by(world, UPGRADES[upgrade])
    spread = timedelta(seconds=job.spread_seconds)
    dispatched = minute_end(world.indexer.control(0).watermark) - spread
    before = list(job.schedule.between(job.generation.from_at, dispatched))
    upgrade_functions(world, monkeypatch, change)
    pass_by(world, END)
    stored = row_of(world, job)
    after = list(stored.schedule.between(dispatched, END - spread))
    if slots(job.schedule).kind is SlotKind.DATED:
        # Its chain has gone on beyond the local time that it was at: that does not come again.
        local_times = {fire_at.astimezone(OLD).replace(tzinfo=None) for fire_at in before}
        zone = NEW[change]
        after = [t for t in after if t.astimezone(zone).replace(tzinfo=None) not in local_times]
    return before + after


@EVERY_UPGRADE
@pytest.mark.parametrize(
    ("change", "schedule", "kind", "window"),
    [
        ("half an hour forward", "30 * * * *", SlotKind.HOURLY, ""),
        ("half an hour forward", "0 9 10 12 *", SlotKind.DATED, ""),
        *((change, *case) for change in ("forward", "back") for case in CASES),
    ],
)
def test_nothing_is_lost_or_doubled_by_new_rules(
    schedule: str,
    kind: SlotKind,
    window: str,
    change: str,
    upgrade: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(START, segments=1)
    job = world.create("local", schedule, timezone=ALMATY, window=window, fraction=0.4)
    assert slots(job.schedule, job.spread_seconds).kind is kind
    expected = run_over(world, job, monkeypatch, change, upgrade)
    assert sorted(world.fired(job)) == expected
    history = world.history(job)
    assert [run.key.fire_at for run in history] == expected
    assert {run.status for run in history} <= {RunStatus.SUCCEEDED}
    if upgrade == "more than a day ahead":
        assert {run.lag_seconds for run in history} == {0.0}, "there was time to look ahead"
    day_after = max(UPGRADES[upgrade], CHANGE) + timedelta(days=1, hours=6)
    assert {run.lag_seconds for run in history if run.key.fire_at > day_after} <= {0.0}


@EVERY_UPGRADE
@pytest.mark.parametrize(
    ("schedule", "closed", "rule", "day"),
    [
        ("0 9 10 12 *", "2026-12-10", CalendarRule.NEXT_BUSINESS_DAY, 11),
        ("0 9 11 12 *", "2026-12-11", CalendarRule.PREVIOUS_BUSINESS_DAY, 10),
    ],
)
def test_a_schedule_that_rolls_goes_by_the_new_rules_too(
    upgrade: str,
    schedule: str,
    closed: str,
    rule: CalendarRule,
    day: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(START, segments=1)
    world.close("holidays", closed)
    job = world.create("shifts", schedule, timezone=ALMATY, calendar=("holidays", rule))
    run_over(world, job, monkeypatch, "forward", upgrade)
    # What was on its way keeps its instant: it shows 10:00 by then, and is moved with that.
    hour = 4 if upgrade == "with the next one on its way" and day == 11 else 3
    assert world.fired(job) == [datetime(2026, 12, day, hour, tzinfo=UTC)]


@EVERY_CHANGE
def test_rehoming_is_done_once_and_then_costs_no_write(
    change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(START, segments=1)
    jobs = [
        world.create(f"job-{number}", schedule, timezone=ALMATY)
        for number, schedule in enumerate(["0 9 * * *", "30 * * * *", "5,25 2-23 * * *"])
    ]
    world.tick_ports = replace(world.tick_ports, tzdata="old")
    pass_by(world, UPGRADES["hours ahead"])
    before = {job.job_id: {entry.slot for entry in entries_of(job)} for job in jobs}
    upgrade_functions(world, monkeypatch, change)
    pass_by(world, UPGRADES["hours ahead"] + timedelta(days=1))
    writes: list[object] = []
    monkeypatch.setattr(world.wheel, "put_entries", writes.append)
    pass_by(world, END)
    assert writes == []
    for job in jobs:
        stored = row_of(world, job)
        wanted = {entry.slot for entry in entries_of(stored)} | before[job.job_id]
        assert {slot for slot in wanted if stands_in(world, stored, slot)} == wanted


def test_a_tick_that_dies_in_the_middle_of_rehoming_leaves_all_of_it_to_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """At each of its writes in turn. The occurrence at 03:00Z of the 10th has been passed by."""
    for fatal in (1, 2, 3):
        world = World(START, segments=1)
        job = world.create("job", "0 9 * * *", timezone=ALMATY)
        world.tick_ports = replace(world.tick_ports, tzdata="old")
        pass_by(world, UPGRADES["hours late"])
        with monkeypatch.context() as patch:
            upgrade_functions(world, patch, "forward")
            pass_by(world, datetime(2026, 12, 10, 3, 57, tzinfo=UTC))
            die_at_write(world, patch, fatal)
            with pytest.raises(Killed):
                pass_by(world, datetime(2026, 12, 10, 4, 30, tzinfo=UTC))
            patch.undo()
        with monkeypatch.context() as patch:
            upgrade_functions(world, patch, "forward")
            pass_by(world, END)
        put(monkeypatch, ALMATY, OLD)
        assert world.fired(job) == [
            datetime(2026, 12, 9, 4, tzinfo=UTC),
            datetime(2026, 12, 10, 3, tzinfo=UTC),
            datetime(2026, 12, 11, 3, tzinfo=UTC),
            datetime(2026, 12, 12, 3, tzinfo=UTC),
        ]


def die_at_write(world: World, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Kill the tick at its `number`-th write from now on: of entries, or to the queue."""
    writes = iter(range(1, number))

    def deadly(write: Callable[..., None]) -> Callable[..., None]:
        def call(*args: object) -> None:
            if next(writes, None) is None:
                raise Killed
            write(*args)

        return call

    monkeypatch.setattr(world.wheel, "put_entries", deadly(world.wheel.put_entries))
    monkeypatch.setattr(world.queue, "send", deadly(world.queue.send))


def stands_in(world: World, job: Job, slot: Slot) -> bool:
    return any(entry.job_id == job.job_id for entry in world.wheel.query(0, slot).items)


def test_a_paused_job_is_not_rehomed(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(START, segments=1)
    job = world.create("paused", "0 9 * * *", timezone=ALMATY)
    world.pause(job)
    upgrade_functions(world, monkeypatch, "back")
    pass_by(world, START + timedelta(days=1))
    stored = row_of(world, job)
    (new_slot,) = {e.slot for e in entries_of(stored)} - {Slot(SlotKind.DAILY, 4 * 60)}
    assert not stands_in(world, job, new_slot)


def test_an_upgrade_that_leaves_the_zone_alone_touches_no_entry(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(START, segments=1)
    world.create("job", "0 9 * * *", timezone=ALMATY)
    pass_by(world, START + HOUR)
    world.tick_ports = replace(world.tick_ports, tzdata="new")
    writes: list[object] = []
    monkeypatch.setattr(world.wheel, "put_entries", writes.append)
    pass_by(world, START + timedelta(days=1))
    assert writes == []
    assert world.indexer.control(0).tzdata == "new"


@pytest.mark.parametrize("minutes", range(-2, 6))
def test_a_job_filed_about_a_day_ahead_of_its_occurrence_does_not_rely_on_a_minute_that_is_past(
    minutes: int,
) -> None:
    """Its look ahead lies in a minute that a tick may have dispatched before the entry was put."""
    at = datetime(2026, 12, 10, 4, tzinfo=UTC)
    world = World(at - timedelta(hours=26, minutes=minutes), segments=1)
    world.tick()
    world.clock.advance(20)
    job = world.create("once", "at 2026-12-10T09:00:00", timezone=ALMATY)
    world.clock.advance(40)
    pass_by(world, at)
    assert world.fired(job) == [at]


def test_a_dated_chain_of_a_zone_looks_ahead_of_its_occurrence() -> None:
    """One link a day and more before, which puts the next one by the rules of that day."""
    world = World(START, segments=1)
    job = world.create("yearly", "0 9 10 12 *", timezone=ALMATY)
    (entry,) = entries_of(job)
    at = datetime(2026, 12, 10, 4, tzinfo=UTC)
    assert entry.slot == Slot(SlotKind.DATED, minute_of(at - timedelta(hours=26)))
    utc = world.new_job("utc", "0 9 10 12 *")
    (entry,) = entries_of(utc)
    assert entry.slot.number == minute_of(datetime(2026, 12, 10, 9, tzinfo=UTC))


@pytest.mark.parametrize("chunked", [True, False])
def test_a_standing_entry_that_becomes_a_link_stops_no_segment(
    chunked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the new rules fewer visits to a chain are needed than to slots of days."""
    start = datetime(2026, 12, 8, 22, 0, 30, tzinfo=UTC)
    due = datetime(2026, 12, 10, 3, tzinfo=UTC)
    world = World(start, segments=1)
    world.tick_ports = replace(world.tick_ports, chunked=chunked, tzdata="old")
    quarterly = world.create("quarterly", "0 9 10 3,6,9,12 *", timezone=ALMATY)
    assert slots(quarterly.schedule).kind is SlotKind.DAILY
    others = [world.create(f"hourly-{number}", "0 * * * *") for number in range(5)]
    pass_by(world, start + timedelta(minutes=5))
    upgrade_functions(world, monkeypatch, "forward")
    assert slots(anew(quarterly.schedule)).kind is SlotKind.DATED
    world.leap_to(due - timedelta(hours=23, minutes=2, seconds=30))
    pass_by(world, due - timedelta(hours=22, minutes=58))
    world.leap_to(due - timedelta(minutes=2, seconds=30))
    pass_by(world, due + timedelta(minutes=5))
    assert all(due in world.fired(job) for job in (quarterly, *others))
