"""Calendars: closed days are skipped or moved, as the calendar is at that moment."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from carillon.domain.calendar import Calendar
from carillon.domain.job import Job
from carillon.domain.policies import CatchUp
from carillon.domain.run import Run, RunKind, RunStatus
from carillon.domain.wheel.entry import message_of
from carillon.errors import StoreUnavailableError
from carillon.schedules import CalendarRule
from tests.simulation.stories.story import succeeded
from tests.support.world import FUNCTION_SECONDS, World

SKIP = CalendarRule.SKIP
NEXT = CalendarRule.NEXT_BUSINESS_DAY
PREVIOUS = CalendarRule.PREVIOUS_BUSINESS_DAY

XMAS_EVE = datetime(2026, 12, 24, tzinfo=UTC)  # a Thursday
NINE = timedelta(hours=9)


def day(number: int, hour: int = 9, minute: int = 0) -> datetime:
    return datetime(2026, 12, number, hour, minute, tzinfo=UTC)


def jump(world: World, to: datetime) -> None:
    """Let time pass by minutes."""
    while world.clock.now() < to:
        world.tick()
        world.execute()
        world.clock.advance(60)


def over_nines(world: World, *days: int) -> None:
    """Let time pass from 08:55 to 09:15 of these days; nothing is due in between."""
    for number in days:
        world.leap_to(day(number, 8, 55))
        jump(world, day(number, 9, 15))


def outcomes(world: World, job: Job) -> dict[datetime, tuple[RunStatus, str | None]]:
    return {run.key.fire_at: (run.status, run.note) for run in world.history(job)}


def test_a_closed_day_is_skipped_and_the_history_says_why() -> None:
    world = World(XMAS_EVE)
    world.close("holidays", "2026-12-25", weekdays=[5])
    job = world.create("daily", "0 9 * * *", calendar=("holidays", SKIP))
    over_nines(world, 24, 25, 26, 27)
    assert outcomes(world, job) == {
        day(24): (RunStatus.SUCCEEDED, None),
        day(25): (RunStatus.SKIPPED, "2026-12-25 is closed in calendar holidays"),
        day(26): (RunStatus.SKIPPED, "2026-12-26 is closed in calendar holidays"),
        day(27): (RunStatus.SUCCEEDED, None),
    }
    assert {run.reason for run in world.history(job)} == {None, "calendar"}
    assert world.fired(job) == [day(24), day(27)]


@pytest.mark.parametrize(
    ("schedule", "rule", "moved_to"),
    [
        ("0 9 * * FRI", NEXT, day(28)),
        ("0 9 * * FRI", PREVIOUS, day(24)),
        ("at 2026-12-25T09:00:00", NEXT, day(28)),
        ("at 2026-12-25T09:00:00", PREVIOUS, day(24)),
    ],
)
@pytest.mark.parametrize("window", ["", "15m"])
def test_an_occurrence_moves_to_an_open_day_and_the_history_says_from_where(
    schedule: str, rule: CalendarRule, moved_to: datetime, window: str
) -> None:
    world = World(XMAS_EVE)
    world.close("holidays", "2026-12-25", weekdays=[5, 6])
    job = world.create("moved", schedule, calendar=("holidays", rule), window=window, fraction=0.5)
    over_nines(world, 24, 25, 26, 27, 28)
    (run,) = world.history(job)
    assert (run.key.fire_at, run.status) == (moved_to, RunStatus.SUCCEEDED)
    assert run.note == "moved from 2026-12-25 by calendar holidays"
    offset = timedelta(seconds=450 if window else 0)
    assert job.spread_seconds == offset.total_seconds()
    assert (run.effective_at or run.key.fire_at) == moved_to + offset


def test_what_moves_to_a_day_that_has_its_own_occurrence_is_one_run() -> None:
    world = World(XMAS_EVE)
    world.close("holidays", "2026-12-25", weekdays=[5, 6])
    job = world.create("daily", "0 9 * * *", calendar=("holidays", NEXT))
    over_nines(world, 24, 25, 26, 27, 28, 29)
    assert succeeded(world, job) == [day(24), day(28), day(29)]
    assert len(world.history(job)) == 3
    notes = [run.note for run in world.history(job)]
    days = "2026-12-25, 2026-12-26, 2026-12-27"
    assert notes == [None, f"moved from {days} by calendar holidays", None]


def test_the_next_tick_sees_a_changed_calendar() -> None:
    """Neither the job's row nor its entries are touched."""
    world = World(XMAS_EVE, segments=1)
    world.close("holidays", "2026-12-25")
    skips = world.create("skips", "0 9 * * *", calendar=("holidays", SKIP))
    shifts = world.create("shifts", "0 9 * * *", calendar=("holidays", NEXT))
    over_nines(world, 24)
    world.leap_to(day(25, 8, 50))
    world.tick()
    world.close("holidays", "2026-12-26")
    over_nines(world, 25, 26, 27)
    expected = [day(24), day(25), day(27)]
    assert succeeded(world, skips) == succeeded(world, shifts) == expected
    assert (skips, shifts) == tuple(world.jobs.get(j.owner, j.job_id) for j in (skips, shifts))


@pytest.mark.parametrize("schedule", ["every 5m", "every 5m after finish"])
@pytest.mark.parametrize("rule", [NEXT, PREVIOUS])
def test_a_calendar_without_any_open_day_can_be_opened_again(
    rule: CalendarRule, schedule: str
) -> None:
    world = World(XMAS_EVE, segments=1)
    world.close("never", weekdays=range(7))
    job = world.create("waits", schedule, calendar=("never", rule))
    jump(world, XMAS_EVE + timedelta(minutes=3))
    assert world.history(job) == []
    world.close("never")
    jump(world, XMAS_EVE + timedelta(minutes=20))
    assert len(succeeded(world, job)) >= 2


def test_a_day_that_the_previous_day_should_have_had_runs_at_once_when_it_is_closed_late() -> None:
    world = World(XMAS_EVE + NINE)
    job = world.create("daily", "0 9 25 12 *", calendar=("holidays", PREVIOUS))
    world.leap_to(day(25, 8, 50))
    jump(world, day(25, 8, 59))
    world.close("holidays", "2026-12-25")
    jump(world, day(25, 9, 5))
    (run,) = world.history(job)
    assert (run.key.fire_at, run.status) == (day(24), RunStatus.SUCCEEDED)


def test_a_calendar_that_is_deleted_closes_nothing() -> None:
    world = World(XMAS_EVE)
    world.close("holidays", "2026-12-24", "2026-12-25")
    job = world.create("daily", "0 9 * * *", calendar=("holidays", SKIP))
    over_nines(world, 24)
    assert world.calendars.delete(job.owner, "holidays", 1)
    over_nines(world, 25)
    assert succeeded(world, job) == [day(25)]


@pytest.mark.parametrize("policy", [CatchUp.LATEST, CatchUp.SKIP])
@pytest.mark.parametrize(
    ("schedule", "rule", "own", "covered", "note"),
    [
        # 25 and 26 are closed. Down from the 23rd 12:00 to the 26th 12:00, and to the 27th 12:00.
        ("0 9,18 * * *", SKIP, day(24, 18), 2, None),
        ("0 9,18 * * *", NEXT, day(27), 7, "4 of them on days closed in calendar holidays"),
    ],
)
def test_catch_up_counts_what_would_have_run(
    policy: CatchUp,
    schedule: str,
    rule: CalendarRule,
    own: datetime,
    covered: int,
    note: str | None,
) -> None:
    world = World(day(23, 11), segments=1)
    world.close("holidays", "2026-12-25", "2026-12-26")
    job = world.create("caught", schedule, calendar=("holidays", rule), catch_up=policy)
    jump(world, day(23, 12))
    world.clock.set(day(26, 12) if rule is SKIP else day(27, 12))
    jump(world, world.clock.now() + timedelta(minutes=2))
    runs = {run.key.fire_at: run for run in world.history(job)}
    last = runs.pop(own)
    expected = RunStatus.SUCCEEDED if policy is CatchUp.LATEST else RunStatus.SKIPPED
    assert last.status is expected
    (missed,) = (run for run in runs.values() if run.key.kind is RunKind.MISSED)
    assert (missed.covers_count, missed.covers_from, missed.note) == (covered, day(23, 18), note)
    others = {t: r.reason for t, r in runs.items() if r is not missed}
    closed = {day(n, h): "calendar" for n in (25, 26) for h in (9, 18) if day(n, h) < day(26, 12)}
    assert others == (closed if rule is SKIP else {})


def test_closed_days_between_missed_ones_are_covered_by_the_same_row() -> None:
    world = World(day(23, 11), segments=1)
    world.close("holidays", "2026-12-24", "2026-12-25")
    job = world.create("caught", "0 9,18 * * *", calendar=("holidays", SKIP))
    jump(world, day(23, 12))
    world.clock.set(day(26, 12))
    jump(world, world.clock.now() + timedelta(minutes=2))
    assert succeeded(world, job) == [day(26)]
    missed, last = world.history(job)
    assert (missed.covers_from, missed.key.fire_at) == (day(23, 18), day(25, 18))
    assert missed.covers_count == 5
    assert missed.note == "4 of them on days closed in calendar holidays"
    assert last.key.fire_at == day(26)


def test_a_day_opened_after_a_catch_up_has_passed_over_it_does_not_run() -> None:
    """The last occurrences of the outage were closed when it was caught up, and are opened then."""
    world = World(day(23, 11), segments=1)
    world.close("holidays", "2026-12-25")
    policy = CatchUp.SKIP
    job = world.create("caught", "0 9,18 * * *", calendar=("holidays", SKIP), catch_up=policy)
    jump(world, day(23, 12))
    world.clock.set(day(25, 19))
    world.tick()
    world.close("holidays", "2026-12-31")
    jump(world, day(25, 19, 5))
    assert world.fired(job) == []
    reasons = {run.key.fire_at: run.reason for run in world.history(job)}
    assert {day(25), day(25, 18)} < reasons.keys()
    assert set(reasons.values()) == {"catch_up"}


@pytest.mark.parametrize("rule", [SKIP, NEXT])
def test_an_executor_that_cannot_read_the_calendar_waits_and_loses_no_attempt(
    rule: CalendarRule, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(day(24, 8, 58), segments=1)
    job = world.create("daily", "0 9 * * *", calendar=("holidays", rule))
    world.tick()
    world.clock.set(day(24))
    with monkeypatch.context() as patch:
        patch.setattr(world.calendars, "get", failing(StoreUnavailableError("throttled")))
        world.execute()
        assert world.history(job) == []
    world.clock.advance(10)
    world.execute()
    (run,) = world.history(job)
    assert (run.status, run.attempt) == (RunStatus.SUCCEEDED, 1)


def test_a_tick_that_cannot_read_a_calendar_repeats_the_minute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(day(24, 8, 57), segments=1)
    world.close("holidays", "2026-12-24")
    job = world.create("moved", "0 9 * * *", calendar=("holidays", PREVIOUS))
    plain = world.create("plain", "0 9 * * *")
    world.tick()
    world.clock.set(day(24, 8, 58))
    with monkeypatch.context() as patch:
        patch.setattr(world.calendars, "get", failing(StoreUnavailableError("throttled")))
        (report,) = world.tick()
        assert report.outcome.value == "failed"
    jump(world, day(24, 9, 2))
    assert world.fired(plain) == [day(24)]
    assert world.fired(job) == [day(23)], "at its closed day's time, as its earlier day is over"


def failing(error: StoreUnavailableError) -> Callable[[str, str], Calendar | None]:
    def get(owner: str, name: str) -> Calendar | None:
        raise error

    return get


def test_a_tick_reads_each_calendar_once_and_writes_no_entry(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(XMAS_EVE, segments=2)
    world.close("holidays", "2026-12-25")
    for number in range(30):
        calendar = ("holidays", (NEXT, PREVIOUS, SKIP)[number % 3])
        world.create(f"job-{number}", "* * * * *", calendar=calendar, window="40s")
    world.tick()
    world.clock.advance(60)
    reads: list[str] = []
    writes: list[object] = []
    get = world.calendars.get

    def counted(owner: str, name: str) -> Calendar | None:
        reads.append(name)
        return get(owner, name)

    monkeypatch.setattr(world.calendars, "get", counted)
    monkeypatch.setattr(world.wheel, "put_entries", writes.append)
    reports = world.tick()
    assert sum(report.messages for report in reports) == 30
    assert reads == ["holidays"]
    assert writes == []


def test_a_manual_run_does_not_ask_the_calendar() -> None:
    world = World(day(24, 8, 59))
    world.close("holidays", "2026-12-24")
    job = world.create("job", "0 9 * * *", calendar=("holidays", SKIP))
    ends_at = world.clock.now() + timedelta(seconds=FUNCTION_SECONDS + 120)
    message = message_of(job, day(24))
    key = replace(message.key, kind=RunKind.MANUAL, request_id="r")
    manual, now = replace(message, key=key), world.clock.now()
    row = Run(key, RunStatus.SCHEDULED, 0, 0, "", manual.generation_id, now, now)
    assert world.runs.claim(row, None)
    world.clock.set(day(24))
    world.executor.handle(manual, ends_at)
    assert world.fired(job) == [day(24)]
